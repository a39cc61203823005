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

// end closes the turn in the log, after hooks had their last say.
func (t *turn) end(ctx context.Context, err error) Result {
	reason := reasonOf(ctx, err)
	if err != nil && t.text == "" && !t.hooks.Has(hook.FinalizeContent) {
		t.text = t.whole("") // what there was of an answer
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finallyTimeout)
	defer cancel()
	if reason == session.Cancelled {
		t.running.Store(nil) // who cancelled wants nothing more done, by the last hooks neither
	}
	if failure := t.outcome(last, reason, err); failure != nil && err == nil {
		err, reason = failure, reasonOf(last, failure)
	}
	if failure := t.hooks.OnFinally(last, t.at(), reason, t.text); failure != nil && err == nil {
		err, reason = failure, reasonOf(last, failure)
	}
	if failure := t.endGoal("ended", "the turn ended as "+string(reason)); failure != nil && err == nil {
		err, reason = failure, session.ToolError
	}
	t.cfg.Tools.EndTurn(last)
	ended := session.TurnEnded{Turn: t.number, Reason: reason, Text: t.text, Usage: t.usage, Steps: t.steps()}
	if err != nil {
		ended.Error = strings.ToValidUTF8(err.Error(), "�")
	}
	if failure := t.close(ended); failure != nil && !errors.Is(err, failure) {
		err = errors.Join(err, failure)
		if reason == session.Completed {
			reason = session.ToolError
		}
	}
	return Result{Reason: reason, Text: t.text, Output: t.output, Usage: t.usage, Cost: t.cost, Steps: t.steps(), Denials: t.denials, Err: err}
}

// steps is how many of its steps the turn took; a last word is none of them.
func (t *turn) steps() int { return min(t.step, t.allowed) }

// outcome tells hooks of the answer, or why there is none. A cancel is neither, and
// a fault of ours or of a hook is no result.
func (t *turn) outcome(ctx context.Context, reason session.Reason, err error) error {
	if reason == session.Cancelled {
		return nil
	}
	if err != nil {
		if failure := t.hooks.OnError(ctx, t.at(), err.Error()); failure != nil || reason == session.HookError || reason == session.ToolError {
			return failure
		}
	}
	return t.hooks.AfterRun(ctx, t.at(), t.text, t.usage)
}

// finallyTimeout bounds the last hooks of a turn together.
const finallyTimeout = 10 * time.Second

func (t *turn) close(ended session.TurnEnded) error {
	if t.step > 0 && t.cfg.Log.StepOpen() {
		if err := t.record(session.StepEnded{Turn: t.number, Step: t.step}); err != nil {
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
