package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

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

// sameHeader compares headers as the log encodes them.
func sameHeader(a, b session.Header) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
