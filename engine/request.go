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

// reply is what a request brought.
type reply struct{ session.AssistantMessage }

// cut reports whether the output limit ended the reply.
func (r reply) cut() bool {
	switch r.FinishReason {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return true
	}
	return false
}

// request gets the model's next reply, or what a hook answers in its place.
func (t *turn) request(ctx context.Context) (reply, error) {
	defer func() { t.plain = false }()
	if err := t.govern(ctx); err != nil {
		return reply{}, err
	}
	header, instead, err := t.plan(ctx)
	if err != nil {
		return reply{}, err
	}
	if instead != nil {
		return reply{AssistantMessage: session.AssistantMessage{Text: instead.Text, FinishReason: "stop"}}, nil
	}
	var before error
	shortened := false
	for attempt := 1; ; attempt++ {
		header.Model = t.model
		if err := t.announce(t.capOutput(header)); err != nil {
			return reply{}, err
		}
		r, err := t.send(ctx)
		if err == nil {
			return r, nil
		}
		if !shortened {
			var failure error
			if shortened, failure = t.shorten(ctx, attempt, r, err); failure != nil {
				return r, errors.Join(err, failure)
			}
			if shortened {
				continue
			}
		}
		switch again, failure := t.retry(ctx, attempt, r, err); {
		case failure != nil:
			return r, failure
		case again == notAgain:
			return r, lastError(before, err)
		case again == otherModel:
			attempt = 0
		}
		before = err
	}
}

// announce takes the header of the next request into the log, where it changed.
func (t *turn) announce(header session.Header) error {
	if sameHeader(header, t.cfg.Log.Header()) {
		return nil
	}
	return t.record(header)
}

// plan makes the header of the next request, as hooks leave it.
func (t *turn) plan(ctx context.Context) (session.Header, *hook.Response, error) {
	header := t.header
	header.Model = t.model
	if header.Tools = t.offered(header.Tools); t.plain {
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
func (t *turn) send(ctx context.Context) (reply, error) {
	log := t.cfg.Log
	err := t.record(session.RequestSent{Step: t.step, Digest: log.Digest(), Scheme: session.Scheme})
	if err == nil {
		err = log.Flush() // the intent is on record before the effect
	}
	if err != nil {
		return reply{}, err
	}
	return t.receive(ctx, provider.Request{Header: log.Header(), Messages: log.Messages(), Session: log.ID()})
}

// receive collects a reply. One that breaks off leaves its text in the log, marked.
func (t *turn) receive(parent context.Context, req provider.Request) (reply, error) {
	ctx, cancel := context.WithTimeoutCause(parent, t.cfg.RequestTimeout, errRequestTimeout)
	defer cancel()
	var r reply
	var text, reasoning strings.Builder
	err := t.ask(ctx, req, func(delta provider.Delta) error {
		text.WriteString(delta.Text)
		reasoning.WriteString(delta.Reasoning)
		if delta.Call != nil {
			c := *delta.Call
			c.ID, c.Name, c.Arguments = session.CallID(valid(string(c.ID))), valid(c.Name), valid(c.Arguments)
			r.Calls = append(r.Calls, c)
		}
		if delta.Usage != nil {
			r.Usage = *delta.Usage
		}
		if delta.Finish != "" {
			r.FinishReason = delta.Finish
		}
		if delta.Extra != nil {
			r.Extra = delta.Extra
		}
		return t.stream(ctx, delta)
	})
	t.spend(req.Model, r.Usage)
	r.Text, r.Reasoning = valid(text.String()), valid(reasoning.String())
	switch {
	case err == nil:
		t.adoptCalls(&r)
		return r, nil
	case parent.Err() == nil && ctx.Err() != nil:
		err = tooLong(t.cfg.RequestTimeout)
	}
	return r, t.keepPrefix(r, err)
}

// valid returns text as a log can hold it: what is compared and shown is what is
// written down.
func valid(text string) string { return strings.ToValidUTF8(text, "�") }

var errRequestTimeout = errors.New("request time limit")

// tooLong is the failure of a request that was not answered whole in time.
func tooLong(limit time.Duration) error {
	return &provider.Error{
		Class: provider.Timeout, Message: fmt.Sprintf("the reply was not whole after %v", limit),
		Advice: "raise request_timeout, or ask for less", Err: errRequestTimeout,
	}
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
	if delta.ProviderTool != nil {
		if err := t.hooks.OnProviderToolEvent(ctx, t.at(), delta.ProviderTool); err != nil {
			return err
		}
	}
	if delta.Text == "" {
		return nil
	}
	return t.hooks.OnStream(ctx, delta.Text)
}

// keepPrefix keeps the text of a reply that comes to nothing else, since somebody
// may have seen it; unless it has yet to pass finalize_content. It returns why.
func (t *turn) keepPrefix(r reply, why error) error {
	if r.Text == "" || t.hooks.Has(hook.FinalizeContent) {
		return why
	}
	r.Calls, r.Extra, r.Interrupted = nil, nil, true
	return errors.Join(why, t.record(r.AssistantMessage))
}

// adoptCalls drops calls that cannot be run: those of a reply that was cut short,
// since they may be too, those without a name, and those of a reply that was to
// have none. It gives an id to each call that has none of its own in this session;
// an id that the model chose for a later call is not given away.
func (t *turn) adoptCalls(r *reply) {
	made := len(r.Calls)
	switch {
	case t.plain, r.FinishReason == "content_filter":
		r.Calls = nil
		return
	case r.cut():
		r.Calls = nil
	}
	r.Calls = slices.DeleteFunc(r.Calls, func(c session.Call) bool { return blank(c.Name) })
	r.Dropped = made - len(r.Calls)
	chosen, taken := map[session.CallID]bool{}, map[session.CallID]bool{}
	for _, c := range r.Calls {
		chosen[c.ID] = true
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		for n := i + 1; c.ID == "" || taken[c.ID] || t.cfg.Log.Called(c.ID); n += len(r.Calls) {
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
