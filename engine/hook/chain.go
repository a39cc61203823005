package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/wharf-agent/wharf/engine/session"
)

// ErrAborted reports that a hook's failure ends the turn.
var ErrAborted = errors.New("a hook failed")

// quarantineAfter is how many failures in a row end an extension's say in a
// session.
const quarantineAfter = 3

// Chain asks a session's hooks, in the order in which they were configured.
// Its methods are called one at a time, also from within a hook's Call: a hook
// that is asked while it is being asked is busy, which counts as its failure.
type Chain struct {
	points map[Point][]*link
	record func(session.Event) error
	except string // the hook that is not asked
}

// link is a hook's handling of one point.
type link struct {
	*member
	info     Info
	handling Handling
}

// member is a hook and how it has fared in this session.
type member struct {
	hook        Hook
	failures    int // in a row
	quarantined bool
	busy        bool // it is being asked, further out
}

// NewChain returns the chain of a session's hooks. record writes an event to
// the session's log; its error ends what the chain was asked for.
func NewChain(hooks []Hook, record func(session.Event) error) *Chain {
	return (&Chain{record: record}).With(hooks)
}

// With returns the chain with more hooks at its end. How the hooks that are in c
// already have fared counts for both.
func (c *Chain) With(hooks []Hook) *Chain {
	if len(hooks) == 0 && c.points != nil {
		return c
	}
	longer := &Chain{points: map[Point][]*link{}, record: c.record, except: c.except}
	for p, links := range c.points {
		longer.points[p] = slices.Clip(links)
	}
	for _, h := range hooks {
		m := &member{hook: h}
		for _, info := range Points {
			if handling, ok := h.Handles(info.Point); ok {
				longer.points[info.Point] = append(longer.points[info.Point], &link{m, info, handling})
			}
		}
	}
	return longer
}

// Except returns the same chain, but the hook of that name is not asked.
func (c *Chain) Except(name string) *Chain {
	if name == "" {
		return c
	}
	return &Chain{c.points, c.record, name}
}

// Has reports whether any hook handles p.
func (c *Chain) Has(p Point) bool { return len(c.points[p]) > 0 }

// question is one round through the hooks of a point.
type question struct {
	point   Point
	tool    string                      // at the tool points: filters the hooks
	call    session.CallID              // at the tool points
	payload func() any                  // what the next hook gets; nil: raw holds it
	raw     []byte                      // the payload's bytes
	apply   func(who string, v Verdict) // takes a verdict into the answer so far
	refuse  func(reason string)         // takes a failure of a hook whose policy is to deny
}

// ask asks each hook of the point in turn.
func (c *Chain) ask(ctx context.Context, q question) error {
	for _, l := range c.points[q.point] {
		if q.tool != "" && !l.handling.Covers(q.tool) || c.except != "" && l.hook.Name() == c.except {
			continue
		}
		if err := c.askOne(ctx, l, &q); err != nil {
			return err
		}
	}
	return nil
}

func (c *Chain) askOne(ctx context.Context, l *link, q *question) error {
	if l.quarantined {
		return c.failed(l, q, errors.New("it is quarantined for this session"))
	}
	if q.payload != nil && q.raw == nil {
		raw, err := encode(q.payload())
		if err != nil {
			return fmt.Errorf("encode the payload of %s: %w", q.point, err)
		}
		q.raw = raw
	}
	answer, err := l.ask(ctx, q)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && len(answer) == 0 { // most say nothing: they are done with soon
		l.failures = 0
		return nil
	}
	return c.answered(l, q, answer, err)
}

// answered takes what a hook answered, or how it failed, into account.
func (c *Chain) answered(l *link, q *question, answer []byte, err error) error {
	var v Verdict
	if err == nil {
		v, err = parse(l.info, answer)
	}
	if err != nil {
		return c.countFailure(l, q, err)
	}
	l.failures = 0
	if !v.opinion() {
		return nil
	}
	return c.decided(l, q, v)
}

var errBusy = errors.New("it is busy: this happens in the course of a call of its own")

// ask calls the hook. One that panics failed.
func (l *link) ask(ctx context.Context, q *question) (answer []byte, err error) {
	if l.busy {
		return nil, errBusy
	}
	l.busy = true
	defer func() {
		l.busy = false
		if p := recover(); p != nil {
			answer, err = nil, fmt.Errorf("it broke down: %v", p)
		}
	}()
	return l.hook.Call(ctx, q.point, q.raw)
}

// decided records a verdict and takes it into account.
func (c *Chain) decided(l *link, q *question, v Verdict) error {
	event := session.HookVerdict{
		Point: string(q.point), Extension: l.hook.Name(), CallID: q.call,
		Decision: string(v.Decision), Reason: v.Reason,
	}
	if len(v.Replace) > 0 {
		replaced, err := encode(v.Replace)
		if err != nil {
			return fmt.Errorf("encode a verdict of %q: %w", l.hook.Name(), err)
		}
		event.Replaced = replaced
	}
	if event.Replaced != nil && q.point == FinalizeContent {
		event.Replaced = json.RawMessage(`{"text":null}`) // only what the last hook leaves may be seen, in the message itself
	}
	if err := c.record(event); err != nil {
		return err
	}
	if v.Decision == Allow && !l.handling.Approve {
		v.Decision = "" // a hook narrows; its allow counts only where the user granted that
	}
	q.apply(l.hook.Name(), v)
	if len(v.Replace) > 0 && q.payload != nil {
		q.raw = nil // the next hook sees what this one replaced
	}
	return nil
}

// countFailure records a failure, quarantines the extension after the third
// in a row, and does what the hook's policy says.
func (c *Chain) countFailure(l *link, q *question, failure error) error {
	err := c.record(session.HookFailed{
		Point: string(q.point), Extension: l.hook.Name(), CallID: q.call,
		Failure: failure.Error(), OnFailure: string(l.handling.OnFailure),
	})
	if err != nil {
		return err
	}
	l.failures++
	if l.failures >= quarantineAfter {
		l.quarantined = true
		err := c.record(session.ExtensionQuarantined{
			Extension: l.hook.Name(),
			Reason:    fmt.Sprintf("%d failures in a row, the last: %v", l.failures, failure),
		})
		if err != nil {
			return err
		}
	}
	return c.failed(l, q, failure)
}

// failed does what the hook's policy says of a failure. The wording differs
// from a denial's: policy could not be asked, which is not the same as no.
func (c *Chain) failed(l *link, q *question, failure error) error {
	switch l.handling.OnFailure {
	case Isolate:
		return nil
	case DenyIt:
		if q.refuse != nil {
			q.refuse(fmt.Sprintf("the guard %q could not be asked: %v", l.hook.Name(), failure))
			return nil
		}
	}
	return fmt.Errorf("%w: extension %q at %s: %w", ErrAborted, l.hook.Name(), q.point, failure)
}

// Covers reports whether the handling is for the tool, at a point about one tool.
func (h Handling) Covers(tool string) bool {
	return len(h.Tools) == 0 || slices.ContainsFunc(h.Tools, func(glob string) bool {
		ok, err := path.Match(glob, tool)
		return ok || err != nil // a pattern that cannot be read covers everything
	})
}

// Submitted is what became of a prompt.
type Submitted struct {
	Text     string
	Contexts []string // to be shown to the model beside the prompt
	Blocked  string   // the reason, if the prompt must not reach the model
}

// UserPromptSubmit asks about a prompt.
func (c *Chain) UserPromptSubmit(ctx context.Context, at At, text string) (Submitted, error) {
	s := Submitted{Text: text}
	err := c.ask(ctx, question{
		point:   UserPromptSubmit,
		payload: func() any { return textPayload{at, s.Text} },
		apply: func(who string, v Verdict) {
			v.replacement("text", &s.Text)
			s.Contexts = appendSet(s.Contexts, v.Context)
			if v.Decision == Block {
				s.Blocked = join(s.Blocked, because(fmt.Sprintf("blocked by extension %q", who), v.Reason))
			}
		},
		refuse: func(reason string) { s.Blocked = join(s.Blocked, reason) },
	})
	return s, err
}

// Judged is what hooks say of a tool call before it runs.
type Judged struct {
	Decision  Decision        // the most restrictive; empty: no opinion
	Reason    string          // of that decision
	Arguments json.RawMessage // possibly replaced
	Result    *Result         // the answer in the tool's place, if one was given
	Contexts  []string
}

// BeforeExecuteTool asks about a tool call that is about to run.
func (c *Chain) BeforeExecuteTool(ctx context.Context, at At, call Call) (Judged, error) {
	j := Judged{Arguments: call.Arguments}
	deny := func(reason string) {
		if j.Decision != Deny {
			j.Decision, j.Reason = Deny, ""
		}
		j.Reason = join(j.Reason, reason)
	}
	err := c.ask(ctx, question{
		point: BeforeExecuteTool, tool: call.Tool, call: session.CallID(call.ID),
		payload: func() any { return callPayload{at, Call{call.ID, call.Tool, j.Arguments}} },
		apply: func(who string, v Verdict) {
			v.replacement("arguments", &j.Arguments)
			if j.Result == nil { // the first answer in the tool's place stands
				v.replacement("result", &j.Result)
			}
			j.Contexts = appendSet(j.Contexts, v.Context)
			switch v.Decision {
			case Deny:
				deny(because(fmt.Sprintf("denied by extension %q", who), v.Reason))
			case Ask:
				if j.Decision != Deny && j.Decision != Ask {
					j.Decision, j.Reason = Ask, because(fmt.Sprintf("extension %q asks for approval", who), v.Reason)
				}
			case Allow:
				if j.Decision == "" {
					j.Decision, j.Reason = Allow, v.Reason
				}
			}
		},
		refuse: deny,
	})
	return j, err
}

// Withheld begins the feedback that stands in the place of a blocked result.
const Withheld = "the result was withheld"

// Reviewed is what hooks made of a tool's result.
type Reviewed struct {
	Result   Result
	Contexts []string
	Blocked  string // feedback that the model gets instead of the result
}

// AfterExecuteTool shows hooks a call's result before the model sees it.
func (c *Chain) AfterExecuteTool(ctx context.Context, at At, call Call, result Result) (Reviewed, error) {
	return c.review(ctx, AfterExecuteTool, call, result, func(r Result) any { return resultPayload{at, call, r} })
}

// review shows hooks what came of a call, in the form of the point.
func (c *Chain) review(ctx context.Context, p Point, call Call, result Result, payload func(Result) any) (Reviewed, error) {
	r := Reviewed{Result: result}
	err := c.ask(ctx, question{
		point: p, tool: call.Tool, call: session.CallID(call.ID),
		payload: func() any { return payload(r.Result) },
		apply: func(who string, v Verdict) {
			v.replacement("content", &r.Result.Content)
			r.Contexts = appendSet(r.Contexts, v.Context)
			if v.Decision == Block {
				r.Blocked = join(r.Blocked, because(fmt.Sprintf(Withheld+" by extension %q", who), v.Reason))
			}
		},
		refuse: func(reason string) { r.Blocked = join(r.Blocked, Withheld+": "+reason) },
	})
	return r, err
}

// OnStream shows hooks a piece of the answer.
func (c *Chain) OnStream(ctx context.Context, delta string) error {
	if !c.Has(OnStream) {
		return nil
	}
	return c.ask(ctx, question{point: OnStream, raw: []byte(delta)})
}

// FinalizeContent passes the final text through the hooks.
func (c *Chain) FinalizeContent(ctx context.Context, at At, text string) (string, error) {
	err := c.ask(ctx, question{
		point:   FinalizeContent,
		payload: func() any { return textPayload{at, text} },
		apply:   func(_ string, v Verdict) { v.replacement("text", &text) },
	})
	return text, err
}

// OnFinally tells hooks that the turn is over.
func (c *Chain) OnFinally(ctx context.Context, at At, reason session.Reason, text string) error {
	return c.ask(ctx, question{
		point:   OnFinally,
		payload: func() any { return finallyPayload{at, string(reason), text} },
	})
}

func appendSet(list []string, text string) []string {
	if text == "" {
		return list
	}
	return append(list, text)
}

// join puts one reason beneath another.
func join(reasons, more string) string {
	if reasons == "" {
		return more
	}
	return reasons + "\n" + more
}

// because adds a reason, if there is one, to what was decided.
func because(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}
