/**
 * Obeys the scripts of the conformance vectors with the SDK for AssemblyScript:
 * payloads and tool calls come through its types; what an answer says exactly,
 * which no type lets one say, goes back by answerExactly.
 *
 * @module
 */

import {
  answerExactly,
  Json,
  Level,
  log,
  operate,
  AfterCompact,
  AfterIteration,
  AfterRun,
  BeforeCompact,
  BeforeExecuteTools,
  BeforeIteration,
  BeforeRequest,
  DoneCall,
  EmitReasoningEnd,
  End,
  Notification,
  OnError,
  OnExecuteToolError,
  OnProviderToolEvent,
  OnRequestError,
  OnStreamEnd,
  PermissionRequest,
  SessionEnd,
  SessionStart,
  SubagentStart,
  SubagentStop,
  Text,
  ToolCall,
  ToolInput,
  ToolOutput,
  Verdict,
} from "wharf/assembly";

export function session_start(p: SessionStart): Verdict | null {
  return obey(p.sessionId, Json.text(p.source));
}

export function user_prompt_submit(p: Text): Verdict | null {
  return obey(p.sessionId, Json.text(p.text));
}

export function before_run(p: Text): Verdict | null {
  return obey(p.sessionId, Json.text(p.text));
}

export function before_iteration(p: BeforeIteration): Verdict | null {
  return obey(p.sessionId, Json.int(p.steps));
}

export function before_request(p: BeforeRequest): Verdict | null {
  return obey(p.sessionId, Json.text(p.model));
}

export function on_request_error(p: OnRequestError): Verdict | null {
  return obey(p.sessionId, Json.text(p.class));
}

export function emit_reasoning_end(p: EmitReasoningEnd): void {
  obey(p.sessionId, Json.bool(p.resuming));
}

export function on_stream_end(p: OnStreamEnd): void {
  obey(p.sessionId, Json.bool(p.resuming));
}

export function on_provider_tool_event(p: OnProviderToolEvent): void {
  obey(p.sessionId, p.event);
}

export function before_execute_tools(p: BeforeExecuteTools): Verdict | null {
  return obey(p.sessionId, calls(p.calls));
}

export function before_execute_tool(p: ToolCall): Verdict | null {
  return obey(p.sessionId, Json.text(p.callId));
}

export function permission_request(p: PermissionRequest): Verdict | null {
  return obey(p.sessionId, Json.text(p.callId));
}

export function after_execute_tool(p: DoneCall): Verdict | null {
  return obey(p.sessionId, Json.text(p.callId));
}

export function on_execute_tool_error(p: OnExecuteToolError): Verdict | null {
  return obey(p.sessionId, Json.text(p.callId));
}

export function after_iteration(p: AfterIteration): void {
  obey(p.sessionId, done(p.calls));
}

export function subagent_start(p: SubagentStart): Verdict | null {
  return obey(p.sessionId, Json.text(p.task));
}

export function subagent_stop(p: SubagentStop): Verdict | null {
  return obey(p.sessionId, Json.text(p.result));
}

export function before_compact(p: BeforeCompact): Verdict | null {
  return obey(p.sessionId, Json.int(p.messages));
}

export function after_compact(p: AfterCompact): void {
  obey(p.sessionId, Json.text(p.summary));
}

export function notification(p: Notification): void {
  obey(p.sessionId, Json.text(p.kind));
}

export function turn_stopping(p: Text): Verdict | null {
  return obey(p.sessionId, Json.text(p.text));
}

export function finalize_content(p: Text): Verdict | null {
  return obey(p.sessionId, Json.text(p.text));
}

export function after_run(p: AfterRun): void {
  obey(p.sessionId, Json.text(p.text));
}

export function on_error(p: OnError): void {
  obey(p.sessionId, Json.text(p.error));
}

export function on_finally(p: End): void {
  obey(p.sessionId, Json.text(p.reason));
}

export function session_end(p: SessionEnd): void {
  obey(p.sessionId, Json.text(p.reason));
}

export function emit_reasoning(text: string): void {
  obey(text, Json.nothing());
}

export function on_stream(text: string): void {
  obey(text, Json.nothing());
}

export function _do(input: ToolInput): ToolOutput {
  const script = input.arguments.str("do");
  if (script == "read arguments") return ToolOutput.text(input.arguments.toString());
  if (script == "read name") return ToolOutput.text(Json.text(input.name).toString());
  if (script == "read call_id") return ToolOutput.text(Json.text(input.callId).toString());
  answerExactly(""); // what a script answers takes its place
  obey(script, Json.nothing());
  return new ToolOutput();
}

function calls(list: ToolCall[]): Json {
  const items: Json[] = [];
  for (let i = 0; i < list.length; i++) items.push(call(list[i]));
  return Json.list(items);
}

function done(list: DoneCall[]): Json {
  const items: Json[] = [];
  for (let i = 0; i < list.length; i++) {
    const result = Json.object().with("content", Json.text(list[i].result.content)).with("is_error", Json.bool(list[i].result.isError));
    items.push(call(list[i]).with("result", result));
  }
  return Json.list(items);
}

function call(c: ToolCall): Json {
  return Json.object().with("call_id", Json.text(c.callId)).with("tool", Json.text(c.tool)).with("arguments", c.arguments);
}

/** Does what a script says; value is what it may read of the payload. */
function obey(script: string, value: Json): Verdict | null {
  const lines = script.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const verb = before(lines[i]);
    const rest = lines[i].substring(verb.length + 1);
    if (verb == "answer") {
      answerExactly(rest);
    } else if (verb == "log") {
      const level = before(rest);
      log(levels.indexOf(level), rest.substring(level.length + 1));
    } else if (verb == "operate") {
      const operation = before(rest);
      const response = operate(operation, rest.substring(operation.length + 1));
      log(Level.Info, `${response.status} ${response.text}`);
    } else if (verb == "read") {
      log(Level.Info, value.toString());
    } else if (verb == "spin") {
      while (true) {}
    } else if (verb == "trap") {
      unreachable();
    }
  }
  return null;
}

const levels = ["debug", "info", "warning", "error"];

/** What stands in front of the first blank. */
function before(text: string): string {
  const at = text.indexOf(" ");
  return at < 0 ? text : text.substring(0, at);
}
