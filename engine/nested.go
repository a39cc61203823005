package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// maxNested is how many calls of extensions may run within each other, within
// a call of the model's.
const maxNested = 3

// nesting says what a context is within: so many calls of extensions, and
// whether the outermost call lets others run beside it.
type nesting struct {
	depth    int
	parallel bool
}

type nestingKey struct{}

// within returns the context of a call's hooks and body, or why the call must
// not be made from where it was made. parallel is whether others may run beside it.
func within(ctx context.Context, by, name string, parallel bool) (context.Context, string) {
	here := nesting{parallel: parallel}
	if by != "" {
		outer, inCall := ctx.Value(nestingKey{}).(nesting)
		here = nesting{depth: outer.depth + 1, parallel: inCall && outer.parallel}
	}
	switch {
	case here.depth > maxNested:
		return ctx, fmt.Sprintf("denied: calls of extensions may be nested %d deep: %s was called from further in", maxNested, name)
	case here.parallel && !parallel:
		return ctx, fmt.Sprintf("denied: %s must run alone, and the call that this is part of lets others run beside it", name)
	}
	return context.WithValue(ctx, nestingKey{}, here), ""
}

// CallTool runs a call that the extension by makes in the course of the turn:
// as a call of the model's, with the same checks, hooks (but its own) and
// permission, within the time and the slot of the call that it is part of. A
// refusal is a result with the code [tool.Denied]. ctx is the one that the hook
// or tool was given, or comes from it.
func (e *Engine) CallTool(ctx context.Context, by string, call tool.Call) (tool.Result, error) {
	t := e.running.Load()
	if t == nil {
		return tool.Result{}, errNoTurn
	}
	if by == "" {
		return tool.Result{}, errors.New("a nested call needs the name of the extension that makes it")
	}
	result, err := t.dispatch(ctx, by, session.Call{ID: call.ID, Name: call.Name, Arguments: string(call.Arguments)})
	if err != nil && ctx.Err() == nil {
		t.stop(err) // it ends the turn, whatever the extension in between makes of it
	}
	return result, err
}

// dispatch judges, runs and reviews a call of an extension's, all in the slot of
// the call that it is part of.
func (t *turn) dispatch(ctx context.Context, by string, call session.Call) (tool.Result, error) {
	if _, bad := t.cfg.Tools.Lookup(call.Name); bad != nil {
		return *bad, nil
	}
	ctx, refusal := within(ctx, by, call.Name, t.parallel(call))
	if refusal != "" {
		return t.deny(by, call, refusal), nil
	}
	leave := t.enter(ctx)
	j, result, err := t.judge(inSerial(ctx), by, call)
	leave()
	if j == nil {
		return result, err
	}
	result, failed, err := t.body(ctx, j, true)
	if err != nil {
		return result, err
	}
	defer t.enter(ctx)()
	return t.review(inSerial(ctx), j, result, failed)
}

var errNoTurn = errors.New("no turn is running: this works only in the course of one")

// Info is what an extension may know of its session.
type Info struct {
	ID    session.ID
	Cwd   string
	Model string
	Turn  int // that runs, or the last one
}

// Info describes the session.
func (e *Engine) Info() Info {
	return Info{ID: e.cfg.Log.ID(), Cwd: e.cfg.Log.Cwd(), Model: e.header.Model, Turn: e.cfg.Log.Turns()}
}

// Messages returns what the model gets to see. The caller must not change it.
func (e *Engine) Messages() []session.Message { return e.cfg.Log.Messages() }

// Tokens returns how many tokens an extension has spent in the session.
func (e *Engine) Tokens(extension string) int64 { return e.cfg.Log.Tokens(extension) }

// Completion is a question that an extension asks the model.
type Completion struct {
	By        string // the extension
	CallID    session.CallID
	Prompt    string
	MaxTokens int64 // of the answer
	Reserved  int64 // tokens to count until it is known how many there were
}

// Answer is what the model said.
type Answer struct {
	Text  string
	Usage session.Usage
}

// Complete asks the model one question of an extension's, beside the session's
// messages, in the course of the turn. Question and answer are in the log, and
// count in the turn's usage.
func (e *Engine) Complete(ctx context.Context, c Completion) (Answer, error) {
	t := e.running.Load()
	if t == nil {
		return Answer{}, errNoTurn
	}
	header := session.Header{Model: e.header.Model}
	var err error
	if header.Parameters, err = limitTokens(e.header.Parameters, c.MaxTokens); err != nil {
		return Answer{}, err
	}
	err = t.record(session.ExtensionAsked{
		Extension: c.By, CallID: c.CallID, Model: header.Model, Parameters: header.Parameters, Prompt: c.Prompt, Reserved: c.Reserved,
	})
	if err == nil {
		err = t.cfg.Log.Flush() // the intent is on record before the effect
	}
	if err != nil {
		return Answer{}, err
	}
	answered := session.ExtensionAnswered{Extension: c.By, CallID: c.CallID}
	failure := t.collect(ctx, provider.Request{Header: header, Messages: []session.Message{{Role: session.User, Content: c.Prompt}}}, &answered)
	if failure != nil {
		answered.Error = strings.ToValidUTF8(failure.Error(), "�")
	}
	answered.Tokens = answered.Usage.InputTokens + answered.Usage.OutputTokens
	if answered.Tokens <= 0 {
		answered.Tokens = c.Reserved // the server did not say, or not the truth: in doubt all of it
	}
	defer t.enter(ctx)()
	t.spend(header.Model, answered.Usage)
	return Answer{Text: answered.Text, Usage: answered.Usage}, errors.Join(failure, t.record(answered))
}

// collect gathers an answer, or what there was of it.
func (t *turn) collect(ctx context.Context, req provider.Request, into *session.ExtensionAnswered) error {
	var text strings.Builder
	defer func() { into.Text = text.String() }()
	return t.ask(ctx, req, func(delta provider.Delta) error {
		text.WriteString(delta.Text)
		if delta.Usage != nil {
			into.Usage = *delta.Usage
		}
		if delta.Finish != "" {
			into.FinishReason = delta.Finish
		}
		return nil
	})
}

// limitTokens returns the parameters with a limit on the answer, under the name
// that they use for it already.
func limitTokens(parameters json.RawMessage, limit int64) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(parameters) > 0 {
		if err := json.Unmarshal(parameters, &fields); err != nil {
			return nil, fmt.Errorf("the model's parameters: %w", err)
		}
	}
	name := "max_tokens"
	if _, newer := fields["max_completion_tokens"]; newer {
		name = "max_completion_tokens"
	}
	fields[name] = json.RawMessage(strconv.FormatInt(limit, 10))
	return json.Marshal(fields)
}
