package session

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// On a disk that is full nothing is half there: no event, no repair and no fork.
// All can be done once there is room. The disk is one of 64 KiB, which a process
// of its own makes for itself.
func TestAFullDisk(t *testing.T) {
	if dir := os.Getenv("WHARF_FULL_DISK"); dir != "" {
		fullDisk(t, dir)
		return
	}
	runtime.LockOSThread() // whose end would be taken for this process's
	defer runtime.UnlockOSThread()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAFullDisk$", "-test.v", "-test.timeout=1m")
	child.Env = append(os.Environ(), "WHARF_FULL_DISK="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:   syscall.SIGKILL,
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || bytes.Contains(out, []byte("no namespace")) {
		t.Skipf("a disk of its own needs user namespaces, and they are closed here (%v): allow unprivileged ones", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// maxWrites is more than the disk takes.
const maxWrites = 1000

func fullDisk(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("no namespace: %v", err)
	}
	store, err := NewStore(filepath.Join(dir, "sessions"), "0.1.0", SyncAlways)
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	line := ExtensionLogged{Extension: "x", Level: "info", Text: strings.Repeat("x", 3000)}
	for n := 0; err == nil; n++ {
		if _, err = log.Append(line); n == maxWrites {
			t.Fatal("the disk does not fill up")
		}
	}
	const want = "no space left on device: the session can be resumed once that is mended"
	if flush := log.Flush(); !errors.Is(err, syscall.ENOSPC) || !strings.HasSuffix(err.Error(), want) || flush != err {
		t.Errorf("Append: %v, then Flush: %v; want %s", err, flush, want)
	}
	if err := log.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v", err)
	}
	before := rawLog(t, store, log.ID())
	if _, err := store.Fork(log.ID(), 0, "", nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Fork: %v; want that there is no space", err)
	}
	if _, err := store.Create("/w", nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Create: %v; want that there is no space", err)
	}
	if left, err := os.ReadDir(store.dir); err != nil || len(left) != 1 {
		t.Errorf("what is left is %v, %v; want the one session", left, err)
	}
	if list, err := store.List(); err != nil || len(list) != 1 || list[0].Problem != "" {
		t.Errorf("List = %v, %v; want the one session", list, err)
	}
	repairOnAFullDisk(t, store, log.ID(), dir, before)
}

// repairOnAFullDisk resumes a session that a crash left an open turn in, first
// without room for the events that close it.
func repairOnAFullDisk(t *testing.T, store *Store, id ID, dir string, content []byte) {
	first := content[:bytes.IndexByte(content, '\n')+1]
	content = openTurn(t, first, 0)
	content = openTurn(t, first, 4096-len(content)%4096) // no room is left in its last page
	plant(t, store, id, content)
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; err == nil; n++ {
		if _, err = filler.Write(make([]byte, 512)); n == maxWrites {
			t.Fatal("the disk does not fill up")
		}
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Resume(id, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Resume: %v; want that there is no space", err)
	}
	if now := rawLog(t, store, id); !bytes.HasPrefix(now, content) || !bytes.HasSuffix(now, []byte("\n")) {
		t.Errorf("the log ends with %q", now[len(content)-20:])
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	log, err := store.Resume(id, nil)
	if err != nil {
		t.Fatalf("Resume with room again: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	records, torn, err := store.Read(id)
	if report := Verify(records); err != nil || torn > 0 || len(report.Problems) > 0 {
		t.Errorf("the log: %v, %d torn, %v", err, torn, report.Problems)
	}
}

// openTurn returns a log with an open turn and so many bytes more.
func openTurn(t *testing.T, first []byte, more int) []byte {
	t.Helper()
	content := bytes.Clone(first)
	for i, e := range []Event{ExtensionLogged{Text: strings.Repeat("x", more)}, TurnStarted{Turn: 1, Origin: "user"}} {
		line, err := Encode(Record{Seq: int64(i) + 1, Event: e})
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, line...)
	}
	return content
}
