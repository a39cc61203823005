package main

import (
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// own waits until the terminal is its user's again, as a turn begins.
func (s *sitting) own(said string) {
	s.t.Helper()
	s.expect(said + `\r\n\x1b\[\?2004l`)
}

// sane reports whether the terminal shows what is typed.
func (s *sitting) sane() bool {
	s.t.Helper()
	state, err := unix.IoctlGetTermios(int(s.terminal.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return state.Lflag&(unix.ECHO|unix.ICANON|unix.ISIG) == unix.ECHO|unix.ICANON|unix.ISIG
}

const slowDeploys = `{"text":"I shall.","delay_ms":500,"calls":[{"name":"exec","arguments":{"command":"make deploy"}}]}`

// What was typed before a question was shown is no answer to it.
func TestChatTypeAhead(t *testing.T) {
	s := sit(t, workIn(t, slowDeploys, slowDeploys, `{"text":"Not deployed."}`), "chat", "--script", "replies.jsonl", "--ask", "exec(make *)")
	s.expect("> ")
	s.say("deploy it\r")
	s.own("deploy it")
	s.say("y\ry\ry")
	s.expect(`say why not: `)
	s.say("n\r")
	s.expect(`✗ denied: exec make deploy`)
	s.expect(`say why not: `)
	s.say("no\r")
	s.expect(`✗ denied: exec make deploy`)
	s.expect(`Not deployed\.\r\n`)
	s.expect("> ")
	s.say("\x04")
	if code := s.status(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// Where /new cannot begin a session, the chat says why and is over.
func TestChatCannotBeginAnew(t *testing.T) {
	s := sit(t, workIn(t, `{"text":"Hello."}`), "chat", "--script", "replies.jsonl", "--record", "record.jsonl")
	s.expect("> ")
	s.say("hello\r")
	s.expect(`Hello\.\r\n`)
	s.expect("> ")
	s.say("/new\r")
	s.expect(`to go on: wharf chat --resume`)
	s.expect(`wharf: --record "record\.jsonl": the file is there already: name a new one`)
	if code := s.status(); code != 2 {
		t.Errorf("exit status %d", code)
	}
}

// However it is ended, the terminal is as it was, and the status tells the signal.
func TestChatSignals(t *testing.T) {
	for sent, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		for _, busy := range []bool{false, true} {
			s := sit(t, workIn(t, `{"text":"slow","delay_ms":60000}`), "chat", "--script", "replies.jsonl")
			s.expect("> ")
			if busy {
				s.say("be slow\r")
				s.own("be slow")
			} else {
				for range 20 { // nobody waits for these
					_ = s.cmd.Process.Signal(syscall.SIGINT)
				}
			}
			_ = s.cmd.Process.Signal(sent)
			if code := s.status(); code != want {
				t.Errorf("after %v, busy %v: exit status %d", sent, busy, code)
			}
			if !s.sane() {
				t.Errorf("after %v, busy %v: the terminal is left raw", sent, busy)
			}
		}
	}
}

// A line is taken whole, or not at all.
func TestChatLongLine(t *testing.T) {
	s := sit(t, workIn(t, `{"text":"Got it.","expect":{"last_contains":"THE END"}}`), "chat", "--script", "replies.jsonl")
	s.expect("> ")
	s.say(strings.Repeat("long ", 1000) + "THE END\r")
	s.expect(`wharf: a typed line has at most 4095 characters: paste it, or put it into a file and name that`)
	s.expect("> ")
	s.say("\x1b[200~" + strings.Repeat("long ", 1000) + "THE END\x1b[201~\r")
	s.expect(`Got it\.`)
	s.expect("> ")
	s.say("\x04")
	_ = s.status()
}
