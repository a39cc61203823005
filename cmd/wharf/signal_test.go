package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// signalled starts a run whose command leaves children behind, sends it a
// signal once they are there, and returns its exit status.
func signalled(t *testing.T, work, home string, sig syscall.Signal, marker string) (status int, stderr string) {
	t.Helper()
	script := fmt.Sprintf(`{"calls":[{"name":"exec","arguments":{"command":"setsid sleep %s & sleep %s & touch started; wait"}},{"name":"list_dir","arguments":{}}]}`+"\n", marker, marker)
	if err := os.WriteFile(filepath.Join(work, "model.jsonl"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("wharf", "run", "--script", "model.jsonl", "--output-format", "json", "wait")
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "HOME="+home)
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the command has started", func() bool {
		_, err := os.Stat(filepath.Join(work, "started"))
		return err == nil
	})
	for range 2 { // as timeout(1) does, to the process and to its group
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(30 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited 30 s in vain until %s", what)
		}
	}
}

// alive reports whether a process of this machine has marker in its arguments.
func alive(marker string) bool {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if args, err := os.ReadFile(path); err == nil && bytes.Contains(args, []byte("sleep\x00"+marker)) {
			return true
		}
	}
	return false
}

// However a run is stopped, its children go with it and the session goes on.
func TestSignals(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatal("bubblewrap is needed: apt install bubblewrap")
		}
		t.Skip("bubblewrap is needed: apt install bubblewrap")
	}
	tests := []struct {
		signal syscall.Signal
		status int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}, {syscall.SIGKILL, -1}}
	for i, tt := range tests {
		t.Run(tt.signal.String(), func(t *testing.T) {
			work, home := t.TempDir(), t.TempDir()
			marker := fmt.Sprintf("%d", 100_000+os.Getpid()*10+i)
			status, stderr := signalled(t, work, home, tt.signal, marker)
			if status != tt.status {
				t.Errorf("exit status %d, want %d; stderr:\n%s", status, tt.status, stderr)
			}
			if tt.status > 0 && !strings.Contains(stderr, "\nto go on: wharf run --resume ") {
				t.Errorf("it did not end in order; stderr:\n%s", stderr)
			}
			waitFor(t, "its children are gone", func() bool { return !alive(marker) })
			again := filepath.Join(work, "again.jsonl")
			if err := os.WriteFile(again, []byte(`{"text":"Went on."}`), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("wharf", "run", "-c", "--script", again, "go on")
			cmd.Dir = work
			cmd.Env = append(os.Environ(), "HOME="+home)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "Went on.\n") {
				t.Errorf("going on after %v: %v\n%s", tt.signal, err, out)
			}
			logs, _ := filepath.Glob(filepath.Join(home, ".local/state/wharf/sessions/*/log.jsonl"))
			if len(logs) != 1 {
				t.Fatalf("%d logs, want one", len(logs))
			}
			log, err := os.ReadFile(logs[0])
			if err != nil {
				t.Fatal(err)
			}
			if calls, results := bytes.Count(log, []byte(`"type":"tool.call"`)), bytes.Count(log, []byte(`"type":"tool.result"`)); calls != 2 || results != 2 {
				t.Errorf("%d calls and %d results, want 2 and 2", calls, results)
			}
		})
	}
}
