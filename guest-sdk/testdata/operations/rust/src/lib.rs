//! Asks for each host operation once, and tells what came.

use std::time::Duration;
use wharf::{HttpRequest, Json, Result, ToolInput};

wharf::tools!(tour);

fn tour(_: ToolInput) -> String {
    let mut told = String::new();
    for (name, stop) in STOPS {
        let came = stop().unwrap_or_else(|error| error.code);
        told += &format!("{name}: {came}\n");
    }
    told
}

type Stop = fn() -> Result<String>;

const STOPS: [(&str, Stop); 17] = [
    ("config", || Ok(wharf::config("greeting")?.to_string())),
    ("kv_set", || wharf::kv_set("a", Json::object([("n", 1.into())])).map(|()| "done".to_string())),
    ("kv_get", || Ok(wharf::kv_get("a")?.to_string())),
    ("kv_list", || Ok(wharf::kv_list("")?.join(","))),
    ("kv_delete", || wharf::kv_delete("a").map(|()| "done".to_string())),
    ("http", || {
        let response = wharf::http(HttpRequest {
            method: "POST".to_string(),
            url: "https://api.example.com/x".to_string(),
            headers: vec![("Accept".to_string(), "text/plain".to_string())],
            body: b"h\xc3\xa9".to_vec(),
            secrets: vec!["TOKEN".to_string()],
        })?;
        let has = response.headers.iter().any(|(name, value)| name == "x-one" && value == "1");
        Ok(format!("{} {} {} {}", response.status, response.text(), response.url, has))
    }),
    ("read_file", || Ok(String::from_utf8_lossy(&wharf::read_file("a.txt")?).into_owned())),
    ("read_file_at", || {
        let (part, size) = wharf::read_file_at("a.txt", 2, 3)?; // from within a letter: no text
        Ok(format!("{part:?} of {size}"))
    }),
    ("list_dir", || Ok(wharf::list_dir(".")?.iter().map(|e| e.name.clone() + " " + &e.kind).collect::<Vec<_>>().join(","))),
    ("stat_file", || {
        let info = wharf::stat_file("a.txt")?;
        Ok(format!("{} {} {}", info.size, info.mode.len(), info.mtime.len()))
    }),
    ("write_file", || wharf::write_file("b.txt", "two\n").map(|()| "done".to_string())),
    ("call_tool", || {
        let result = wharf::call_tool("grep", Json::object([("pattern", "x".into())]))?;
        Ok(format!("{} {}{}", result.content, result.is_error, result.code))
    }),
    ("exec", || {
        let command = wharf::exec("make all", Duration::from_millis(1500))?;
        Ok(format!("{} {} {}", command.exit, command.stdout, command.stderr))
    }),
    ("session_info", || {
        let session = wharf::session_info()?;
        Ok(format!("{} {} {} {}", session.id, session.cwd, session.model, session.turn))
    }),
    ("messages", || Ok(wharf::messages(1)?.iter().map(|m| m.role.clone() + " " + &m.content).collect::<Vec<_>>().join(","))),
    ("complete", || {
        let (text, usage) = wharf::complete("why?", 10)?;
        Ok(format!("{text} {} {}", usage.input_tokens, usage.output_tokens))
    }),
    ("env and emit", || {
        wharf::emit("toured", Json::from(vec![1, 2]))?;
        Ok(wharf::env("LANG")?.unwrap_or_else(|| "unset".to_string()))
    }),
];
