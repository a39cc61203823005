package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// This file holds how a guest is stopped, and nothing else in the package
// knows: a runtime is made with interruptible, and guest code runs only
// within instance.under. Today wazero closes an instance whose context ends.

// interruptible makes a runtime in which any guest can be stopped.
func interruptible(cfg wazero.RuntimeConfig) wazero.RuntimeConfig {
	return cfg.WithCloseOnContextDone(true)
}

var (
	errTimeout = errors.New("no answer in time")
	errExited  = errors.New("the guest exited")
)

// callContext is the context of guest code. It leads the host functions that
// the code calls to its instance.
type callContext struct {
	context.Context
	instance *instance
}

type instanceKey struct{}

// Value answers instanceKey.
func (c *callContext) Value(key any) any {
	if key == (instanceKey{}) {
		return c.instance
	}
	return c.Context.Value(key)
}

// instanceOf returns the instance whose guest is calling.
func instanceOf(ctx context.Context) *instance {
	return ctx.Value(instanceKey{}).(*instance)
}

// under runs guest code for at most limit. Once it returns an error, the
// instance must not be used again.
func (x *instance) under(ctx context.Context, limit time.Duration, run func(context.Context) error) error {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	x.done = timed.Done()
	err := run(&callContext{timed, x})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case timed.Err() != nil: // also of an answer that came, but late
		return fmt.Errorf("%w: it ran for %s: make it faster, or raise its timeout in the manifest", errTimeout, limit)
	case err != nil:
		return x.explain(err)
	}
	return nil
}

// explain turns an error of wazero into one line that says what went wrong.
func (x *instance) explain(err error) error {
	var f *fault
	var exit *sys.ExitError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &exit):
		return fmt.Errorf("%w with status %d%s", errExited, exit.ExitCode(), clean(x.log.lastWords()))
	}
	cause, trace, _ := strings.Cut(err.Error(), "\nwasm stack trace:")
	cause = strings.TrimSuffix(cause, " (recovered by wazero)")
	_, inner, trapped := strings.Cut(cause, "wasm error: ")
	if !trapped && trace == "" && x.module == nil {
		return errors.New(clean(cause)) // it could not even start
	}
	if trapped {
		cause = inner
	}
	where := ""
	if frame, _, _ := strings.Cut(strings.TrimSpace(trace), "\n"); frame != "" {
		where = " in " + strings.TrimSpace(frame)
	}
	return fmt.Errorf("the guest trapped: %s", clean(cause+where+x.log.lastWords()))
}

// fault is what a guest did against the ABI. As a panic in a host function it
// ends the guest's call.
type fault struct{ text string }

func (f *fault) Error() string { return f.text }

func faultf(format string, args ...any) *fault { return &fault{fmt.Sprintf(format, args...)} }

// over reports whether the running call is over, though the guest still runs.
func (x *instance) over() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// sleep is the guest's sleep: it ends with the running call.
func (x *instance) sleep(ns int64) {
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.done:
	}
}

// call calls one of the guest's functions with at most two parameters and
// returns its result.
func (x *instance) call(ctx context.Context, f api.Function, params ...uint64) (uint64, error) {
	copy(x.stack[:], params)
	err := f.CallWithStack(ctx, x.stack[:])
	return x.stack[0], err
}
