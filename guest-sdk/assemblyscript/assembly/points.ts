// Code generated from the table of hook points (engine/hook); DO NOT EDIT.

import { hear, judge, watch } from "./guest";
import { Json } from "./json";
import { At, Budget, DoneCall, End, Keys, Text, ToolCall, Usage } from "./payload";
import { Verdict } from "./verdict";

/** The payload of session_start. */
export class SessionStart extends At {
  /** New, resume or fork. */
  source: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.source = keys.text("source");
  }
}

/** The payload of before_iteration. */
export class BeforeIteration extends At {
  /** Steps that were taken. */
  steps: i64 = 0;
  /** Steps that there may be. */
  maxSteps: i64 = 0;
  /** Tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens. */
  usage: Usage = new Usage();
  /** What the turn cost so far; 0 where there are no prices. */
  cost: f64 = 0;
  /** What is limited of tokens, cost and time_ms. */
  budget: Budget = new Budget();

  fill(keys: Keys): void {
    super.fill(keys);
    this.steps = keys.int("steps");
    this.maxSteps = keys.int("max_steps");
    this.usage = keys.object<Usage>("usage");
    this.cost = keys.number("cost");
    this.budget = keys.object<Budget>("budget");
  }
}

/** The payload of before_request. */
export class BeforeRequest extends At {
  /** The model, by the server's name for it. */
  model: string = "";
  /** Of the request: an object, or null. */
  parameters: Json = Json.nothing();
  /** The names of the tools on offer. */
  tools: string[] = [];

  fill(keys: Keys): void {
    super.fill(keys);
    this.model = keys.text("model");
    this.parameters = keys.any("parameters");
    this.tools = keys.texts("tools");
  }
}

/** The payload of on_request_error. */
export class OnRequestError extends At {
  /** Of the failure: unreachable, timeout, auth, invalid, rate_limit, quota, server, malformed, overflow or script. */
  class: string = "";
  /** Counts from 1. */
  attempt: i64 = 0;
  /** What the server asks to wait; 0 if it does not say. */
  retryAfterMs: i64 = 0;
  /** What happened, and why. */
  error: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.class = keys.text("class");
    this.attempt = keys.int("attempt");
    this.retryAfterMs = keys.int("retry_after_ms");
    this.error = keys.text("error");
  }
}

/** The payload of emit_reasoning_end. */
export class EmitReasoningEnd extends At {
  /** Whether the turn asks the model again. */
  resuming: bool = false;

  fill(keys: Keys): void {
    super.fill(keys);
    this.resuming = keys.bool("resuming");
  }
}

/** The payload of on_stream_end. */
export class OnStreamEnd extends At {
  /** Whether the turn asks the model again. */
  resuming: bool = false;

  fill(keys: Keys): void {
    super.fill(keys);
    this.resuming = keys.bool("resuming");
  }
}

/** The payload of on_provider_tool_event. */
export class OnProviderToolEvent extends At {
  /** As the provider sent it. */
  event: Json = Json.nothing();

  fill(keys: Keys): void {
    super.fill(keys);
    this.event = keys.any("event");
  }
}

/** The payload of before_execute_tools. */
export class BeforeExecuteTools extends At {
  /** Each with call_id, tool and arguments. */
  calls: ToolCall[] = [];

  fill(keys: Keys): void {
    super.fill(keys);
    this.calls = keys.objects<ToolCall>("calls");
  }
}

/** The payload of permission_request. */
export class PermissionRequest extends ToolCall {
  /** By which the user is asked. */
  rule: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.rule = keys.text("rule");
  }
}

/** The payload of on_execute_tool_error. */
export class OnExecuteToolError extends ToolCall {
  /** What happened, and why. */
  error: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.error = keys.text("error");
  }
}

/** The payload of after_iteration. */
export class AfterIteration extends At {
  /** Each with call_id, tool, arguments and result. */
  calls: DoneCall[] = [];

  fill(keys: Keys): void {
    super.fill(keys);
    this.calls = keys.objects<DoneCall>("calls");
  }
}

/** The payload of subagent_start. */
export class SubagentStart extends At {
  /** What the subagent is to do. */
  task: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.task = keys.text("task");
  }
}

/** The payload of subagent_stop. */
export class SubagentStop extends At {
  /** What the subagent found. */
  result: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.result = keys.text("result");
  }
}

/** The payload of before_compact. */
export class BeforeCompact extends At {
  /** Messages that the summary will stand for. */
  messages: i64 = 0;
  /** Tokens of the whole history, about. */
  tokens: i64 = 0;

  fill(keys: Keys): void {
    super.fill(keys);
    this.messages = keys.int("messages");
    this.tokens = keys.int("tokens");
  }
}

/** The payload of after_compact. */
export class AfterCompact extends At {
  /** What stands for the older messages now. */
  summary: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.summary = keys.text("summary");
  }
}

/** The payload of notification. */
export class Notification extends At {
  /** Question, retry or fallback. */
  kind: string = "";
  /** What the user is told. */
  text: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.kind = keys.text("kind");
    this.text = keys.text("text");
  }
}

/** The payload of after_run. */
export class AfterRun extends At {
  /** The answer. */
  text: string = "";
  /** Tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens. */
  usage: Usage = new Usage();

  fill(keys: Keys): void {
    super.fill(keys);
    this.text = keys.text("text");
    this.usage = keys.object<Usage>("usage");
  }
}

/** The payload of on_error. */
export class OnError extends At {
  /** What happened, and why. */
  error: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.error = keys.text("error");
  }
}

/** The payload of session_end. */
export class SessionEnd extends At {
  /** Why the session is left. */
  reason: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.reason = keys.text("reason");
  }
}

/** What the exports call that `wharf ext build` writes: by the types the compiler knows what a handler is given and may return. */
export namespace handle {  /** Asks the handler of session_start: a session began or was resumed. */
  export function session_start(at: usize, length: i32, handler: (payload: SessionStart) => Verdict | null): u64 {
    return judge<SessionStart>(at, length, handler);
  }

  /** Asks the handler of user_prompt_submit: a prompt arrived, before the model sees it. */
  export function user_prompt_submit(at: usize, length: i32, handler: (payload: Text) => Verdict | null): u64 {
    return judge<Text>(at, length, handler);
  }

  /** Asks the handler of before_run: a turn is about to ask the model for the first time. */
  export function before_run(at: usize, length: i32, handler: (payload: Text) => Verdict | null): u64 {
    return judge<Text>(at, length, handler);
  }

  /** Asks the handler of before_iteration: a step begins. */
  export function before_iteration(at: usize, length: i32, handler: (payload: BeforeIteration) => Verdict | null): u64 {
    return judge<BeforeIteration>(at, length, handler);
  }

  /** Asks the handler of before_request: a request is about to be sent to the model. */
  export function before_request(at: usize, length: i32, handler: (payload: BeforeRequest) => Verdict | null): u64 {
    return judge<BeforeRequest>(at, length, handler);
  }

  /** Asks the handler of on_request_error: a request to the model failed. */
  export function on_request_error(at: usize, length: i32, handler: (payload: OnRequestError) => Verdict | null): u64 {
    return judge<OnRequestError>(at, length, handler);
  }

  /** Asks the handler of emit_reasoning: a piece of the model's reasoning arrived. */
  export function emit_reasoning(at: usize, length: i32, handler: (text: string) => void): u64 {
    return hear(at, length, handler);
  }

  /** Asks the handler of emit_reasoning_end: the reasoning of a reply is whole. */
  export function emit_reasoning_end(at: usize, length: i32, handler: (payload: EmitReasoningEnd) => void): u64 {
    return watch<EmitReasoningEnd>(at, length, handler);
  }

  /** Asks the handler of on_stream: a piece of the answer arrived. */
  export function on_stream(at: usize, length: i32, handler: (text: string) => void): u64 {
    return hear(at, length, handler);
  }

  /** Asks the handler of on_stream_end: the text of a reply is whole. */
  export function on_stream_end(at: usize, length: i32, handler: (payload: OnStreamEnd) => void): u64 {
    return watch<OnStreamEnd>(at, length, handler);
  }

  /** Asks the handler of on_provider_tool_event: a tool that the provider itself runs reported something. */
  export function on_provider_tool_event(at: usize, length: i32, handler: (payload: OnProviderToolEvent) => void): u64 {
    return watch<OnProviderToolEvent>(at, length, handler);
  }

  /** Asks the handler of before_execute_tools: a reply's tool calls are about to be judged and run. */
  export function before_execute_tools(at: usize, length: i32, handler: (payload: BeforeExecuteTools) => Verdict | null): u64 {
    return judge<BeforeExecuteTools>(at, length, handler);
  }

  /** Asks the handler of before_execute_tool: a tool call is about to be judged and run. */
  export function before_execute_tool(at: usize, length: i32, handler: (payload: ToolCall) => Verdict | null): u64 {
    return judge<ToolCall>(at, length, handler);
  }

  /** Asks the handler of permission_request: the user is about to be asked about a call. */
  export function permission_request(at: usize, length: i32, handler: (payload: PermissionRequest) => Verdict | null): u64 {
    return judge<PermissionRequest>(at, length, handler);
  }

  /** Asks the handler of after_execute_tool: a tool call has its result, before the model sees it. */
  export function after_execute_tool(at: usize, length: i32, handler: (payload: DoneCall) => Verdict | null): u64 {
    return judge<DoneCall>(at, length, handler);
  }

  /** Asks the handler of on_execute_tool_error: a tool call failed, before the model sees how. */
  export function on_execute_tool_error(at: usize, length: i32, handler: (payload: OnExecuteToolError) => Verdict | null): u64 {
    return judge<OnExecuteToolError>(at, length, handler);
  }

  /** Asks the handler of after_iteration: a step is over. */
  export function after_iteration(at: usize, length: i32, handler: (payload: AfterIteration) => void): u64 {
    return watch<AfterIteration>(at, length, handler);
  }

  /** Asks the handler of subagent_start: a subagent is about to begin. */
  export function subagent_start(at: usize, length: i32, handler: (payload: SubagentStart) => Verdict | null): u64 {
    return judge<SubagentStart>(at, length, handler);
  }

  /** Asks the handler of subagent_stop: a subagent is about to end. */
  export function subagent_stop(at: usize, length: i32, handler: (payload: SubagentStop) => Verdict | null): u64 {
    return judge<SubagentStop>(at, length, handler);
  }

  /** Asks the handler of before_compact: the history is about to be summarized. */
  export function before_compact(at: usize, length: i32, handler: (payload: BeforeCompact) => Verdict | null): u64 {
    return judge<BeforeCompact>(at, length, handler);
  }

  /** Asks the handler of after_compact: the history was summarized. */
  export function after_compact(at: usize, length: i32, handler: (payload: AfterCompact) => void): u64 {
    return watch<AfterCompact>(at, length, handler);
  }

  /** Asks the handler of notification: the user is told something: a question about a call, a retry, another model. */
  export function notification(at: usize, length: i32, handler: (payload: Notification) => void): u64 {
    return watch<Notification>(at, length, handler);
  }

  /** Asks the handler of turn_stopping: the model gave what looks like its final answer. */
  export function turn_stopping(at: usize, length: i32, handler: (payload: Text) => Verdict | null): u64 {
    return judge<Text>(at, length, handler);
  }

  /** Asks the handler of finalize_content: the final text is known, before anybody sees it. */
  export function finalize_content(at: usize, length: i32, handler: (payload: Text) => Verdict | null): u64 {
    return judge<Text>(at, length, handler);
  }

  /** Asks the handler of after_run: the turn has its answer. */
  export function after_run(at: usize, length: i32, handler: (payload: AfterRun) => void): u64 {
    return watch<AfterRun>(at, length, handler);
  }

  /** Asks the handler of on_error: the turn ends without an answer. */
  export function on_error(at: usize, length: i32, handler: (payload: OnError) => void): u64 {
    return watch<OnError>(at, length, handler);
  }

  /** Asks the handler of on_finally: the turn is over, however it ended. */
  export function on_finally(at: usize, length: i32, handler: (payload: End) => void): u64 {
    return watch<End>(at, length, handler);
  }

  /** Asks the handler of session_end: the session is left. */
  export function session_end(at: usize, length: i32, handler: (payload: SessionEnd) => void): u64 {
    return watch<SessionEnd>(at, length, handler);
  }
}
