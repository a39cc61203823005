package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wharf-agent/wharf/engine/hook"
)

// A module that is not compiled under watched counts in vain: it would run
// without end, and hold up the garbage collector.
func TestModulesAreWatched(t *testing.T) {
	s := joinSpin(t, spin{hook: silent(append(append(numbers(1<<20), opLoop, 5, opI32Const, 1, opI32Sub, opLocalTee, 0, opLocalGet, 0, opBrIf, 0), opEnd, 0x1a)...)})
	x := s.instance
	x.running = callContext{t.Context(), x, clock() - 1} // over already
	_, err := x.call(&x.running, x.handler(string(hook.BeforeExecuteTool)), 0, 0)
	if !errors.Is(err, errTimeout) {
		t.Errorf("a million rounds after the deadline: %v", err)
	}
}

// A guest's code runs under no other context than that of its call: one
// without a deadline ends it.
func TestNoCallNoCode(t *testing.T) {
	s := joinSpin(t, spins()[0])
	_, err := s.instance.call(context.Background(), s.instance.handler(string(hook.BeforeExecuteTool)), 0, 0)
	if !errors.Is(err, errTimeout) {
		t.Errorf("without a call's context: %v", err)
	}
}

// What the host does for a guest ends with the call.
func TestHostWorkEndsWithTheCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	call := &callContext{ctx, nil, clock() + time.Hour}
	timed, done := call.timed()
	defer done()
	if deadline, ok := timed.Deadline(); !ok || time.Until(deadline) > time.Hour {
		t.Errorf("deadline %v, %t", deadline, ok)
	}
	if call.over() {
		t.Error("it is over before its deadline")
	}
	cancel()
	if <-timed.Done(); !call.over() {
		t.Error("it goes on though it was cancelled")
	}
}

// A call needs neither a goroutine nor a timer, nor memory.
func TestCallAllocatesNothing(t *testing.T) {
	s, _ := join(t, "least", leastManifest, Options{})
	payload := []byte("0123456789abcdef")
	allocations := testing.AllocsPerRun(1000, func() {
		if _, err := s.Call(t.Context(), hook.BeforeExecuteTool, payload); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations; want none", allocations)
	}
}

// A module that is not rewritten could not be stopped, and does not get as far as that.
func TestOnlyWhatCanBeStoppedIsCompiled(t *testing.T) {
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
	_, err := compileModule(t.Context(), r, fixture(t, "least"))
	if want := "it has no function any more by which it can be stopped: build it again"; err == nil || err.Error() != want {
		t.Errorf("compileModule: %v; want %s", err, want)
	}
}
