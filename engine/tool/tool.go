// Package tool is what a model can call.
//
// A [Tool] describes itself, says what it does to the world, and runs. The
// [Registry] holds a session's tools in a stable order and checks arguments
// against their schema before a tool ever sees them. Whether a call may run is
// decided elsewhere (package permission); how its effects are confined too
// (package sandbox).
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
)

// Tool is one action that the model can take. Run may be called by several
// goroutines at once only if the tool's own documentation says so.
type Tool interface {
	// Spec describes the tool. It is constant.
	Spec() Spec
	// Run does it. The arguments are a JSON object that meets the schema. A
	// failure that the model should know of is a Result with IsError; an error
	// is a failure too, and its text becomes the result. When ctx ends, Run
	// stops what it started, waits for that, and returns.
	Run(ctx context.Context, call Call) (Result, error)
}

// Classifier is a tool that can tell whether calls may run beside one with these
// arguments, which are the model's own text. Without it, Spec tells.
type Classifier interface {
	Parallel(arguments json.RawMessage) bool
}

// Poller is a tool that can tell whether a call with these arguments looks at something
// that goes on by itself: then a model that makes it again is not going round in circles.
type Poller interface {
	Polls(arguments json.RawMessage) bool
}

// TurnEnder is a tool with something that must not outlast the turn. EndTurn is called
// after the last call of a turn; it ends that, and waits until ctx ends. A tool that is
// an io.Closer, too, is closed with the [Registry].
type TurnEnder interface {
	EndTurn(ctx context.Context)
}

// Widener is a tool that can be called to go beyond what confines it, where a person
// allows that for the one call.
type Widener interface {
	// Widens says what a call with these arguments is to do besides, as words that go on
	// from "it is to"; empty: nothing.
	Widens(arguments json.RawMessage) (what string)
	// MayAsk is called right before a person is asked about a call, for whatever reason, and
	// says why that may not be; empty: it may. Each call of it is a question, so a tool may
	// allow only one about what was refused.
	MayAsk(arguments json.RawMessage) (refusal string)
}

// Spec describes a tool.
type Spec struct {
	session.Tool
	Effect   permission.Effect
	Timeout  time.Duration // for one call; 0 means the engine's default
	Parallel bool          // it may run beside other calls
}

// Call is a call that was checked and allowed.
type Call struct {
	ID        session.CallID
	Name      string
	Arguments json.RawMessage
	Program   bool // a program asks, not a model: it wants Structured too
}

// Result is what the model gets to read.
type Result struct {
	Content    string
	IsError    bool
	Code       Code   // set only where one of the codes applies
	Structured string // the same as JSON, for a program that asks, if the tool has it; a model never sees it

	Images []session.Image // shown after the content, where the model can see
}

// Code names the kind of an error result.
type Code string

// The codes, a closed set.
const (
	UnknownTool           Code = "UNKNOWN_TOOL"
	InvalidArgs           Code = "INVALID_ARGS"
	InvalidOutput         Code = "INVALID_TOOL_OUTPUT"
	TimedOut              Code = "TOOL_TIMEOUT"
	Denied                Code = "DENIED"
	Repeated              Code = "REPEATED"
	SandboxUnavailable    Code = "SANDBOX_UNAVAILABLE"
	Aborted               Code = "ABORTED"
	AbortedBeforeDispatch Code = "ABORTED_BEFORE_DISPATCH"
	NotStarted            Code = "TOOL_NOT_STARTED"
	OutcomeUnknown        Code = "TOOL_OUTCOME_UNKNOWN"
)
