package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sitting is a wharf at whose terminal the test sits.
type sitting struct {
	t        *testing.T
	terminal *os.File
	shown    chan string
	seen     string // since the last expect
	cmd      *exec.Cmd
}

// sit starts wharf in a folder, at a terminal of its own.
func sit(t *testing.T, work string, args ...string) *sitting {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	switch {
	case err != nil && os.Getenv("WHARF_TEST_STRICT") == "1":
		t.Fatalf("this machine has no terminals to give: %v", err)
	case err != nil:
		t.Skipf("this machine has no terminals to give: %v: mount devpts", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "wharf", args...)
	cmd.Dir, cmd.Env = work, append(os.Environ(), "HOME="+t.TempDir(), "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &sitting{t: t, terminal: master, shown: make(chan string, 1), cmd: cmd}
	go func() {
		defer close(s.shown)
		for {
			chunk := make([]byte, 4096)
			n, err := master.Read(chunk)
			if err != nil { // the last who had it open is gone
				return
			}
			s.shown <- string(chunk[:n])
		}
	}()
	return s
}

// expect waits until the terminal shows a text.
func (s *sitting) expect(pattern string) {
	s.t.Helper()
	for re := regexp.MustCompile(pattern); ; {
		if at := re.FindStringIndex(s.seen); at != nil {
			s.seen = s.seen[at[1]:]
			return
		}
		chunk, more := <-s.shown
		if !more {
			s.t.Fatalf("the terminal does not show %q, but\n%s", pattern, s.seen)
		}
		s.seen += chunk
	}
}

func (s *sitting) say(text string) {
	s.t.Helper()
	if _, err := s.terminal.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// status waits for the end.
func (s *sitting) status() int {
	for range s.shown { // what it still has to say
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// workIn makes a folder with a file of replies, and a Makefile.
func workIn(t *testing.T, replies ...string) string {
	t.Helper()
	work := t.TempDir()
	for name, content := range map[string]string{"replies.jsonl": strings.Join(replies, "\n") + "\n", "Makefile": "deploy:\n\t@echo it is deployed\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return work
}

const deploys = `{"text":"I shall.","calls":[{"name":"exec","arguments":{"command":"make deploy"}}]}`

// A person at the terminal is asked, with what came before shown before, and their
// yes counts for as long as they said.
func TestChatAsks(t *testing.T) {
	s := sit(t, workIn(t, `{"text":"Hello."}`, deploys, deploys, `{"text":"Deployed."}`), "chat", "--script", "replies.jsonl", "--ask", "exec(make *)")
	s.expect("> ")
	s.say("hello\r")
	s.expect(`Hello\.\r\n`)
	s.expect("> ")
	s.say("deploy it,\\\rplease\r")
	s.expect(`I shall\.\r\n`)
	s.expect(`\? exec, since the rule "ask exec\(make \*\)"\r\n    make deploy\r\n`)
	s.expect(`n no, or say why not: `)
	s.say("s\r")
	s.expect(`✓ exec make deploy`)
	s.expect(`✓ exec make deploy`) // nobody is asked again
	s.expect(`Deployed\.\r\n`)
	s.expect("> ")
	s.say("/permissions\r")
	s.expect(`allow  exec\(make deploy\) +your yes in this session\r\n`)
	s.expect("> ")
	s.say("\x04") // Ctrl-D
	s.expect(`to go on: wharf chat --resume`)
	if code := s.status(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// Ctrl-C ends a question and its turn, and at the prompt, twice, the chat.
func TestChatInterrupts(t *testing.T) {
	s := sit(t, workIn(t, deploys, `{"text":"slow","delay_ms":60000}`, `{"text":"Still here."}`), "chat", "--script", "replies.jsonl", "--ask", "exec(make *)")
	s.expect("> ")
	s.say("deploy it\r")
	s.expect(`say why not: `)
	s.say("\x03")
	s.expect(`ended by the signal interrupt\r\n`)
	s.expect("> ")
	s.say("be slow\r")
	s.expect(`be slow\r\n\x1b\[\?2004l`) // the terminal is its own again
	s.say("\x03")
	s.expect(`ended by the signal interrupt\r\n`)
	s.expect("> ")
	s.say("are you there?\r")
	s.expect(`Still here\.\r\n`)
	s.expect("> ")
	s.say("never mind\x03")
	s.expect(`Ctrl-C again, or Ctrl-D, leaves the chat\r\n`)
	s.expect("> ")
	s.say("\x03")
	s.expect(`to go on: `)
	if code := s.status(); code != 130 {
		t.Errorf("exit status %d", code)
	}
}

// wharf run asks at its terminal, too, and a word goes to the model.
func TestRunAsks(t *testing.T) {
	s := sit(t, workIn(t, deploys, `{"text":"Not deployed.","expect":{"last_contains":"denied by the user: not on a Friday"}}`),
		"run", "--script", "replies.jsonl", "--ask", "exec(make *)", "deploy it")
	s.expect(`say why not: `)
	s.say("ok\r") // which may be meant as a yes, and is none
	s.expect(`(?s)s is a yes to exec\(make deploy\) in this session.*y or n: `)
	s.say("not on a Friday\r")
	s.expect(`Not deployed\.\r\n`)
	if code := s.status(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// What was typed before a question is no answer to it.
func TestTypedAheadIsNoAnswer(t *testing.T) {
	asks := strings.Replace(deploys, `"text":`, `"delay_ms":300,"text":`, 1)
	s := sit(t, workIn(t, asks, `{"text":"Not deployed.","expect":{"last_contains":"denied by the user"}}`),
		"run", "--script", "replies.jsonl", "--ask", "exec(make *)", "deploy it")
	s.say("y\r")
	s.expect(`say why not: `)
	s.say("n\r")
	s.expect(`Not deployed\.\r\n`)
	if code := s.status(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}
