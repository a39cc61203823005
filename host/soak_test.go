package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/tool"
)

// usage is what could leak.
type usage struct {
	goroutines, files int
	heap              uint64 // bytes in use after a collection
}

func measureUsage(t testing.TB) usage {
	t.Helper()
	runtime.GC()
	runtime.GC() // what the first one's finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return usage{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// soak makes calls of every kind, also those that break their instance, in
// sessions that come and go, from several goroutines.
func soak(t *testing.T, e *Extension, calls int) {
	const workers, perSession = 4, 50
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for n := 0; n < calls/workers; n += perSession {
				s, err := e.Session(t.Context(), SessionConfig{Record: (&journal{}).record})
				if err != nil {
					t.Error(err)
					return
				}
				for i := range perSession {
					oneCall(t, s, w+n+i)
				}
				s.Close()
			}
		})
	}
	all.Wait()
}

func oneCall(t *testing.T, s *Session, n int) {
	switch {
	case n%97 == 0: // it traps, and the next call has a new instance
		if got := ask(t, s, "t"); !strings.HasPrefix(got, "error: the guest trapped") {
			t.Errorf("a trap: %s", got)
		}
	case n%89 == 0: // cancelled before, and in the course of it
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(errors.New("enough"))
		if _, err := s.Call(ctx, hook.BeforeExecuteTool, []byte("l")); err == nil || err.Error() != "enough" {
			t.Errorf("a cancel: %v", err)
		}
	case n%5 == 0:
		for _, tl := range s.Tools() {
			r, err := tl.Run(t.Context(), tool.Call{Name: tl.Spec().Name, Arguments: []byte(`{"do":"m"}`)})
			if err != nil || r.IsError {
				t.Errorf("a tool: %+v, %v", r, err)
			}
		}
	default:
		payload := fmt.Sprintf("e%d", n)
		if got := ask(t, s, payload); got != payload {
			t.Errorf("got %s; want %s", got, payload)
		}
	}
}

// However many calls there were, nothing is left of them. The long form, with
// 100,000 calls, is task soak.
func TestSoak(t *testing.T) {
	calls := 4_000
	if os.Getenv("WHARF_TEST_SOAK") == "1" {
		calls = 100_000
	}
	e := load(t, shared, "guest", strings.ReplaceAll(guestManifest, "200ms", "1m"), Options{})
	soak(t, e, calls/4) // whatever is made once is made now
	before := measureUsage(t)
	soak(t, e, calls)
	after := measureUsage(t)
	t.Logf("before %+v, after %d calls %+v", before, calls, after)
	if after.goroutines > before.goroutines || after.files > before.files {
		t.Errorf("goroutines or files are left: before %+v, after %+v", before, after)
	}
	if after.heap > before.heap+1<<20 {
		t.Errorf("the heap grew: before %+v, after %+v", before, after)
	}
}

// A thousand sessions that do nothing, with three small hooks each, fit into
// what the budget gives them.
func TestThousandSessions(t *testing.T) {
	var extensions []*Extension
	for _, name := range []string{"no-rm", "redact", "no-rm"} {
		wasm, err := os.ReadFile("../extensions/" + name + "/" + name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		e, err := shared.LoadBytes(t.Context(), name, wasm, Options{})
		if err != nil {
			t.Fatal(err)
		}
		extensions = append(extensions, e)
	}
	before := resident(t)
	var sessions []*Session
	defer func() {
		for _, s := range sessions {
			s.Close()
		}
	}()
	for range 1000 {
		for _, e := range extensions {
			s, err := e.Session(t.Context(), SessionConfig{})
			if err != nil {
				t.Fatal(err)
			}
			sessions = append(sessions, s)
			payload := `{"session_id":"s","turn":1,"step":1,"call_id":"c","tool":"exec","arguments":{"command":"ls"},"result":{"content":"x","is_error":false}}`
			for p := range e.Manifest.Hooks {
				if _, err := s.Call(t.Context(), p, []byte(payload)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	grown := resident(t) - before
	t.Logf("3,000 instances take %d MiB", grown>>20)
	if grown > 1<<30 {
		t.Errorf("3,000 instances take %d MiB; the budget is 1 GiB", grown>>20)
	}
}

// resident returns the bytes of memory that the process has.
func resident(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
