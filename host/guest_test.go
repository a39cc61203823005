package host

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

func TestHookAnswers(t *testing.T) {
	s, _ := join(t, "guest", guestManifest, Options{})
	large := "e" + strings.Repeat("x", 200_000)
	tests := []struct{ name, payload, want string }{
		{"no opinion", "n", ""},
		{"an empty payload", "", ""},
		{"a verdict", "d", `{"decision":"deny","reason":"no"}`},
		{"an address and no length is no opinion", "z", ""},
		{"an answer that overlaps the payload", "echo", "echo"},
		{"a payload for which the memory grows", large, large},
		{"the largest answer that there may be", "B", strings.Repeat(" ", 1<<20)},
		{"a memory of its own size at most", "M", "N"},
		{"tables do not grow over their limit", "x", "N"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ask(t, s, tt.payload); got != tt.want {
				t.Errorf("answer %.100q; want %.100q", got, tt.want)
			}
		})
	}
}

func TestHookFailures(t *testing.T) {
	s, _ := join(t, "guest", guestManifest, Options{})
	tests := []struct{ name, payload, want string }{
		{"a trap", "t", "the guest trapped: unreachable in .$9(i32,i32) i64"},
		{"a loop", "l", "no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest"},
		{"an answer outside the memory", "o", "the answer of 100 bytes at 0xffffff00 is outside the guest's memory"},
		{"an answer that is too large", "b", "the answer has 1048577 bytes: that is over the limit output, 1048576"},
		{"an answer that is no UTF-8", "u", "the answer is not UTF-8"},
		{"a log from outside the memory", "q", "log: 32 bytes at 0xfffffff0 are outside the guest's memory"},
		{"a read to outside the memory", "p", fmt.Sprintf("read: %d bytes at 0xffffffff are outside the guest's memory", 84+len(strings.Join(Operations(), ", ")))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			if got := ask(t, s, tt.payload); !strings.HasPrefix(got, "error: "+tt.want) {
				t.Errorf("got  %s\nwant error: %s", got, tt.want)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if got := ask(t, s, "echo"); got != "echo" {
				t.Errorf("the next call answers %q; want echo", got)
			}
		})
	}
}

// Recursion without an end has a limit of its own, well before its stack does.
func TestRecursionWithoutEnd(t *testing.T) {
	s, _ := join(t, "guest", strings.ReplaceAll(guestManifest, "200ms", "30s"), Options{})
	if got, want := ask(t, s, "r"), "error: its functions call each other too deeply: that is over the limit depth"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := ask(t, s, "echo"); got != "echo" {
		t.Errorf("the next call answers %q; want echo", got)
	}
}

// State lives in the instance: for the session, until a call breaks it.
func TestHookState(t *testing.T) {
	e := load(t, shared, "guest", guestManifest, Options{})
	s, other := joinExtension(t, e, &journal{}), joinExtension(t, e, &journal{})
	for i, step := range []struct {
		session       *Session
		payload, want string
	}{
		{s, "m", "1"},
		{s, "m", "2"},
		{other, "m", "1"}, // sessions share nothing
		{s, "u", "error: the answer is not UTF-8"},
		{s, "m", "3"},
		{s, "t", "error: "},
		{s, "m", "1"}, // dropped with the trap
		{other, "m", "2"},
	} {
		if got := ask(t, step.session, step.payload); !strings.HasPrefix(got, step.want) {
			t.Errorf("step %d: %s answers %q; want %q", i, step.payload, got, step.want)
		}
	}
}

// A cancelled call ends at once, with the reason of whoever cancelled it.
func TestHookCancelled(t *testing.T) {
	s, _ := join(t, "guest", strings.ReplaceAll(guestManifest, "200ms", "1m"), Options{})
	if _, err := s.Call(cancelled(t, "changed my mind"), hook.BeforeExecuteTool, []byte("l")); err == nil || err.Error() != "changed my mind" {
		t.Errorf("a call under a cancelled context: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error)
	go func() {
		_, err := s.Call(ctx, hook.BeforeExecuteTool, []byte("l"))
		failed <- err
	}()
	cancel(errors.New("enough"))
	if err := <-failed; err == nil || err.Error() != "enough" {
		t.Errorf("a cancelled loop: %v", err)
	}
	if got := ask(t, s, "echo"); got != "echo" {
		t.Errorf("the next call answers %q", got)
	}
}

// A call that is over before it begins costs a guest nothing of its state: others
// could have a guard forget what it knows.
func TestACallThatIsOverAlreadyChangesNothing(t *testing.T) {
	s, _ := join(t, "guest", guestManifest, Options{})
	for i, want := range []string{"1", "2"} {
		if got := ask(t, s, "m"); got != want {
			t.Errorf("call %d: %s; want %s", i, got, want)
		}
		if _, err := s.Call(cancelled(t, "too late"), hook.BeforeExecuteTool, []byte("m")); err == nil || err.Error() != "too late" {
			t.Errorf("a call under a cancelled context: %v", err)
		}
	}
}

// A guest that loops keeps neither the garbage collector nor a cancel waiting.
func TestLoopDoesNotFreezeTheProcess(t *testing.T) {
	s, _ := join(t, "guest", strings.ReplaceAll(guestManifest, "200ms", "400ms"), Options{})
	failed := make(chan string)
	go func() { failed <- ask(t, s, "l") }()
	collections := 0
	for {
		select {
		case got := <-failed:
			if !strings.HasPrefix(got, "error: no answer in time") {
				t.Error(got)
			}
			if collections == 0 {
				t.Error("no collection ended while the guest looped")
			}
			return
		default:
			runtime.GC()
			collections++
		}
	}
}

// A manifest's memory limit holds.
func TestMemoryLimit(t *testing.T) {
	large := "e" + strings.Repeat("x", 200_000)
	for limit, want := range map[string]string{
		"1280KiB": "error: wharf_v1_alloc gave 200001 bytes at 0xffff0000, which is outside the guest's memory", // what it begins with
		"2MiB":    large,
	} {
		s, _ := join(t, "guest", guestManifest+"[limits]\nmemory = \""+limit+"\"\n", Options{})
		if got := ask(t, s, large); got != want {
			t.Errorf("with %s: %.100q; want %.100q", limit, got, want)
		}
	}
}

// Hooks and tools may run side by side, also while the session closes:
// each call gets its own answer, or learns that it is too late.
func TestHammerSession(t *testing.T) {
	s, _ := join(t, "guest", strings.ReplaceAll(guestManifest, "200ms", "10s"), Options{})
	var calls sync.WaitGroup
	started := make(chan bool, 1)
	calls.Go(func() {
		for i := range 100 {
			payload := "e" + strings.Repeat(string(rune('a'+i%26)), 100*i)
			if got := ask(t, s, payload); got != payload && got != "error: the session is closed" {
				t.Errorf("answer %.40q; want %.40q", got, payload)
			}
		}
	})
	for range 4 {
		calls.Go(func() {
			for _, tl := range s.Tools() {
				got, err := tl.Run(t.Context(), tool.Call{Name: "do", Arguments: []byte(`{"do":"m"}`)})
				if err != nil || got.IsError && !strings.HasSuffix(got.Content, "the session is closed") {
					t.Errorf("%+v, %v", got, err)
				}
				select {
				case started <- true:
				default:
				}
			}
		})
	}
	<-started
	s.Close()
	calls.Wait()
	if s.instance.usable() {
		t.Error("the instance outlives its session")
	}
}

// Each memory that alloc may give and must not.
func TestAlloc(t *testing.T) {
	tests := []struct{ fixture, want string }{
		{"alloc-zero", "error: wharf_v1_alloc gave no memory for 5 bytes: the limit memory is 64MiB"},
		{"alloc-outside", "error: wharf_v1_alloc gave 7 bytes at 0xfffa, which is outside the guest's memory"},
		{"alloc-loop", "error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest"},
	}
	for _, tt := range tests {
		t.Run(tt.fixture, func(t *testing.T) {
			s, _ := join(t, tt.fixture, leastManifest, Options{})
			payload := "hello"
			if tt.fixture == "alloc-outside" {
				payload = "goodbye"
			}
			if got := ask(t, s, payload); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestStart(t *testing.T) {
	tests := []struct{ fixture, want string }{
		{"init-trap", `load extension "least": start the guest: the guest trapped: unreachable in .$0()`},
		{"wasi-type", `load extension "least": start the guest: import func[wasi_snapshot_preview1.sched_yield]: signature mismatch: i32_v != v_i32`},
		{"data-outside", `load extension "least": start the guest: data[0]: out of bounds memory access`},
		{"init-loop", `load extension "least": start the guest: no answer in time: it ran for 1s: have it do less at its start`},
		{"start-loop", `load extension "least": start the guest: no answer in time: it ran for 1s: have it do less at its start`},
	}
	for _, tt := range tests {
		t.Run(tt.fixture, func(t *testing.T) {
			t.Parallel()
			e := load(t, shared, tt.fixture, strings.Replace(leastManifest, "abi", "role = \"guard\"\nabi", 1), Options{})
			begin := time.Now()
			s, err := e.Session(t.Context(), SessionConfig{Record: (&journal{}).record})
			if err == nil {
				s.Close()
				t.Fatal("it started")
			}
			if late := time.Since(begin) - StartTimeout; late > 250*time.Millisecond {
				t.Errorf("it ended %v late", late)
			}
			var failed *LoadError
			if !errors.As(err, &failed) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if g := failed.Guard(); g == nil || g.Name() != "least" {
				t.Errorf("the guard that stands in is %v", g)
			}
		})
	}
}

func TestStartFunctionRunsAndStartExportDoesNot(t *testing.T) {
	s, _ := join(t, "start-export", leastManifest, Options{})
	if got := ask(t, s, "x"); got != "" {
		t.Errorf("answer %q", got)
	}
}

func TestLog(t *testing.T) {
	tests := []struct{ name, payload, want string }{
		{"a text", "ghello", "guest info: hello"},
		{"nothing", "g", ""},
		{"a text that is no UTF-8", "ga\xffb", "guest info: a\uFFFDb"},
		{"up to the limit", "f", strings.Repeat("guest error: "+strings.Repeat("\x00", 1024)+"\n", 64) +
			"guest warning: the rest of what this call logs is dropped: it is over the limit log, 64 KiB a call"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, j := join(t, "guest", guestManifest, Options{})
			if got := ask(t, s, tt.payload); got != "" {
				t.Errorf("answer %q", got)
			}
			if got := j.lines(); got != tt.want {
				t.Errorf("logged\n%.300q\nwant\n%.300q", got, tt.want)
			}
		})
	}
}

// However often it is called, a guest cannot fill the disk with what it logs.
func TestLogOfASession(t *testing.T) {
	s, j := join(t, "guest", guestManifest, Options{})
	s.instance.session.logged.Store(limitLogged - 10)
	for range 3 {
		ask(t, s, "ghello")
	}
	const want = "guest info: hello\nguest info: hello\nguest warning: what this extension logs is dropped from here on: it is over the limit logged, 64 MiB a session"
	if got := j.lines(); got != want {
		t.Errorf("logged\n%s\nwant\n%s", got, want)
	}
	ask(t, s, "ghello")
	if got := j.lines(); got != want {
		t.Errorf("and then\n%s", got)
	}
}

// Where the session's log cannot be written, the call fails.
func TestRecordFails(t *testing.T) {
	e := load(t, shared, "guest", guestManifest, Options{})
	s, err := e.Session(t.Context(), SessionConfig{Record: func(session.Event) error { return errors.New("disk full") }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := ask(t, s, "ghello"); got != "error: disk full" {
		t.Errorf("got %q", got)
	}
}

func TestStreamHookGetsRawText(t *testing.T) {
	s, _ := join(t, "guest", guestManifest, Options{})
	h, ok := s.Handles(hook.OnStream)
	if !ok || h.Timeout != DefaultStreamTimeout {
		t.Errorf("Handles(on_stream) = %+v, %t", h, ok)
	}
	answer, err := s.Call(t.Context(), hook.OnStream, []byte("e é"))
	if string(answer) != "e é" || err != nil {
		t.Errorf("Call = %q, %v", answer, err)
	}
	if answer, err := s.Call(t.Context(), hook.FinalizeContent, []byte("e")); answer != nil || err != nil {
		t.Errorf("Call of a point that is not handled = %q, %v", answer, err)
	}
}

func TestWASI(t *testing.T) {
	s, j := join(t, "wasi", leastManifest, Options{})
	tests := []struct{ name, payload, want, logged string }{
		{"standard output is logged by lines", "1one\ntwo", "", "least info: one\nleast info: two"},
		{"standard error too", "2oops\n", "", "least warning: oops"},
		{"standard input is empty", "i", "0", ""},
		{"no file can be opened", "o", "0", ""},
		{"there are no arguments and no variables", "a", "0", ""},
		{"the clock is real", "c", "1", ""},
		{"no connection can be accepted", "n", "1", ""},
		{"a sleep ends at the deadline", "s", "error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest", ""},
		{"an exit is a failure", "x", "error: the guest exited with status 3", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j.events = nil
			begin := time.Now()
			if got := ask(t, s, tt.payload); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if got := j.lines(); got != tt.logged {
				t.Errorf("logged %q; want %q", got, tt.logged)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	first, _ := join(t, "wasi", leastManifest, Options{})
	second, _ := join(t, "wasi", leastManifest, Options{})
	if a, b := ask(t, first, "r"), ask(t, second, "r"); a == b || len(a) != 8 {
		t.Errorf("random bytes: two instances begin with %q and %q", a, b)
	}
}

func TestTools(t *testing.T) {
	s, _ := join(t, "guest", guestManifest, Options{})
	tools := s.Tools()
	run := func(i int, do string) (tool.Result, error) {
		return tools[i].Run(t.Context(), tool.Call{ID: "c1", Name: "do", Arguments: []byte(`{"do":"` + do + `"}`)})
	}
	tests := []struct {
		name string
		tool int
		do   string
		want tool.Result
	}{
		{"a result", 0, "m", tool.Result{Content: "1"}},
		{"an instance of its own for each call", 0, "m", tool.Result{Content: "1"}},
		{"the session's instance, where the manifest says so", 1, "m", tool.Result{Content: "1"}},
		{"and again", 1, "m", tool.Result{Content: "2"}},
		{"no answer", 0, "n", tool.Result{Content: "tool do of extension guest: its answer is no tool result: it is empty", IsError: true, Code: tool.InvalidOutput}},
		{"an answer of another kind", 0, "d", tool.Result{Content: `tool do of extension guest: its answer is no tool result: json: unknown field "decision"`, IsError: true, Code: tool.InvalidOutput}},
		{"a loop", 0, "l", tool.Result{Content: "tool do of extension guest: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest", IsError: true, Code: tool.TimedOut}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := run(tt.tool, tt.do)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Run = %+v, %v\nwant  %+v", got, err, tt.want)
			}
		})
	}
	if _, err := tools[0].Run(cancelled(t, "stop"), tool.Call{Name: "do", Arguments: []byte(`{}`)}); err == nil || err.Error() != "stop" {
		t.Errorf("under a cancelled context: %v", err)
	}
	s.Close()
	if got, _ := run(0, "m"); got.Content != "tool do of extension guest: the session is closed" {
		t.Errorf("after Close: %+v", got)
	}
	if got := ask(t, s, "e"); got != "error: the session is closed" {
		t.Errorf("after Close: %q", got)
	}
}

func TestParseResult(t *testing.T) {
	tests := []struct {
		name, answer string
		want         tool.Result
		err          string
	}{
		{"a text", `{"content":"a\nb"}`, tool.Result{Content: "a\nb"}, ""},
		{"an empty text", `{"content":""}`, tool.Result{}, ""},
		{"an error result", `{"content":"no","is_error":true}`, tool.Result{Content: "no", IsError: true}, ""},
		{"the guest's own error", `{"error":"out of cheese"}`, tool.Result{Content: "out of cheese", IsError: true}, ""},
		{"text blocks", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b","annotations":{}}]}`, tool.Result{Content: "a\nb"}, ""},
		{"blocks that are no text", `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"f:x","text":"t"}},{"type":"resource_link","uri":"f:y"}]}`, tool.Result{Content: "[image image/png]\nt\n[resource f:y]"}, ""},
		{"a structured result", `{"structured":{"words":3}}`, tool.Result{Content: `{"words":3}`}, ""},
		{"content speaks for a structured result", `{"content":"three","structured":{"words":3}}`, tool.Result{Content: "three"}, ""},
		{"an unknown block", `{"content":[{"type":"hologram"}]}`, tool.Result{}, `its answer is no tool result: content block 0 has the unknown type "hologram"`},
		{"a number", `{"content":3}`, tool.Result{}, `its answer is no tool result: content is neither a string nor an array`},
		{"nothing in it", `{}`, tool.Result{}, `its answer is no tool result: it has neither content nor structured nor error`},
		{"an unknown key", `{"contents":""}`, tool.Result{}, `its answer is no tool result: json: unknown field "contents"`},
		{"two objects", `{"content":""}{}`, tool.Result{}, `its answer is no tool result: there is more behind the JSON object`},
		{"no JSON", `hello`, tool.Result{}, `its answer is no tool result: invalid character 'h' looking for beginning of value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseResult([]byte(tt.answer))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !reflect.DeepEqual(got, tt.want) || text != tt.err {
				t.Errorf("parseResult(%s) = %+v, %q\nwant %+v, %q", tt.answer, got, text, tt.want, tt.err)
			}
		})
	}
}
