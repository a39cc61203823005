package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// govern brings the history into what the model takes, before a request: what has
// to go is replaced in the log, and so it stays for all requests after.
func (t *turn) govern(ctx context.Context) error {
	if err := t.replace(t.governor.Results); err != nil {
		return err
	}
	if !t.uncompacted {
		if _, err := t.compact(ctx, governance.Threshold, true); err != nil {
			return err
		}
	}
	if err := t.replace(func(h *session.History) []session.ContextReplaced { return t.governor.Fit(h, false) }); err != nil {
		return err
	}
	var tooLong error
	t.cfg.Log.View(func(h *session.History) { tooLong = t.governor.TooLong(h) })
	if tooLong != nil {
		return &endError{session.ModelError, tooLong} // as the server would end it
	}
	return nil
}

// replace writes down what decide says of the history.
func (e *Engine) replace(decide func(*session.History) []session.ContextReplaced) error {
	var events []session.ContextReplaced
	e.cfg.Log.View(func(h *session.History) { events = decide(h) })
	for _, event := range events {
		if err := e.record(event); err != nil {
			return err
		}
	}
	return nil
}

// shorten makes the history smaller after a server refused it as too long, and
// reports whether it is.
func (t *turn) shorten(ctx context.Context, attempt int, r reply, failure error) (bool, error) {
	refusal, ok := errors.AsType[*provider.Error](failure)
	if !ok || refusal.Class != provider.Overflow || ctx.Err() != nil || r.Text+r.Reasoning != "" || len(r.Calls) > 0 {
		return false, nil
	}
	before := t.cfg.Log.Digest()
	if _, err := t.compact(ctx, governance.Overflow, true); err != nil {
		return false, err
	}
	if t.cfg.Log.Digest() == before {
		err := t.replace(func(h *session.History) []session.ContextReplaced { return t.governor.Fit(h, true) })
		if err != nil || t.cfg.Log.Digest() == before {
			return false, err
		}
	}
	return true, t.record(session.RequestRetried{Attempt: attempt, Cause: refusal.Cause()})
}

// compact has what is due summarized, unless a hook is against it, and returns the
// summary; empty if there is none.
func (t *turn) compact(ctx context.Context, reason governance.Reason, ask bool) (string, error) {
	var c *governance.Compaction
	t.cfg.Log.View(func(h *session.History) { c = t.governor.Compaction(h, reason, reason != governance.Manual) })
	if c == nil {
		return "", nil
	}
	gated, err := t.hooks.BeforeCompact(ctx, t.at(), hook.Compaction{Messages: c.Messages, Tokens: c.Tokens})
	if err != nil {
		return "", err
	}
	if gated.Blocked != "" {
		t.uncompacted = true
		if reason == governance.Manual {
			return "", &endError{session.Blocked, errors.New(gated.Blocked)}
		}
		return "", nil
	}
	started := t.summaryRequest(c, ask)
	err = t.record(started)
	if err == nil {
		err = t.cfg.Log.Flush() // the intent is on record before the effect
	}
	if err != nil {
		return "", err
	}
	return t.putSummary(ctx, c, started)
}

// summaryRequest is the beginning of a compaction, as it goes into the log: with
// the request for a summary, if a model is to be asked.
func (t *turn) summaryRequest(c *governance.Compaction, ask bool) session.CompactionStarted {
	started := session.CompactionStarted{
		Reason: string(c.Reason), Tokens: int64(c.Tokens), Messages: c.Messages, From: c.Targets[0], To: c.Targets[len(c.Targets)-1],
	}
	if ask {
		started.Model, started.System, started.Prompt = t.model, c.System, c.Prompt
		started.Parameters, started.Scheme = withoutTools(t.cfg.Parameters), session.Scheme
		started.Digest = session.Digest(started.Request())
	}
	return started
}

// putSummary gets a summary, from the model or else an extract, and puts it in the
// place of what it stands for.
func (t *turn) putSummary(ctx context.Context, c *governance.Compaction, started session.CompactionStarted) (string, error) {
	ended, text := session.CompactionEnded{By: "fallback"}, c.Extract
	if started.Prompt != "" {
		answer, err := t.summarize(ctx, started, &ended.Usage)
		if err == nil {
			ended.By, text = "model", answer
		} else {
			ended.Error = strings.ToValidUTF8(err.Error(), "�")
		}
	}
	if ctx.Err() != nil { // whoever cancelled wants nothing more done
		ended.By = ""
		return "", errors.Join(context.Cause(ctx), t.record(ended))
	}
	summary := c.Summary(text)
	if err := t.record(session.ContextReplaced{Targets: c.Targets, By: governance.ByCompaction, Content: summary}); err != nil {
		return "", err
	}
	t.cfg.Log.View(func(h *session.History) { ended.Tokens = int64(t.governor.Estimate(h)) })
	if err := t.record(ended); err != nil {
		return "", err
	}
	return summary, t.hooks.AfterCompact(ctx, t.at(), summary)
}

// summarize asks the model for a summary. Nobody follows that reply.
func (t *turn) summarize(parent context.Context, started session.CompactionStarted, usage *session.Usage) (string, error) {
	ctx, cancel := context.WithTimeoutCause(parent, t.cfg.RequestTimeout, errRequestTimeout)
	defer cancel()
	header, messages := started.Request()
	var text strings.Builder
	err := t.ask(ctx, provider.Request{Header: header, Messages: messages}, func(delta provider.Delta) error {
		text.WriteString(delta.Text)
		if delta.Usage != nil {
			*usage = *delta.Usage
		}
		return nil
	})
	t.spend(header.Model, *usage)
	if err == nil && blank(text.String()) {
		err = errors.New("the model gave no summary")
	}
	return text.String(), err
}

// Compact has the history summarized now, between turns: by the model, or, unless ask
// is set, by an extract. It returns the summary; empty if there is nothing to summarize.
func (e *Engine) Compact(ctx context.Context, ask bool) (string, error) {
	if !e.busy.CompareAndSwap(false, true) {
		return "", errTurnRuns
	}
	defer e.busy.Store(false)
	t := &turn{Engine: e, hooks: e.hooks, number: e.cfg.Log.Turns(), model: e.cfg.Model}
	return t.compact(ctx, governance.Manual, ask)
}

// outputLimits are the names by which servers take the most that they answer.
var outputLimits = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}

// capOutput returns the header of the next request such that it asks for no longer an
// answer than the window has room for.
func (t *turn) capOutput(header session.Header) session.Header {
	fields := map[string]json.RawMessage{}
	if len(header.Parameters) > 0 && json.Unmarshal(header.Parameters, &fields) != nil {
		return header // for the provider to refuse
	}
	limits, changed := map[string]json.RawMessage{}, false
	for _, name := range outputLimits {
		if value, ok := fields[name]; ok {
			limits[name] = value
		}
	}
	if name := t.cfg.OutputLimit; name != "" && len(limits) == 0 && t.cfg.Context.MaxOutput > 0 {
		limits[name] = json.RawMessage(strconv.Itoa(t.cfg.Context.MaxOutput))
		fields[name], changed = limits[name], true
	}
	if len(limits) == 0 {
		return header
	}
	var room int
	t.cfg.Log.View(func(h *session.History) { room = t.governor.Room(h, header) })
	for name, value := range limits {
		var most float64
		if json.Unmarshal(value, &most) == nil && most > float64(room) {
			fields[name], changed = json.RawMessage(strconv.Itoa(room)), true
		}
	}
	if changed {
		header.Parameters, _ = json.Marshal(fields)
	}
	return header
}

// withoutTools returns parameters without those that only make sense beside tools or
// for an answer of a certain form.
func withoutTools(parameters json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(parameters, &fields) != nil {
		return nil
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool {
		switch name {
		case "tool_choice", "parallel_tool_calls", "response_format", "text", "stop":
			return true
		}
		return false
	})
	if len(fields) == 0 {
		return nil
	}
	left, _ := json.Marshal(fields)
	return left
}
