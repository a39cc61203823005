// Code generated from the table of hook points (engine/hook); DO NOT EDIT.

use crate::payload::payload;
use crate::{Budget, DoneCall, Json, ToolCall, Usage};

payload!(
    /// The payload of session_start.
    SessionStart {
        session_id: String,
        turn: i64,
        step: i64,
        /// New, resume or fork.
        source: String,
    }
);

payload!(
    /// The payload of before_iteration.
    BeforeIteration {
        session_id: String,
        turn: i64,
        step: i64,
        /// Steps that were taken.
        steps: i64,
        /// Steps that there may be.
        max_steps: i64,
        /// Tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens.
        usage: Usage,
        /// What the turn cost so far; 0 where there are no prices.
        cost: f64,
        /// What is limited of tokens, cost and time_ms.
        budget: Budget,
    }
);

payload!(
    /// The payload of before_request.
    BeforeRequest {
        session_id: String,
        turn: i64,
        step: i64,
        /// The model, by the server's name for it.
        model: String,
        /// Of the request: an object, or null.
        parameters: Json,
        /// The names of the tools on offer.
        tools: Vec<String>,
    }
);

payload!(
    /// The payload of on_request_error.
    OnRequestError {
        session_id: String,
        turn: i64,
        step: i64,
        /// Of the failure: unreachable, timeout, auth, invalid, rate_limit, quota, server, malformed, overflow or script.
        class: String,
        /// Counts from 1.
        attempt: i64,
        /// What the server asks to wait; 0 if it does not say.
        retry_after_ms: i64,
        /// What happened, and why.
        error: String,
    }
);

payload!(
    /// The payload of emit_reasoning_end.
    EmitReasoningEnd {
        session_id: String,
        turn: i64,
        step: i64,
        /// Whether the turn asks the model again.
        resuming: bool,
    }
);

payload!(
    /// The payload of on_stream_end.
    OnStreamEnd {
        session_id: String,
        turn: i64,
        step: i64,
        /// Whether the turn asks the model again.
        resuming: bool,
    }
);

payload!(
    /// The payload of on_provider_tool_event.
    OnProviderToolEvent {
        session_id: String,
        turn: i64,
        step: i64,
        /// As the provider sent it.
        event: Json,
    }
);

payload!(
    /// The payload of before_execute_tools.
    BeforeExecuteTools {
        session_id: String,
        turn: i64,
        step: i64,
        /// Each with call_id, tool and arguments.
        calls: Vec<ToolCall>,
    }
);

payload!(
    /// The payload of permission_request.
    PermissionRequest {
        session_id: String,
        turn: i64,
        step: i64,
        /// The call's name.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// Of the call.
        arguments: Json,
        /// By which the user is asked.
        rule: String,
    }
);

payload!(
    /// The payload of on_execute_tool_error.
    OnExecuteToolError {
        session_id: String,
        turn: i64,
        step: i64,
        /// The call's name.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// Of the call.
        arguments: Json,
        /// What happened, and why.
        error: String,
    }
);

payload!(
    /// The payload of after_iteration.
    AfterIteration {
        session_id: String,
        turn: i64,
        step: i64,
        /// Each with call_id, tool, arguments and result.
        calls: Vec<DoneCall>,
    }
);

payload!(
    /// The payload of subagent_start.
    SubagentStart {
        session_id: String,
        turn: i64,
        step: i64,
        /// What the subagent is to do.
        task: String,
    }
);

payload!(
    /// The payload of subagent_stop.
    SubagentStop {
        session_id: String,
        turn: i64,
        step: i64,
        /// What the subagent found.
        result: String,
    }
);

payload!(
    /// The payload of before_compact.
    BeforeCompact {
        session_id: String,
        turn: i64,
        step: i64,
        /// Messages that the summary will stand for.
        messages: i64,
        /// Tokens of the whole history, about.
        tokens: i64,
    }
);

payload!(
    /// The payload of after_compact.
    AfterCompact {
        session_id: String,
        turn: i64,
        step: i64,
        /// What stands for the older messages now.
        summary: String,
    }
);

payload!(
    /// The payload of notification.
    Notification {
        session_id: String,
        turn: i64,
        step: i64,
        /// Question, retry or fallback.
        kind: String,
        /// What the user is told.
        text: String,
    }
);

payload!(
    /// The payload of after_run.
    AfterRun {
        session_id: String,
        turn: i64,
        step: i64,
        /// The answer.
        text: String,
        /// Tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens.
        usage: Usage,
    }
);

payload!(
    /// The payload of on_error.
    OnError {
        session_id: String,
        turn: i64,
        step: i64,
        /// What happened, and why.
        error: String,
    }
);

payload!(
    /// The payload of session_end.
    SessionEnd {
        session_id: String,
        turn: i64,
        step: i64,
        /// Why the session is left.
        reason: String,
    }
);

/// What [`hooks!`](crate::hooks) calls: a function for each hook point, by whose type
/// the compiler knows what the point's handler is given and may return.
pub mod handle {
    use crate::*;

    /// Asks the handler of session_start: a session began or was resumed.
    pub fn session_start<A: Answer>(payload: &[u8], handler: impl FnOnce(SessionStart) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of user_prompt_submit: a prompt arrived, before the model sees it.
    pub fn user_prompt_submit<A: Answer>(payload: &[u8], handler: impl FnOnce(Text) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of before_run: a turn is about to ask the model for the first time.
    pub fn before_run<A: Answer>(payload: &[u8], handler: impl FnOnce(Text) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of before_iteration: a step begins.
    pub fn before_iteration<A: Answer>(payload: &[u8], handler: impl FnOnce(BeforeIteration) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of before_request: a request is about to be sent to the model.
    pub fn before_request<A: Answer>(payload: &[u8], handler: impl FnOnce(BeforeRequest) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of on_request_error: a request to the model failed.
    pub fn on_request_error<A: Answer>(payload: &[u8], handler: impl FnOnce(OnRequestError) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of emit_reasoning: a piece of the model's reasoning arrived.
    pub fn emit_reasoning<A: Silence>(payload: &[u8], handler: impl FnOnce(&str) -> A) -> Vec<u8> {
        guest::hear(payload, handler)
    }

    /// Asks the handler of emit_reasoning_end: the reasoning of a reply is whole.
    pub fn emit_reasoning_end<A: Silence>(payload: &[u8], handler: impl FnOnce(EmitReasoningEnd) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of on_stream: a piece of the answer arrived.
    pub fn on_stream<A: Silence>(payload: &[u8], handler: impl FnOnce(&str) -> A) -> Vec<u8> {
        guest::hear(payload, handler)
    }

    /// Asks the handler of on_stream_end: the text of a reply is whole.
    pub fn on_stream_end<A: Silence>(payload: &[u8], handler: impl FnOnce(OnStreamEnd) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of on_provider_tool_event: a tool that the provider itself runs reported something.
    pub fn on_provider_tool_event<A: Silence>(payload: &[u8], handler: impl FnOnce(OnProviderToolEvent) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of before_execute_tools: a reply's tool calls are about to be judged and run.
    pub fn before_execute_tools<A: Answer>(payload: &[u8], handler: impl FnOnce(BeforeExecuteTools) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of before_execute_tool: a tool call is about to be judged and run.
    pub fn before_execute_tool<A: Answer>(payload: &[u8], handler: impl FnOnce(ToolCall) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of permission_request: the user is about to be asked about a call.
    pub fn permission_request<A: Answer>(payload: &[u8], handler: impl FnOnce(PermissionRequest) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of after_execute_tool: a tool call has its result, before the model sees it.
    pub fn after_execute_tool<A: Answer>(payload: &[u8], handler: impl FnOnce(DoneCall) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of on_execute_tool_error: a tool call failed, before the model sees how.
    pub fn on_execute_tool_error<A: Answer>(payload: &[u8], handler: impl FnOnce(OnExecuteToolError) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of after_iteration: a step is over.
    pub fn after_iteration<A: Silence>(payload: &[u8], handler: impl FnOnce(AfterIteration) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of subagent_start: a subagent is about to begin.
    pub fn subagent_start<A: Answer>(payload: &[u8], handler: impl FnOnce(SubagentStart) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of subagent_stop: a subagent is about to end.
    pub fn subagent_stop<A: Answer>(payload: &[u8], handler: impl FnOnce(SubagentStop) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of before_compact: the history is about to be summarized.
    pub fn before_compact<A: Answer>(payload: &[u8], handler: impl FnOnce(BeforeCompact) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of after_compact: the history was summarized.
    pub fn after_compact<A: Silence>(payload: &[u8], handler: impl FnOnce(AfterCompact) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of notification: the user is told something: a question about a call, a retry, another model.
    pub fn notification<A: Silence>(payload: &[u8], handler: impl FnOnce(Notification) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of turn_stopping: the model gave what looks like its final answer.
    pub fn turn_stopping<A: Answer>(payload: &[u8], handler: impl FnOnce(Text) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of finalize_content: the final text is known, before anybody sees it.
    pub fn finalize_content<A: Answer>(payload: &[u8], handler: impl FnOnce(Text) -> A) -> Vec<u8> {
        guest::judge(payload, handler)
    }

    /// Asks the handler of after_run: the turn has its answer.
    pub fn after_run<A: Silence>(payload: &[u8], handler: impl FnOnce(AfterRun) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of on_error: the turn ends without an answer.
    pub fn on_error<A: Silence>(payload: &[u8], handler: impl FnOnce(OnError) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of on_finally: the turn is over, however it ended.
    pub fn on_finally<A: Silence>(payload: &[u8], handler: impl FnOnce(End) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }

    /// Asks the handler of session_end: the session is left.
    pub fn session_end<A: Silence>(payload: &[u8], handler: impl FnOnce(SessionEnd) -> A) -> Vec<u8> {
        guest::watch(payload, handler)
    }
}
