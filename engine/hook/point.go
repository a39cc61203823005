// Package hook lets extensions have a say at named points of a turn.
//
// [Points] is the only table of hook points: the manifest check, the engine
// and the documentation come from it. A [Hook] is asked at the points that it
// handles; its answer is a [Verdict] in JSON. A [Chain] asks a session's hooks
// in configuration order, merges what they answer, and applies each hook's
// failure policy. A hook narrows what is allowed and never widens it.
package hook

import (
	"context"
	"slices"
	"time"
)

// Point names a hook point. It is also the name of the export by which a Wasm
// guest handles it.
type Point string

// The hook points, in the order of [Points].
const (
	SessionStart        Point = "session_start"
	UserPromptSubmit    Point = "user_prompt_submit"
	BeforeRun           Point = "before_run"
	BeforeIteration     Point = "before_iteration"
	BeforeRequest       Point = "before_request"
	OnRequestError      Point = "on_request_error"
	EmitReasoning       Point = "emit_reasoning"
	EmitReasoningEnd    Point = "emit_reasoning_end"
	OnStream            Point = "on_stream"
	OnStreamEnd         Point = "on_stream_end"
	OnProviderToolEvent Point = "on_provider_tool_event"
	BeforeExecuteTools  Point = "before_execute_tools"
	BeforeExecuteTool   Point = "before_execute_tool"
	PermissionRequest   Point = "permission_request"
	AfterExecuteTool    Point = "after_execute_tool"
	OnExecuteToolError  Point = "on_execute_tool_error"
	AfterIteration      Point = "after_iteration"
	SubagentStart       Point = "subagent_start"
	SubagentStop        Point = "subagent_stop"
	BeforeCompact       Point = "before_compact"
	AfterCompact        Point = "after_compact"
	Notification        Point = "notification"
	TurnStopping        Point = "turn_stopping"
	FinalizeContent     Point = "finalize_content"
	AfterRun            Point = "after_run"
	OnError             Point = "on_error"
	OnFinally           Point = "on_finally"
	SessionEnd          Point = "session_end"
)

// Info is a row of [Points].
type Info struct {
	Point     Point
	When      string     // for documentation
	Keys      []Key      // the payload's own keys, besides session_id, turn and step; empty for a raw payload
	Raw       bool       // the payload is UTF-8 text, not JSON
	Decisions []Decision // what may be answered as a decision
	Replace   []string   // the keys that replace may hold
	Context   bool       // whether context may be added
	Later     bool       // the engine has no such moment yet, so nobody is asked there
}

// Key is a key of a payload.
type Key struct {
	Name string
	Type Type
	Doc  string // for documentation
}

// Type is what a payload's key holds, in terms of JSON.
type Type string

// The types of keys.
const (
	Text    Type = "text" // a string
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Object  Type = "object"
	List    Type = "list"
	Any     Type = "any"
)

// Deciding reports whether a hook's answer at this point can change anything.
func (i Info) Deciding() bool {
	return len(i.Decisions) > 0 || len(i.Replace) > 0 || i.Context
}

// Has reports whether the payload has a key of that name.
func (i Info) Has(name string) bool {
	return slices.ContainsFunc(i.Keys, func(k Key) bool { return k.Name == name })
}

// Denies reports whether a hook can stop something at this point: what a
// guard's failure then does.
func (i Info) Denies() bool {
	return slices.Contains(i.Decisions, Deny) || slices.Contains(i.Decisions, Block)
}

// Points lists every hook point in the order in which a turn reaches them, with
// those that are no part of a turn's own sequence where they most often occur.
var Points = []Info{
	{
		Point: SessionStart, When: "a session began or was resumed",
		Keys: []Key{
			{"source", Text, "new, resume or fork"},
		},
		Context: true,
	},
	{
		Point: UserPromptSubmit, When: "a prompt arrived, before the model sees it",
		Keys: []Key{
			{"text", Text, "the prompt"},
		},
		Decisions: []Decision{Block}, Replace: []string{"text"}, Context: true,
	},
	{
		Point: BeforeRun, When: "a turn is about to ask the model for the first time",
		Keys: []Key{
			{"text", Text, "the prompt"},
		},
		Decisions: []Decision{Block}, Context: true,
	},
	{
		Point: BeforeIteration, When: "a step begins",
		Keys: []Key{
			{"steps", Integer, "steps that were taken"},
			{"max_steps", Integer, "steps that there may be"},
			{"usage", Object, "tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens"},
			{"cost", Number, "what the turn cost so far; 0 where there are no prices"},
			{"budget", Object, "what is limited of tokens, cost and time_ms"},
		},
		Decisions: []Decision{Block}, Context: true,
	},
	{
		Point: BeforeRequest, When: "a request is about to be sent to the model",
		Keys: []Key{
			{"model", Text, "the model, by the server's name for it"},
			{"parameters", Any, "of the request: an object, or null"},
			{"tools", List, "the names of the tools on offer"},
		},
		Replace: []string{"parameters", "hide_tools", "response"},
	},
	{
		Point: OnRequestError, When: "a request to the model failed",
		Keys: []Key{
			{"class", Text, "of the failure: unreachable, timeout, auth, invalid, rate_limit, quota, server, malformed, overflow or script"},
			{"attempt", Integer, "counts from 1"},
			{"retry_after_ms", Integer, "what the server asks to wait; 0 if it does not say"},
			{"error", Text, "what happened, and why"},
		},
		Decisions: []Decision{Retry, Fail},
	},
	{
		Point: EmitReasoning, When: "a piece of the model's reasoning arrived",
		Raw: true,
	},
	{
		Point: EmitReasoningEnd, When: "the reasoning of a reply is whole",
		Keys: []Key{
			{"resuming", Boolean, "whether the turn asks the model again"},
		},
	},
	{
		Point: OnStream, When: "a piece of the answer arrived",
		Raw: true,
	},
	{
		Point: OnStreamEnd, When: "the text of a reply is whole",
		Keys: []Key{
			{"resuming", Boolean, "whether the turn asks the model again"},
		},
	},
	{
		Point: OnProviderToolEvent, When: "a tool that the provider itself runs reported something",
		Keys: []Key{
			{"event", Any, "as the provider sent it"},
		},
	},
	{
		Point: BeforeExecuteTools, When: "a reply's tool calls are about to be judged and run",
		Keys: []Key{
			{"calls", List, "each with call_id, tool and arguments"},
		},
		Decisions: []Decision{Block},
	},
	{
		Point: BeforeExecuteTool, When: "a tool call is about to be judged and run",
		Keys: []Key{
			{"call_id", Text, "the call's name"},
			{"tool", Text, "the tool's name"},
			{"arguments", Object, "of the call"},
		},
		Decisions: []Decision{Allow, Deny, Ask},
		Replace:   []string{"arguments", "result"}, Context: true,
	},
	{
		Point: PermissionRequest, When: "the user is about to be asked about a call",
		Keys: []Key{
			{"call_id", Text, "the call's name"},
			{"tool", Text, "the tool's name"},
			{"arguments", Object, "of the call"},
			{"rule", Text, "by which the user is asked"},
		},
		Decisions: []Decision{Allow, Deny},
	},
	{
		Point: AfterExecuteTool, When: "a tool call has its result, before the model sees it",
		Keys: []Key{
			{"call_id", Text, "the call's name"},
			{"tool", Text, "the tool's name"},
			{"arguments", Object, "of the call"},
			{"result", Object, "content, is_error, and a code if it failed"},
		},
		Decisions: []Decision{Block},
		Replace:   []string{"content"}, Context: true,
	},
	{
		Point: OnExecuteToolError, When: "a tool call failed, before the model sees how",
		Keys: []Key{
			{"call_id", Text, "the call's name"},
			{"tool", Text, "the tool's name"},
			{"arguments", Object, "of the call"},
			{"error", Text, "what happened, and why"},
		},
		Decisions: []Decision{Block},
		Replace:   []string{"content"}, Context: true,
	},
	{
		Point: AfterIteration, When: "a step is over",
		Keys: []Key{
			{"calls", List, "each with call_id, tool, arguments and result"},
		},
	},
	{
		Point: SubagentStart, When: "a subagent is about to begin", Later: true,
		Keys: []Key{
			{"task", Text, "what the subagent is to do"},
		},
		Decisions: []Decision{Block}, Context: true,
	},
	{
		Point: SubagentStop, When: "a subagent is about to end", Later: true,
		Keys: []Key{
			{"result", Text, "what the subagent found"},
		},
		Decisions: []Decision{Continue},
	},
	{
		Point: BeforeCompact, When: "the history is about to be summarized",
		Keys: []Key{
			{"messages", Integer, "messages that the summary will stand for"},
			{"tokens", Integer, "tokens of the whole history, about"},
		},
		Decisions: []Decision{Block},
	},
	{
		Point: AfterCompact, When: "the history was summarized",
		Keys: []Key{
			{"summary", Text, "what stands for the older messages now"},
		},
	},
	{
		Point: Notification, When: "the user is told something: a question about a call, a retry, another model",
		Keys: []Key{
			{"kind", Text, "question, retry or fallback"},
			{"text", Text, "what the user is told"},
		},
	},
	{
		Point: TurnStopping, When: "the model gave what looks like its final answer",
		Keys: []Key{
			{"text", Text, "what looks like the final answer"},
		},
		Decisions: []Decision{Continue},
	},
	{
		Point: FinalizeContent, When: "the final text is known, before anybody sees it",
		Keys: []Key{
			{"text", Text, "the final answer"},
		},
		Replace: []string{"text"},
	},
	{
		Point: AfterRun, When: "the turn has its answer",
		Keys: []Key{
			{"text", Text, "the answer"},
			{"usage", Object, "tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens"},
		},
	},
	{
		Point: OnError, When: "the turn ends without an answer",
		Keys: []Key{
			{"error", Text, "what happened, and why"},
		},
	},
	{
		Point: OnFinally, When: "the turn is over, however it ended",
		Keys: []Key{
			{"reason", Text, "why the turn ended: completed, max_steps, …"},
			{"text", Text, "the answer, or what there was of it"},
		},
	},
	{
		Point: SessionEnd, When: "the session is left",
		Keys: []Key{
			{"reason", Text, "why the session is left"},
		},
	},
}

// Lookup returns the row of p.
func Lookup(p Point) (Info, bool) {
	for _, info := range Points {
		if info.Point == p {
			return info, true
		}
	}
	return Info{}, false
}

// Hook is an extension's say. The engine calls one method at a time.
type Hook interface {
	// Name is the extension's; it is named in every denial.
	Name() string
	// Handles says whether and how the hook handles p. It is constant.
	Handles(p Point) (Handling, bool)
	// Call asks the hook. An empty answer is no opinion; else it is the JSON of
	// a [Verdict], valid until the next call. An error is a failure of the
	// hook; Call returns soon after the handling's time-out at the latest.
	Call(ctx context.Context, p Point, payload []byte) ([]byte, error)
}

// Handling says how a hook handles a point.
type Handling struct {
	Tools     []string      // globs (* only) over the tools' names, at the tool points; empty means all
	Timeout   time.Duration // for one call; never 0
	OnFailure OnFailure
	Approve   bool // the user granted that the hook's allow may skip a question
}

// OnFailure is what happens when a hook cannot be asked.
type OnFailure string

// The failure policies.
const (
	Isolate   OnFailure = "isolate" // log it and go on
	DenyIt    OnFailure = "deny"    // as if the hook had denied
	AbortTurn OnFailure = "abort"   // end the turn
)

// DefaultOnFailure returns the policy of a handler whose manifest names none.
func DefaultOnFailure(guard bool, p Point) OnFailure {
	info, _ := Lookup(p)
	switch {
	case p == FinalizeContent:
		return AbortTurn // a chain whose bugs must show
	case !guard || !info.Deciding():
		return Isolate
	case info.Denies():
		return DenyIt
	default:
		return AbortTurn
	}
}
