package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// request gets the model's next reply, or what a hook answers in its place.
func (t *turn) request(ctx context.Context) (session.AssistantMessage, error) {
	header, instead, err := t.plan(ctx)
	if err != nil {
		return session.AssistantMessage{}, err
	}
	if instead != nil {
		return session.AssistantMessage{Text: instead.Text, FinishReason: "stop"}, nil
	}
	if !sameHeader(header, t.cfg.Log.Header()) {
		if err := t.record(header); err != nil {
			return session.AssistantMessage{}, err
		}
	}
	for attempt := 1; ; attempt++ {
		reply, err := t.send(ctx)
		if err == nil {
			return reply, nil
		}
		if again, failure := t.retry(ctx, attempt, reply, err); failure != nil || !again {
			return reply, errors.Join(err, failure)
		}
	}
}

// plan makes the header of the next request, as hooks leave it.
func (t *turn) plan(ctx context.Context) (session.Header, *hook.Response, error) {
	header := t.header
	if t.empty > maxEmpty {
		header.Tools = nil
	}
	if t.step > 1 && header.ToolChoice != "none" {
		header.ToolChoice = "" // else the model could never come to an answer
	}
	if !t.hooks.Has(hook.BeforeRequest) {
		return header, nil, nil
	}
	p := hook.Plan{Model: header.Model, Parameters: header.Parameters}
	for _, tl := range header.Tools {
		p.Tools = append(p.Tools, tl.Name)
	}
	p, err := t.hooks.BeforeRequest(ctx, t.at(), p)
	header.Parameters = p.Parameters
	header.Tools = slices.DeleteFunc(slices.Clone(header.Tools), func(tl session.Tool) bool { return !slices.Contains(p.Tools, tl.Name) })
	return header, p.Response, err
}

// send sends what the log holds to the model and collects the reply.
func (t *turn) send(ctx context.Context) (session.AssistantMessage, error) {
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

// maxAttempts is how often a request is sent at most.
const maxAttempts = 5

// retry waits, and reports whether the request is to be sent again: if a hook
// says so, and nothing of a reply has come that somebody may have seen.
func (t *turn) retry(ctx context.Context, attempt int, reply session.AssistantMessage, failure error) (bool, error) {
	model, ok := errors.AsType[*provider.Error](failure)
	if !ok || attempt == maxAttempts || ctx.Err() != nil || reply.Text+reply.Reasoning != "" || len(reply.Calls) > 0 {
		return false, nil
	}
	again, err := t.hooks.OnRequestError(ctx, t.at(), hook.Failure{
		Class: string(model.Class), Attempt: attempt, RetryAfterMS: model.RetryAfter.Milliseconds(), Error: model.Error(),
	})
	if err != nil || !again {
		return false, err
	}
	delay := max(model.RetryAfter, time.Second<<(attempt-1))
	if err := t.record(session.RequestRetried{Attempt: attempt, DelayMS: delay.Milliseconds(), Cause: model.Error()}); err != nil {
		return false, err
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
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
		if delta.Extra != nil {
			reply.Extra = delta.Extra
		}
		if err = t.stream(ctx, delta); err != nil {
			break
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

// stream shows what arrives: to whoever follows the turn, unless the text has yet to
// pass finalize_content, and to hooks.
func (t *turn) stream(ctx context.Context, delta provider.Delta) error {
	if delta.Text+delta.Reasoning != "" && !t.hooks.Has(hook.FinalizeContent) {
		t.show(Event{Text: delta.Text, Reasoning: delta.Reasoning})
	}
	if delta.Reasoning != "" {
		if err := t.hooks.EmitReasoning(ctx, delta.Reasoning); err != nil {
			return err
		}
	}
	if delta.Text == "" {
		return nil
	}
	return t.hooks.OnStream(ctx, delta.Text)
}

func (t *turn) keepPrefix(reply session.AssistantMessage) error {
	if reply.Text == "" || t.hooks.Has(hook.FinalizeContent) {
		return nil
	}
	reply.Calls, reply.Extra, reply.Interrupted = nil, nil, true
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

// sameHeader compares headers as the log encodes them.
func sameHeader(a, b session.Header) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
