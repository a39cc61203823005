package engine

import (
	"context"
	"errors"
	"fmt"

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
// not be made from where it was made.
func within(ctx context.Context, by string, spec tool.Spec) (context.Context, string) {
	here := nesting{parallel: spec.Parallel}
	if by != "" {
		outer, inCall := ctx.Value(nestingKey{}).(nesting)
		here = nesting{depth: outer.depth + 1, parallel: inCall && outer.parallel}
	}
	switch {
	case here.depth > maxNested:
		return ctx, fmt.Sprintf("denied: calls of extensions may be nested %d deep: %s was called from further in", maxNested, spec.Name)
	case here.parallel && !spec.Parallel:
		return ctx, fmt.Sprintf("denied: %s must run alone, and the call that this is part of does not", spec.Name)
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
