//! The extension audit keeps a line of JSON for each call, each question to the
//! user and what became of it, in its own store or in a file of the workspace.

mod clock;
mod line;
mod shelf;

use line::Cut;
use shelf::{Settings, Shelf};
use std::cell::RefCell;
use wharf::{AfterIteration, DoneCall, End, Json, OnExecuteToolError, PermissionRequest, Result, ToolCall, Verdict};

wharf::hooks!(before_execute_tool, permission_request, after_execute_tool, on_execute_tool_error, after_iteration, on_finally);

thread_local! {
    static AUDIT: RefCell<Audit> = RefCell::new(Audit::default());
}

/// What lasts from call to call.
#[derive(Default)]
struct Audit {
    shelf: Option<Shelf>,
    told: Vec<String>, // the calls of this step whose end has a line
}

/// Writes a line, with where it happened in front.
fn note(session: &str, turn: i64, step: i64, event: &str, keys: Vec<(&str, Json)>) -> Result<()> {
    let mut line = vec![
        ("time".to_string(), clock::now().into()),
        ("session".to_string(), session.into()),
        ("turn".to_string(), turn.into()),
        ("step".to_string(), step.into()),
        ("event".to_string(), event.into()),
    ];
    line.extend(keys.into_iter().map(|(key, value)| (key.to_string(), value)));
    with_shelf(|shelf| shelf.add(Json::Object(line)))
}

fn with_shelf<T>(use_it: impl FnOnce(&mut Shelf) -> Result<T>) -> Result<T> {
    AUDIT.with(|audit| {
        let mut audit = audit.borrow_mut();
        if audit.shelf.is_none() {
            audit.shelf = Some(Shelf::new(Settings::read()?));
        }
        match audit.shelf.as_mut() {
            Some(shelf) => use_it(shelf),
            None => Err("there is no place for lines".into()),
        }
    })
}

fn cut() -> Result<Cut> {
    with_shelf(|shelf| Ok(shelf.settings.cut))
}

fn before_execute_tool(call: ToolCall) -> Result<Verdict> {
    let arguments = cut()?.value(&call.arguments);
    let keys = vec![("call_id", call.call_id.into()), ("tool", call.tool.into()), ("arguments", arguments)];
    note(&call.session_id, call.turn, call.step, "call", keys)?;
    Ok(Verdict::none())
}

fn permission_request(request: PermissionRequest) -> Result<Verdict> {
    let keys = vec![("call_id", request.call_id.into()), ("tool", request.tool.into()), ("rule", cut()?.text(&request.rule).into())];
    note(&request.session_id, request.turn, request.step, "asked", keys)?;
    Ok(Verdict::none())
}

fn after_execute_tool(call: DoneCall) -> Result<Verdict> {
    ended(&call)?;
    Ok(Verdict::none())
}

fn on_execute_tool_error(call: OnExecuteToolError) -> Result<Verdict> {
    let error = cut()?.text(&call.error);
    remember(&call.call_id);
    let keys = vec![("call_id", call.call_id.into()), ("tool", call.tool.into()), ("error", error.into())];
    note(&call.session_id, call.turn, call.step, "failed", keys)?;
    Ok(Verdict::none())
}

/// Of the calls of a step, those have no line yet that never ran: what a hook, a
/// rule or the user refused, and what did not fit the tool.
fn after_iteration(step: AfterIteration) -> Result<()> {
    let told = AUDIT.with(|audit| std::mem::take(&mut audit.borrow_mut().told));
    for call in step.calls.iter().filter(|call| !told.contains(&call.call_id)) {
        let keys = vec![
            ("call_id", call.call_id.as_str().into()),
            ("tool", call.tool.as_str().into()),
            ("code", call.result.code.as_str().into()),
            ("reason", cut()?.text(&call.result.content).into()),
        ];
        let event = if call.result.code == "DENIED" { "denied" } else { "not run" };
        note(&step.session_id, step.turn, step.step, event, keys)?;
    }
    with_shelf(Shelf::flush_if_long)
}

fn on_finally(end: End) -> Result<()> {
    note(&end.session_id, end.turn, end.step, "end", vec![("reason", end.reason.into())])?;
    with_shelf(Shelf::flush)
}

/// Writes the line of a call that ran.
fn ended(call: &DoneCall) -> Result<()> {
    remember(&call.call_id);
    let mut keys = vec![
        ("call_id", call.call_id.as_str().into()),
        ("tool", call.tool.as_str().into()),
        ("is_error", call.result.is_error.into()),
        ("bytes", (call.result.content.len() as i64).into()),
    ];
    if !call.result.code.is_empty() {
        keys.push(("code", call.result.code.as_str().into()));
    }
    if with_shelf(|shelf| Ok(shelf.settings.results))? {
        keys.push(("content", cut()?.text(&call.result.content).into()));
    }
    note(&call.session_id, call.turn, call.step, "done", keys)
}

fn remember(call_id: &str) {
    AUDIT.with(|audit| {
        let told = &mut audit.borrow_mut().told;
        if told.len() < 10_000 {
            told.push(call_id.to_string());
        }
    });
}
