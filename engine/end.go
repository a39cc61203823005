package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

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
