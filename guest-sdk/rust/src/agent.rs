//! What an extension has the agent do is judged like a call of the model's: an
//! error with the code DENIED says that other extensions, the permission rules
//! or the sandbox refused it.

use crate::host::{bytes, int, run, text};
use crate::{Error, Json, Payload, Result, ToolResult, Usage};
use std::time::Duration;

/// Calls a tool of the session. The arguments are an object, or null for none. A
/// failure of the tool's own is a result with `is_error`. The manifest must ask
/// for the tool under `tools`, and the user grant it.
pub fn call_tool(name: &str, arguments: Json) -> Result<ToolResult> {
    let arguments = if arguments.is_null() { Json::object([]) } else { arguments };
    let response = run("tool.call", [("name", name.into()), ("arguments", arguments)])?;
    ToolResult::read(&response).map_err(Error::from)
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Command {
    /// 0 if it did what it should.
    pub exit: i64,
    pub stdout: String,
    pub stderr: String,
}

/// Runs one simple command in the session's sandbox: no pipes, variables or
/// globs. One that is not done in time is ended, and an error; no time means the
/// limit of the tool `exec`. The manifest must ask for `exec`, and the user
/// grant it.
pub fn exec(command: &str, time: Duration) -> Result<Command> {
    let milliseconds = time.as_nanos().saturating_add(999_999) / 1_000_000;
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    let response = run("exec.run", [("command", command.into()), ("timeout_ms", milliseconds.into())])?;
    Ok(Command { exit: int(&response, "exit"), stdout: text(&response, "stdout"), stderr: text(&response, "stderr") })
}

/// Reads a file whole. Paths are relative to the workspace, here and in the
/// functions below; the manifest must ask for `fs`, and the user grant it.
pub fn read_file(path: &str) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let (part, size) = read_file_at(path, all.len() as i64, 0)?;
        all.extend_from_slice(&part);
        if part.is_empty() || all.len() as i64 >= size {
            return Ok(all);
        }
    }
}

/// Reads up to so many bytes of a file, 0 for as many as one call gives, and
/// tells how large the file is.
pub fn read_file_at(path: &str, offset: i64, limit: i64) -> Result<(Vec<u8>, i64)> {
    let response = run("fs.read", [("path", path.into()), ("offset", offset.into()), ("limit", limit.into())])?;
    Ok((bytes(&response, "content", "content_base64")?, int(&response, "size")))
}

/// A name in a folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub name: String,
    /// file, folder, link or other.
    pub kind: String,
}

/// Lists a folder, sorted by name.
pub fn list_dir(path: &str) -> Result<Vec<Entry>> {
    let response = run("fs.list", [("path", path.into())])?;
    let entries = response.get("entries").as_list().unwrap_or(&[]);
    Ok(entries.iter().map(|entry| Entry { name: text(entry, "name"), kind: text(entry, "kind") }).collect())
}

/// A description of a file or folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileInfo {
    pub size: i64,
    /// Such as -rw-r--r--.
    pub mode: String,
    /// When it was changed, as 2026-11-30T09:00:00Z.
    pub mtime: String,
}

/// Describes what a path leads to.
pub fn stat_file(path: &str) -> Result<FileInfo> {
    let response = run("fs.stat", [("path", path.into())])?;
    Ok(FileInfo { size: int(&response, "size"), mode: text(&response, "mode"), mtime: text(&response, "mtime") })
}

/// Puts a text in the place of a file, whole or not at all, and makes the
/// folders above it.
pub fn write_file(path: &str, content: &str) -> Result<()> {
    run("fs.write", [("path", path.into()), ("content", content.into())]).map(drop)
}

/// A description of the session that a guest runs in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    pub id: String,
    /// The folder that it works in.
    pub cwd: String,
    pub model: String,
    pub turn: i64,
}

/// Describes the session. The manifest must ask for `session`, and the user
/// grant it.
pub fn session_info() -> Result<Session> {
    let response = run("session.info", [])?;
    Ok(Session {
        id: text(&response, "id"),
        cwd: text(&response, "cwd"),
        model: text(&response, "model"),
        turn: int(&response, "turn"),
    })
}

/// A message as the model gets to see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// user, assistant or tool.
    pub role: String,
    pub content: String,
    /// Of the assistant.
    pub calls: Vec<MessageCall>,
    /// The call that a tool's message answers.
    pub call_id: String,
    /// Of a tool's message.
    pub is_error: bool,
}

/// A call that the model made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageCall {
    pub call_id: String,
    pub name: String,
    /// As the model wrote them, not necessarily JSON.
    pub arguments: String,
}

/// The last messages of the session, 0 for all, the oldest first; where there is
/// no room for so many, fewer. The manifest must ask for `session`, and the user
/// grant it.
pub fn messages(last: i64) -> Result<Vec<Message>> {
    let response = run("session.messages", [("last", last.into())])?;
    Ok(response.get("messages").as_list().unwrap_or(&[]).iter().map(message).collect())
}

fn message(json: &Json) -> Message {
    let calls = json.get("calls").as_list().unwrap_or(&[]);
    Message {
        role: text(json, "role"),
        content: text(json, "content"),
        calls: calls
            .iter()
            .map(|call| MessageCall {
                call_id: text(call, "call_id"),
                name: text(call, "name"),
                arguments: text(call, "arguments"),
            })
            .collect(),
        call_id: text(json, "call_id"),
        is_error: json.get("is_error").as_bool().unwrap_or(false),
    }
}

/// Asks the session's model one question. The tokens are those of the answer; 0
/// is 1024. The manifest must ask for `llm`, and the user grant it.
pub fn complete(prompt: &str, max_tokens: i64) -> Result<(String, Usage)> {
    let response = run("llm.complete", [("prompt", prompt.into()), ("max_tokens", max_tokens.into())])?;
    Ok((text(&response, "text"), Usage::read(response.get("usage")).map_err(Error::from)?))
}

/// A variable of Wharf's environment, if it is set. The manifest must ask for it
/// under `env`, and the user grant it.
pub fn env(name: &str) -> Result<Option<String>> {
    Ok(run("env.get", [("name", name.into())])?.get("value").as_str().map(str::to_string))
}

/// Writes an event of the extension's own to the session's log. The manifest
/// must ask for `events`, and the user grant it.
pub fn emit(name: &str, data: impl Into<Json>) -> Result<()> {
    run("event.emit", [("name", name.into()), ("data", data.into())]).map(drop)
}
