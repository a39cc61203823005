package sandbox

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// home makes a home folder with secrets, which is the user's for the test.
func home(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	t.Setenv("HOME", dir)
	write(t, filepath.Join(dir, ".ssh", "id"), canary)
	write(t, filepath.Join(dir, ".netrc"), canary)
	write(t, filepath.Join(dir, ".config", "gh", "hosts.yml"), canary)
	return dir
}

// No argument of full-access makes or writes a file on the host: whatever is
// mounted there, lies over something that is there already.
func TestFullAccessMakesNothing(t *testing.T) {
	dir := home(t)
	hidden := filepath.Join(dir, "state", "wharf")
	s, err := New(Config{Workspace: folder(t), Profile: FullAccess, Hidden: []string{hidden, filepath.Join(dir, "never")}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(hidden, "token"), canary)
	agent := write(t, filepath.Join(dir, "agent"), "") // as if it were a socket
	t.Setenv("SSH_AUTH_SOCK", agent)
	args := bwrap{sandbox: s}.args(Command{Dir: s.cfg.Workspace, Profile: FullAccess})
	takes := map[string]int{ // how many words follow; of the last one of a mount is its place
		"--bind": 2, "--ro-bind": 2, "--dev": 1, "--proc": 1, "--tmpfs": 1, "--remount-ro": 1, "--size": 1, "--perms": 1, "--chdir": 1,
		"--cap-drop": 1, "--json-status-fd": 1, "--block-fd": 1, "--seccomp": 1, "--unshare-user": 0, "--unshare-pid": 0, "--unshare-ipc": 0,
		"--unshare-uts": 0, "--unshare-cgroup-try": 0, "--die-with-parent": 0, "--new-session": 0,
	}
	var masked []string
	for i := 0; i < len(args); i++ {
		n, known := takes[args[i]]
		if !known {
			t.Fatalf("%s is an argument that may make or write a file", args[i])
		}
		words := args[i+1 : i+1+n]
		switch args[i] {
		case "--bind", "--ro-bind", "--dev", "--proc", "--tmpfs":
			place := words[len(words)-1]
			if real, err := filepath.EvalSymlinks(place); place != "/dev/shm" && (err != nil || real != place) {
				t.Errorf("%s %s: it would be made, or is a link: %v", args[i], words, err)
			}
			masked = append(masked, place)
		}
		i += n
	}
	for _, path := range []string{filepath.Join(dir, ".ssh"), filepath.Join(dir, ".netrc"), filepath.Join(dir, ".config", "gh"), hidden, agent} {
		if !slices.Contains(masked, path) {
			t.Errorf("%s is not masked", path)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "never")); err == nil {
		t.Error("the arguments alone have made a folder")
	}
}

// What full-access is: the host's files and network, and none of the secrets.
func TestFullAccess(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		dir, outside := home(t), folder(t)
		t.Setenv("WHARF_TEST_TOKEN", canary)
		write(t, filepath.Join(outside, "f"), "outside\n")
		write(t, filepath.Join(dir, "own"), "own\n")
		write(t, filepath.Join(dir, "state", "x"), "")
		hidden := filepath.Join(dir, "state", "later")
		s := open(t, rung, Config{Hidden: []string{hidden}})
		out := full(t, s, "cat "+outside+"/f ~/own; echo made > "+outside+"/made; echo more >> ~/own; echo x > "+hidden+"/first; echo $WHARF_SANDBOX $HOME; "+probe(t, "dial", "tcp", listening(t)))
		for _, line := range []string{"outside", "own", "full-access " + dir, "dial ok"} {
			if !has(out, line) {
				t.Errorf("there is no line %q:\n%s", line, out)
			}
		}
		for path, want := range map[string]string{filepath.Join(outside, "made"): "made\n", filepath.Join(dir, "own"): "own\nmore\n"} {
			if text, err := os.ReadFile(path); string(text) != want {
				t.Errorf("%s holds %q, %v; want %q", path, text, err, want)
			}
		}
		out = full(t, s, "cat ~/.ssh/id ~/.netrc ~/.config/gh/*; cat /proc/self/root"+dir+"/.netrc; ln ~/.netrc "+outside+"/l; cat "+outside+"/l; env; "+
			fmt.Sprintf("cat /proc/%d/environ; ", os.Getpid())+
			"echo x > ~/.ssh/new; echo x > "+hidden+"/f; echo x > ~/.netrc; umount ~/.ssh; mv ~/.ssh ~/moved; mv ~/.ssh "+outside+"/moved; rm -rf ~/.ssh; "+
			"mv ~/state ~/moved-state; mkdir -p "+hidden+"; echo x > "+hidden+"/f; echo tried")
		if strings.Contains(out, canary) || !has(out, "tried") {
			t.Errorf("of the secrets is seen:\n%s", out)
		}
		for path, want := range map[string]string{filepath.Join(dir, ".ssh", "id"): canary, filepath.Join(dir, ".netrc"): canary} {
			if text, err := os.ReadFile(path); string(text) != want {
				t.Errorf("%s holds %q, %v", path, text, err)
			}
		}
		for dir, want := range map[string]int{filepath.Join(dir, ".ssh"): 1, hidden: 0} {
			if entries, _ := os.ReadDir(dir); len(entries) != want {
				t.Errorf("%s holds %v", dir, entries)
			}
		}
		lock := filepath.Join(s.cfg.Workspace, "lock")
		full(t, s, "setsid "+probe(t, "hold", lock)+" & until test -e "+lock+"; do sleep 0.01; done")
		if !isFree(t, lock) {
			t.Error("a process has outlived the command")
		}
		if out, _ := sh(t, s, "cat "+outside+"/f; echo tried"); has(out, "outside") || !has(out, "tried") {
			t.Error("the next command has full access too")
		}
	})
}

// full runs a line with full access, and returns what it printed.
func full(t *testing.T, s *Sandbox, line string) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := s.Run(t.Context(), Command{Line: line, Stdout: &out, Stderr: &out, Profile: FullAccess}); err != nil {
		t.Fatalf("Run(%q): %v", line, err)
	}
	return out.String()
}

// listening returns the address of a server on the host's loopback.
func listening(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// The machine's own switches and disks are nobody's files.
func TestFullAccessLeavesTheMachine(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		home(t)
		s := open(t, rung, Config{})
		out := full(t, s, "cat /proc/sys/vm/swappiness > kept; cat kept > /proc/sys/vm/swappiness; echo status $?; for f in /sys/fs/cgroup /sys/kernel; do mkdir $f/wharf-test && echo status 0; done; ls /dev | grep -c '^[svn][dv][a-z]' ; mknod disk b 7 0; echo tried")
		if has(out, "status 0") || !has(out, "tried") {
			t.Errorf("a switch can be set:\n%s", out)
		}
		if _, err := os.Lstat(filepath.Join(s.cfg.Workspace, "disk")); err == nil {
			t.Error("a device was made")
		}
	})
}

func TestUnknownProfileOfACommand(t *testing.T) {
	s, err := New(Config{Workspace: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), Command{Line: "true", Profile: "more"}); err == nil ||
		err.Error() != `run command: unknown profile "more": use "read-only", "workspace-write" or "full-access"` {
		t.Errorf("Run error = %v", err)
	}
}

// A command can also be run in a narrower profile than the sandbox's.
func TestProfileOfOneCommand(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{})
		var out bytes.Buffer
		if _, err := s.Run(t.Context(), Command{Line: "touch x; echo $WHARF_SANDBOX", Profile: ReadOnly, Stdout: &out}); err != nil || out.String() != "read-only\n" {
			t.Errorf("Run printed %q, %v", out.String(), err)
		}
		if _, err := os.Lstat(filepath.Join(s.cfg.Workspace, "x")); err == nil {
			t.Error("the workspace was written")
		}
	})
}
