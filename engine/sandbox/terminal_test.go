package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// begun is a command that a test has started, and what it printed.
type begun struct {
	*Process
	*watcher
}

// launchWatched starts c, which is ended with the test, and watches its output for want.
func launchWatched(t *testing.T, s *Sandbox, c Command, want string) begun {
	t.Helper()
	out := watch(want)
	c.Stdout, c.Stderr = out, out
	p, err := s.Start(t.Context(), c)
	if err != nil {
		t.Fatalf("Start(%q): %v", c.Line, err)
	}
	t.Cleanup(func() { <-p.Done() })
	return begun{p, out}
}

// await waits until the output holds what was waited for.
func (b begun) await(t *testing.T) {
	t.Helper()
	select {
	case <-b.seen:
	case <-time.After(20 * time.Second):
		t.Fatalf("%q did not come; there was %q", b.want, b.text())
	}
}

// next watches for something else, in what comes after all that came.
func (b begun) next(want string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watcher.want, b.over, b.watcher.seen, b.all = want, false, make(chan struct{}), nil
}

func (b begun) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.all)
}

// say types a line.
func (b begun) say(t *testing.T, line string) {
	t.Helper()
	if _, err := b.Process.Write(t.Context(), []byte(line)); err != nil {
		t.Fatalf("Write(%q): %v", line, err)
	}
}

// onAllRungs runs test under every rung, the unconfined one too.
func onAllRungs(t *testing.T, test func(t *testing.T, s *Sandbox)) {
	t.Helper()
	onEachRung(t, func(t *testing.T, rung Rung) { test(t, open(t, rung, Config{})) })
	t.Run("unconfined", func(t *testing.T) { test(t, open(t, Unconfined, Config{None: true})) })
}

// A terminal is one for all that asks, and for job control, however wide the sandbox is.
func TestTerminal(t *testing.T) {
	onAllRungs(t, isTerminal)
	for name, cfg := range map[string]Config{
		"full-access":    {Profile: FullAccess},
		"with a network": {Network: Network{Allow: allowed(t, "example.com")}},
	} {
		t.Run(name, func(t *testing.T) {
			need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
			isTerminal(t, open(t, Bubblewrap, cfg))
		})
	}
}

func isTerminal(t *testing.T, s *Sandbox) {
	line := `tty; for fd in 0 1 2; do test -t $fd && echo fd $fd ok; done; stty size; (echo by name) > /dev/tty; ` +
		`command -v python3 >/dev/null && python3 -c 'import os, sys; print(sys.stdin.isatty(), os.tcgetpgrp(0) == os.getpgrp(), os.get_terminal_size().columns)'; ` +
		`sh -i -c 'echo interactive'`
	b := launchWatched(t, s, Command{Line: line, Terminal: Terminal{24, 77}}, "")
	res, err := b.Wait()
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("Wait = %+v, %v: %s", res, err, b.text())
	}
	text := strings.ReplaceAll(b.text(), "\r\n", "\n")
	for _, want := range []string{"fd 0 ok", "fd 1 ok", "fd 2 ok", "24 77", "by name", "interactive"} {
		if !has(text, want) {
			t.Errorf("no line %q in:\n%s", want, text)
		}
	}
	if !strings.HasPrefix(text, "/dev/") || strings.Contains(text, "job control") {
		t.Errorf("the terminal has no name, or there is no job control:\n%s", text)
	}
	if python := strings.Contains(text, "True"); python && !has(text, "True True 77") {
		t.Errorf("python sees another terminal:\n%s", text)
	}
}

// Ctrl-C reaches what runs in the foreground of the terminal and ends neither the shell nor
// the sandbox around it.
func TestTerminalInterrupt(t *testing.T) {
	onAllRungs(t, func(t *testing.T, s *Sandbox) {
		b := launchWatched(t, s, Command{Line: "PS1='ready> ' exec sh -i", Terminal: Terminal{24, 80}}, "ready> ")
		b.await(t)
		b.next("child runs\r\n")
		b.say(t, "sh -c 'echo child runs; read forever'\n")
		b.await(t)
		b.next("ready> ")
		b.say(t, "\x03")
		b.await(t)
		b.next("status 130\r\n")
		b.say(t, "echo status $?\n")
		b.await(t)
		if err := b.CloseInput(t.Context()); err != nil {
			t.Fatal(err)
		}
		if res, err := b.Wait(); err != nil {
			t.Fatalf("Wait = %+v, %v: the shell did not end at the end of its input", res, err)
		}
	})
}

// A shell at a terminal minds no request to end; it is hung up.
func TestTerminalEnds(t *testing.T) {
	onAllRungs(t, func(t *testing.T, s *Sandbox) {
		ctx, cancel := context.WithCancelCause(t.Context())
		out := watch("ready> ")
		p, err := s.Start(ctx, Command{Line: "PS1='ready> ' exec sh -i", Terminal: Terminal{24, 80}, Stdout: out})
		if err != nil {
			t.Fatal(err)
		}
		<-out.seen
		enough := errors.New("enough")
		began := time.Now()
		cancel(enough)
		if res, err := p.Wait(); err != enough {
			t.Fatalf("Wait = %+v, %v; want %v", res, err, enough)
		}
		if took := time.Since(began); took > grace-100*time.Millisecond {
			t.Errorf("it took %v: it was killed, not hung up", took)
		}
	})
}

// What a shell at a terminal runs in the background ends with it, though each job is a process
// group of its own.
func TestTerminalJobsEnd(t *testing.T) {
	onAllRungs(t, func(t *testing.T, s *Sandbox) {
		ctx, cancel := context.WithCancelCause(t.Context())
		out := watch("hold ok\r\n")
		p, err := s.Start(ctx, Command{Line: "exec sh -i", Terminal: Terminal{24, 80}, Stdout: out})
		if err != nil {
			t.Fatal(err)
		}
		b := begun{p, out}
		b.say(t, probe(t, "hold", "left")+" &\n")
		b.await(t)
		cancel(errors.New("enough"))
		<-p.Done()
		if left := filepath.Join(s.cfg.Workspace, "left"); !isFree(t, left) {
			t.Error("a job outlived its terminal")
			waitFree(t, left)
		}
	})
}

// What a command is told through a pipe it reads, and it sees the end.
func TestInput(t *testing.T) {
	onAllRungs(t, func(t *testing.T, s *Sandbox) {
		b := launchWatched(t, s, Command{Line: "while read line; do echo got $line; done; echo over", Input: true}, "got one\n")
		b.say(t, "one\n")
		b.await(t)
		select {
		case <-b.Done():
			t.Fatal("it ended before its input")
		default:
		}
		if err := b.CloseInput(t.Context()); err != nil {
			t.Fatal(err)
		}
		if res, err := b.Wait(); err != nil || res.ExitCode != 0 || b.text() != "got one\nover\n" {
			t.Errorf("Wait = %+v, %v with %q", res, err, b.text())
		}
		_, err := b.Process.Write(t.Context(), []byte("more"))
		if want := "write to command: its input is closed"; err == nil || err.Error() != want {
			t.Errorf("Write after the end = %v; want %s", err, want)
		}
	})
}

// A command that does not read holds up who writes to it only as long as they want, and
// reads on afterwards.
func TestInputUnread(t *testing.T) {
	s := open(t, Unconfined, Config{None: true})
	if _, err := s.Run(t.Context(), Command{Line: "mkfifo go"}); err != nil {
		t.Fatal(err)
	}
	b := launchWatched(t, s, Command{Line: "read go < go; wc -c", Input: true}, "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	n, err := b.Process.Write(ctx, make([]byte, 1<<20))
	if !errors.Is(err, context.DeadlineExceeded) || n == 0 {
		t.Fatalf("Write = %d, %v; want what fits in, and %v", n, err, context.DeadlineExceeded)
	}
	if _, err := s.Run(t.Context(), Command{Line: "echo > go"}); err != nil {
		t.Fatal(err)
	}
	b.say(t, "more")
	if err := b.CloseInput(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Wait(); err != nil || b.text() != fmt.Sprintln(n+4) {
		t.Errorf("Wait = %v with %q; want %d", err, b.text(), n+4)
	}
}

// A command with mistakes in what it is given is not started.
func TestStartRefuses(t *testing.T) {
	s := open(t, Unconfined, Config{None: true})
	for _, tt := range []struct {
		name, want string
		command    Command
	}{
		{
			"a terminal without columns", "run command: a terminal of 24 rows and 0 columns cannot be: both must be from 1 to 1000",
			Command{Line: "true", Terminal: Terminal{Rows: 24}},
		},
		{
			"a terminal larger than any", "run command: a terminal of 24 rows and 70000 columns cannot be: both must be from 1 to 1000",
			Command{Line: "true", Terminal: Terminal{24, 70_000}},
		},
		{
			"an input from two sides", "run command: its input cannot both come from Stdin and be written: leave Stdin out",
			Command{Line: "true", Stdin: strings.NewReader(""), Input: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := s.Start(t.Context(), tt.command); err == nil || err.Error() != tt.want {
				t.Errorf("Start = %v; want %s", err, tt.want)
			}
		})
	}
}
