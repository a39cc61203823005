package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// guestTool is a tool that a guest runs.
type guestTool struct {
	session  *Session
	manifest ManifestTool
}

// Spec describes the tool as the manifest does. It reaches only what was
// granted to its extension.
func (t *guestTool) Spec() tool.Spec {
	return tool.Spec{
		Tool: session.Tool{
			Name: t.manifest.Name, Description: t.manifest.Description, InputSchema: t.manifest.InputSchema,
		},
		Effect: permission.Reads, Timeout: t.manifest.Timeout, Parallel: t.manifest.Parallel,
	}
}

// Run calls the guest: in an instance of its own, or in the session's.
func (t *guestTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	result, err := t.ask(ctx, call)
	return t.outcome(ctx, result, err)
}

// Ask runs one of the session's tools as the tool's own Run does, but for how the
// guest fails: that is the error, and no result for the model. A
// tool that it has not is an error too.
func (s *Session) Ask(ctx context.Context, call tool.Call) (tool.Result, error) {
	for _, t := range s.tools {
		if t.Name == call.Name {
			return (&guestTool{s, t}).ask(ctx, call)
		}
	}
	return tool.Result{}, fmt.Errorf("the extension has no tool %q", call.Name)
}

// ask calls the guest, whose failure is the error; an error that it reports itself
// is a result.
func (t *guestTool) ask(ctx context.Context, call tool.Call) (tool.Result, error) {
	payload, err := t.manifest.dialect.request(call)
	if err != nil {
		return tool.Result{}, fmt.Errorf("tool %s: encode its arguments: %w", call.Name, err)
	}
	var result tool.Result
	invoke := func(limit time.Duration, x *instance) error {
		answer, err := x.invoke(ctx, t.manifest.export, limit, payload)
		if err == nil {
			result, err = t.manifest.dialect.response(answer)
		}
		return err
	}
	if t.manifest.PerSession {
		err = t.session.within(ctx, t.manifest.Timeout, invoke)
	} else {
		err = t.session.alone(ctx, func(x *instance) error { return invoke(t.manifest.Timeout, x) })
	}
	if reported, ok := errors.AsType[*guestError](err); ok {
		result, err = tool.Result{Content: reported.text, IsError: true}, nil
	}
	if tape := t.session.cfg.Tape; tape != nil {
		tape(Taped{Tool: call.Name, In: call.Arguments, Result: result, Err: err})
	}
	return result, err
}

// outcome makes the result for the model of a call that failed.
func (t *guestTool) outcome(ctx context.Context, result tool.Result, err error) (tool.Result, error) {
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	failed := tool.Result{Content: fmt.Sprintf("tool %s of extension %s: %v", t.manifest.Name, t.session.Name(), err), IsError: true}
	switch {
	case errors.Is(err, errTimeout):
		failed.Code = tool.TimedOut
	case errors.Is(err, errBadAnswer):
		failed.Code = tool.InvalidOutput
	}
	return failed, nil
}
