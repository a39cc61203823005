// Package session is the durable record of a conversation.
//
// A session is one append-only log of events ([Event]), a JSON object a line.
// The log is the one source of truth: what a model is shown is computed from
// it ([History]), never kept beside it, so every request can be rebuilt and
// checked ([Verify]). Repair after a crash appends and never edits.
//
// The package knows nothing of models, tools or hooks; it only knows what is
// written down about them.
package session

import "encoding/json"

// ID names a session; it is also the name of its folder.
type ID string

// CallID names one tool call. Models choose it, so it need not be unique in a
// session; the engine makes it unique within the message that made the call.
type CallID string

// Event is one fact in a session's log. The set is closed: only this package
// adds to it. A kind's name is written to disk, so it is never reused.
//
//sumtype:decl
type Event interface{ kind() string }

// Started opens every log.
type Started struct {
	ID         ID       `json:"id"`
	Cwd        string   `json:"cwd"`                   // the workspace, absolute
	Parent     ID       `json:"parent,omitempty"`      // the session that this one is a subagent of
	ForkedFrom ID       `json:"forked_from,omitempty"` // the session whose prefix this one copies
	ForkedAt   int      `json:"forked_at,omitempty"`   // the turn that the copied prefix ends with
	Versions   Versions `json:"versions"`
}

// Versions tells what wrote a log.
type Versions struct {
	Wharf string `json:"wharf"`
}

// Repaired says what was done to a log that a crash left behind.
type Repaired struct {
	What string `json:"what"`
}

// TurnStarted opens a turn and says where it came from.
type TurnStarted struct {
	Turn   int    `json:"turn"`   // counts from 1
	Origin string `json:"origin"` // user, api, cron, heartbeat or subagent
}

// TurnEnded closes a turn. Text is the final answer, empty unless there is one.
type TurnEnded struct {
	Turn   int    `json:"turn"`
	Reason Reason `json:"reason"`
	Text   string `json:"text"`
	Usage  Usage  `json:"usage"` // of all the turn's requests together
	Steps  int    `json:"steps"` // without that of a last word, after all were used up
	Error  string `json:"error,omitempty"`
}

// Reason says why a turn ended. The set is closed.
type Reason string

// The reasons for which a turn ends.
const (
	Completed     Reason = "completed"
	MaxSteps      Reason = "max_steps"
	MaxTokens     Reason = "max_tokens"
	EmptyResponse Reason = "empty_response"
	Blocked       Reason = "blocked"
	Cancelled     Reason = "cancelled"   // somebody ended it
	Interrupted   Reason = "interrupted" // the process went away; written by repair
	ToolError     Reason = "tool_error"
	ModelError    Reason = "model_error"
	HookError     Reason = "hook_error"
	Budget        Reason = "budget"
)

// StepStarted opens a step: one model request and the calls it asks for.
type StepStarted struct {
	Turn int `json:"turn"`
	Step int `json:"step"` // counts from 1 in each turn
}

// StepEnded closes a step.
type StepEnded struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// Header is the part of a request that rarely changes. As an event it is
// written only when it differs from the one before.
type Header struct {
	System     string          `json:"system"`
	Tools      []Tool          `json:"tools"`
	Model      string          `json:"model"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // a JSON object, or absent
	Options
}

// Options are what can be asked of every model, whatever its API calls it. The
// zero value asks for nothing.
type Options struct {
	ToolChoice   string          `json:"tool_choice,omitempty"`   // auto, none, required, or the name of the tool to call; "" is the API's default
	SingleCalls  bool            `json:"single_calls,omitempty"`  // at most one call a reply
	OutputSchema json.RawMessage `json:"output_schema,omitempty"` // a JSON Schema that the answer must meet
}

// Tool is a tool as the model is told of it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"` // a JSON Schema whose type is object
}

// RequestSent is written before a request leaves. Digest is [Digest] of it.
type RequestSent struct {
	Step   int    `json:"step"`
	Digest string `json:"digest"` // SHA-256, hexadecimal
	Scheme string `json:"scheme"` // names the canonical form that was hashed
}

// RequestRetried says that a request failed and is about to be sent again, where
// Model is not empty to another model than before.
type RequestRetried struct {
	Attempt int    `json:"attempt"` // the one that failed; counts from 1
	DelayMS int64  `json:"delay_ms"`
	Cause   string `json:"cause"`
	Model   string `json:"model,omitempty"` // that is asked instead

	Attempts int `json:"attempts,omitempty"` // how many there are to be at most; 0 where it is not a matter of waiting
}

// AssistantMessage is what the model answered.
type AssistantMessage struct {
	Text         string `json:"text"`
	Reasoning    string `json:"reasoning,omitempty"`
	Calls        []Call `json:"calls,omitempty"`
	Usage        Usage  `json:"usage"`
	FinishReason string `json:"finish_reason"`         // in the server's own word
	Interrupted  bool   `json:"interrupted,omitempty"` // only what came before the reply broke off
	Dropped      int    `json:"dropped,omitempty"`     // calls that were cut off or had no name: neither run nor kept

	// Extra is an object of what the server attached to the reply as a whole, such as
	// signed reasoning, by the API that it belongs to. It goes back unchanged, and
	// to that API alone.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Call is a tool call as the model made it.
type Call struct {
	ID        CallID          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`       // raw text, not necessarily JSON
	Extra     json.RawMessage `json:"extra,omitempty"` // an object of what the server attached; goes back unchanged
}

// Usage counts tokens.
type Usage struct {
	InputTokens     int64 `json:"input_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	CacheReadTokens int64 `json:"cache_read_input_tokens"` // the part of InputTokens that came out of a cache
	ReasoningTokens int64 `json:"reasoning_tokens"`        // the part of OutputTokens that was reasoning
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:     u.InputTokens + v.InputTokens,
		OutputTokens:    u.OutputTokens + v.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + v.CacheReadTokens,
		ReasoningTokens: u.ReasoningTokens + v.ReasoningTokens,
	}
}

// UserMessage is a message in the user's role, whoever wrote it.
type UserMessage struct {
	Content  string `json:"content"`
	Origin   string `json:"origin"`             // user, hook or engine
	Delivery string `json:"delivery,omitempty"` // turn: opens it; step: before the next request

	Images []Image `json:"images,omitempty"` // shown after the text
}

// ToolCall says that a call is being judged and, if allowed, run.
type ToolCall struct {
	CallID    CallID `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model sent them
	Step      int    `json:"step"`
}

// ToolResult is the outcome of one tool call; an error does not end the turn.
type ToolResult struct {
	CallID     CallID `json:"call_id"`
	CallSeq    int64  `json:"call_seq"` // the sequence number of its ToolCall
	Content    string `json:"content"`
	IsError    bool   `json:"is_error,omitempty"`
	Code       string `json:"code,omitempty"` // why, in one word: see package tool
	DurationMS int64  `json:"duration_ms"`

	Images []Image `json:"images,omitempty"` // shown after the content
}

// ContextReplaced says that the model is shown something else from here on: the
// targets, which are sequence numbers in ascending order, and never come back. Those
// that are tool results have Content in the place of theirs. Others are removed,
// messages with calls together with their results; and unless Content is empty, one
// message of the user's with it stands in the place of the first.
type ContextReplaced struct {
	Targets []int64 `json:"targets"`
	By      string  `json:"by"` // result_budget, in_flight, snip, compaction, images (left out), or length: parts of an answer that follows whole
	Content string  `json:"content"`
}

// CompactionStarted says that messages are about to be summarized. The request for
// that, unless Prompt is empty, has one message, in the user's role, and no tools.
type CompactionStarted struct {
	Reason     string          `json:"reason"`   // threshold, overflow or manual
	Tokens     int64           `json:"tokens"`   // of the history, as far as it was counted
	Messages   int             `json:"messages"` // that are to be summarized
	From       int64           `json:"from"`     // the first event that shows one of them
	To         int64           `json:"to"`       // the last
	Model      string          `json:"model,omitempty"`
	System     string          `json:"system,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Prompt     string          `json:"prompt,omitempty"`
	Digest     string          `json:"digest,omitempty"` // of the request
	Scheme     string          `json:"scheme,omitempty"`
}

// CompactionEnded closes it. The summary stands in the [ContextReplaced] before.
type CompactionEnded struct {
	By     string `json:"by,omitempty"` // model or fallback; empty if nothing was replaced
	Tokens int64  `json:"tokens"`       // of the history now
	Usage  Usage  `json:"usage"`
	Error  string `json:"error,omitempty"` // why it was not the model, or nothing
}

// HookVerdict is an extension's answer at a hook point.
type HookVerdict struct {
	Point     string          `json:"point"`
	Extension string          `json:"extension"`
	CallID    CallID          `json:"call_id,omitempty"`
	Decision  string          `json:"decision,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Replaced  json.RawMessage `json:"replaced,omitempty"` // what it put in the place of what
}

// HookFailed says that an extension could not be asked, and what followed.
type HookFailed struct {
	Point     string `json:"point"`
	Extension string `json:"extension"`
	CallID    CallID `json:"call_id,omitempty"`
	Failure   string `json:"failure"`
	OnFailure string `json:"on_failure"` // isolate, deny or abort
}

// SandboxRefused says that a command was not run because it could not be confined.
type SandboxRefused struct {
	CallID CallID `json:"call_id,omitempty"`
	Reason string `json:"reason"`
}

// ExtensionUsed is the audit of one host operation, granted or not. What the
// engine then refuses, of an operation that was granted, is a second one.
type ExtensionUsed struct {
	Extension string `json:"extension"`
	Digest    string `json:"digest,omitempty"` // SHA-256 of the extension's file
	Operation string `json:"operation"`
	Target    string `json:"target,omitempty"`
	CallID    CallID `json:"call_id,omitempty"` // of what is judged like a call of the model's
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason,omitempty"` // of a refusal
}

// ExtensionEmitted is an event of an extension's own. Readers may ignore it.
type ExtensionEmitted struct {
	Extension string          `json:"extension"`
	Name      string          `json:"name"`
	Data      json.RawMessage `json:"data"`
}

// ExtensionAsked is a request to a model that an extension is about to make:
// one message in the user's role, without tools or a system text.
type ExtensionAsked struct {
	Extension  string          `json:"extension"`
	CallID     CallID          `json:"call_id"`
	Model      string          `json:"model"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // a JSON object
	Prompt     string          `json:"prompt"`
	Reserved   int64           `json:"reserved"` // tokens that count as spent until it is answered
}

// ExtensionAnswered is what became of that request.
type ExtensionAnswered struct {
	Extension    string `json:"extension"`
	CallID       CallID `json:"call_id"`
	Text         string `json:"text,omitempty"`
	FinishReason string `json:"finish_reason,omitempty"`
	Usage        Usage  `json:"usage"`
	Tokens       int64  `json:"tokens"` // what counts against the grant
	Error        string `json:"error,omitempty"`
}

// EgressChecked says that somebody was about to reach a host, and whether it
// was let to.
type EgressChecked struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"` // what allows it, or why it was refused
}

// ExtensionLogged is a line that an extension logged. Readers may ignore it.
type ExtensionLogged struct {
	Extension string `json:"extension"`
	Level     string `json:"level"` // debug, info, warning or error
	Text      string `json:"text"`
}

// ApprovalAsked says that a person is asked about a call.
type ApprovalAsked struct {
	CallID    CallID `json:"call_id"` // of the model's, or of an extension's operation
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // as they would be run with
	Reason    string `json:"reason"`    // by which rule, profile or hook
}

// ApprovalDecided is what they said. A question without it was not answered.
type ApprovalDecided struct {
	CallID  CallID `json:"call_id"`
	Allowed bool   `json:"allowed"`
	Message string `json:"message,omitempty"` // for the model
}

// PermissionGranted says that a person allowed more calls than the one that they
// were asked about.
type PermissionGranted struct {
	Rule  string `json:"rule"`
	Scope string `json:"scope"` // session or project
}

// ExtensionQuarantined says that an extension is not asked again in this session.
type ExtensionQuarantined struct {
	Extension string `json:"extension"`
	Reason    string `json:"reason"`
}

// GoalChanged says how it stands with the goal of a turn, which is what opened it.
type GoalChanged struct {
	Turn   int    `json:"turn"`
	Status string `json:"status"`          // set, round (another one begins), reached, given_up, ended (with the turn, or its rounds)
	Steps  int    `json:"steps,omitempty"` // that a round may have, where it is set
	Round  int    `json:"round"`
	Rounds int    `json:"rounds"`
	Note   string `json:"note,omitempty"` // of the model, or why it ended
}

// SubagentStarted says that a subagent begins to work, in a session of its own.
type SubagentStarted struct {
	Session ID     `json:"session"`           // its parent is this session
	CallID  CallID `json:"call_id,omitempty"` // of the call that asked for it
	Task    string `json:"task"`
}

// SubagentEnded says that a subagent's work is over. What it answered is the
// result of the call that asked for it.
type SubagentEnded struct {
	Session ID     `json:"session"`
	Reason  Reason `json:"reason"`
	Usage   Usage  `json:"usage"`
	Steps   int    `json:"steps"`
	Error   string `json:"error,omitempty"`
}

// Unknown is an event of a type that this version does not know and that its
// writer marked as ignorable.
type Unknown struct {
	Type string
	Data json.RawMessage
}

// MarshalJSON returns the data as it was read.
func (u Unknown) MarshalJSON() ([]byte, error) { return u.Data, nil }

func (Started) kind() string              { return "session.started" }
func (Repaired) kind() string             { return "session.repaired" }
func (TurnStarted) kind() string          { return "turn.started" }
func (TurnEnded) kind() string            { return "turn.ended" }
func (StepStarted) kind() string          { return "step.started" }
func (StepEnded) kind() string            { return "step.ended" }
func (Header) kind() string               { return "request.header" }
func (RequestSent) kind() string          { return "request.sent" }
func (RequestRetried) kind() string       { return "request.retried" }
func (AssistantMessage) kind() string     { return "assistant.message" }
func (UserMessage) kind() string          { return "user.message" }
func (ToolCall) kind() string             { return "tool.call" }
func (ToolResult) kind() string           { return "tool.result" }
func (ContextReplaced) kind() string      { return "context.replaced" }
func (CompactionStarted) kind() string    { return "compaction.started" }
func (CompactionEnded) kind() string      { return "compaction.ended" }
func (HookVerdict) kind() string          { return "hook.verdict" }
func (HookFailed) kind() string           { return "hook.failed" }
func (ApprovalAsked) kind() string        { return "approval.asked" }
func (ApprovalDecided) kind() string      { return "approval.decided" }
func (PermissionGranted) kind() string    { return "permission.granted" }
func (SandboxRefused) kind() string       { return "sandbox.refused" }
func (ExtensionUsed) kind() string        { return "extension.used" }
func (EgressChecked) kind() string        { return "egress.checked" }
func (ExtensionLogged) kind() string      { return "extension.logged" }
func (ExtensionEmitted) kind() string     { return "extension.emitted" }
func (ExtensionAsked) kind() string       { return "extension.asked" }
func (ExtensionAnswered) kind() string    { return "extension.answered" }
func (ExtensionQuarantined) kind() string { return "extension.quarantined" }
func (GoalChanged) kind() string          { return "goal.changed" }
func (SubagentStarted) kind() string      { return "subagent.started" }
func (SubagentEnded) kind() string        { return "subagent.ended" }
func (u Unknown) kind() string            { return u.Type }
