package engine

import (
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// recordedTurn is a turn of a record, taken apart for a replay.
type recordedTurn struct {
	from, to int // its records
	number   int
	origin   string
	prompt   *session.UserMessage // nil: it did not get into the log
	steps    []*recordedStep
	goal     *session.GoalChanged // as it was set; nil: there was none
	lastWord bool                 // its last step is beyond the limit of steps
	final    *string              // the text that finalize_content hooks made of the answer; nil: none did
	ended    *session.TurnEnded   // nil: the record ends within the turn
}

// recordedStep is a step, with what was said before it.
type recordedStep struct {
	inputs    []session.UserMessage
	contexts  []string
	header    session.Header // of its first request
	replaced  []session.ContextReplaced
	exchanges []*exchange
	instead   *session.AssistantMessage // that no request brought
	objection string                    // of hooks to the turn's end
	pursued   bool                      // the turn went on for its goal
	results   []session.ToolResult
	refused   []session.ContextReplaced // by what a request was shortened that was just refused
}

// exchange is a request and what came of it.
type exchange struct {
	seq      int64
	sent     session.RequestSent
	replaced []session.ContextReplaced // after it was refused as too long
	reply    *session.AssistantMessage // nil: there is none
	retried  *session.RequestRetried   // nil: it was not sent again
	final    bool                      // the reply is the turn's last
}

// recordedTurnAt returns the first turn from a place on; nil if there is none.
func recordedTurnAt(records []session.Record, at int) *recordedTurn {
	for i := at; i < len(records); i++ {
		if e, ok := records[i].Event.(session.TurnStarted); ok {
			t := &recordedTurn{from: i, to: i + 1, number: e.Turn, origin: e.Origin}
			p := &recordReader{turn: t, next: &recordedStep{}, header: headerBefore(records[:i])}
			for ; t.to < len(records) && t.ended == nil; t.to++ {
				p.add(records[t.to])
			}
			p.markFinal()
			return t
		}
	}
	return nil
}

// headerBefore returns the header that is in force after some records.
func headerBefore(records []session.Record) session.Header {
	for i := len(records) - 1; i >= 0; i-- {
		if e, ok := records[i].Event.(session.Header); ok {
			return e
		}
	}
	return session.Header{}
}

// recordReader takes a turn apart.
type recordReader struct {
	turn   *recordedTurn
	step   *recordedStep // the open one, or nil
	next   *recordedStep // that collects what is said before it
	header session.Header

	told      bool // that all steps are used up
	finalized bool // a hook made something else of the answer
}

func (p *recordReader) add(rec session.Record) {
	switch e := rec.Event.(type) {
	case session.StepStarted:
		p.turn.lastWord = p.turn.lastWord || p.told
		p.step, p.next = p.next, &recordedStep{}
		p.step.header = p.header
		p.turn.steps = append(p.turn.steps, p.step)
	case session.StepEnded:
		p.step = nil
	case session.TurnEnded:
		p.turn.ended = &e
	case session.UserMessage:
		p.said(e)
	case session.GoalChanged:
		if e.Status == "set" {
			p.turn.goal = &e
		} else if p.step != nil {
			p.step.pursued = p.step.pursued || e.Status == "round"
		}
	case session.Header:
		p.header = e
	case session.HookVerdict:
		p.finalized = p.finalized || e.Point == string(hook.FinalizeContent) && e.Replaced != nil
	}
	if p.step != nil {
		p.step.add(rec, p.header)
	}
}

// said sorts a message in the user's role by who wrote it. What the engine wrote, it
// writes again.
func (p *recordReader) said(e session.UserMessage) {
	switch {
	case e.Origin == "engine" && e.Content == withheld:
		p.next.inputs = append(p.next.inputs, e)
	case e.Origin == "engine":
		p.told = p.told || e.Content == stepsUsed
	case e.Origin == "hook" && p.step != nil:
		p.step.objection = e.Content
	case e.Origin == "hook":
		p.next.contexts = append(p.next.contexts, e.Content)
	case e.Delivery == "turn" && p.turn.prompt == nil:
		p.turn.prompt = &e
	default:
		p.next.inputs = append(p.next.inputs, e)
	}
}

func (s *recordedStep) add(rec session.Record, header session.Header) {
	open := s.waiting()
	switch e := rec.Event.(type) {
	case session.RequestSent:
		if len(s.exchanges) == 0 {
			s.header = header
		}
		s.exchanges = append(s.exchanges, &exchange{seq: rec.Seq, sent: e})
	case session.RequestRetried:
		if open != nil {
			open.retried = &e
		}
	case session.AssistantMessage:
		if open != nil {
			open.reply = &e
		} else if len(s.exchanges) == 0 {
			s.instead = &e
		}
	case session.ContextReplaced:
		switch {
		case e.By == "length": // the engine does that itself
		case open != nil:
			open.replaced = append(open.replaced, e)
		default:
			s.replaced = append(s.replaced, e)
		}
	case session.ToolResult:
		s.results = append(s.results, e)
	}
}

// waiting returns the request that has no answer yet, or nil.
func (s *recordedStep) waiting() *exchange {
	if n := len(s.exchanges); n > 0 && s.exchanges[n-1].reply == nil && s.exchanges[n-1].retried == nil {
		return s.exchanges[n-1]
	}
	return nil
}

// lastReply returns what the step's last request brought, or what stood in its place.
func (s *recordedStep) lastReply() *session.AssistantMessage {
	if n := len(s.exchanges); n > 0 {
		return s.exchanges[n-1].reply
	}
	return s.instead
}

// markFinal marks the reply that a turn ended with.
func (p *recordReader) markFinal() {
	if n := len(p.turn.steps); n > 0 {
		if x := p.turn.steps[n-1].exchanges; len(x) > 0 {
			x[len(x)-1].final = true
		}
		if last := p.turn.steps[n-1].lastReply(); last != nil && p.finalized {
			p.turn.final = &last.Text
		}
	}
}

// cut says for which reason from outside the turn ended, or nothing.
func (t *recordedTurn) cut() string {
	if t.ended == nil {
		return "the record ends within it"
	}
	switch t.ended.Reason {
	case session.Blocked, session.Budget, session.Cancelled, session.Interrupted, session.HookError, session.ToolError:
		return "it ended as " + string(t.ended.Reason)
	}
	return ""
}

// input returns what the turn began with, as hooks left it.
func (t *recordedTurn) input() Input {
	in := Input{Origin: t.origin, Goal: t.goal != nil}
	if t.prompt != nil {
		in.Text, in.Images = t.prompt.Content, t.prompt.Images
	}
	return in
}

// header returns the header of the turn's first request.
func (t *recordedTurn) header() session.Header {
	if len(t.steps) == 0 {
		return session.Header{}
	}
	return t.steps[0].header
}

// maxSteps returns the limit of steps that the turn had, as far as it shows.
func (t *recordedTurn) maxSteps() int {
	if t.goal != nil {
		return t.goal.Steps
	}
	if t.lastWord && len(t.steps) > 1 {
		return len(t.steps) - 1
	}
	return math.MaxInt
}

// rounds returns the limit of rounds that the turn's goal had.
func (t *recordedTurn) rounds() int {
	if t.goal == nil {
		return 0
	}
	return t.goal.Rounds
}

// fallbacks returns the models that were asked in the place of the first.
func (t *recordedTurn) fallbacks() (models []string) {
	for _, s := range t.steps {
		for _, x := range s.exchanges {
			if x.retried != nil && x.retried.Model != "" {
				models = append(models, x.retried.Model)
			}
		}
	}
	return models
}

// fallenBack returns the model that the turn fell back to, or nothing.
func (t *turn) fallenBack() string {
	if t.fallback == 0 {
		return ""
	}
	return t.model
}

// joined reports whether the reply stands in the record as the last part of an
// answer, with the parts before it; whole is what they add up to. If they are all
// of it, the request brought nothing.
func (x *exchange) joined(t *turn) (whole string, ok bool) {
	if !x.final || len(t.parts) == 0 || x.reply.Interrupted {
		return "", false
	}
	whole = t.whole("")
	return whole, strings.HasPrefix(x.reply.Text, whole)
}

// deltas is the reply as a stream.
func (x *exchange) deltas(t *turn) (deltas []provider.Delta) {
	if x.reply == nil || x.onlyParts(t) {
		return nil
	}
	deltas = append(deltas, provider.Delta{Text: x.text(t), Reasoning: x.reply.Reasoning})
	for _, c := range x.reply.Calls {
		deltas = append(deltas, provider.Delta{Call: &c})
	}
	for range x.reply.Dropped {
		deltas = append(deltas, provider.Delta{Call: &session.Call{}})
	}
	return append(deltas, provider.Delta{Usage: &x.reply.Usage, Finish: x.reply.FinishReason, Extra: x.reply.Extra})
}

// text is that of the reply alone.
func (x *exchange) text(t *turn) string {
	whole, ok := x.joined(t)
	if !ok {
		return x.reply.Text
	}
	text := x.reply.Text[len(whole):]
	if quoted := tail(t.parts[len(t.parts)-1].text); utf8.RuneCountInString(quoted) == tailLength {
		text = quoted + text // whole takes it away again
	}
	return text
}

// onlyParts reports whether the message is what there was of an answer before a
// request that failed.
func (x *exchange) onlyParts(t *turn) bool {
	whole, _ := x.joined(t)
	return whole != "" && (x.reply.Text == whole || t.replay.turn.final != nil) && x.reply.FinishReason == "" && x.reply.Usage == (session.Usage{})
}

// failure is how the request failed, or nil: with a class for which the engine does
// what it did then.
func (x *exchange) failure(t *turn) error {
	switch {
	case x.retried != nil && x.retried.Model != "":
		return &provider.Error{Class: provider.Auth, Message: x.retried.Cause}
	case x.retried != nil && len(x.replaced) > 0 && x.replaced[0].By == byImages:
		return &provider.Error{Class: provider.Images, Message: x.retried.Cause}
	case x.retried != nil && x.retried.DelayMS == 0:
		return &provider.Error{Class: provider.Overflow, Message: x.retried.Cause}
	case x.retried != nil:
		return &provider.Error{Class: provider.Server, Message: x.retried.Cause}
	case x.reply == nil || x.reply.Interrupted || x.onlyParts(t):
		return &provider.Error{Class: provider.Script, Message: "the request failed"}
	}
	return nil
}

// encoded returns a value as JSON.
func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// replace is a verdict that puts a value in the place of a key.
func replace(key string, value any) (hook.Verdict, error) {
	raw, err := json.Marshal(value)
	return hook.Verdict{Replace: map[string]json.RawMessage{key: raw}}, err
}
