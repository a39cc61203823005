package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/sandbox/sandboxtest"
)

const canary = "canary-7f3a"

// scene is a workspace with something outside that must stay untouched.
type scene struct {
	ws, outside, secret string
	fd                  int // an open descriptor of secret that would be inherited
}

func newScene(t *testing.T) scene {
	t.Helper()
	top := folder(t)
	sc := scene{ws: filepath.Join(top, "ws"), outside: filepath.Join(top, "outside")}
	write(t, filepath.Join(sc.ws, "own.txt"), "own\n")
	sc.secret = write(t, filepath.Join(sc.outside, "secret"), canary+"\n")
	if err := os.Symlink(sc.secret, filepath.Join(sc.ws, "planted")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sc.outside, filepath.Join(sc.ws, "planted-folder")); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(sc.secret, unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	sc.fd = fd
	return sc
}

// What must not be read: each attempt aims at the scene's canary, in a file or
// in this process's environment.
func TestRefusesReading(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		t.Setenv("WHARF_TEST_TOKEN", canary)
		home := folder(t)
		t.Setenv("HOME", home)
		write(t, filepath.Join(home, ".ssh", "id"), canary)
		write(t, filepath.Join(home, "bin", "tool"), "")
		t.Setenv("PATH", filepath.Join(home, "bin")+":"+os.Getenv("PATH"))
		sc := newScene(t)
		s := open(t, rung, Config{Workspace: sc.ws})
		at := sandboxtest.Places{Outside: sc.outside, Home: home, Host: os.Getpid(), FD: sc.fd}
		for _, tt := range sandboxtest.Reading {
			t.Run(tt.Name, func(t *testing.T) {
				out, _ := sh(t, s, at.Script(tt.Line))
				if strings.Contains(out, canary) || !has(out, "tried") {
					t.Errorf("Run(%q) printed:\n%s", tt.Line, out)
				}
			})
		}
	})
}

// What must not be written: whatever the attempt says, the outside stays as it was.
func TestRefusesWriting(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		tests := append(slices.Clone(sandboxtest.Writing), sandboxtest.Attempt{Name: "in a read-only folder of tools", Line: "echo x > $TOOLS/new"})
		for _, tt := range tests {
			t.Run(tt.Name, func(t *testing.T) {
				sc := newScene(t)
				tools := folder(t)
				s := open(t, rung, Config{Workspace: sc.ws, Roots: []string{tools}})
				out, _ := sh(t, s, "TOOLS="+tools+"\n"+sandboxtest.Places{Outside: sc.outside}.Script(tt.Line))
				if !has(out, "tried") {
					t.Errorf("the attempt did not run:\n%s", out)
				}
				if text, err := os.ReadFile(sc.secret); string(text) != canary+"\n" {
					t.Errorf("the canary is %q, %v", text, err)
				}
				for dir, want := range map[string]int{sc.outside: 1, filepath.Dir(sc.ws): 2, tools: 0} {
					if entries, err := os.ReadDir(dir); len(entries) != want || err != nil {
						t.Errorf("%s holds %v, %v; want %d entries", dir, entries, err, want)
					}
				}
			})
		}
	})
}

func TestWritesWhatItMay(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		ws, cache := folder(t), filepath.Join(folder(t), "cache")
		s := open(t, rung, Config{Workspace: ws, CacheDir: cache})
		out, res := sh(t, s, `mkdir -p a/b && echo in > a/b/f && mv a/b/f g && ln g h && ln -s g l && mkfifo p &&
			echo tmp > $TMPDIR/t && echo home > $HOME/h && echo kept > $XDG_CACHE_HOME/k && echo > /dev/null && cat l`)
		if out != "in\n" || res.ExitCode != 0 || res.Rung != rung {
			t.Errorf("Run = %q, %+v", out, res)
		}
		if text, err := os.ReadFile(filepath.Join(cache, "k")); string(text) != "kept\n" {
			t.Errorf("the cache holds %q, %v", text, err)
		}
		sh(t, s, "chmod 777 $XDG_CACHE_HOME")
		open(t, rung, Config{Workspace: ws, CacheDir: cache})
		if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the cache's mode is %v, %v; want 0700", info.Mode(), err)
		}
		if out, _ := sh(t, s, "cat $TMPDIR/t $HOME/h; cat $XDG_CACHE_HOME/k"); !has(out, "kept") || has(out, "tmp") || has(out, "home") {
			t.Errorf("a later run sees %q; want the cache alone", out)
		}
	})
}

func TestReadOnlyProfile(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		ws := folder(t)
		file := write(t, filepath.Join(ws, "f"), "as it was")
		s := open(t, rung, Config{Workspace: ws, Profile: ReadOnly})
		out, _ := sh(t, s, "cat f; echo; echo x > f; echo x > new; rm -f f; mv f g; mkdir d; true > f; echo t > $TMPDIR/t && cat $TMPDIR/t")
		if !has(out, "as it was") || !has(out, "t") {
			t.Errorf("Run printed:\n%s", out)
		}
		if text, err := os.ReadFile(file); string(text) != "as it was" {
			t.Errorf("the file holds %q, %v", text, err)
		}
		if entries, _ := os.ReadDir(ws); len(entries) != 1 {
			t.Errorf("the workspace holds %v", entries)
		}
	})
}

// Nothing of the network is reached, by any kind of socket that this test can
// offer on loopback, in the file system or by an abstract name.
func TestRefusesNetwork(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		ws := folder(t)
		s := open(t, rung, Config{Workspace: ws})
		t.Chdir(ws) // a socket's path must be short
		for _, network := range []string{"tcp", "tcp6", "unix", "abstract"} {
			t.Run(network, func(t *testing.T) {
				kind, address := network, map[string]string{
					"tcp": "127.0.0.1:0", "tcp6": "[::1]:0", "unix": "s", "abstract": "@wharf-" + canary,
				}[network]
				if network == "abstract" {
					kind = "unix"
				}
				l, err := net.Listen(kind, address)
				if err != nil {
					t.Skipf("this machine has no %s: %v", network, err)
				}
				came := make(chan string, 1)
				go func() {
					if conn, err := l.Accept(); err == nil {
						came <- conn.RemoteAddr().String()
					}
					close(came)
				}()
				out, _ := sh(t, s, probe(t, "dial", kind, l.Addr().String()))
				l.Close()
				if from, ok := <-came; ok {
					t.Errorf("a connection came from %q", from)
				}
				if !strings.HasPrefix(out, "dial dial ") {
					t.Errorf("the attempt printed %q; want a refusal", out)
				}
			})
		}
	})
}

func TestRefusesDatagrams(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, rung, Config{})
		came := make(chan int, 1)
		go func() {
			n, _, _ := conn.ReadFrom(make([]byte, 10))
			came <- n
		}()
		out, _ := sh(t, s, probe(t, "dial", "udp", conn.LocalAddr().String()))
		conn.Close()
		if n := <-came; n != 0 || !strings.HasPrefix(out, "dial ") {
			t.Errorf("%d bytes came; the attempt printed %q", n, out)
		}
	})
}

// Under bubblewrap a test's server and client may talk to each other.
func TestLoopbackInsideOneRun(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		want := map[Rung]string{Bubblewrap: "loopback ok\n", Landlock: "loopback listen tcp 127.0.0.1:0: socket: operation not permitted\n"}
		if out, _ := sh(t, open(t, rung, Config{}), probe(t, "loopback")); out != want[rung] {
			t.Errorf("loopback printed %q; want %q", out, want[rung])
		}
	})
}

func TestFilter(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		want := map[string]string{
			"io_uring_setup": "ENOSYS", "clone3": "ENOSYS", "clone": "EPERM", "unshare": "EPERM", "setns": "EPERM", "keyctl": "EPERM",
			"socket inet": "EPERM", "socket inet6": "EPERM", "socket unix": "EPERM", "socket vsock": "EPERM", "socket alg": "EPERM",
			"socket packet": "EPERM", "socket route": "EPERM", "socket audit": "EPERM",
			"pair stream": "ok", "pair packet": "ok", "pair datagram": "EPERM", "pair raw": "EPERM",
		}
		if rung == Bubblewrap { // in a network namespace of their own
			want["socket inet"], want["socket inet6"], want["socket route"] = "ok", "ok", "ok"
		}
		out, _ := sh(t, open(t, rung, Config{}), probe(t, "calls"))
		for call, answer := range want {
			if !has(out, call+" "+answer) {
				t.Errorf("%s is not answered by %s:\n%s", call, answer, out)
			}
		}
	})
}

// The older versions of Landlock are used as they are: what they cannot hold,
// the filter does.
func TestOlderLandlock(t *testing.T) {
	need(t, landlockVersion() >= 3, "this kernel's Landlock is old itself: use Linux 6.2 or later")
	for abi := 1; abi <= landlockVersion(); abi++ {
		t.Run(fmt.Sprintf("version %d", abi), func(t *testing.T) {
			tools := folder(t)
			file := write(t, filepath.Join(tools, "f"), canary)
			s, err := New(Config{Workspace: folder(t), Roots: []string{tools, filepath.Dir(self(t))}})
			if err != nil {
				t.Fatal(err)
			}
			s.bwrapPaths, s.landlock = nil, func() int { return abi }
			out, _ := sh(t, s, "cat "+file+"; "+probe(t, "truncate", file)+"; echo more >> own && true > own && echo done")
			if text, err := os.ReadFile(file); string(text) != canary {
				t.Errorf("the canary is %q, %v:\n%s", text, err, out)
			}
			if !strings.HasPrefix(out, canary) || !has(out, "done") {
				t.Errorf("Run printed:\n%s", out)
			}
		})
	}
}

func TestPrivilegesAreGone(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		out, _ := sh(t, open(t, rung, Config{}), probe(t, "privileges"))
		bounding := "bounding 0 nonew 1"
		if rung == Landlock && os.Getuid() != 0 {
			bounding = "nonew 1" // an ordinary user cannot lower the bound, nor ever reach it
		}
		if !has(out, "effective 0 0 permitted 0 0") || !strings.Contains(out, bounding) {
			t.Errorf("privileges inside:\n%s", out)
		}
	})
}

func TestNoDescriptorsNoTerminal(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		newScene(t) // which leaves a descriptor open
		if out, _ := sh(t, open(t, rung, Config{}), probe(t, "descriptors")); out != "terminal false\ncontrolling terminal false\n" {
			t.Errorf("inside:\n%s", out)
		}
	})
}

func TestSignalsStayInside(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		if rung == Landlock && landlockVersion() < 6 {
			t.Skip("this kernel's Landlock does not hold signals: use Linux 6.12 or later")
		}
		out, _ := sh(t, open(t, rung, Config{}), probe(t, "signal", fmt.Sprint(os.Getpid())))
		refusals := []string{"signal no such process", "signal operation not permitted"}
		if (!has(out, refusals[0]) && !has(out, refusals[1])) || !has(out, "group ok") {
			t.Errorf("signals inside:\n%s", out)
		}
	})
}

// The file system that bubblewrap builds is closed but for the places meant to
// be written, and these have a size.
func TestBwrapFileSystem(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	s := open(t, Bubblewrap, Config{})
	out, _ := sh(t, s, "for d in / /etc /dev /usr /home /proc/sys/kernel /etc/ssl; do touch $d/new && echo open $d; done 2>/dev/null; "+
		"grep ' /proc/sys ' /proc/self/mountinfo; ls / | tr '\\n' ' '; echo; cat /etc/passwd; hostname; df -k --output=size /tmp /home/agent /dev/shm")
	if out, _ := sh(t, s, "cat /proc/keys /proc/key-users 2>&-; echo tried"); out != "tried\n" {
		t.Errorf("of the user's keys is seen:\n%s", out)
	}
	for _, line := range []string{"sandbox", "   262144", "    65536", "agent:x:1000:1000:agent:/home/agent:/bin/sh"} {
		if !has(out, line) {
			t.Errorf("there is no line %q", line)
		}
	}
	if strings.Contains(out, "open ") || !strings.Contains(out, "/proc/sys ro,") {
		t.Error("something is writable that must not be")
	}
	for _, dir := range []string{" boot ", " mnt ", " opt ", " run ", " srv ", " sys ", " var "} {
		if strings.Contains(out, dir) {
			t.Errorf("%q can be seen", dir)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// Bubblewrap never makes a place to mount in a folder that commands can write,
// where an earlier one may have put a link: the user's home may be called as the
// one inside.
func TestNothingIsMountedInTheCache(t *testing.T) {
	for ws, want := range map[string]bool{"/home/agent/project": true, insideCache + "/project": false} {
		b := bwrap{sandbox: &Sandbox{cfg: Config{Workspace: ws, CacheDir: "/cache"}}}
		args := string(zeroEnded(b.args(Command{Dir: ws, Profile: WorkspaceWrite})))
		if got := strings.Contains(args, "--bind\x00/cache\x00"+insideCache+"\x00"); got != want {
			t.Errorf("with the workspace %q the cache is mounted: %v; want %v", ws, got, want)
		}
	}
}

// Of /etc nothing is mapped that keeps keys on some system.
func TestEtcHoldsNoKeys(t *testing.T) {
	for _, file := range etcFiles {
		for _, secret := range []string{"ssl/private", "pki/tls/private", "pki/nssdb", "shadow", "ssh", "sudoers", "gitconfig"} {
			if within(secret, file) {
				t.Errorf("/etc/%s holds /etc/%s", file, secret)
			}
		}
	}
}

// What PATH names in the workspace, a command may replace by a link to a folder
// outside; that folder must not become one of the toolchains of later runs.
func TestLinkInPathShowsNothing(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		home := folder(t)
		ws := filepath.Join(home, "ws")
		write(t, filepath.Join(ws, "bin", "tool"), "")
		secret := write(t, filepath.Join(home, "private", "secret"), canary)
		t.Setenv("HOME", home)
		t.Setenv("PATH", filepath.Join(ws, "bin")+":"+os.Getenv("PATH"))
		if _, res := sh(t, open(t, rung, Config{Workspace: ws}), "rm -r bin && ln -s ../private bin"); res.ExitCode != 0 {
			t.Fatalf("the link could not be planted: %+v", res)
		}
		out, _ := sh(t, open(t, rung, Config{Workspace: ws}), "cat "+secret+" bin/secret; echo; echo tried")
		if strings.Contains(out, canary) || !has(out, "tried") {
			t.Errorf("Run printed:\n%s", out)
		}
	})
}
