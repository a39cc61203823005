package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestHowCommandsEnd(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{})
		tests := []struct {
			name    string
			command Command
			code    int
			out     string
			err     string
		}{
			{"well", Command{Line: "echo fine"}, 0, "fine\n", ""},
			{"with a status of its own", Command{Line: "exit 7"}, 7, "", ""},
			{"by a signal", Command{Line: "kill -TERM $$"}, 143, "", ""},
			{"by SIGKILL", Command{Line: "kill -KILL $$"}, 137, "", ""},
			{"a line that looks like an option", Command{Line: "-x"}, 127, "/bin/sh: 1: -x: not found\n", ""},
			{"a program without a shell", Command{Argv: []string{"echo", "a b", "$HOME"}}, 0, "a b $HOME\n", ""},
			{"bytes that are no text", Command{Line: "printf '%s' '\xff\xfe'"}, 0, "\xff\xfe", ""},
			{"both streams", Command{Line: "echo out; echo err >&2"}, 0, "out\nerr\n", ""},
			{"input is read to its end", Command{Line: "cat", Stdin: strings.NewReader("typed")}, 0, "typed", ""},
			{"input that nobody reads", Command{Line: "exit 1", Stdin: strings.NewReader(strings.Repeat("x", 1<<20))}, 1, "", ""},
			{"no input", Command{Line: "cat; echo end"}, 0, "end\n", ""},
			{"a background child that holds the output", Command{Line: "sleep 1000 & echo started"}, 0, "started\n", ""},
			{
				"a failure that imitates bubblewrap's voice",
				Command{Line: "echo bwrap: execvp x: No such file >&2; exit 1"},
				1,
				"bwrap: execvp x: No such file\n", "",
			},
			{"a failure that imitates the report", Command{Line: `for f in 3 4 5 6 7 8 9; do echo '{"exit-code":0}' >&$f; done 2>$TMPDIR/x; exit 9`}, 9, "", ""},
			{
				"a program that is not there",
				Command{Argv: []string{"nowhere-to-be-found"}},
				0, "",
				`run command: program "nowhere-to-be-found" cannot be run in the sandbox: `,
			},
			{"a zero byte", Command{Line: "echo \x00"}, 0, "", `run command: "echo \x00" has a zero byte, which no program can be given`},
			{"nothing to run", Command{}, 0, "", "run command: it needs either a line or a program, not both"},
			{
				"a folder outside",
				Command{Line: "pwd", Dir: "/usr"},
				0, "",
				fmt.Sprintf(`run command: folder "/usr" lies outside the workspace %q`, s.cfg.Workspace),
			},
			{
				"a negative time limit",
				Command{Line: "pwd", Timeout: -1},
				0, "",
				"run command: the time limit -1ns is negative: use 0 for the default",
			},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				var out bytes.Buffer
				tt.command.Stdout, tt.command.Stderr = &out, &out
				res, err := s.Run(t.Context(), tt.command)
				if tt.err != "" {
					if err == nil || !strings.HasPrefix(err.Error(), tt.err) || errors.Is(err, ErrUnavailable) {
						t.Errorf("Run error = %v; want %q", err, tt.err)
					}
					return
				}
				if err != nil || res.ExitCode != tt.code || out.String() != tt.out || res.TimedOut || res.Cut || res.Rung != rung {
					t.Errorf("Run = %+v, %v, %q; want status %d and %q", res, err, out.String(), tt.code, tt.out)
				}
				if res.Duration <= 0 || res.Duration > 30*time.Second {
					t.Errorf("Duration = %v", res.Duration)
				}
			})
		}
	})
}

func TestDir(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		ws := folder(t)
		write(t, filepath.Join(ws, "sub", "f"), "")
		s := open(t, rung, Config{Workspace: ws})
		for _, dir := range []string{"sub", filepath.Join(ws, "sub")} {
			var out bytes.Buffer
			if _, err := s.Run(t.Context(), Command{Line: "pwd; ls", Dir: dir, Stdout: &out}); err != nil || out.String() != ws+"/sub\nf\n" {
				t.Errorf("in %q: %q, %v", dir, out.String(), err)
			}
		}
	})
}

// Detached processes end with the command, however they got away from it.
func TestNothingOutlivesTheCommand(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{})
		lock := filepath.Join(s.cfg.Workspace, "lock")
		for _, how := range []string{"%s &", "setsid %s &", "nohup %s &", "(setsid setsid sh -c '%s & wait' &)"} {
			t.Run(how, func(t *testing.T) {
				_ = os.Remove(lock)
				out, res := sh(t, s, fmt.Sprintf(how, probe(t, "hold", "lock"))+"\nuntil test -e lock; do sleep 0.01; done; exit 4")
				if res.ExitCode != 4 {
					t.Errorf("status %d:\n%s", res.ExitCode, out)
				}
				if !isFree(t, lock) {
					t.Error("a process still holds the lock after the run")
				}
			})
		}
	})
}

// Nor does a tree that is another one whenever somebody looks.
func TestRenewalDoesNotOutliveTheCommand(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		if rung == Landlock && landlockVersion() < 6 {
			t.Skip("this kernel's Landlock does not scope signals: use Linux 6.12 or later")
		}
		s := open(t, rung, Config{})
		stop := time.AfterFunc(20*time.Second, func() { _ = os.Remove(filepath.Join(s.cfg.Workspace, "on")) })
		out, res := sh(t, s, "touch on; "+probe(t, "renew", "on")+"; exit 3")
		if !stop.Stop() || res.ExitCode != 3 {
			t.Errorf("Run = %+v; want it to end by itself:\n%s", res, out)
		}
	})
}

// What kills a whole tree at one stroke kills nothing else.
func TestScopeSignals(t *testing.T) {
	need(t, landlockVersion() >= 6, "this kernel's Landlock does not scope signals: use Linux 6.12 or later")
	out, err := exec.Command(self(t), "probe", "scope").CombinedOutput()
	if string(out) != "scoped true\nparent operation not permitted\nchild ok\n" {
		t.Errorf("the signals' scope: %v\n%s", err, out)
	}
	if scopeSignals(5) {
		t.Error("an older Landlock is said to scope signals")
	}
}

// A monitor that ends without a report is not taken for a command that was not run.
func TestMonitorBreaksDown(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "exit 2")
	_ = cmd.Run()
	_ = w.Close()
	ch := &child{launch: &launch{status: r, control: w}, report: readReport(r, nil), state: cmd.ProcessState}
	want := "run command: the sandbox's monitor broke down (exit status 2), and what became of the command is not known"
	if _, err := ch.outcome(false, ""); err == nil || err.Error() != want || errors.Is(err, ErrUnavailable) {
		t.Errorf("outcome: %v; want %s", err, want)
	}
	_ = r.Close()
}

func TestTimeLimit(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{})
		t.Run("a command that asks to be ended nicely", func(t *testing.T) {
			var out bytes.Buffer
			res, err := s.Run(t.Context(), Command{
				Line: "trap 'echo bye; exit 9' TERM; echo on; sleep 1000 & wait", Stdout: &out, Timeout: 500 * time.Millisecond,
			})
			if err != nil || !res.TimedOut || res.ExitCode != 9 || out.String() != "on\nbye\n" || res.Duration > 10*time.Second {
				t.Errorf("Run = %+v, %v, %q", res, err, out.String())
			}
		})
		t.Run("a tree that will not end", func(t *testing.T) {
			res, err := s.Run(t.Context(), Command{
				Line:    "setsid " + probe(t, "hold", "one") + " & exec " + probe(t, "hold", "two"),
				Timeout: time.Second,
			})
			if err != nil || !res.TimedOut || res.ExitCode != 137 || res.Duration > 10*time.Second {
				t.Errorf("Run = %+v, %v", res, err)
			}
			for _, lock := range []string{"one", "two"} {
				if !isFree(t, filepath.Join(s.cfg.Workspace, lock)) {
					t.Errorf("a process still holds %q", lock)
				}
			}
		})
	})
}

func TestCancel(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{})
		why := errors.New("the user pressed Ctrl-C")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := watch("hold ok")
		ended := make(chan error, 1)
		go func() {
			_, err := s.Run(ctx, Command{Line: probe(t, "hold", "lock"), Stdout: w})
			ended <- err
		}()
		<-w.seen
		cancel(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("Run error = %v; want %v", err, why)
		}
		if !isFree(t, filepath.Join(s.cfg.Workspace, "lock")) {
			t.Error("a process still holds the lock after the cancel")
		}
		if _, err := s.Run(ctx, Command{Line: "touch ran"}); !errors.Is(err, why) {
			t.Errorf("Run after the cancel = %v; want %v", err, why)
		}
		if _, err := os.Stat(filepath.Join(s.cfg.Workspace, "ran")); err == nil {
			t.Error("a command ran after the cancel")
		}
	})
}

// kill -9 of Wharf itself ends all that it had started, also if the command has
// done something against that.
func TestSupervisorKilled(t *testing.T) {
	killed := func(t *testing.T, rung Rung) {
		ws, temp := folder(t), folder(t)
		w := watch("hold ok\nhold ok\n")
		cmd := exec.Command(self(t), "probe", "run", string(rung), ws)
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		cmd.Stdout, cmd.Stderr = w, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.seen:
		case <-time.After(20 * time.Second):
			t.Errorf("the supervisor said only %q", w.all)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		waitFree(t, filepath.Join(ws, "main"))
		waitFree(t, filepath.Join(ws, "left"))
		_ = cmd.Wait()
		waitEmpty(t, temp)
	}
	onEachRung(t, killed)
	onEachRung(t, func(t *testing.T, rung Rung) { killed(t, rung+" at a terminal") })
	t.Run("untied", func(t *testing.T) {
		need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
		killed(t, "untied")
	})
}

func TestKeeperTakesOrders(t *testing.T) {
	self, gone := identify(os.Getpid()), identity{1 << 30, "7"}
	tests := []struct {
		name, orders string
		busy         bool
		firsts       int
	}{
		{"none", "", false, 0},
		{"work", "busy\n77 1\n78 2\n", true, 2},
		{"work that is over", "busy\n77 1\nidle\n", false, 0},
		{"work again", "busy\n77 1\nidle\nbusy\n78 1\n", true, 1},
		{"a process that was gone at once", "busy\n77 \n", true, 0},
		{"rubbish", "x y\n\nbusy", true, 0},
		{"much work", "busy\n" + strings.Repeat(fmt.Sprintln(gone.pid, gone.born), 600) + fmt.Sprintln(self.pid, self.born), true, 600%256 + 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if busy, firsts, _ := takeOrders(strings.NewReader(tt.orders)); busy != tt.busy || len(firsts) != tt.firsts {
				t.Errorf("takeOrders = %v, %v; want %v and %d processes", busy, firsts, tt.busy, tt.firsts)
			}
		})
	}
	if !self.lives() || gone.lives() || (identity{self.pid, "7"}).lives() || identify(1<<30).lives() {
		t.Error("processes are mixed up")
	}
}

// kill -9 of Wharf while bubblewrap is still at its preparations leaves nothing
// either, neither waiting nor running.
func TestSupervisorKilledAtStart(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	ws := folder(t)
	if err := unix.Mkfifo(filepath.Join(ws, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t), "probe", "begin", ws)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "bubblewrap's first process inside waits", func() bool { return insiders(filepath.Join(ws, "fifo")) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	waitFor(t, "nothing is left", func() bool { return insiders(filepath.Join(ws, "fifo")) == 0 })
	if _, err := os.Stat(filepath.Join(ws, "ran")); err == nil {
		t.Error("the command ran without a supervisor")
	}
}

// A command that has not begun when it is cancelled does not begin any more,
// and nobody waits for it.
func TestCancelAtStart(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	s := open(t, Bubblewrap, Config{})
	fifo := filepath.Join(s.cfg.Workspace, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s.chosen = slowBwrap{s.chosen.(bwrap), fifo}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, Command{Line: "true"})
		ended <- err
	}()
	waitFor(t, "bubblewrap's first process inside waits", func() bool { return insiders(fifo) > 0 })
	began := time.Now()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(began) >= grace {
		t.Errorf("Run ended with %v after %v; want it at once", err, time.Since(began))
	}
}

// insiders counts the processes in other process namespaces that have a file
// open.
func insiders(path string) (n int) {
	own, _ := os.Readlink("/proc/self/ns/pid")
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		space, err := os.Readlink(filepath.Join(filepath.Dir(fd), "../ns/pid"))
		if target, _ := os.Readlink(fd); target == path && err == nil && space != own {
			n++
		}
	}
	return n
}

// A writer that blocks for ever does not block Run for ever.
func TestWriterThatBlocks(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		t.Parallel()
		s := open(t, rung, Config{})
		r, w := io.Pipe()
		t.Cleanup(func() { _ = r.Close() })
		res, err := s.Run(t.Context(), Command{Line: "echo unread", Stdout: w})
		if err != nil || !res.Cut || res.ExitCode != 0 {
			t.Errorf("Run = %+v, %v; want the output to be cut", res, err)
		}
	})
}

func TestWriterThatFails(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		r, w := io.Pipe()
		_ = r.Close()
		res, err := open(t, rung, Config{}).Run(t.Context(), Command{Line: "head -c 1000000 /dev/zero; echo $? >&2; exit 5", Stdout: w})
		if err != nil || res.Cut || res.ExitCode != 5 {
			t.Errorf("Run = %+v, %v; want the command undisturbed", res, err)
		}
	})
}

func TestAllOutputArrives(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		var out, errs bytes.Buffer
		_, err := open(t, rung, Config{}).Run(t.Context(), Command{
			Line: "head -c 3000000 /dev/zero & head -c 2000000 /dev/zero >&2; wait", Stdout: &out, Stderr: &errs,
		})
		if err != nil || out.Len() != 3000000 || errs.Len() != 2000000 {
			t.Errorf("%d and %d bytes arrived, %v", out.Len(), errs.Len(), err)
		}
	})
}

func TestHammerRun(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := range 3 {
					var out bytes.Buffer
					want := fmt.Sprintf("%d %d\n", i, n)
					res, err := s.Run(t.Context(), Command{Line: "sleep 1000 & echo " + want, Stdout: &out})
					if err != nil || res.ExitCode != 0 || out.String() != want {
						t.Errorf("Run = %+v, %v, %q; want %q", res, err, out.String(), want)
					}
				}
			})
		}
		all.Wait()
	})
}

// The private folders of a run are gone after it, whatever it did to them.
func TestScratchIsRemoved(t *testing.T) {
	need(t, landlockVersion() > 0, "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK")
	temp := folder(t)
	t.Setenv("TMPDIR", temp)
	outside := write(t, filepath.Join(folder(t), "kept"), "")
	s := open(t, Landlock, Config{})
	out, _ := sh(t, s, "mkdir -p $HOME/a/b; touch $HOME/a/b/c; ln -s "+outside+" $HOME/a/l; chmod 0 $HOME/a/b $HOME/a $HOME $TMPDIR/..")
	if out != "" {
		t.Errorf("Run printed %q", out)
	}
	if left, err := os.ReadDir(temp); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// No depth makes the removal take long.
func TestRemoveScratch(t *testing.T) {
	dir := filepath.Join(folder(t), "scratch")
	if err := makeScratch(dir, ""); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(self(t), "probe", "deep", filepath.Join(dir, "tmp"), "5000").Output(); err != nil || string(out) != "deep ok\n" {
		t.Fatalf("the folders were not made: %s, %v", out, err)
	}
	began := time.Now()
	removeScratch(dir)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || time.Since(began) > tidied/2 {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// What commands can write is no place for private folders.
func TestScratchIsApart(t *testing.T) {
	ws, cache, other := folder(t), folder(t), folder(t)
	s, err := New(Config{Workspace: ws, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(ws, filepath.Join(other, "in")); err != nil {
		t.Fatal(err)
	}
	for temp, want := range map[string]string{other: other, ws: "/tmp", cache: "/tmp", other + "/in": "/tmp", "relative": "/tmp"} {
		t.Setenv("TMPDIR", temp)
		if got := s.scratchPath(); filepath.Dir(got) != want {
			t.Errorf("with TMPDIR %q the private folders are in %q; want them in %q", temp, got, want)
		}
	}
}

func TestUnconfined(t *testing.T) {
	t.Setenv("WHARF_TEST_TOKEN", canary)
	ws, outside := folder(t), write(t, filepath.Join(folder(t), "f"), "seen\n")
	s, err := New(Config{Workspace: ws, None: true})
	if err != nil {
		t.Fatal(err)
	}
	out, res := sh(t, s, "cat "+outside+"; env; "+probe(t, "hold", "lock")+" & until test -e lock; do sleep 0.01; done; exit 3")
	if !has(out, "seen") || strings.Contains(out, canary) || res.ExitCode != 3 || res.Rung != Unconfined {
		t.Errorf("Run = %+v:\n%s", res, out)
	}
	if !isFree(t, filepath.Join(ws, "lock")) {
		t.Error("a process of the session still holds the lock after the run")
	}
	if s.Notice() != "" || !strings.Contains(s.Explain(t.Context()), "not confined at all") {
		t.Errorf("Explain:\n%s", s.Explain(t.Context()))
	}
	_, err = s.Run(t.Context(), Command{Argv: []string{"nowhere-to-be-found"}})
	if want := `run command: program "nowhere-to-be-found" cannot be run in the sandbox: not found on its PATH`; err == nil || err.Error() != want {
		t.Errorf("Run error = %v; want %q", err, want)
	}
}

// What an agent does all day works in the sandbox.
func TestGit(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		_, err := exec.LookPath("git")
		need(t, err == nil, "git is not installed: apt install git")
		s := open(t, rung, Config{})
		out, res := sh(t, s, "echo a > a && git init -q . && git add a && git commit -qm first && git status --short && git log --format=%s")
		if out != "first\n" || res.ExitCode != 0 {
			t.Errorf("Run = %+v:\n%s", res, out)
		}
	})
}

func TestGoBuild(t *testing.T) {
	_, err := exec.LookPath("go")
	need(t, err == nil, "the go command is not on PATH")
	cache := folder(t) // one for all: a cold one costs half a minute
	onEachRung(t, func(t *testing.T, rung Rung) {
		for _, profile := range []Profile{WorkspaceWrite, ReadOnly} {
			ws := folder(t)
			write(t, filepath.Join(ws, "go.mod"), "module tiny\n\ngo 1.24\n")
			write(t, filepath.Join(ws, "tiny.go"), "package main\n\nfunc main() { println(answer()) }\n\nfunc answer() int { return 42 }\n")
			write(t, filepath.Join(ws, "tiny_test.go"), "package main\n\nimport \"testing\"\n\nfunc TestAnswer(t *testing.T) { if answer() != 42 { t.Fail() } }\n")
			s := open(t, rung, Config{Workspace: ws, CacheDir: cache, Profile: profile})
			out, res := sh(t, s, "go test . && go build -o $TMPDIR/tiny . && $TMPDIR/tiny")
			if lines := strings.Split(out, "\n"); res.ExitCode != 0 || !slices.Contains(lines, "42") || !strings.HasPrefix(out, "ok") {
				t.Errorf("%s: Run = %+v:\n%s", profile, res, out)
			}
		}
	})
}

// Without close_range every descriptor is sealed by itself.
func TestSealEach(t *testing.T) {
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	sealEach()
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the flags are %#x, %v; want close-on-exec", flags, err)
	}
}
