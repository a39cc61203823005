package store

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/wharf-agent/wharf/host/capability"
)

// The child's part of the tests below: which folder it works in, and the step after
// which it ends itself, if any.
const (
	childDir  = "WHARF_STORE_CHILD"
	childStep = "WHARF_STORE_KILL"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir, os.Getenv(childStep))
	}
	os.Exit(m.Run())
}

// child changes a store until it is killed. It tells each step.
func child(dir, last string) {
	step = func(done string) error {
		fmt.Println(done)
		if done == last {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	t := &testing.T{}
	s := New(dir)
	if last != "" {
		install(t, s, candidate(t, "one", "2.0.0", ""))
		os.Exit(0)
	}
	for {
		install(t, s, candidate(t, "one", "1.0.0", `kv = "1MiB"`))
		install(t, s, candidate(t, "one", "2.0.0", `kv = "2MiB"`))
		_, _ = s.SetGrants("one", func(Entry, capability.Set) capability.Set { return capability.Set{} })
		_ = s.Remove("one", false)
	}
}

// startChild starts a child, whose steps are its lines.
func startChild(t *testing.T, dir, last string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir, childStep+"="+last)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// Killed after any step, a change is there as a whole, or not at all.
func TestKilledAfterEachStep(t *testing.T) {
	tests := []struct{ step, version string }{
		{"written .wasm", "1.0.0"},
		{"module", "1.0.0"},
		{"written .lock", "1.0.0"},
		{"lock", "2.0.0"},
		{"no such step", "2.0.0"},
	}
	for _, tt := range tests {
		t.Run(tt.step, func(t *testing.T) {
			s := New(t.TempDir())
			install(t, s, candidate(t, "one", "1.0.0", ""))
			cmd, steps := startChild(t, s.dir, tt.step)
			for steps.Scan() {
			}
			err := cmd.Wait()
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if killed := status.Signal() == syscall.SIGKILL; killed == (tt.step == "no such step") {
				t.Fatalf("the child ended with %v", err)
			}
			checkWhole(t, s)
			if e, err := s.Find("one"); err != nil || e.Version != tt.version {
				t.Errorf("version %s, %v; want %s", e.Version, err, tt.version)
			}
			checkSwept(t, s)
		})
	}
}

// The first one leaves nothing, or itself.
func TestKilledAtTheFirst(t *testing.T) {
	for _, at := range []string{"written .lock", "lock", "written .wasm", "module"} {
		s := New(t.TempDir())
		cmd, steps := startChild(t, s.dir, at)
		for steps.Scan() {
		}
		_ = cmd.Wait() // it ended itself
		if modules, err := s.Read(); err != nil || len(modules) != 0 {
			t.Errorf("%s: %d modules, %v", at, len(modules), err)
		}
		checkSwept(t, s)
	}
}

// Killed at any moment, what is installed is whole.
func TestKilledAtAnyMoment(t *testing.T) {
	s := New(t.TempDir())
	for range 50 {
		cmd, steps := startChild(t, s.dir, "")
		for range 1 + rand.IntN(20) {
			steps.Scan()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		checkWhole(t, s)
	}
	checkSwept(t, s)
}

// checkWhole checks that all that the lock names is there.
func checkWhole(t *testing.T, s *Store) {
	t.Helper()
	modules, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if m.Err != nil {
			t.Fatalf("%s %s: %v", m.Name, m.Version, m.Err)
		}
	}
}

// checkSwept checks that the next change removes what is not needed.
func checkSwept(t *testing.T, s *Store) {
	t.Helper()
	install(t, s, candidate(t, "another", "1.0.0", ""))
	entries, err := s.List()
	if files := state(t, s); err != nil || len(files) != len(entries)+1 {
		t.Errorf("%d extensions, %v, and %d files", len(entries), err, len(files))
	}
}

// Where the disk is full, nothing is changed, and nothing half-written stays.
func TestFullDisk(t *testing.T) {
	defer func() { step = func(string) error { return nil } }()
	s := New(t.TempDir())
	install(t, s, candidate(t, "one", "1.0.0", ""))
	before := state(t, s)
	for _, at := range []string{"written .wasm", "written .lock"} {
		step = func(done string) error {
			if done == at {
				return syscall.ENOSPC
			}
			return nil
		}
		p, err := s.Propose(candidate(t, "one", "2.0.0", ""), Trust{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Accept(p, p.New); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: Accept: %v", at, err)
		}
		if after := state(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: there is %q", at, names(after))
		}
	}
}

func names(files map[string]string) (all []string) {
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// The same with a disk that really is full.
func TestReallyFullDisk(t *testing.T) {
	const bwrap = "/usr/bin/bwrap"
	if _, err := os.Stat(bwrap); err != nil {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatal("bubblewrap is not installed, and nothing is skipped here: apt install bubblewrap")
		}
		t.Skip("bubblewrap is needed for a small file system: apt install bubblewrap")
	}
	if dir := os.Getenv("WHARF_STORE_FULL"); dir != "" {
		fillDisk(t, dir)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), bwrap, "--dev-bind", "/", "/", "--size", "65536", "--tmpfs", dir, exe, "-test.run", "^TestReallyFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), "WHARF_STORE_FULL="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// fillDisk installs extensions until the disk is full.
func fillDisk(t *testing.T, dir string) {
	s := New(dir)
	for n := range 20 {
		before := state(t, s)
		p, err := s.Propose(candidate(t, fmt.Sprintf("ext-%d", n), "1.0.0", ""), Trust{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Accept(p, p.New); err == nil {
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Accept: %v", err)
		}
		checkWhole(t, s)
		if after := state(t, s); n == 0 || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("after %d there is %q", n, names(after))
		}
		return
	}
	t.Error("the disk was never full")
}
