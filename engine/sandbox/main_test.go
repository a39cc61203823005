package sandbox

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test program is also what tries to get out: started as "PROGRAM probe
// NAME ARGS…" inside a sandbox, it makes one attempt and says what came of it.
func TestMain(m *testing.M) {
	Init()
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		syscall.Exit(attempt(os.Args[2], os.Args[3:])) // at once: the race detector would wait a second
	}
	os.Exit(m.Run())
}

// self is the test program, which every sandbox of these tests may execute.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// need skips a test by name where something is missing; in strict mode, as in
// CI, that is a failure.
func need(t *testing.T, there bool, what string) {
	t.Helper()
	switch {
	case there:
	case os.Getenv("WHARF_TEST_STRICT") == "1":
		t.Fatal(what)
	default:
		t.Skip(what)
	}
}

// onEachRung runs test under every rung of the ladder that confines.
func onEachRung(t *testing.T, test func(t *testing.T, rung Rung)) {
	t.Helper()
	for _, rung := range []Rung{Bubblewrap, Landlock} {
		t.Run(string(rung), func(t *testing.T) {
			switch rung {
			case Bubblewrap:
				need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
			case Landlock:
				need(t, landlockVersion() > 0, "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK")
			}
			test(t, rung)
		})
	}
}

// open returns a sandbox that uses rung, with a workspace of its own unless cfg
// names one.
func open(t *testing.T, rung Rung, cfg Config) *Sandbox {
	t.Helper()
	if cfg.Workspace == "" {
		cfg.Workspace = folder(t)
	}
	cfg.Roots = append(cfg.Roots, filepath.Dir(self(t)))
	cfg.Limits.Memory = cmp.Or(cfg.Limits.Memory, 1<<50) // the race detector maps that much, and the test program is run inside
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if rung == Landlock {
		s.bwrapPaths = nil
	}
	if got, err := s.Choose(t.Context()); got != rung || err != nil {
		t.Fatalf("Choose = %q, %v; want %q", got, err, rung)
	}
	return s
}

// folder makes an empty folder and returns its real path.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes a file with its folders and returns its path.
func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// sh runs a line and returns all that it printed.
func sh(t *testing.T, s *Sandbox, line string) (string, Result) {
	t.Helper()
	var out bytes.Buffer
	res, err := s.Run(t.Context(), Command{Line: line, Stdout: &out, Stderr: &out, Timeout: 5 * time.Minute}) // a cold build on a busy machine
	if err != nil {
		t.Fatalf("Run(%q): %v\n%s", line, err, out.String())
	}
	return out.String(), res
}

// probe is the start of a shell line that makes an attempt.
func probe(t *testing.T, args ...string) string {
	t.Helper()
	return strings.Join(append([]string{self(t), "probe"}, args...), " ")
}

// waitFree waits until nobody holds the lock on path, which must have been held.
func waitFree(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	free := make(chan error, 1)
	go func() { free <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }()
	select {
	case err := <-free:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("a process still holds %s: it outlived its run", path)
	}
}

// waitFor waits until what holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(10 * time.Second)
	for again := time.Tick(5 * time.Millisecond); !holds(); {
		select {
		case <-again:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// waitEmpty waits until nothing is left in dir.
func waitEmpty(t *testing.T, dir string) {
	t.Helper()
	waitFor(t, "nothing is left in "+dir, func() bool {
		left, err := os.ReadDir(dir)
		return err == nil && len(left) == 0
	})
}

// isFree reports whether nobody holds the lock on path now.
func isFree(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// watcher is a writer that tells when something was written.
type watcher struct {
	want string
	seen chan struct{}

	mu   sync.Mutex
	all  []byte
	over bool
}

func watch(want string) *watcher { return &watcher{want: want, seen: make(chan struct{})} }

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, p...)
	if !w.over && bytes.Contains(w.all, []byte(w.want)) {
		w.over = true
		close(w.seen)
	}
	return len(p), nil
}

// has reports whether the lines of text hold line.
func has(text, line string) bool { return slices.Contains(strings.Split(text, "\n"), line) }

// tell prints what came of an attempt, by the name of the error.
func tell(what string, err error) {
	if err == nil {
		fmt.Println(what + " ok")
		return
	}
	fmt.Println(what, err)
}
