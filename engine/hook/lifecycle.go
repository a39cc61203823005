package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wharf-agent/wharf/engine/session"
)

// Gated is what hooks say of something that is about to begin.
type Gated struct {
	Contexts []string // to be shown to the model
	Blocked  string   // the reason, if it must not begin
}

// gate asks at a point that takes a block and contexts.
func (c *Chain) gate(ctx context.Context, p Point, payload any) (Gated, error) {
	var g Gated
	err := c.ask(ctx, question{
		point:   p,
		payload: func() any { return payload },
		apply: func(who string, v Verdict) {
			g.Contexts = appendSet(g.Contexts, v.Context)
			if v.Decision == Block {
				g.Blocked = join(g.Blocked, because(fmt.Sprintf("blocked by extension %q", who), v.Reason))
			}
		},
		refuse: func(reason string) { g.Blocked = join(g.Blocked, reason) },
	})
	return g, err
}

// tell asks at a point at which hooks only watch.
func (c *Chain) tell(ctx context.Context, p Point, payload any) error {
	return c.ask(ctx, question{point: p, payload: func() any { return payload }})
}

// SessionStart tells hooks that a session begins: source is new, resume or
// fork. What they add is for the first turn.
func (c *Chain) SessionStart(ctx context.Context, at At, source string) ([]string, error) {
	g, err := c.gate(ctx, SessionStart, struct {
		At
		Source string `json:"source"`
	}{at, source})
	return g.Contexts, err
}

// SessionEnd tells hooks that the session is left, and why.
func (c *Chain) SessionEnd(ctx context.Context, at At, reason string) error {
	return c.tell(ctx, SessionEnd, struct {
		At
		Reason string `json:"reason"`
	}{at, reason})
}

// BeforeRun asks about a turn that is about to ask the model for the first time.
func (c *Chain) BeforeRun(ctx context.Context, at At, text string) (Gated, error) {
	return c.gate(ctx, BeforeRun, textPayload{at, text})
}

// AfterRun shows hooks the answer of a turn.
func (c *Chain) AfterRun(ctx context.Context, at At, text string, usage session.Usage) error {
	return c.tell(ctx, AfterRun, struct {
		At
		Text  string        `json:"text"`
		Usage session.Usage `json:"usage"`
	}{at, text, usage})
}

// OnError tells hooks why a turn has no answer.
func (c *Chain) OnError(ctx context.Context, at At, failure string) error {
	return c.tell(ctx, OnError, struct {
		At
		Error string `json:"error"`
	}{at, failure})
}

// Counts says how far a turn has come when a step begins.
type Counts struct {
	Steps    int           `json:"steps"` // that were taken
	MaxSteps int           `json:"max_steps"`
	Usage    session.Usage `json:"usage"`
	Cost     float64       `json:"cost"` // 0 where there are no prices
	Budget   Budget        `json:"budget"`
}

// Budget is what the turn may use up in all; what is not there is not limited.
type Budget struct {
	Tokens int64   `json:"tokens,omitempty"` // of input and output
	Cost   float64 `json:"cost,omitempty"`
	TimeMS int64   `json:"time_ms,omitempty"`
}

// BeforeIteration asks about a step.
func (c *Chain) BeforeIteration(ctx context.Context, at At, counts Counts) (Gated, error) {
	return c.gate(ctx, BeforeIteration, struct {
		At
		Counts
	}{at, counts})
}

// Done is a call with what came of it.
type Done struct {
	Call
	Result Result `json:"result"`
}

// AfterIteration shows hooks the calls of a step.
func (c *Chain) AfterIteration(ctx context.Context, at At, calls []Done) error {
	return c.tell(ctx, AfterIteration, struct {
		At
		Calls []Done `json:"calls"`
	}{at, append([]Done{}, calls...)})
}

// Plan is a request that is about to be sent, as hooks leave it.
type Plan struct {
	Model      string          `json:"model"`
	Parameters json.RawMessage `json:"parameters"` // a JSON object, or null
	Tools      []string        `json:"tools"`      // their names, without the hidden ones
	Response   *Response       `json:"-"`          // the answer in the model's place, if one was given
}

// BeforeRequest asks about a request to the model.
func (c *Chain) BeforeRequest(ctx context.Context, at At, p Plan) (Plan, error) {
	err := c.ask(ctx, question{
		point: BeforeRequest,
		payload: func() any {
			shown := p
			shown.Tools = append([]string{}, p.Tools...) // a list, also of none
			return struct {
				At
				Plan
			}{at, shown}
		},
		apply: func(_ string, v Verdict) {
			v.replacement("parameters", &p.Parameters)
			var hidden []string
			if v.replacement("hide_tools", &hidden) {
				p.Tools = without(p.Tools, hidden)
			}
			if p.Response == nil { // the first answer in the model's place stands
				v.replacement("response", &p.Response)
			}
		},
	})
	return p, err
}

// Failure is a request to the model that failed.
type Failure struct {
	Class        string `json:"class"`
	Attempt      int    `json:"attempt"` // counts from 1
	RetryAfterMS int64  `json:"retry_after_ms"`
	Error        string `json:"error"`
}

// OnRequestError asks what to do about a request that failed: Retry if a hook says
// so and none says Fail, or nothing if none has an opinion.
func (c *Chain) OnRequestError(ctx context.Context, at At, f Failure) (said Decision, err error) {
	err = c.ask(ctx, question{
		point: OnRequestError,
		payload: func() any {
			return struct {
				At
				Failure
			}{at, f}
		},
		apply: func(_ string, v Verdict) {
			if said != Fail && v.Decision != "" {
				said = v.Decision
			}
		},
	})
	return said, err
}

// EmitReasoning shows hooks a piece of the model's reasoning.
func (c *Chain) EmitReasoning(ctx context.Context, delta string) error {
	if !c.Has(EmitReasoning) {
		return nil
	}
	return c.ask(ctx, question{point: EmitReasoning, raw: []byte(delta)})
}

type endPayload struct {
	At
	Resuming bool `json:"resuming"`
}

// StreamEnd tells hooks that a reply is whole: its reasoning, if it had any, and
// its text. resuming is whether the turn asks the model again.
func (c *Chain) StreamEnd(ctx context.Context, at At, reasoned, resuming bool) error {
	if reasoned {
		if err := c.tell(ctx, EmitReasoningEnd, endPayload{at, resuming}); err != nil {
			return err
		}
	}
	return c.tell(ctx, OnStreamEnd, endPayload{at, resuming})
}

// OnProviderToolEvent tells hooks of an event of a tool that the provider runs, as
// its server sent it.
func (c *Chain) OnProviderToolEvent(ctx context.Context, at At, event json.RawMessage) error {
	return c.tell(ctx, OnProviderToolEvent, struct {
		At
		Event json.RawMessage `json:"event"`
	}{at, event})
}

// BeforeExecuteTools asks about all calls of a reply together. The reason is
// empty, or why none of them may run.
func (c *Chain) BeforeExecuteTools(ctx context.Context, at At, calls []Call) (blocked string, err error) {
	g, err := c.gate(ctx, BeforeExecuteTools, struct {
		At
		Calls []Call `json:"calls"`
	}{at, calls})
	return g.Blocked, err
}

// Compaction is what is about to be summarized.
type Compaction struct {
	Messages int `json:"messages"` // that the summary will stand for
	Tokens   int `json:"tokens"`   // of the whole history, about
}

// BeforeCompact asks about a summary.
func (c *Chain) BeforeCompact(ctx context.Context, at At, what Compaction) (Gated, error) {
	return c.gate(ctx, BeforeCompact, struct {
		At
		Compaction
	}{at, what})
}

// AfterCompact shows hooks the summary.
func (c *Chain) AfterCompact(ctx context.Context, at At, summary string) error {
	return c.tell(ctx, AfterCompact, struct {
		At
		Summary string `json:"summary"`
	}{at, summary})
}

// PermissionRequest asks about a call about which the user is about to be asked,
// by a rule. An allow is in the user's name, where that was granted.
func (c *Chain) PermissionRequest(ctx context.Context, at At, call Call, rule string) (Decision, string, error) {
	var said Decision
	var reasons string
	deny := func(reason string) { said, reasons = Deny, join(reasons, reason) }
	err := c.ask(ctx, question{
		point: PermissionRequest, tool: call.Tool, call: session.CallID(call.ID),
		payload: func() any {
			return struct {
				At
				Call
				Rule string `json:"rule"`
			}{at, call, rule}
		},
		apply: func(who string, v Verdict) {
			switch {
			case v.Decision == Deny:
				deny(because(fmt.Sprintf("denied by extension %q", who), v.Reason))
			case v.Decision == Allow && said != Deny:
				said = Allow
			}
		},
		refuse: deny,
	})
	return said, reasons, err
}

// The kinds of notifications.
const (
	Question = "question" // whether a call may be made
	Retrying = "retry"    // a request that failed is sent again
	Fallback = "fallback" // another model is asked
)

// Notification tells hooks what the user is told, by its kind.
func (c *Chain) Notification(ctx context.Context, at At, kind, text string) error {
	return c.tell(ctx, Notification, struct {
		At
		Kind string `json:"kind"`
		Text string `json:"text"`
	}{at, kind, text})
}

// OnExecuteToolError shows hooks how a call failed before the model sees it. The
// reviewed result is that text, as they leave it.
func (c *Chain) OnExecuteToolError(ctx context.Context, at At, call Call, failure Result) (Reviewed, error) {
	return c.review(ctx, OnExecuteToolError, call, failure, func(r Result) any {
		return struct {
			At
			Call
			Error string `json:"error"`
		}{at, call, r.Content}
	})
}

// TurnStopping asks whether a turn may end with this answer. The message is
// empty, or what the model is to go on with.
func (c *Chain) TurnStopping(ctx context.Context, at At, text string) (message string, err error) {
	err = c.ask(ctx, question{
		point:   TurnStopping,
		payload: func() any { return textPayload{at, text} },
		apply:   func(_ string, v Verdict) { message = join(message, v.Message) },
	})
	return message, err
}

// without returns the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
