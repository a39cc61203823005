package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/tool"
)

const running = "[still running; session %s; use write_stdin to poll or type, to end its input or to end it]"

// openSession begins a command that must go on, and returns its id and what it printed.
func (b *bench) openSession(a args) (id, printed string) {
	b.t.Helper()
	if a["yield_ms"] == nil {
		a["yield_ms"] = 250
	}
	got := b.call("exec", a)
	found := regexp.MustCompile(`(?s)^(.*)\[still running; session (exec-\d+); `).FindStringSubmatch(got)
	if found == nil {
		b.t.Fatalf("exec %v did not go on: %s", a, got)
	}
	return found[2], found[1]
}

// until looks at a session until all that it printed from now on holds a text, and returns it.
func (b *bench) until(id, want string) string {
	b.t.Helper()
	all := ""
	for range 100 {
		got := b.call("write_stdin", args{"session_id": id, "yield_ms": 250})
		all += strings.TrimSuffix(got, fmt.Sprintf(running, id))
		if strings.Contains(all, want) {
			return all
		}
		if strings.HasPrefix(got, "error: there is no session") {
			break
		}
	}
	b.t.Fatalf("session %s: %q did not come; there was %q", id, want, all)
	return ""
}

// end looks at a session that ends, and returns the rest.
func (b *bench) end(a args) string {
	b.t.Helper()
	a["yield_ms"] = 60_000
	return b.call("write_stdin", a)
}

// fifo makes a FIFO in the workspace, on which a command waits until something is written.
func (b *bench) fifo(name string) {
	b.t.Helper()
	if got := b.call("exec", args{"command": "mkfifo " + name}); !strings.HasPrefix(got, "[exit status 0") {
		b.t.Fatal(got)
	}
}

// onEachRung runs a test on a bench of each way to confine.
func onEachRung(t *testing.T, test func(t *testing.T, b *bench, rung string)) {
	t.Run("confined", func(t *testing.T) {
		b := newBench(t, nil)
		test(t, b, b.confined())
	})
	t.Run("unconfined", func(t *testing.T) { test(t, newBenchOn(t, sandbox.Config{None: true}), "none") })
}

// A command that ends in time is as one without yield_ms; one that does not is looked at until it
// has ended, and then it is over.
func TestSession(t *testing.T) {
	onEachRung(t, func(t *testing.T, b *bench, rung string) {
		over := "[exit status %d; sandbox: " + rung + "]"
		b.want("exec", args{"command": "echo at once; exit 3", "yield_ms": 30_000}, "error: at once\n"+fmt.Sprintf(over, 3))
		b.want("list_exec_sessions", args{}, "[no sessions]")
		b.fifo("go")
		id, printed := b.openSession(args{"command": "echo first; read x < go; echo last; exit 4"})
		if id != "exec-1" {
			t.Errorf("the first session is %s", id)
		}
		if !strings.Contains(printed, "first") {
			b.until(id, "first\n")
		}
		b.want("write_stdin", args{"session_id": id, "yield_ms": 250}, fmt.Sprintf(running, id))
		b.call("exec", args{"command": "echo > go"})
		if got, want := b.end(args{"session_id": id}), "error: last\n"+fmt.Sprintf(over, 4); got != want {
			t.Errorf("the end: %q; want %q", got, want)
		}
		b.want("write_stdin", args{"session_id": id}, `error: there is no session "exec-1": its end has been told, or it ended with the Wharf that ran it; none is left`)
	})
}

// What is typed is read, and the input ends when it is closed.
func TestSessionInput(t *testing.T) {
	onEachRung(t, func(t *testing.T, b *bench, rung string) {
		id, _ := b.openSession(args{"command": "while read line; do echo got $line; done; echo over"})
		b.call("write_stdin", args{"session_id": id, "text": "one\n", "yield_ms": 250})
		got := b.end(args{"session_id": id, "text": "two", "close": true})
		if want := "over\n[exit status 0; sandbox: " + rung + "]"; !strings.HasSuffix(got, want) {
			t.Errorf("the end: %q; want …%q", got, want)
		}
	})
}

// A shell at a terminal is talked to as by hand.
func TestSessionTerminal(t *testing.T) {
	onEachRung(t, func(t *testing.T, b *bench, rung string) {
		id, printed := b.openSession(args{"command": "PS1='ready> ' sh -i", "tty": true})
		if !strings.Contains(printed, "ready> ") {
			b.until(id, "ready> ")
		}
		b.call("write_stdin", args{"session_id": id, "text": "echo $((6*7)) $(stty size); cat\n", "yield_ms": 250})
		b.call("write_stdin", args{"session_id": id, "text": "echoed\n", "yield_ms": 250})
		b.call("write_stdin", args{"session_id": id, "text": "\u0003", "yield_ms": 250})
		got := b.end(args{"session_id": id, "text": "echo status $?; exit 5\n"})
		if !strings.Contains(got, "status 130\n") || !strings.HasSuffix(got, fmt.Sprintf("\n[exit status 5; sandbox: %s]", rung)) || strings.Contains(got, "\r") {
			t.Errorf("the shell at its terminal: %q", got)
		}
	})
}

// A REPL knows that somebody sits there.
func TestSessionREPL(t *testing.T) {
	b := newBench(t, nil)
	b.confined()
	if got := b.call("exec", args{"command": "python3 -c 'print(1)'"}); !strings.HasPrefix(got, "1\n") {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatal("python3 is not installed: apt install python3")
		}
		t.Skip("python3 is not installed: apt install python3")
	}
	id, printed := b.openSession(args{"command": "PYTHON_BASIC_REPL=1 python3 -q", "tty": true})
	if !strings.Contains(printed, ">>> ") {
		b.until(id, ">>> ")
	}
	b.call("write_stdin", args{"session_id": id, "text": "import sys; sys.stdin.isatty(), 6*7\n", "yield_ms": 250})
	if got := b.end(args{"session_id": id, "text": "exit()\n"}); !strings.Contains(got, "[exit status 0") {
		t.Errorf("the end: %q", got)
	}
}

// However much a command prints while nobody looks, the beginning and the end are kept.
func TestSessionFlood(t *testing.T) {
	onEachRung(t, func(t *testing.T, b *bench, _ string) {
		b.fifo("go")
		id, _ := b.openSession(args{"command": "read x < go; seq 1000000; touch done; read x"})
		b.call("exec", args{"command": "echo > go"})
		waitForFile(t, filepath.Join(b.dir, "done"))
		if got := b.call("list_exec_sessions", args{}); !strings.Contains(got, "6888896 bytes unread") {
			t.Errorf("the list: %q", got)
		}
		got := b.call("write_stdin", args{"session_id": id, "yield_ms": 250})
		if len(got) > maxOutput+300 || !strings.HasPrefix(got, "1\n2\n3\n") || !strings.Contains(got, "\n[… 6823360 bytes left out …]\n") || !strings.Contains(got, "\n1000000\n[still") {
			t.Errorf("%d bytes, from %q to %q", len(got), got[:40], got[max(0, len(got)-200):])
		}
	})
}

// A command that minds nothing is ended all the same, with what it started.
func TestSessionKill(t *testing.T) {
	onEachRung(t, func(t *testing.T, b *bench, rung string) {
		id, printed := b.openSession(args{"command": "trap '' TERM HUP INT; echo deaf; while :; do read x; done"})
		if !strings.Contains(printed, "deaf") {
			b.until(id, "deaf")
		}
		b.want("write_stdin", args{"session_id": id, "kill": true, "text": "x"}, "error: kill goes with neither text nor close INVALID_ARGS")
		b.want("write_stdin", args{"session_id": id, "kill": true}, "[ended as you asked; sandbox: "+rung+"]")
		b.want("list_exec_sessions", args{}, "[no sessions]")
	})
}

// With the turn ends what is not kept; its end is told when somebody asks.
func TestSessionsEndWithTurn(t *testing.T) {
	b := newBench(t, nil)
	rung := b.confined()
	id, _ := b.openSession(args{"command": "cat"})
	kept, _ := b.openSession(args{"command": "cat", "keep": true, "tty": true})
	b.tools.EndTurn(t.Context())
	list := regexp.MustCompile(`running for \d+s`).ReplaceAllString(b.call("list_exec_sessions", args{}), "running")
	if want := id + `: ended with the turn that began it: keep would have kept it, 0 bytes unread: "cat"` + "\n" +
		kept + `: running, kept, at a terminal, 0 bytes unread: "cat"`; list != want {
		t.Errorf("after the turn:\n got %q\nwant %q", list, want)
	}
	got := b.call("write_stdin", args{"session_id": id, "text": "x", "yield_ms": 250})
	if want := "[ended with the turn that began it: keep would have kept it; sandbox: " + rung + "]\n[it had ended before: nothing was typed]"; !strings.HasSuffix(got, want) {
		t.Errorf("a session of an earlier turn: %q; want %q", got, want)
	}
	if got := b.end(args{"session_id": kept, "text": "still there\n", "close": true}); got != "still there\nstill there\n[exit status 0; sandbox: "+rung+"]" {
		t.Errorf("a kept session in the next turn: %q", got)
	}
}

// When the tools are closed nothing is left, and nothing begins any more.
func TestSessionsClose(t *testing.T) {
	onEachRung(t, func(t *testing.T, b *bench, _ string) {
		b.openSession(args{"command": "cat; touch survived", "keep": true})
		b.openSession(args{"command": "trap '' TERM; cat; sleep 60; touch survived", "tty": true})
		if err := b.tools.Close(); err != nil {
			t.Fatal(err)
		}
		if got := b.call("list_exec_sessions", args{}); strings.Count(got, "ended with the session") != 2 {
			t.Errorf("after the end: %q", got)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "survived")); err == nil {
			t.Error("a command went on")
		}
		b.want("exec", args{"command": "cat", "keep": true}, "error: the session is over: no command is started any more")
	})
}

// There are so many sessions and no more; the refusal says which there are.
func TestSessionsCap(t *testing.T) {
	b := newBenchOn(t, sandbox.Config{None: true})
	for range maxRunning {
		b.openSession(args{"command": "cat"})
	}
	got := b.call("exec", args{"command": "cat", "yield_ms": 250})
	if want := `error: 8 commands run already, and that is the most: end one with write_stdin and kill: exec-1 ("cat"); exec-2 ("cat"); `; !strings.HasPrefix(got, want) {
		t.Errorf("one more: %q; want %q…", got, want)
	}
	b.end(args{"session_id": "exec-3", "close": true})
	if id, _ := b.openSession(args{"command": "cat"}); id != "exec-9" {
		t.Errorf("the next is %s: no id is given twice", id)
	}
	got = b.call("write_stdin", args{"session_id": "exec-77"})
	if want := `error: there is no session "exec-77": its end has been told, or it ended with the Wharf that ran it; there are exec-1 ("cat"); `; !strings.HasPrefix(got, want) {
		t.Errorf("an unknown session: %q; want %q…", got, want)
	}
}

// A session has its time limit, at which it ends whoever looks.
func TestSessionTimeLimit(t *testing.T) {
	b := newBenchOn(t, sandbox.Config{None: true})
	id, _ := b.openSession(args{"command": "cat", "timeout_seconds": 1})
	if got := b.end(args{"session_id": id}); got != "error: [Ended after the 1s time limit; sandbox: none] TOOL_TIMEOUT" {
		t.Errorf("the end: %q", got)
	}
	b.want("exec", args{"command": "true", "timeout_seconds": 601}, "error: timeout_seconds above 600 needs keep: what is not kept ends with the turn INVALID_ARGS")
	for _, tt := range []struct {
		name string
		args execArgs
		want time.Duration
	}{
		{"one that is waited for", execArgs{}, 2 * time.Minute},
		{"a session", execArgs{Yield: 250}, 10 * time.Minute},
		{"a session at a terminal", execArgs{TTY: true}, 10 * time.Minute},
		{"a kept one", execArgs{Keep: true}, time.Hour},
		{"a kept one with a limit", execArgs{Keep: true, Timeout: 14_400}, 4 * time.Hour},
	} {
		if got := tt.args.limit(); got != tt.want {
			t.Errorf("the limit of %s is %v; want %v", tt.name, got, tt.want)
		}
	}
}

// Whoever cancels the call that begins a command ends it; a cancelled look leaves it to the turn.
func TestSessionCancel(t *testing.T) {
	b := newBenchOn(t, sandbox.Config{None: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		waitForFile(t, filepath.Join(b.dir, "started"))
		cancel(enough)
	}()
	if r := b.run(ctx, "exec", args{"command": "flock lock sh -c 'touch started; cat'", "yield_ms": 30_000}); r.Content != "enough" {
		t.Errorf("a cancelled exec: %+v", r)
	}
	b.want("exec", args{"command": "flock -n lock true"}, "[exit status 0; sandbox: none]")
	id, _ := b.openSession(args{"command": "cat"})
	if r := b.run(ctx, "write_stdin", args{"session_id": id, "yield_ms": 30_000}); r.Content != "enough" {
		t.Errorf("a cancelled look: %+v", r)
	}
	if got := b.end(args{"session_id": id, "close": true}); got != "[exit status 0; sandbox: none]" {
		t.Errorf("after a cancelled look: %q", got)
	}
}

// A program that does not read holds up nobody, and is told of.
func TestSessionDoesNotRead(t *testing.T) {
	b := newBenchOn(t, sandbox.Config{None: true})
	b.fifo("go")
	id, _ := b.openSession(args{"command": "read x < go"})
	full := strings.Repeat("x", 1<<16)
	b.call("write_stdin", args{"session_id": id, "text": full, "yield_ms": 250})
	b.want("write_stdin", args{"session_id": id, "text": full, "yield_ms": 250},
		fmt.Sprintf(running, id)+"\n[only 0 of 65536 bytes were typed: write to command: context deadline exceeded]")
}

// Those who look at one session at a time see each piece once.
func TestHammerSession(t *testing.T) {
	b := newBenchOn(t, sandbox.Config{None: true})
	id, _ := b.openSession(args{"command": "cat"})
	var all sync.WaitGroup
	var mu sync.Mutex
	var seen strings.Builder
	for i := range 8 {
		all.Go(func() {
			got := b.call("write_stdin", args{"session_id": id, "text": fmt.Sprintf("<%d>\n", i), "yield_ms": 250})
			b.call("list_exec_sessions", args{})
			mu.Lock()
			defer mu.Unlock()
			seen.WriteString(got)
		})
	}
	all.Wait()
	seen.WriteString(b.end(args{"session_id": id, "close": true}))
	for i := range 8 {
		if n := strings.Count(seen.String(), fmt.Sprintf("<%d>\n", i)); n != 1 {
			t.Errorf("<%d> was seen %d times in %q", i, n, seen.String())
		}
	}
}

// A look at what goes on may be repeated; anything else may not.
func TestPolls(t *testing.T) {
	b := newBenchOn(t, sandbox.Config{None: true})
	id, _ := b.openSession(args{"command": "cat"})
	polls := func(name, arguments string) bool {
		target, _ := b.tools.Lookup(name)
		return target.(tool.Poller).Polls(json.RawMessage(arguments))
	}
	for arguments, want := range map[string]bool{
		`{"session_id":"` + id + `"}`:                          true,
		`{"session_id":"` + id + `","text":"","yield_ms":250}`: true,
		`{"session_id":"` + id + `","text":"x"}`:               false,
		`{"session_id":"` + id + `","close":true}`:             false,
		`{"session_id":"` + id + `","kill":true}`:              false,
		`{"session_id":"exec-9"}`:                              false,
		`nonsense`:                                             false,
	} {
		if got := polls("write_stdin", arguments); got != want {
			t.Errorf("Polls(%s) = %t; want %t", arguments, got, want)
		}
	}
	if !polls("list_exec_sessions", "{}") {
		t.Error("a list with a session in it is no poll")
	}
	b.end(args{"session_id": id, "close": true})
	if polls("list_exec_sessions", "{}") {
		t.Error("an empty list is a poll")
	}
}

// A program that asks gets no sessions.
func TestSessionForProgram(t *testing.T) {
	b := newBenchOn(t, sandbox.Config{None: true})
	target, _ := b.tools.Lookup("exec")
	got, err := target.Run(t.Context(), tool.Call{Name: "exec", Arguments: json.RawMessage(`{"command":"cat","yield_ms":250}`), Program: true})
	if want := "a program gets the whole result of a command: leave out yield_ms, tty and keep"; got.Content != want || got.Code != tool.InvalidArgs || err != nil {
		t.Errorf("exec with yield_ms for a program: %+v, %v", got, err)
	}
}

// waitForFile waits until there is such a file.
func waitForFile(t *testing.T, path string) {
	for _, err := os.Stat(path); err != nil && t.Context().Err() == nil; _, err = os.Stat(path) {
		<-time.After(5 * time.Millisecond)
	}
}

// A character, or the end of a line, that comes in two looks is whole in the second.
func TestTake(t *testing.T) {
	var h headTail
	for _, tt := range []struct{ in, want string }{
		{"a\xf0\x9f", "a"}, {"\x9a", ""}, {"\x80b\r", "🚀b"}, {"\nc", "\r\nc"}, {"\xff", "\xff"},
	} {
		h.Write([]byte(tt.in))
		if got, want := h.take(false), strings.ToValidUTF8(tt.want, "�"); got != want {
			t.Errorf("after %q: %q; want %q", tt.in, got, want)
		}
	}
	h.Write([]byte("\xf0\x9f"))
	if got := h.take(true); got != "�" || h.size() != 0 {
		t.Errorf("the last look: %q, and %d bytes are left", got, h.size())
	}
}
