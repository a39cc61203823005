package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wharf-agent/wharf/host/capability"

	"github.com/wharf-agent/wharf/host/extism"
)

// This file holds how a guest is stopped, and nothing else in the package
// knows: a module is compiled under watched, after rewrite.go made it count, and
// guest code runs only within instance.under. Out of fuel, the guest calls in
// here, where its own context says whether the call is over. Nothing is written from another
// goroutine: a guest that waited for such a write would hold up the garbage
// collector, and so the goroutine that was to write it.

var (
	errTimeout = errors.New(NoAnswer)
	errExited  = errors.New("the guest exited")
	errTooDeep = faultf("its functions call each other too deeply: that is over the limit depth")
)

// watched is the context under which a rewritten module must be compiled:
// without it, the guest counts in vain.
func watched(ctx context.Context) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, watchers{})
}

// watchers listens to the function that was added to a module, and to no other.
type watchers struct{}

func (watchers) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	if slices.Contains(f.ExportNames(), exportYield) {
		return experimental.FunctionListenerFunc(yield)
	}
	return nil
}

// yield ends the guest's call if it is over.
func yield(ctx context.Context, m api.Module, _ api.FunctionDefinition, _ []uint64, frames experimental.StackIterator) {
	if call, ok := ctx.Value(callKey{}).(*callContext); !ok || call.over() {
		panic(errTimeout)
	}
	if stackSize(m, frames) > limitStack {
		panic(errTooDeep)
	}
}

// callContext is the context of guest code. Its deadline is a number, since a timer for each
// call would cost more than most calls; what waits asks left, or takes a
// context from timed. It leads the host functions that the code calls to its
// instance.
type callContext struct {
	context.Context // of whoever asked
	instance        *instance
	deadline        time.Duration // by clock
}

type callKey struct{}

// Value answers callKey alone: the runtime looks for more at each call, and what
// else the context holds is not the guest's.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return nil
}

// over reports whether the call must end.
func (c *callContext) over() bool { return c.Context.Err() != nil || c.left() <= 0 }

// left returns the time until the deadline.
func (c *callContext) left() time.Duration { return c.deadline - clock() }

// timed returns a context for what the host does on the guest's behalf.
func (c *callContext) timed() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context, c.left())
}

var started = time.Now()

// clock is a monotonic clock that is cheap to read.
func clock() time.Duration { return time.Since(started) }

// callOf returns the running call of the guest that is calling.
func callOf(ctx context.Context) *callContext {
	return ctx.Value(callKey{}).(*callContext)
}

// under runs guest code for at most limit. Once it returns an error, the
// instance must not be used again.
func (x *instance) under(ctx context.Context, limit time.Duration, run func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	x.running = callContext{ctx, x, clock() + limit}
	err := run(&x.running)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case x.running.left() <= 0: // also of an answer that came, but late
		return fmt.Errorf("%w: it ran for %s: %s", errTimeout, limit, x.faster())
	case err != nil:
		return x.explain(err)
	}
	return nil
}

// faster says what to do about a call that took too long.
func (x *instance) faster() string {
	if x.starting {
		return "have it do less at its start"
	}
	return "make it faster, or raise its timeout in the manifest"
}

// explain turns an error of wazero into one line that says what went wrong.
func (x *instance) explain(err error) error {
	var f *fault
	var plugins *extism.Fault
	var exit *sys.ExitError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &plugins):
		return plugins
	case errors.As(err, &exit):
		return fmt.Errorf("%w with status %d%s%s", errExited, exit.ExitCode(), clean(x.log.lastWords()), x.memoryWords())
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
	return fmt.Errorf("the guest trapped: %s%s", clean(cause+where+x.log.lastWords()), x.memoryWords())
}

// memoryWords says how large the memory of a guest that died is, where it may
// have died for want of more: guests double what they have.
func (x *instance) memoryWords() string {
	if x.module == nil || x.module.Memory() == nil {
		return ""
	}
	has, limit := capability.Size(x.module.Memory().Size()), x.extension.Manifest.Memory
	if has < limit/2 {
		return ""
	}
	return fmt.Sprintf(": it had %d KiB of memory: the limit memory is %s", has>>10, limit)
}

// fault is what a guest did against the ABI. As a panic in a host function it
// ends the guest's call.
type fault struct{ text string }

func (f *fault) Error() string { return f.text }

func faultf(format string, args ...any) *fault { return &fault{fmt.Sprintf(format, args...)} }

// over reports whether the running call is over, though the guest still runs.
func (x *instance) over() bool { return x.running.over() }

// sleep is the guest's sleep: it ends with the running call.
func (x *instance) sleep(ns int64) {
	if x.session.Trial != nil {
		x.pass(time.Duration(ns))
		return
	}
	timer := time.NewTimer(min(time.Duration(ns), x.running.left()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.running.Done():
	}
}

// call calls one of the guest's functions with as many of the parameters as it
// has, and returns its result.
func (x *instance) call(ctx context.Context, f api.Function, a, b uint64) (uint64, error) {
	x.stack[0], x.stack[1] = a, b
	err := f.CallWithStack(ctx, x.stack[:])
	return x.stack[0], err
}
