package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// trySharedMemory has the host share memory as System V does.
func trySharedMemory(t *testing.T, s *stage, r row) string {
	key := os.Getpid()<<8 | len(s.top)%200
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }()
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory, canary)
	defer func() { _ = unix.SysvShmDetach(memory) }()
	return begun(t, s.tried(t, nil, fmt.Sprintf("$PROBE reach shared %d", key)))
}

// begun wants an attempt to have begun.
func begun(t *testing.T, out string) string {
	t.Helper()
	if !has(out, "begun") {
		t.Fatalf("the attempt did not begin:\n%s", out)
	}
	return out
}

// tryCallersGroup signals all of the command's group, where Wharf is in that of a
// process of the test's.
func tryCallersGroup(t *testing.T, s *stage, r row) string {
	s.play(t)
	line := s.script(t, "kill -KILL -$HOST; kill -TERM 0")
	cmd := s.wharf(t.Context(), t, "sandbox", "run", "--read", s.programs, "--", "sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: s.Host}
	out := begun(t, s.output(t, cmd))
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return out + "\nGOT Wharf"
	}
	return out
}

// stillHeld says whether a process holds one of the workspace's locks.
func (s *stage) stillHeld(t *testing.T) (out string) {
	t.Helper()
	for _, name := range []string{"left", "main"} {
		f, err := os.Open(filepath.Join(s.ws, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		free := make(chan error, 1)
		go func() { free <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }()
		select {
		case <-free:
		case <-time.After(5 * time.Second):
			out += "GOT " + name + " to outlive its run\n"
		}
	}
	return out
}

const (
	holders = "setsid $PROBE hold left & $PROBE hold main & until test -e left -a -e main; do sleep 0.01; done; "
	holding = "hold ok"
)

// tryOutliving leaves processes that hold the command's output.
func tryOutliving(t *testing.T, s *stage, r row) string {
	began := time.Now()
	out := begun(t, s.tried(t, nil, holders+"echo over"))
	if took := time.Since(began); took > 10*time.Second {
		out += fmt.Sprintf("\nGOT the caller held up for %v", took)
	}
	return out + "\n" + s.stillHeld(t)
}

// tryOutlivingTheLimit leaves them when the time is over.
func tryOutlivingTheLimit(t *testing.T, s *stage, r row) string {
	out := begun(t, s.tried(t, []string{"--timeout", "500ms"}, holders+"sleep 300"))
	if !strings.Contains(out, "wharf: the command was ended after its time limit") {
		t.Errorf("it was not ended by the limit:\n%s", out)
	}
	return out + "\n" + s.stillHeld(t)
}

// tryOutlivingTheSupervisor leaves them when Wharf is killed.
func tryOutlivingTheSupervisor(t *testing.T, s *stage, r row) string {
	out := &shared{}
	cmd := s.wharf(t.Context(), t, "sandbox", "run", "--read", s.programs, "--", "sh", "-c", s.script(t, holders+"sleep 300"))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the processes hold their locks", func() bool { return strings.Count(out.text(), holding) == 2 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return begun(t, out.text()) + "\n" + s.stillHeld(t)
}

// shared is a writer that a test reads meanwhile.
type shared struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *shared) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// tryTyping types into the terminal that Wharf itself has; then into the same one
// without a sandbox, if the kernel lets anybody do that.
func tryTyping(t *testing.T, s *stage, r row) string {
	master, slave := terminalPair(t)
	cmd := s.wharf(t.Context(), t, "sandbox", "run", "--read", s.programs, "--", "sh", "-c", s.script(t, "$PROBE reach type; $PROBE reach type < /dev/tty; $PROBE reach type <&1"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out := &shared{}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for part := make([]byte, 1<<12); ; {
			n, err := master.Read(part)
			if _, _ = out.Write(part[:n]); err != nil {
				return
			}
		}
	}()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	typed, err := unix.IoctlGetInt(int(slave.Fd()), unix.TIOCINQ)
	slave.Close()
	<-shown
	text := begun(t, strings.ReplaceAll(out.text(), "\r", ""))
	if typed != 0 || err != nil || strings.Contains(text, "type ok") {
		text += fmt.Sprintf("\nGOT %d bytes into the terminal (%v)", typed, err)
	}
	return text
}

// terminalPair is a terminal and who sits at it.
func terminalPair(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// tryForeignHost reaches the listed server, which must not be told of another host.
func tryForeignHost(t *testing.T, s *stage, r row) string {
	out := begun(t, s.tried(t, s.expand(listed), `$PROBE reach ask "GET http://$TCP/ HTTP/1.1\r\nHost: foreign.example\r\n\r\n"`))
	heard := strings.Join(s.ears.heard(), "\n")
	s.ears.came = nil // what is listed may be reached
	switch {
	case strings.Contains(heard, "foreign"):
		out += "\nGOT " + heard
	case s.rung == sandbox.Bubblewrap && !strings.Contains(heard, "Host: 127.0.0.1:"):
		t.Errorf("the listed server heard %q:\n%s", heard, out)
	}
	return out
}

// tryProxy wants the proxy, where there is one, to have answered with a refusal.
func tryProxy(t *testing.T, s *stage, r row) string {
	out := begun(t, s.tried(t, s.expand(r.flags), r.line))
	if s.rung == sandbox.Bubblewrap && !strings.Contains(out, "HTTP/1.1 4") && !strings.Contains(out, "hello remote error: tls: unrecognized name") {
		t.Errorf("the proxy did not refuse it:\n%s", out)
	}
	return out
}

// tryForks does not ask of root what only a control group can hold.
func tryForks(t *testing.T, s *stage, r row) string {
	out := s.output(t, s.wharf(t.Context(), t, "doctor"))
	if strings.Contains(out, "the number of processes is not limited") {
		t.Skip("no control groups can be made here, and without one root's processes are not counted")
	}
	return begun(t, s.tried(t, r.flags, r.line))
}

// tryOutput has a model's command print more than anybody should read.
func tryOutput(t *testing.T, s *stage, r row) string {
	const calls = `{"calls":[{"name":"exec","arguments":{"command":"echo begun; yes | head -c 20000000"}}]}` + "\n" + `{"text":"Done."}` + "\n"
	s.write(t, "replies.jsonl", calls)
	if err := os.Chown(filepath.Join(s.top, "replies.jsonl"), s.uid, s.uid); err != nil {
		t.Fatal(err)
	}
	s.before = s.snapshot(t)
	out := s.output(t, s.wharf(t.Context(), t, "run", "--script", "../replies.jsonl", "--output-format", "stream-json", "print"))
	if !strings.Contains(out, "begun") || !strings.Contains(out, "bytes left out") {
		t.Errorf("it does not say what it dropped:\n%.2000s", out)
	}
	if len(out) > 1<<20 {
		out += fmt.Sprintf("\nGOT %d bytes through", len(out))
	}
	s.before = s.snapshot(t) // with the session's own log
	return strings.ReplaceAll(out, canary, "")
}

// trySetUserID runs a program of root's that makes who runs it root.
func trySetUserID(t *testing.T, s *stage, r row) string {
	if os.Getuid() != 0 {
		t.Skip("such a program is root's to make: run this test as root")
	}
	program, err := os.ReadFile("/usr/bin/id")
	path := filepath.Join(s.top, "system", "setuid")
	if err == nil {
		err = os.WriteFile(path, program, 0o755)
	}
	if err == nil {
		err = os.Chmod(path, 0o755|os.ModeSetuid)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.before = s.snapshot(t)
	if out := s.free(t, r.line); !has(out, "GOT root") {
		t.Skipf("programs of root's do not make root here: use a TMPDIR without nosuid:\n%s", out)
	}
	return begun(t, s.tried(t, nil, r.line))
}
