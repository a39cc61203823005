package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// turn is one turn under way: an Engine's configuration, and how far it has come.
type turn struct {
	*Engine
	number   int
	step     int
	empty    int    // replies in a row that held neither text nor calls
	text     string // the final answer
	usage    session.Usage
	contexts []string // of hooks, for the next request
	denials  []Denial
	stop     context.CancelCauseFunc // ends the turn from within what it called
}

// loop runs the turn up to its final text. nil means that it completed; an
// error carries the reason for which it did not (see reasonOf).
func (t *turn) loop(ctx context.Context, prompt string) error {
	if err := t.submit(ctx, prompt); err != nil {
		return err
	}
	for t.step < t.cfg.MaxSteps {
		if err := t.startStep(); err != nil {
			return err
		}
		reply, err := t.request(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(reply.Calls) > 0:
			t.empty = 0
			err = t.runCalls(ctx, reply)
		case reply.FinishReason == "length":
			return t.cutOff(ctx, reply)
		case strings.TrimSpace(reply.Text) == "":
			err = t.askAgain(reply)
		default:
			return t.finish(ctx, reply)
		}
		if err != nil {
			return err
		}
		if err := t.endStep(); err != nil {
			return err
		}
	}
	return &endError{session.MaxSteps, fmt.Errorf("the turn took all of its %d steps: raise --max-steps, or resume the session to go on", t.cfg.MaxSteps)}
}

// submit takes the prompt into the log, as hooks leave it.
func (t *turn) submit(ctx context.Context, prompt string) error {
	s, err := t.hooks.UserPromptSubmit(ctx, t.at(), prompt)
	if err != nil {
		return err
	}
	if s.Blocked != "" {
		return &endError{session.Blocked, errors.New(s.Blocked)}
	}
	t.contexts = append(t.contexts, s.Contexts...)
	return t.record(session.UserMessage{Content: s.Text, Origin: "user", Delivery: "turn"})
}

func (t *turn) startStep() error {
	for _, text := range t.contexts {
		if err := t.record(session.UserMessage{Content: text, Origin: "hook", Delivery: "step"}); err != nil {
			return err
		}
	}
	t.contexts = nil
	t.step++
	return t.record(session.StepStarted{Turn: t.number, Step: t.step})
}

func (t *turn) endStep() error {
	return t.record(session.StepEnded{Turn: t.number, Step: t.step})
}

// maxEmpty is how many empty replies are simply asked for again; after the
// next, a request without tools must bring a text.
const maxEmpty = 2

// request sends what the log holds to the model and collects the reply.
func (t *turn) request(ctx context.Context) (session.AssistantMessage, error) {
	header := t.header
	if t.empty > maxEmpty {
		header.Tools = nil
	}
	if !sameHeader(header, t.cfg.Log.Header()) {
		if err := t.record(header); err != nil {
			return session.AssistantMessage{}, err
		}
	}
	log := t.cfg.Log
	err := t.record(session.RequestSent{Step: t.step, Digest: log.Digest(), Scheme: session.Scheme})
	if err == nil {
		err = log.Flush() // the intent is on record before the effect
	}
	if err != nil {
		return session.AssistantMessage{}, err
	}
	return t.receive(ctx, provider.Request{Header: log.Header(), Messages: log.Messages()})
}

// receive collects a reply. One that breaks off leaves its text in the log,
// marked, unless that text had yet to pass a finalize_content hook.
func (t *turn) receive(ctx context.Context, req provider.Request) (session.AssistantMessage, error) {
	var reply session.AssistantMessage
	var text, reasoning strings.Builder
	var err error
	for delta, failure := range t.cfg.Provider.Stream(ctx, req) {
		if err = failure; err != nil {
			break
		}
		text.WriteString(delta.Text)
		reasoning.WriteString(delta.Reasoning)
		if delta.Call != nil {
			reply.Calls = append(reply.Calls, *delta.Call)
		}
		if delta.Usage != nil {
			reply.Usage = *delta.Usage
		}
		if delta.Finish != "" {
			reply.FinishReason = delta.Finish
		}
		if delta.Text != "" {
			if err = t.hooks.OnStream(ctx, delta.Text); err != nil {
				break
			}
		}
	}
	t.usage = t.usage.Add(reply.Usage)
	reply.Text, reply.Reasoning = text.String(), reasoning.String()
	if err != nil {
		return reply, errors.Join(err, t.keepPrefix(reply))
	}
	t.adoptCalls(&reply)
	return reply, nil
}

func (t *turn) keepPrefix(reply session.AssistantMessage) error {
	if reply.Text == "" || t.hooks.Has(hook.FinalizeContent) {
		return nil
	}
	reply.Calls, reply.Interrupted = nil, true
	return t.record(reply)
}

// adoptCalls drops the calls of a reply that was cut short, since they may be
// too, and gives an id to each call that has none of its own; an id that the
// model chose for a later call is not given away.
func (t *turn) adoptCalls(reply *session.AssistantMessage) {
	switch reply.FinishReason {
	case "length", "content_filter":
		reply.Calls = nil
	}
	chosen, taken := map[session.CallID]bool{}, map[session.CallID]bool{}
	for _, c := range reply.Calls {
		chosen[c.ID] = true
	}
	for i := range reply.Calls {
		c := &reply.Calls[i]
		for n := i + 1; c.ID == "" || taken[c.ID]; n += len(reply.Calls) {
			c.ID = session.CallID(fmt.Sprintf("wharf_%d_%d_%d", t.number, t.step, n))
			taken[c.ID] = taken[c.ID] || chosen[c.ID]
		}
		taken[c.ID] = true
	}
}

// askAgain notes an empty reply, so that the loop asks again: twice as it
// was, then once without tools, and then no more.
func (t *turn) askAgain(reply session.AssistantMessage) error {
	if err := t.record(reply); err != nil {
		return err
	}
	t.empty++
	if t.empty <= maxEmpty {
		return nil
	}
	if t.empty == maxEmpty+1 {
		return t.record(session.UserMessage{Content: answerInText, Origin: "engine", Delivery: "step"})
	}
	return &endError{session.EmptyResponse, fmt.Errorf("the model answered nothing, %d times in a row: try another model, or look at the server", t.empty)}
}

const answerInText = "Your last replies were empty. Answer now in plain text, without calling a tool."

// finish passes the final text through finalize_content and takes it into the log.
func (t *turn) finish(ctx context.Context, reply session.AssistantMessage) error {
	final, err := t.hooks.FinalizeContent(ctx, t.at(), reply.Text)
	if err != nil {
		return err
	}
	reply.Text, t.text = final, final
	return t.record(reply)
}

// cutOff ends the turn with as much of the answer as its token limit let through.
func (t *turn) cutOff(ctx context.Context, reply session.AssistantMessage) error {
	if err := t.finish(ctx, reply); err != nil {
		return err
	}
	return &endError{session.MaxTokens, errors.New("the answer was cut off at the model's output limit: raise it in [parameters], or ask for less")}
}

// end closes the turn in the log, after on_finally had its say.
func (t *turn) end(ctx context.Context, err error) Result {
	reason := reasonOf(ctx, err)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finallyTimeout)
	defer cancel()
	if failure := t.hooks.OnFinally(last, t.at(), reason, t.text); failure != nil && err == nil {
		err, reason = failure, reasonOf(last, failure)
	}
	ended := session.TurnEnded{Turn: t.number, Reason: reason, Text: t.text, Usage: t.usage, Steps: t.step}
	if err != nil {
		ended.Error = strings.ToValidUTF8(err.Error(), "�")
	}
	if failure := t.close(ended); failure != nil && !errors.Is(err, failure) {
		err = errors.Join(err, failure)
		if reason == session.Completed {
			reason = session.ToolError
		}
	}
	return Result{Reason: reason, Text: t.text, Usage: t.usage, Steps: t.step, Denials: t.denials, Err: err}
}

// finallyTimeout bounds the on_finally hooks of a turn together.
const finallyTimeout = 10 * time.Second

func (t *turn) close(ended session.TurnEnded) error {
	if t.step > 0 && t.cfg.Log.StepOpen() {
		if err := t.endStep(); err != nil {
			return err
		}
	}
	if err := t.record(ended); err != nil {
		return err
	}
	return t.cfg.Log.Flush()
}

func (t *turn) at() hook.At {
	return hook.At{Session: string(t.cfg.Log.ID()), Turn: t.number, Step: t.step}
}

// endError ends a turn for a reason that is no failure of ours.
type endError struct {
	reason session.Reason
	err    error
}

func (e *endError) Error() string { return e.err.Error() }
func (e *endError) Unwrap() error { return e.err }

// reasonOf sorts what ended a turn into the closed set of reasons. What is none
// of the others is a fault of Wharf's own, such as a log that cannot be written:
// tool_error, the reason that the set has for it.
func reasonOf(ctx context.Context, err error) session.Reason {
	var ended *endError
	var model *provider.Error
	switch {
	case err == nil:
		return session.Completed
	case errors.As(err, &ended):
		return ended.reason
	case ctx.Err() != nil:
		return session.Cancelled
	case errors.Is(err, hook.ErrAborted):
		return session.HookError
	case errors.As(err, &model):
		return session.ModelError
	}
	return session.ToolError
}

// sameHeader compares headers as the log encodes them.
func sameHeader(a, b session.Header) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
