package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// Retries says how a request that failed is sent again: after 1, 2, 4… seconds and a
// little more, or when the server says, and only as long as nothing of a reply has
// come that somebody may have seen. Each time is an event of the log.
type Retries struct {
	Attempts int           // at one request, the first included; 0 means 4
	MaxWait  time.Duration // what a server may ask for; 0 means a minute; for longer, the turn ends and says until when
}

func (r Retries) defaults() Retries {
	return Retries{cmp.Or(r.Attempts, 4), cmp.Or(r.MaxWait, time.Minute)}
}

// again is what is done about a request that failed.
type again int

const (
	notAgain again = iota
	sameModel
	otherModel
)

// retry decides about a request that failed, and waits until it can be sent again.
func (t *turn) retry(ctx context.Context, attempt int, r reply, failure error) (again, error) {
	model, ok := errors.AsType[*provider.Error](failure)
	if !ok || ctx.Err() != nil {
		return notAgain, nil
	}
	said, err := t.hooks.OnRequestError(ctx, t.at(), hook.Failure{
		Class: string(model.Class), Attempt: attempt, RetryAfterMS: model.RetryAfter.Milliseconds(), Error: model.Error(),
	})
	switch {
	case err != nil:
		return notAgain, errors.Join(failure, err)
	case said == hook.Fail, r.Text != "", len(r.Calls) > 0:
		return notAgain, nil
	case model.Class == provider.Images:
		return t.withoutImages(attempt, model)
	case (said == hook.Retry || passes(model)) && attempt < t.cfg.Retry.Attempts && model.RetryAfter <= t.cfg.Retry.MaxWait:
		return sameModel, t.await(ctx, attempt, r, model)
	case model.Class != provider.Script && t.fallback < len(t.cfg.Fallbacks):
		return otherModel, t.fallBack(ctx, attempt, model)
	case model.RetryAfter > t.cfg.Retry.MaxWait:
		return notAgain, tooLongToWait(failure, model.RetryAfter)
	}
	return notAgain, nil
}

// withoutImages has a request sent again without the images that the server refused.
func (t *turn) withoutImages(attempt int, cause *provider.Error) (again, error) {
	found, err := t.leaveOutImages()
	if err != nil || !found {
		return notAgain, err
	}
	return sameModel, t.record(session.RequestRetried{Attempt: attempt, Cause: cause.Cause()})
}

// passes reports whether a failure may be gone the next time.
func passes(e *provider.Error) bool {
	switch e.Class {
	case provider.Unreachable, provider.Timeout, provider.RateLimit, provider.Server:
		return !e.Permanent
	}
	return false
}

// await waits until a request is sent again.
func (t *turn) await(ctx context.Context, attempt int, r reply, cause *provider.Error) error {
	if r.Reasoning != "" { // hooks saw it, and it comes to nothing
		if err := t.hooks.StreamEnd(ctx, t.at(), true, true); err != nil {
			return err
		}
	}
	delay := max(cause.RetryAfter, time.Second<<min(attempt-1, 6))
	delay += time.Duration(rand.Int64N(int64(delay)/10 + 1)) // so that many that failed at once do not come back at once
	retried := session.RequestRetried{Attempt: attempt, DelayMS: delay.Milliseconds(), Cause: cause.Cause()}
	if t.replay == nil { // which has no limit of its own
		retried.Attempts = t.cfg.Retry.Attempts
	}
	if err := t.record(retried); err != nil {
		return err
	}
	if err := t.hooks.Notification(ctx, t.at(), hook.Retrying, cause.Error()); err != nil {
		return err
	}
	if t.replay != nil {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fallBack turns to the next model of the list, for the rest of the turn.
func (t *turn) fallBack(ctx context.Context, attempt int, cause *provider.Error) error {
	t.model = t.cfg.Fallbacks[t.fallback]
	t.fallback++
	if err := t.record(session.RequestRetried{Attempt: attempt, Cause: cause.Cause(), Model: t.model}); err != nil {
		return err
	}
	return t.hooks.Notification(ctx, t.at(), hook.Fallback, t.model)
}

// tooLongToWait adds to a failure when the server can be asked again.
func tooLongToWait(failure error, wait time.Duration) error {
	at := time.Now().Add(wait).Format("15:04 on 2 January")
	return fmt.Errorf("%w: the server can be asked again in %v, at %s: resume the session then, or name another model", failure, wait.Round(time.Second), at)
}

// lastError is what a request ends with that was sent again: the last failure; with
// the one before, if the last is only that a script has no more replies.
func lastError(before, last error) error {
	if model, ok := errors.AsType[*provider.Error](last); ok && model.Class == provider.Script {
		return errors.Join(before, last)
	}
	return last
}
