use wharf::{Level, Result, ToolCall, Verdict};

wharf::hooks!(before_execute_tool);

fn before_execute_tool(call: ToolCall) -> Verdict {
    let command = call.arguments.str("command");
    if !command.contains("git push") {
        return Verdict::none(); // no opinion
    }
    if let Ok(remote) = wharf::config("remote") {
        if remote.as_str().map_or(false, |name| command.contains(name)) {
            return Verdict::none();
        }
    }
    let reason = "pushing is the user's: say what you would push";
    match count() {
        Ok(times) => Verdict::deny(format!("{reason} (refused {times} times)")),
        Err(error) => {
            // it has no memory, and refuses all the same
            wharf::log(Level::Warning, &format!("not counted: {error}"));
            Verdict::deny(reason)
        }
    }
}

/// Counts a refusal, in this and all earlier sessions.
fn count() -> Result<i64> {
    let times = wharf::kv_get("refused")?.as_int().unwrap_or(0) + 1;
    wharf::kv_set("refused", times)?;
    Ok(times)
}
