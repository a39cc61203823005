package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A line that does not fit any more is cut off again: what was recorded before stays
// a script. The limit is that of a process of its own.
func TestARecordingHoldsWholeLines(t *testing.T) {
	if path := os.Getenv("WHARF_TEST_RECORDING"); path != "" {
		recordTooMuch(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "script.jsonl")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestARecordingHoldsWholeLines$", "-test.timeout=1m")
	child.Env = append(os.Environ(), "WHARF_TEST_RECORDING="+path)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != line(80) {
		t.Errorf("the file holds %q (%v); want one line", got, err)
	}
}

func line(n int) string { return strings.Repeat("x", n-1) + "\n" }

func recordTooMuch(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: 100}); err != nil {
		t.Fatal(err)
	}
	r, err := newRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte(line(80))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte(line(80))); err == nil {
		t.Error("a line that does not fit is written")
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}
