package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// BenchmarkToolTurn is the engine's own time for a turn with tool calls, one a
// step: the model is a script, the tool does nothing, the log is on the disk.
// The floor writes the same lines to a file, and does nothing else.
func BenchmarkToolTurn(b *testing.B) {
	for _, size := range []struct{ calls, hooks int }{{1, 0}, {1, 3}, {20, 0}, {20, 3}} {
		b.Run(fmt.Sprintf("calls=%d/hooks=%d", size.calls, size.hooks), func(b *testing.B) {
			var replies []script.Reply
			for i := range size.calls { // never the same call again and again
				replies = append(replies, script.Reply{Calls: []session.Call{doNothing("nothing", i)}})
			}
			replies = append(replies, script.Reply{Text: "The tests pass."})
			w := newWork(b, replies, steadyHooks(size.hooks, hook.BeforeExecuteTool, hook.AfterExecuteTool))
			w.turn() // writes the request's header too
			written := len(w.read())
			w.turn()
			floor := w.floor(w.read()[written:])
			mean := duel(b, floor, w.turn)
			b.ReportMetric(float64(mean.Nanoseconds())/float64(size.calls+1), "ns/step")
		})
	}
}

// BenchmarkSchedule is a reply with 64 calls that do nothing, side by side. Its floor
// is the same reply with calls that must run alone, in the same run.
func BenchmarkSchedule(b *testing.B) {
	const calls = 64
	reply := func(name string) []script.Reply {
		var all []session.Call
		for i := range calls {
			all = append(all, doNothing(name, i))
		}
		return []script.Reply{{Calls: all}, {Text: "Done."}}
	}
	alone, beside := newWork(b, reply("nothing"), nil), newWork(b, reply("nothing_beside"), nil)
	mean := duel(b, alone.turn, beside.turn)
	b.ReportMetric(calls/mean.Seconds(), "calls/s")
}

// doNothing is a call of a tool that does nothing.
func doNothing(name string, i int) session.Call {
	return session.Call{Name: name, Arguments: fmt.Sprintf(`{"command":"go test ./... -count %d"}`, i)}
}

// BenchmarkStream is a turn whose answer arrives in 20,000 pieces, each shown
// to on_stream. Its floor is the same turn without hooks, in the same run.
func BenchmarkStream(b *testing.B) {
	replies := []script.Reply{{Text: strings.Repeat("word ", 20_000)}}
	for _, hooks := range []int{0, 3} {
		b.Run(fmt.Sprintf("deltas=20000/hooks=%d", hooks), func(b *testing.B) {
			floor := newWork(b, replies, nil)
			duel(b, floor.turn, newWork(b, replies, steadyHooks(hooks, hook.OnStream)).turn)
		})
	}
}

// BenchmarkVerdict is what the engine adds to a hook's call: the payload is
// made, and the answer is parsed, recorded and merged.
func BenchmarkVerdict(b *testing.B) {
	for name, answer := range map[string]string{"none": "", "deny": `{"decision":"deny","reason":"this command is not allowed here"}`} {
		b.Run("verdict="+name, func(b *testing.B) {
			h := steadyHooks(1, hook.BeforeExecuteTool)[0].(steadyHook)
			h.answer = []byte(answer)
			chain := hook.NewChain([]hook.Hook{h}, func(session.Event) error { return nil })
			at := hook.At{Session: "20261130-090000-abcdef01", Turn: 3, Step: 7}
			call := hook.Call{ID: "call_1", Tool: "exec", Arguments: json.RawMessage(`{"command":"go test ./..."}`)}
			b.ReportAllocs()
			for b.Loop() {
				judged, err := chain.BeforeExecuteTool(b.Context(), at, call)
				if err != nil || (judged.Decision == hook.Deny) != (answer != "") {
					b.Fatalf("BeforeExecuteTool = %+v, %v", judged, err)
				}
			}
		})
	}
}

// duel runs the floor and what is measured in turns, so that both see the same
// machine. It reports the mean of the second as ns/op, and as a multiple of the
// floor's.
func duel(b *testing.B, floor, measured func()) time.Duration {
	b.Helper()
	var below, above time.Duration
	for b.Loop() {
		start := time.Now()
		floor()
		middle := time.Now()
		measured()
		below, above = below+middle.Sub(start), above+time.Since(middle)
	}
	mean := above / time.Duration(b.N)
	b.ReportMetric(float64(mean.Nanoseconds()), "ns/op")
	b.ReportMetric(above.Seconds()/below.Seconds(), "x-floor")
	return mean
}

// work is a session with an engine on it that can run the same turn again and
// again.
type work struct {
	b      *testing.B
	log    *session.Log
	engine *engine.Engine
}

func newWork(b *testing.B, replies []script.Reply, hooks []hook.Hook) work {
	b.Helper()
	store, err := session.NewStore(b.TempDir(), "bench", session.SyncBatch)
	if err != nil {
		b.Fatal(err)
	}
	log, err := store.Create("/workspace", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { log.Close() })
	policy, err := permission.New("", "")
	if err != nil {
		b.Fatal(err)
	}
	tools, beside := &tool.Registry{}, nothing
	beside.spec.Name, beside.spec.Parallel = "nothing_beside", true
	if err := errors.Join(tools.Add(nothing), tools.Add(beside)); err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(engine.Config{
		Provider: again{replies, new(*script.Provider)}, Log: log, Tools: tools, Policy: policy, Hooks: hooks,
		Model: "scripted", System: "You are an agent.",
	})
	if err != nil {
		b.Fatal(err)
	}
	return work{b, log, e}
}

func (w work) turn() {
	if r := w.engine.Turn(w.b.Context(), engine.Input{Text: "make the tests pass"}); r.Reason != session.Completed {
		w.b.Fatalf("the turn ended with %s: %v", r.Reason, r.Err)
	}
}

// read returns the log's lines.
func (w work) read() [][]byte {
	content, err := os.ReadFile(w.log.Path())
	if err != nil {
		w.b.Fatal(err)
	}
	return bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
}

// floor returns what appends lines to a file of its own.
func (w work) floor(lines [][]byte) func() {
	file, err := os.OpenFile(filepath.Join(w.b.TempDir(), "floor"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		w.b.Fatal(err)
	}
	w.b.Cleanup(func() { file.Close() })
	return func() {
		for _, line := range lines {
			if _, err := file.Write(line); err != nil {
				w.b.Fatal(err)
			}
		}
	}
}

// again plays its script anew once it was played to the end.
type again struct {
	replies []script.Reply
	current **script.Provider
}

func (a again) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	if last := req.Messages[len(req.Messages)-1]; last.Role == session.User {
		*a.current = script.New(a.replies)
	}
	return (*a.current).Stream(ctx, req)
}

var nothing = fakeTool{
	tool.Spec{Effect: permission.Reads, Tool: session.Tool{
		Name: "nothing", Description: "Do nothing.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
	}},
	func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Content: "ok"}, nil },
}

// steadyHooks returns n hooks that are asked at the points and answer nothing,
// unless they are given an answer.
func steadyHooks(n int, points ...hook.Point) []hook.Hook {
	var hooks []hook.Hook
	for i := range n {
		answers := map[hook.Point]bool{}
		for _, p := range points {
			answers[p] = true
		}
		hooks = append(hooks, steadyHook{name: fmt.Sprintf("steady-%d", i+1), points: answers})
	}
	return hooks
}

type steadyHook struct {
	name   string
	points map[hook.Point]bool
	answer []byte // nil says nothing
}

func (s steadyHook) Name() string { return s.name }

func (s steadyHook) Handles(p hook.Point) (hook.Handling, bool) {
	return hook.Handling{Timeout: time.Second, OnFailure: hook.Isolate}, s.points[p]
}

func (s steadyHook) Call(context.Context, hook.Point, []byte) ([]byte, error) { return s.answer, nil }

// BenchmarkIdleSession is what a session costs that waits for its next turn: its
// memory, with a log of so many turns behind it. A thousand are open at once.
func BenchmarkIdleSession(b *testing.B) {
	const sessions = 1_000
	for _, turns := range []int{1, 10} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			replies := []script.Reply{{Calls: []session.Call{{Name: "nothing", Arguments: `{"command":"go test ./..."}`}}}, {Text: "The tests pass."}}
			for b.Loop() {
				before := heap()
				var idle []work
				for range sessions {
					w := newWork(b, replies, steadyHooks(3, hook.BeforeExecuteTool))
					for range turns {
						w.turn()
					}
					idle = append(idle, w)
				}
				b.ReportMetric(float64(heap()-before)/sessions, "B/session")
				for _, w := range idle {
					if err := w.log.Close(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// heap returns how much memory is in use once all garbage is gone.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one found to be finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
