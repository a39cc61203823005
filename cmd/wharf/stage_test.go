package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/sandbox/sandboxtest"
)

// canary stands in all that no command may see or change.
const canary = "canary-5d1e"

// ordinary is a user that owns nothing on this machine.
const ordinary = 54321

// stage is a user's corner of the machine, with a workspace in it and canaries
// around that.
type stage struct {
	sandboxtest.Places
	uid      int
	rung     sandbox.Rung
	top, ws  string
	programs string // the folder of wharf and of the probe
	vars     string // further variables of the lines
	ears     *ears
	host     *exec.Cmd
	before   map[string]string
}

// programs are wharf, built as users have it, and the test program of package
// sandbox, which makes the attempts that no shell can.
var programs = sync.OnceValues(func() (string, error) {
	path, err := plain()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "test", "-c", "-o", filepath.Join(plainDir, "probe"), "github.com/wharf-agent/wharf/engine/sandbox")
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the probe: %w\n%s", err, said)
	}
	return filepath.Dir(path), os.Chmod(plainDir, 0o755)
})

// newStage builds one; prepare, if there is one, changes it before the curtain.
func newStage(t *testing.T, uid int, rung sandbox.Rung, prepare func(*stage)) *stage {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp("", "wharf-stage-") // short, for sockets, and open to all, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	s := &stage{
		Places: sandboxtest.Places{Outside: top + "/outside", Home: top + "/home", FD: 3, Probe: bin + "/probe probe"},
		uid:    uid, rung: rung, top: top, ws: top + "/ws", programs: bin,
	}
	for path, content := range sandboxtest.Repository(canary) {
		s.write(t, "ws/"+path, content)
	}
	for _, path := range []string{
		"ws/.wharf/kept", "outside/secret", "shadow", "system/tool", "run/secret", "outside/startup", "home/.bashrc", "home/.profile",
		"home/.ssh/id", "home/.aws/credentials", "home/.netrc", "home/.npmrc", "home/.docker/config.json", "home/.kube/config", "home/.git-credentials", "home/.config/gh/hosts.yml",
		"home/.local/state/wharf/sessions/s/log.jsonl", "home/.local/share/wharf/modules/m.wasm",
	} {
		s.write(t, path, canary+"\n")
	}
	s.write(t, "home/.config/wharf/config.toml", "# "+canary+"\n")
	s.write(t, "hosts", "127.0.0.1 inside.example\n")
	s.link(t, s.Outside+"/secret", "planted")
	s.link(t, s.Outside, "planted-folder")
	s.ears = listen(t, s)
	if prepare != nil {
		prepare(s)
	}
	err = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || os.Getuid() != 0 {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err == nil {
		err = os.Chmod(top, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.before = s.snapshot(t)
	return s
}

func (s *stage) write(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join(s.top, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(s.ws, name)); err != nil {
		t.Fatal(err)
	}
}

// environment is the caller's, full of what is not to be passed on.
func (s *stage) environment() []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + s.Home, "API_TOKEN=" + canary, "BASH_ENV=" + s.Outside + "/startup", "ENV=" + s.Outside + "/startup",
		"LD_LIBRARY_PATH=/" + canary, "PYTHONPATH=/" + canary, "NODE_OPTIONS=" + canary, "GIT_SSH_COMMAND=" + canary, "SSH_AUTH_SOCK=/run/agent?" + canary,
		"DBUS_SESSION_BUS_ADDRESS=" + canary, "XDG_RUNTIME_DIR=/run/" + canary, "BASH_FUNC_tell%%=() { echo " + canary + "; }",
	}
}

// wharf is a command of wharf's as the stage's user, with the secret as its
// descriptor 3.
func (s *stage) wharf(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	return s.command(ctx, t, append([]string{s.programs + "/wharf"}, args...)...)
}

// command runs argv as the stage's user, in a mount namespace of its own: there
// some of the machine's places are the stage's, and without bwrap there is none.
func (s *stage) command(ctx context.Context, t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	covers := map[string]string{"/etc/shadow": s.top + "/shadow", "/usr/games": s.top + "/system", "/run": s.top + "/run", "/etc/hosts": s.top + "/hosts"}
	if s.rung == sandbox.Landlock {
		for _, path := range []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap"} {
			covers[path] = "/dev/null"
		}
	}
	script := "set -e\n"
	for _, at := range slices.Sorted(maps.Keys(covers)) {
		if _, err := os.Lstat(at); err == nil {
			script += "mount --bind " + covers[at] + " " + at + "\n"
		}
	}
	outer := []string{"unshare", "-m", "--propagation", "private", "sh", "-c", script + `exec "$@"`, "sh"}
	switch {
	case os.Getuid() != 0:
		outer = []string{"unshare", "-m", "--map-current-user", "--keep-caps", "sh", "-c", script + `exec setpriv --ambient-caps=-all --inh-caps=-all "$@"`, "sh"}
	case s.uid != 0:
		id := strconv.Itoa(s.uid)
		outer = append(outer, "setpriv", "--reuid", id, "--regid", id, "--clear-groups")
	}
	outer = append(append(append(outer, "env", "-i"), s.environment()...), argv...)
	cmd := exec.CommandContext(ctx, outer[0], outer[1:]...)
	cmd.Dir = s.ws
	cmd.WaitDelay = 5 * time.Second
	secret, err := os.Open(s.Outside + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { secret.Close() })
	cmd.ExtraFiles = []*os.File{secret}
	return cmd
}

// script is a line with all the variables that it may read, and with its host
// process if it does.
func (s *stage) script(t *testing.T, line string) string {
	t.Helper()
	if strings.Contains(line, "HOST") && s.host == nil {
		s.play(t)
	}
	return s.vars + "\n" + s.Script(line)
}

// play starts a process of the user's outside, which has the canary in its
// environment and memory.
func (s *stage) play(t *testing.T) {
	t.Helper()
	s.host = exec.Command(s.programs+"/probe", "probe", "stay", "CANARY")
	s.host.Dir, s.host.Env = s.Outside, []string{"CANARY=" + canary + strings.Repeat(".", 40)}
	s.host.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		s.host.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.uid)}
	}
	out, err := s.host.StdoutPipe()
	if err == nil {
		err = s.host.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.host.Process.Kill(); _ = s.host.Wait() })
	var address string
	if _, err := fmt.Fscanln(out, &address); err != nil {
		t.Fatal(err)
	}
	s.Host = s.host.Process.Pid
	s.vars += " ADDRESS=" + address
}

// tried runs a line by wharf sandbox run, and returns all that was said.
func (s *stage) tried(t *testing.T, flags []string, line string) string {
	t.Helper()
	args := slices.Concat([]string{"sandbox", "run", "--read", s.programs}, flags, []string{"--", "sh", "-c", s.script(t, line)})
	return s.output(t, s.wharf(t.Context(), t, args...))
}

// free runs a line unconfined.
func (s *stage) free(t *testing.T, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.output(t, s.command(ctx, t, "sh", "-c", `sh -c "$0"; :`, s.script(t, line))) // its parent is the user's too
}

func (s *stage) output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Stdin = nil
	_ = cmd.Run() // the status is the attempt's
	return out.String()
}

// snapshot is what lies around the workspace, and what is protected in it: each
// file with its mode and content.
func (s *stage) snapshot(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.top, path)
		if slices.Contains([]string{"home/.cache", "ws/.wharf/quarantine", "run/mount"}, rel) { // the last is of mount(8)
			return filepath.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if inside, ok := strings.CutPrefix(rel, "ws/"); ok {
			_, protected := sandbox.Protected(inside, false)
			if !protected && info.Mode()&(fs.ModeDevice|fs.ModeSetuid|fs.ModeSetgid) == 0 {
				return nil
			}
		}
		content := ""
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(text)
		}
		all[rel] = fmt.Sprintf("%v %q", info.Mode(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// through says what got through: what the attempt printed of the canaries or
// claims to have got, what changed around it, who was called, and who died.
func (s *stage) through(t *testing.T, out string) (all []string) {
	t.Helper()
	if strings.Contains(out, canary) {
		all = append(all, "a canary was read")
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "GOT ") {
			all = append(all, "the attempt says "+strings.TrimSpace(line))
		}
	}
	after := s.snapshot(t)
	for path, was := range s.before {
		if after[path] != was {
			all = append(all, fmt.Sprintf("%s was %s, is %s", path, was, after[path]))
		}
	}
	for path, is := range after {
		if _, was := s.before[path]; !was && path != "ws/.wharf" { // which Wharf makes
			all = append(all, fmt.Sprintf("%s is new, %s", path, is))
		}
	}
	if s.host != nil {
		var status unix.Siginfo
		err := unix.Waitid(unix.P_PID, s.Host, &status, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil || status.Signo != 0 {
			all = append(all, fmt.Sprintf("a process outside has ended (%v)", err))
		}
	}
	return append(all, s.ears.heard()...)
}
