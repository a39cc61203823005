// Code generated from the table of hook points (engine/hook); DO NOT EDIT.

package wharf

import "encoding/json"

// SessionStartPayload is the payload of session_start.
type SessionStartPayload struct {
	At
	Source string `json:"source"` // new, resume or fork
}

// SessionStart handles session_start: a session began or was resumed.
func SessionStart(h func(SessionStartPayload) Verdict) { register("session_start", judge(h)) }

// UserPromptSubmit handles user_prompt_submit: a prompt arrived, before the model sees it.
func UserPromptSubmit(h func(Text) Verdict) { register("user_prompt_submit", judge(h)) }

// BeforeRun handles before_run: a turn is about to ask the model for the first time.
func BeforeRun(h func(Text) Verdict) { register("before_run", judge(h)) }

// BeforeIterationPayload is the payload of before_iteration.
type BeforeIterationPayload struct {
	At
	Steps    int64   `json:"steps"`     // steps that were taken
	MaxSteps int64   `json:"max_steps"` // steps that there may be
	Usage    Usage   `json:"usage"`     // tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens
	Cost     float64 `json:"cost"`      // what the turn cost so far; 0 where there are no prices
	Budget   Budget  `json:"budget"`    // what is limited of tokens, cost and time_ms
}

// BeforeIteration handles before_iteration: a step begins.
func BeforeIteration(h func(BeforeIterationPayload) Verdict) { register("before_iteration", judge(h)) }

// BeforeRequestPayload is the payload of before_request.
type BeforeRequestPayload struct {
	At
	Model      string          `json:"model"`      // the model, by the server's name for it
	Parameters json.RawMessage `json:"parameters"` // of the request: an object, or null
	Tools      []string        `json:"tools"`      // the names of the tools on offer
}

// BeforeRequest handles before_request: a request is about to be sent to the model.
func BeforeRequest(h func(BeforeRequestPayload) Verdict) { register("before_request", judge(h)) }

// OnRequestErrorPayload is the payload of on_request_error.
type OnRequestErrorPayload struct {
	At
	Class        string `json:"class"`          // of the failure: unreachable, timeout, auth, invalid, rate_limit, quota, server, malformed, overflow or script
	Attempt      int64  `json:"attempt"`        // counts from 1
	RetryAfterMS int64  `json:"retry_after_ms"` // what the server asks to wait; 0 if it does not say
	Error        string `json:"error"`          // what happened, and why
}

// OnRequestError handles on_request_error: a request to the model failed.
func OnRequestError(h func(OnRequestErrorPayload) Verdict) { register("on_request_error", judge(h)) }

// EmitReasoning handles emit_reasoning: a piece of the model's reasoning arrived. The text is valid
// during the call.
func EmitReasoning(h func(text []byte)) { register("emit_reasoning", hear(h)) }

// EmitReasoningEndPayload is the payload of emit_reasoning_end.
type EmitReasoningEndPayload struct {
	At
	Resuming bool `json:"resuming"` // whether the turn asks the model again
}

// EmitReasoningEnd handles emit_reasoning_end: the reasoning of a reply is whole.
func EmitReasoningEnd(h func(EmitReasoningEndPayload)) { register("emit_reasoning_end", watch(h)) }

// OnStream handles on_stream: a piece of the answer arrived. The text is valid
// during the call.
func OnStream(h func(text []byte)) { register("on_stream", hear(h)) }

// OnStreamEndPayload is the payload of on_stream_end.
type OnStreamEndPayload struct {
	At
	Resuming bool `json:"resuming"` // whether the turn asks the model again
}

// OnStreamEnd handles on_stream_end: the text of a reply is whole.
func OnStreamEnd(h func(OnStreamEndPayload)) { register("on_stream_end", watch(h)) }

// OnProviderToolEventPayload is the payload of on_provider_tool_event.
type OnProviderToolEventPayload struct {
	At
	Event json.RawMessage `json:"event"` // as the provider sent it
}

// OnProviderToolEvent handles on_provider_tool_event: a tool that the provider itself runs reported something.
func OnProviderToolEvent(h func(OnProviderToolEventPayload)) {
	register("on_provider_tool_event", watch(h))
}

// BeforeExecuteToolsPayload is the payload of before_execute_tools.
type BeforeExecuteToolsPayload struct {
	At
	Calls []ToolCall `json:"calls"` // each with call_id, tool and arguments
}

// BeforeExecuteTools handles before_execute_tools: a reply's tool calls are about to be judged and run.
func BeforeExecuteTools(h func(BeforeExecuteToolsPayload) Verdict) {
	register("before_execute_tools", judge(h))
}

// BeforeExecuteTool handles before_execute_tool: a tool call is about to be judged and run.
func BeforeExecuteTool(h func(ToolCall) Verdict) { register("before_execute_tool", judge(h)) }

// PermissionRequestPayload is the payload of permission_request.
type PermissionRequestPayload struct {
	ToolCall
	Rule string `json:"rule"` // by which the user is asked
}

// PermissionRequest handles permission_request: the user is about to be asked about a call.
func PermissionRequest(h func(PermissionRequestPayload) Verdict) {
	register("permission_request", judge(h))
}

// AfterExecuteTool handles after_execute_tool: a tool call has its result, before the model sees it.
func AfterExecuteTool(h func(ToolCall, ToolResult) Verdict) {
	register("after_execute_tool", judge(func(d DoneCall) Verdict { return h(d.ToolCall, d.Result) }))
}

// OnExecuteToolErrorPayload is the payload of on_execute_tool_error.
type OnExecuteToolErrorPayload struct {
	ToolCall
	Error string `json:"error"` // what happened, and why
}

// OnExecuteToolError handles on_execute_tool_error: a tool call failed, before the model sees how.
func OnExecuteToolError(h func(OnExecuteToolErrorPayload) Verdict) {
	register("on_execute_tool_error", judge(h))
}

// AfterIterationPayload is the payload of after_iteration.
type AfterIterationPayload struct {
	At
	Calls []DoneCall `json:"calls"` // each with call_id, tool, arguments and result
}

// AfterIteration handles after_iteration: a step is over.
func AfterIteration(h func(AfterIterationPayload)) { register("after_iteration", watch(h)) }

// SubagentStartPayload is the payload of subagent_start.
type SubagentStartPayload struct {
	At
	Task string `json:"task"` // what the subagent is to do
}

// SubagentStart handles subagent_start: a subagent is about to begin.
func SubagentStart(h func(SubagentStartPayload) Verdict) { register("subagent_start", judge(h)) }

// SubagentStopPayload is the payload of subagent_stop.
type SubagentStopPayload struct {
	At
	Result string `json:"result"` // what the subagent found
}

// SubagentStop handles subagent_stop: a subagent is about to end.
func SubagentStop(h func(SubagentStopPayload) Verdict) { register("subagent_stop", judge(h)) }

// BeforeCompactPayload is the payload of before_compact.
type BeforeCompactPayload struct {
	At
	Messages int64 `json:"messages"` // messages that the summary will stand for
	Tokens   int64 `json:"tokens"`   // tokens of the whole history, about
}

// BeforeCompact handles before_compact: the history is about to be summarized.
func BeforeCompact(h func(BeforeCompactPayload) Verdict) { register("before_compact", judge(h)) }

// AfterCompactPayload is the payload of after_compact.
type AfterCompactPayload struct {
	At
	Summary string `json:"summary"` // what stands for the older messages now
}

// AfterCompact handles after_compact: the history was summarized.
func AfterCompact(h func(AfterCompactPayload)) { register("after_compact", watch(h)) }

// NotificationPayload is the payload of notification.
type NotificationPayload struct {
	At
	Kind string `json:"kind"` // question, retry or fallback
	Text string `json:"text"` // what the user is told
}

// Notification handles notification: the user is told something: a question about a call, a retry, another model.
func Notification(h func(NotificationPayload)) { register("notification", watch(h)) }

// TurnStopping handles turn_stopping: the model gave what looks like its final answer.
func TurnStopping(h func(Text) Verdict) { register("turn_stopping", judge(h)) }

// FinalizeContent handles finalize_content: the final text is known, before anybody sees it.
func FinalizeContent(h func(Text) Verdict) { register("finalize_content", judge(h)) }

// AfterRunPayload is the payload of after_run.
type AfterRunPayload struct {
	At
	Text  string `json:"text"`  // the answer
	Usage Usage  `json:"usage"` // tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens
}

// AfterRun handles after_run: the turn has its answer.
func AfterRun(h func(AfterRunPayload)) { register("after_run", watch(h)) }

// OnErrorPayload is the payload of on_error.
type OnErrorPayload struct {
	At
	Error string `json:"error"` // what happened, and why
}

// OnError handles on_error: the turn ends without an answer.
func OnError(h func(OnErrorPayload)) { register("on_error", watch(h)) }

// OnFinally handles on_finally: the turn is over, however it ended.
func OnFinally(h func(End)) { register("on_finally", watch(h)) }

// SessionEndPayload is the payload of session_end.
type SessionEndPayload struct {
	At
	Reason string `json:"reason"` // why the session is left
}

// SessionEnd handles session_end: the session is left.
func SessionEnd(h func(SessionEndPayload)) { register("session_end", watch(h)) }
