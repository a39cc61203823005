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
	"time"
)

// Point names a hook point. It is also the name of the export by which a Wasm
// guest handles it.
type Point string

// The hook points.
const (
	UserPromptSubmit  Point = "user_prompt_submit"
	BeforeExecuteTool Point = "before_execute_tool"
	AfterExecuteTool  Point = "after_execute_tool"
	OnStream          Point = "on_stream"
	FinalizeContent   Point = "finalize_content"
	OnFinally         Point = "on_finally"
)

// Info is a row of [Points].
type Info struct {
	Point     Point
	When      string     // for documentation
	Keys      []string   // the payload's own keys, besides session_id, turn and step; empty for a raw payload
	Raw       bool       // the payload is UTF-8 text, not JSON
	Decisions []Decision // what may be answered as a decision
	Replace   []string   // the keys that replace may hold
	Context   bool       // whether context may be added
}

// Deciding reports whether a hook's answer at this point can change anything.
func (i Info) Deciding() bool {
	return len(i.Decisions) > 0 || len(i.Replace) > 0 || i.Context
}

// Denies reports whether a hook can stop something at this point: what a
// guard's failure then does.
func (i Info) Denies() bool {
	for _, d := range i.Decisions {
		if d == Deny || d == Block {
			return true
		}
	}
	return false
}

// Points lists every hook point in the order in which a turn reaches them.
var Points = []Info{
	{
		Point: UserPromptSubmit, When: "a prompt arrived, before the model sees it",
		Keys: []string{"text"}, Decisions: []Decision{Block}, Replace: []string{"text"}, Context: true,
	},
	{
		Point: OnStream, When: "a piece of the answer arrived",
		Raw: true,
	},
	{
		Point: BeforeExecuteTool, When: "a tool call is about to be judged and run",
		Keys:      []string{"call_id", "tool", "arguments"},
		Decisions: []Decision{Allow, Deny, Ask},
		Replace:   []string{"arguments", "result"}, Context: true,
	},
	{
		Point: AfterExecuteTool, When: "a tool call has its result, before the model sees it",
		Keys:      []string{"call_id", "tool", "arguments", "result"},
		Decisions: []Decision{Block},
		Replace:   []string{"content"}, Context: true,
	},
	{
		Point: FinalizeContent, When: "the final text is known, before anybody sees it",
		Keys: []string{"text"}, Replace: []string{"text"},
	},
	{
		Point: OnFinally, When: "the turn is over, however it ended",
		Keys: []string{"reason", "text"},
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
