package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ungrouped has s limit memory and processes without control groups.
func ungrouped(s *Sandbox) *Sandbox {
	switch by := s.chosen.(type) {
	case bwrap:
		by.grouped = false
		s.chosen = by
	case landlock:
		by.grouped = false
		s.chosen = by
	}
	return s
}

// needsGroups skips a test also in strict mode: what is missing cannot be installed.
func needsGroups(t *testing.T) {
	t.Helper()
	if theGroups() == nil {
		t.Skip("no control groups for memory and processes can be made here: delegate them to this user")
	}
}

func TestLimitsHold(t *testing.T) {
	limits := Limits{Memory: 64 << 20, Processes: 24, CPU: time.Second, FileSize: 1 << 20, OpenFiles: 40}
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{Limits: limits})
		tests := []struct {
			name, line, out, note string
			group                 bool // needs a control group
		}{
			{"processor time", "while :; do :; done", "", "a process was ended at the limit of 1s of processor time (sandbox.limits.cpu)", false},
			{"the size of a file", "exec dd if=/dev/zero of=big bs=1M count=3 2>/dev/null", "", "a process was ended at the 1 MiB limit on the size of a file (sandbox.limits.file_size)", false},
			{"memory", "dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null; echo went on", "went on\n", "a process was ended at the 64 MiB memory limit (sandbox.limits.memory)", true},
			{
				"processes", "exec 2>/dev/null; for i in 1 2 3 4 5 6; do sleep 9 & sleep 9 & sleep 9 & sleep 9 & sleep 9 & done", "",
				"a process was not started at the limit of 24 processes (sandbox.limits.processes)", true,
			},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				if tt.group {
					needsGroups(t)
				}
				out, res := sh(t, s, tt.line)
				if len(res.Notes) != 1 || res.Notes[0] != tt.note || out != tt.out {
					t.Errorf("Run = %q, %+v; want %q and the note %q", out, res, tt.out, tt.note)
				}
			})
		}
	})
}

// Without control groups memory is limited for each process. The program that
// hits that limit is told by the kernel, and nobody else is.
func TestMemoryLimitWithoutGroups(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := ungrouped(open(t, rung, Config{Limits: Limits{Memory: 64 << 20}}))
		out, res := sh(t, s, "dd if=/dev/zero of=/dev/null bs=100M count=1 && echo had it; dd if=/dev/zero of=/dev/null bs=10M count=1 2>/dev/null && echo small")
		if has(out, "had it") || !has(out, "small") || len(res.Notes) != 0 {
			t.Errorf("Run = %q, %+v", out, res)
		}
	})
}

// Processes are counted by user where there is no group; root is never held.
func TestProcessLimitWithoutGroups(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the limit on processes does not hold for root: run this test as an ordinary user")
	}
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := ungrouped(open(t, rung, Config{Limits: Limits{Processes: 24}}))
		out, _ := sh(t, s, "for i in 1 2 3 4 5 6; do sleep 9 & sleep 9 & sleep 9 & sleep 9 & sleep 9 & done")
		if !strings.Contains(out, "annot fork") {
			t.Errorf("all was started:\n%s", out)
		}
	})
}

// What the kernel says of the limits inside, by the shell's own word.
func TestLimitsInside(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{Limits: Limits{OpenFiles: 100, FileSize: 3 << 20}})
		out, _ := sh(t, s, "cat /proc/self/limits 2>/dev/null || (ulimit -n; ulimit -c; ulimit -l; ulimit -f)")
		want := []string{"100", "0", "64", "6144"} // kibibytes, and blocks of 512
		if rung == Bubblewrap {
			want = []string{
				"Max open files            100                  100                  files     ",
				"Max core file size        0                    0                    bytes     ",
				"Max locked memory         65536                65536                bytes     ",
				"Max file size             3145728              3145728              bytes     ",
				"Max msgqueue size         0                    0                    bytes     ",
				"Max realtime priority     0                    0                    ",
			}
		}
		for _, line := range want {
			if !has(out, line) {
				t.Errorf("there is no line %q in:\n%s", line, out)
			}
		}
	})
}

// A command whose limits cannot be set is not run.
func TestLimitThatCannotBeSet(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	s := open(t, Bubblewrap, Config{})
	s.chosen = limitless{s.chosen.(bwrap)}
	_, err := s.Run(t.Context(), Command{Line: "touch ran"})
	if want := "Sandbox unavailable: limit nothing: invalid argument. The command was not run."; err == nil || err.Error() != want {
		t.Errorf("Run error = %v; want %q", err, want)
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Workspace, "ran")); err == nil {
		t.Error("the command was run")
	}
}

// limitless is a bubblewrap with a limit that no kernel knows.
type limitless struct{ bwrap }

func (b limitless) launch(c Command) (*launch, error) {
	l, err := b.bwrap.launch(c)
	if err == nil {
		l.gate.bounds = append(l.gate.bounds, bound{"nothing", 99, 0, 0})
	}
	return l, err
}

// A limit is never wider than what Wharf has itself.
func TestLimitsOnlyNarrow(t *testing.T) {
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = child.Wait() }()
	pid := child.Process.Pid
	for _, want := range []uint64{200, 100, 100} {
		if err := (bound{"open files", unix.RLIMIT_NOFILE, want, want}).apply(pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := (bound{"open files", unix.RLIMIT_NOFILE, 300, 300}).apply(pid); err != nil {
		t.Fatal(err)
	}
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now); err != nil || now.Cur != 100 || now.Max != 100 {
		t.Errorf("the limit is %+v, %v; want 100", now, err)
	}
}

// Where groups are made, by what the kernel says of this process's own.
func TestGroupPlaces(t *testing.T) {
	tests := []struct{ name, self, want string }{
		{"version 2, in a session's group or beside it", "0::/user.slice/app.scope\n", "[/m/user.slice/app.scope] [/m/user.slice]"},
		{"version 2, at its top", "0::/\n", "[/m]"},
		{"version 1", "4:memory:/a b\n3:pids,x:/\n", "[/m/memory/a b /m/pids]"},
		{"both", "4:memory:/\n3:pids:/\n0::/\n", "[/m] [/m/memory /m/pids]"},
		{"a way out is none", "0::/../../etc\n", "[/m/etc] [/m]"},
		{"memory alone is not enough", "4:memory:/\n", ""},
		{"nothing that is understood", "x\n:\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, g := range groupPlaces("/m", tt.self) {
				got = append(got, fmt.Sprint(g.parents))
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("groupPlaces = %s; want %s", text, tt.want)
			}
		})
	}
}

// A group of version 2 is set and read by the kernel's names for it.
func TestGroupOfVersion2(t *testing.T) {
	dir := folder(t)
	for _, file := range []string{"memory.max", "pids.max", "memory.oom.group", "cgroup.procs"} {
		write(t, filepath.Join(dir, file), "")
	}
	write(t, filepath.Join(dir, "memory.events"), "low 0\noom 3\noom_kill 1\noom_group_kill 7\n")
	g := &group{dirs: []string{dir}}
	l := Limits{Memory: 64 << 20, Processes: 9}
	if err := g.limit(l); err != nil {
		t.Fatal(err)
	}
	if notes := g.reached(l); notes != nil {
		t.Errorf("reached = %q before anything happened", notes)
	}
	write(t, filepath.Join(dir, "memory.events"), "oom_kill 2\n")
	write(t, filepath.Join(dir, "pids.events"), "max 4\n")
	want := "[a process was ended at the 64 MiB memory limit (sandbox.limits.memory) a process was not started at the limit of 9 processes (sandbox.limits.processes)]"
	if got := fmt.Sprint(g.reached(l)); got != want {
		t.Errorf("reached = %s; want %s", got, want)
	}
	if err := g.enter(17); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "67108864", "pids.max": "9", "memory.oom.group": "1", "cgroup.procs": "17"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); string(text) != want || err != nil {
			t.Errorf("%s holds %q, %v; want %q", file, text, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "memory.swap.max")); err == nil {
		t.Error("a file that the kernel does not have was made")
	}
}

// Groups are used again, and one that somebody removed is replaced.
func TestGroupsAreReused(t *testing.T) {
	needsGroups(t)
	g := &groups{parents: theGroups().parents, v1: theGroups().v1, made: 100}
	l := Limits{Memory: leastMemory, Processes: leastProcesses}
	take := func() *group {
		one, err := g.take(l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(one.remove)
		return one
	}
	first, second := take(), take()
	if first.dirs[0] == second.dirs[0] {
		t.Errorf("two commands have the group %s", first.dirs[0])
	}
	g.give(first)
	if again := take(); again != first {
		t.Errorf("take = %v; want %v", again, first)
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	if err == nil {
		err = first.enter(child.Process.Pid)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.give(first)
	if other := take(); other == first {
		t.Error("a group with a process in it is used again")
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	g.give(first)
	first.remove()
	if other := take(); other.dirs[0] == first.dirs[0] {
		t.Errorf("take = %v, which was removed", other)
	}
}

// Commands that run side by side have a group each.
func TestHammerGroups(t *testing.T) {
	needsGroups(t)
	g := &groups{parents: theGroups().parents, v1: theGroups().v1, made: 200}
	var held sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				one, err := g.take(Limits{Memory: leastMemory, Processes: leastProcesses})
				if err != nil {
					t.Error(err)
					return
				}
				if _, taken := held.LoadOrStore(one, true); taken {
					t.Errorf("%s belongs to two commands", one.dirs[0])
				}
				held.Delete(one)
				g.give(one)
			}
		})
	}
	all.Wait()
	if len(g.idle) != g.made-200 || g.made > 208 {
		t.Errorf("%d groups were made, %d are idle", g.made-200, len(g.idle))
	}
	for _, one := range g.idle {
		one.remove()
	}
}

// When Wharf has ended, so have its groups.
func TestGroupsEndWithWharf(t *testing.T) {
	needsGroups(t)
	onEachRung(t, func(t *testing.T, rung Rung) {
		cmd := exec.Command(self(t), "probe", "once", string(rung), folder(t))
		out, err := cmd.CombinedOutput()
		if string(out) != "groups true\n" || err != nil {
			t.Fatalf("the run said %q, %v", out, err)
		}
		waitFor(t, "the groups are gone", func() bool {
			for _, parent := range theGroups().parents {
				if left, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf("wharf-%d-*", cmd.Process.Pid))); len(left) > 0 {
					return false
				}
			}
			return true
		})
	})
}

// runOnce runs a command and tells whether there is a group then.
func runOnce(rung Rung, workspace string) int {
	s, err := New(Config{Workspace: workspace})
	if err == nil {
		if rung == Landlock {
			s.bwrapPaths = nil
		}
		_, err = s.Run(context.Background(), Command{Line: "true"})
	}
	if err != nil {
		fmt.Println(err)
		return 2
	}
	made, err := filepath.Glob(filepath.Join(theGroups().parents[0], fmt.Sprintf("wharf-%d-*", os.Getpid())))
	fmt.Println("groups", len(made) > 0 && err == nil)
	return 0
}
