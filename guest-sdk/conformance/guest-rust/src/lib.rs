//! Obeys the scripts of the conformance vectors with the SDK for Rust: payloads
//! and tool calls come through its types; what an answer says exactly, which no
//! type lets one say, goes back as it is.

use wharf::{raw_hooks, Answer, Json, Level, Output, ToolInput};

/// An answer as a script has it.
struct Exactly(String);

impl Answer for Exactly {
    fn encode(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

impl Output for Exactly {
    fn encode(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

/// Handles points where an answer counts, and reads one key of the payload.
macro_rules! points {
    ($($point:ident($payload:ident) reads $key:ident,)+) => {
        wharf::hooks!($($point),+);
        $(fn $point(payload: wharf::$payload) -> Exactly {
            let value = of(&payload.$key);
            obey(&payload.session_id, |key| if key == stringify!($key) { value.clone() } else { String::new() })
        })+
    };
}

points! {
    session_start(SessionStart) reads source,
    user_prompt_submit(Text) reads text,
    before_run(Text) reads text,
    before_iteration(BeforeIteration) reads steps,
    before_request(BeforeRequest) reads model,
    on_request_error(OnRequestError) reads class,
    before_execute_tools(BeforeExecuteTools) reads calls,
    before_execute_tool(ToolCall) reads call_id,
    permission_request(PermissionRequest) reads call_id,
    after_execute_tool(DoneCall) reads call_id,
    on_execute_tool_error(OnExecuteToolError) reads call_id,
    subagent_start(SubagentStart) reads task,
    subagent_stop(SubagentStop) reads result,
    before_compact(BeforeCompact) reads messages,
    turn_stopping(Text) reads text,
    finalize_content(Text) reads text,
}

/// Handles points where a handler only looks on: the vectors try what an answer
/// does there, which the SDK's types do not allow.
macro_rules! watched {
    ($($point:ident,)+) => {
        raw_hooks!($($point),+);
        $(fn $point(payload: &[u8]) -> Vec<u8> {
            let payload = Json::parse(&String::from_utf8_lossy(payload)).unwrap();
            Answer::encode(obey(payload.str("session_id"), |key| payload.get(key).to_string()))
        })+
    };
}

watched! {
    emit_reasoning_end, on_stream_end, on_provider_tool_event, after_iteration, after_compact, notification, after_run,
    on_error, on_finally, session_end,
}

raw_hooks!(emit_reasoning, on_stream);

fn emit_reasoning(text: &[u8]) -> Vec<u8> {
    Answer::encode(obey(&String::from_utf8_lossy(text), |_| String::new()))
}

fn on_stream(text: &[u8]) -> Vec<u8> {
    emit_reasoning(text)
}

wharf::tools!("do" => work);

fn work(input: ToolInput) -> Exactly {
    let script = input.arguments.str("do");
    match script.strip_prefix("read ") {
        Some("arguments") => content(input.arguments.to_string()),
        Some("name") => content(of(&input.name)),
        Some("call_id") => content(of(&input.call_id)),
        _ => obey(script, |_| String::new()),
    }
}

fn content(text: String) -> Exactly {
    Exactly(Json::object([("content", text.into())]).to_string())
}

/// The JSON of a value of a payload.
fn of<T: Written>(value: &T) -> String {
    value.written().to_string()
}

trait Written {
    fn written(&self) -> Json;
}

impl Written for String {
    fn written(&self) -> Json {
        self.as_str().into()
    }
}

impl Written for i64 {
    fn written(&self) -> Json {
        (*self).into()
    }
}

impl Written for Vec<wharf::ToolCall> {
    fn written(&self) -> Json {
        let call = |call: &wharf::ToolCall| {
            Json::object([
                ("call_id", call.call_id.as_str().into()),
                ("tool", call.tool.as_str().into()),
                ("arguments", call.arguments.clone()),
            ])
        };
        Json::List(self.iter().map(call).collect())
    }
}

/// Does what a script says.
fn obey(script: &str, read: impl Fn(&str) -> String) -> Exactly {
    let mut answer = String::new();
    for line in script.lines() {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "answer" => answer = rest.to_string(),
            "log" => {
                let (level, text) = rest.split_once(' ').unwrap_or((rest, ""));
                wharf::log(level_of(level), text);
            }
            "operate" => {
                let (operation, request) = rest.split_once(' ').unwrap_or((rest, ""));
                let (status, response) = wharf::operate(operation, request);
                wharf::log(Level::Info, &format!("{status} {response}"));
            }
            "read" => wharf::log(Level::Info, &read(rest)),
            "spin" => loop {
                std::hint::spin_loop();
            },
            "trap" => std::process::abort(),
            _ => {}
        }
    }
    Exactly(answer)
}

fn level_of(word: &str) -> Level {
    match word {
        "debug" => Level::Debug,
        "warning" => Level::Warning,
        "error" => Level::Error,
        _ => Level::Info,
    }
}
