package exttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host"
)

// Outcome is what one call of a handler came to.
type Outcome struct {
	// Answer is a hook's verdict or a tool's result, with what says nothing left
	// out; nil is no opinion.
	Answer     map[string]any
	Error      string // how the handler failed; empty if it did not
	Log        []LogLine
	Operations []Operation
	Emitted    []Emitted
	Took       time.Duration
}

// LogLine is what a guest logged at once.
type LogLine struct {
	Level string `json:"level"` // debug, info, warning or error
	Text  string `json:"text"`
}

// Operation is a host operation that needs a capability, and that a guest tried.
type Operation struct {
	Name    string `json:"operation"`
	Target  string `json:"target"` // what it is about; empty where it is about no one thing
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"` // of the refusal
}

// Emitted is an event of the extension's own.
type Emitted struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// Recorder takes the events of a session while a handler runs. Its Record is for
// a [host.SessionConfig].
type Recorder struct {
	mu   sync.Mutex
	seen Outcome
}

// Record keeps an event.
func (r *Recorder) Record(event session.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := event.(type) {
	case session.ExtensionLogged:
		r.seen.Log = append(r.seen.Log, LogLine{e.Level, e.Text})
	case session.ExtensionEmitted:
		r.seen.Emitted = append(r.seen.Emitted, Emitted{e.Name, e.Data})
	case session.ExtensionUsed:
		op := Operation{e.Operation, e.Target, e.Allowed, e.Reason}
		if last := len(r.seen.Operations) - 1; last >= 0 && !e.Allowed && r.seen.Operations[last] == (Operation{e.Operation, e.Target, true, ""}) {
			r.seen.Operations[last] = op // it was granted, and refused further on
			return nil
		}
		r.seen.Operations = append(r.seen.Operations, op)
	}
	return nil
}

// take returns what was seen since the last time.
func (r *Recorder) take() Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = Outcome{}
	return seen
}

// CallHook asks a session's extension at a point, once.
func (r *Recorder) CallHook(ctx context.Context, s *host.Session, p hook.Point, payload []byte) Outcome {
	begin := time.Now()
	raw, err := s.Call(ctx, p, payload)
	took := time.Since(begin)
	out := r.take()
	out.Took = took
	if err == nil {
		out.Answer, err = answerOf(p, raw)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// answerOf returns what a hook's answer says; nil if that is nothing.
func answerOf(p hook.Point, raw []byte) (map[string]any, error) {
	v, err := hook.ParseVerdict(p, raw)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	put := func(key, text string) {
		if text != "" {
			all[key] = text
		}
	}
	put("decision", string(v.Decision))
	put("reason", v.Reason)
	put("context", v.Context)
	put("message", v.Message)
	if len(v.Replace) > 0 {
		replace := map[string]any{}
		for key, raw := range v.Replace {
			value, err := decode(raw)
			if err != nil {
				return nil, fmt.Errorf("the replacement of %q: %w", key, err)
			}
			replace[key] = value
		}
		all["replace"] = replace
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// CallTool calls a tool of a session's extension, once. Arguments are checked as
// the engine does: what it would not let through is the error.
func (r *Recorder) CallTool(ctx context.Context, s *host.Session, name string, arguments []byte) (Outcome, error) {
	var reg tool.Registry
	for _, t := range s.Tools() {
		if err := reg.Add(t); err != nil {
			return Outcome{}, err
		}
	}
	_, bad := reg.Lookup(name)
	if bad == nil {
		arguments, bad = reg.Check(name, string(arguments))
	}
	if bad != nil {
		return Outcome{}, errors.New(bad.Content)
	}
	begin := time.Now()
	result, err := s.Ask(ctx, tool.Call{ID: "call_1", Name: name, Arguments: arguments})
	took := time.Since(begin)
	out := r.take()
	out.Took = took
	if err != nil {
		out.Error = err.Error()
		return out, nil
	}
	out.Answer = resultOf(result)
	return out, nil
}

// resultOf returns what a tool's result says.
func resultOf(result tool.Result) map[string]any {
	all := map[string]any{"content": result.Content}
	if result.IsError {
		all["is_error"] = true
	}
	if result.Code != "" {
		all["code"] = string(result.Code)
	}
	return all
}
