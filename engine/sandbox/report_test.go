package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReport(t *testing.T) {
	tests := []struct {
		name, text string
		pid        int
		want       final
	}{
		{"bubblewrap's two documents", "{ \"child-pid\": 77, \"pid-namespace\": 4 }\n{ \"exit-code\": 3 }\n", 77, final{exited: true, code: 3}},
		{"set up, but nothing ran", "{ \"child-pid\": 77 }\n", 77, final{}},
		{"the monitor's success", "{\"exit-code\":0}\n", 0, final{exited: true}},
		{"the monitor's failure", "{\"failure\":\"no Landlock\"}\n", 0, final{failure: "no Landlock"}},
		{"a program that is not there", "{\"failure\":\"x\",\"program\":true}\n", 0, final{failure: "x", program: true}},
		{"cut short", "{ \"child-pid\": 77 }\n{ \"exit", 77, final{}},
		{"the whole machine is no pid to signal", "{ \"child-pid\": -1 }{ \"child-pid\": 1 }", 0, final{}},
		{"rubbish", "hello", 0, final{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &report{known: make(chan struct{}), ended: make(chan struct{})}
			r.read(iotest.OneByteReader(strings.NewReader(tt.text)))
			close(r.ended)
			if pid, got := r.first(), r.wait(); pid != tt.pid || got != tt.want {
				t.Errorf("report %q = %d, %+v; want %d, %+v", tt.text, pid, got, tt.pid, tt.want)
			}
		})
	}
}

func FuzzReport(f *testing.F) {
	f.Add("{ \"child-pid\": 77 }\n{ \"exit-code\": 3 }\n")
	f.Add("{\"failure\":\"x\",\"program\":true}")
	f.Fuzz(func(t *testing.T, text string) {
		r := &report{known: make(chan struct{}), ended: make(chan struct{})}
		r.read(strings.NewReader(text))
		close(r.ended)
		if pid := r.first(); pid < 0 || pid == 1 {
			t.Errorf("report %q names process %d", text, pid)
		}
		if got := r.wait(); got.exited && got.failure != "" {
			t.Errorf("report %q = %+v", text, got)
		}
	})
}

func TestExplainSilence(t *testing.T) {
	tests := []struct {
		said, want string
		program    bool
	}{
		{"bwrap: execvp foo: No such file or directory\n", `run command: program "foo" cannot be run in the sandbox: no such file or directory`, true},
		{"bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n", "run command: Can't mount proc on /newroot/proc: Operation not permitted", false},
		{"warning\nbwrap: No permissions to create new namespace\n", "run command: No permissions to create new namespace", false},
		{"", "run command: bubblewrap ended without saying why", false},
	}
	for _, tt := range tests {
		err := explainSilence(tt.said)
		nothing, ok := errors.AsType[*notStarted](err)
		if !ok || err.Error() != tt.want || nothing.program != tt.program {
			t.Errorf("explainSilence(%q) = %v; want %q", tt.said, err, tt.want)
		}
	}
}

func TestProcesses(t *testing.T) {
	if got := parentOf(os.Getpid()); got != os.Getppid() {
		t.Errorf("parentOf(self) = %d; want %d", got, os.Getppid())
	}
	if !isBelow(os.Getpid(), os.Getppid()) || isBelow(os.Getppid(), os.Getpid()) {
		t.Error("isBelow mixes up parent and child")
	}
	if got := parentOf(1 << 30); got != 0 {
		t.Errorf("parentOf(nobody) = %d; want 0", got)
	}
}
