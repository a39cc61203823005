package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/egress"
)

// audited takes down what a sandbox's proxy checks.
type audited struct {
	mu     sync.Mutex
	checks []string
}

func (a *audited) add(c egress.Check) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks = append(a.checks, fmt.Sprintf("%s:%d %v", c.Host, c.Port, c.Allowed))
	return nil
}

// greeter is a server outside, on the host's loopback.
func greeter(t *testing.T, secure bool) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) { fmt.Fprint(out, "hello from outside") }))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func allowed(t testing.TB, texts ...string) (all []egress.Entry) {
	t.Helper()
	for _, text := range texts {
		e, err := egress.ParseEntry(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func needBwrap(t *testing.T) {
	t.Helper()
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
}

// A command reaches the hosts of the list by the proxy, and nothing else in any way.
func TestNetwork(t *testing.T) {
	needBwrap(t)
	for _, profile := range []Profile{WorkspaceWrite, ReadOnly} {
		t.Run(string(profile), func(t *testing.T) {
			plain, secure, closed := greeter(t, false), greeter(t, true), greeter(t, false)
			var record audited
			s := open(t, Bubblewrap, Config{Profile: profile, Network: Network{Allow: allowed(t, plain, secure), Audit: record.add}})
			out, res := sh(t, s, strings.Join([]string{
				probe(t, "fetch", "http_proxy", "http://"+plain, "http://"+closed, "http://"+closed+"/again", "http://localhost:1/"),
				probe(t, "fetch", "HTTPS_PROXY", "https://"+secure, "https://"+closed),
				probe(t, "dial", "tcp", plain), probe(t, "dial", "tcp", "1.1.1.1:443"), probe(t, "dial", "udp", "1.1.1.1:53"),
				probe(t, "loopback"), probe(t, "descriptors"), "getent hosts example.com || echo no names",
			}, "; "))
			want := []string{
				"200 hello from outside", "403 " + closed + " is not on this run's network allow-list", "403 " + closed + " is not on this run's network allow-list",
				"403 localhost:1 is not on this run's network allow-list", "200 hello from outside", "error Forbidden",
				"dial dial tcp " + plain + ": connect: connection refused", "dial dial tcp 1.1.1.1:443: connect: network is unreachable",
				"dial dial udp 1.1.1.1:53: connect: network is unreachable", "loopback ok", "terminal false", "controlling terminal false", "no names", "",
			}
			if got := strings.Split(out, "\n"); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", out, strings.Join(want, "\n"))
			}
			wantNotes := []string{
				closed + " is not on this run's network allow-list; what would allow it: sandbox.allow_net (--allow-net)",
				"localhost:1 is not on this run's network allow-list; what would allow it: sandbox.allow_net (--allow-net)",
			}
			if !slices.Equal(res.Notes, wantNotes) {
				t.Errorf("notes %q; want %q", res.Notes, wantNotes)
			}
			wantChecks := []string{plain + " true", closed + " false", closed + " false", "localhost:1 false", secure + " true", closed + " false"}
			if !slices.Equal(record.checks, wantChecks) {
				t.Errorf("recorded %q; want %q", record.checks, wantChecks)
			}
		})
	}
}

// Where no host is allowed, there is nothing of all that.
func TestNoNetworkNoProxy(t *testing.T) {
	needBwrap(t)
	out, res := sh(t, open(t, Bubblewrap, Config{}), "ls "+boxPath+"; env | grep -i proxy=; "+probe(t, "dial", "tcp", proxyAddress))
	want := "ls: cannot access '/.box': No such file or directory\nGOPROXY=off\ndial dial tcp 127.0.0.1:3128: connect: connection refused\n"
	if out != want || len(res.Notes) != 0 {
		t.Errorf("got %q, notes %q", out, res.Notes)
	}
}

// A person may let one command reach a host.
func TestNetworkOfOneCommand(t *testing.T) {
	needBwrap(t)
	at := greeter(t, false)
	s := open(t, Bubblewrap, Config{})
	var out strings.Builder
	res, err := s.Run(t.Context(), Command{Line: probe(t, "fetch", "ALL_PROXY", "http://"+at), Stdout: &out, Stderr: &out, Network: allowed(t, at)})
	if err != nil || out.String() != "200 hello from outside\n" || res.ExitCode != 0 {
		t.Errorf("Run = %+v, %v: %s", res, err, out.String())
	}
	if out, _ := sh(t, s, "env | grep http_proxy || echo none"); out != "none\n" {
		t.Errorf("the next command has %q", out)
	}
}

// Full access has the host's own network, and no proxy; nor is anything of it
// put into the host's files.
func TestFullAccessHasNoProxy(t *testing.T) {
	needBwrap(t)
	home(t)
	s := open(t, Bubblewrap, Config{Profile: FullAccess, Network: Network{Allow: allowed(t, "example.com")}})
	out, res := sh(t, s, "env | grep -i _proxy=; ls "+boxPath+" 2>&- || echo no box")
	if _, err := os.Lstat(boxPath); out != "no box\n" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Run = %q, %+v; %s: %v", out, res, boxPath, err)
	}
}

// The bytes of a run have an end, which is told.
func TestNetworkBudget(t *testing.T) {
	needBwrap(t)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) { out.Write(make([]byte, 3<<20)) }))
	defer server.Close()
	s := open(t, Bubblewrap, Config{Network: Network{Allow: allowed(t, server.Listener.Addr().String()), Budget: 1 << 20}})
	_, res := sh(t, s, probe(t, "fetch", "http_proxy", server.URL)+" >&-")
	if want := []string{"this run has used up its 1 MiB of network traffic; the limit is sandbox.limits.network"}; !slices.Equal(res.Notes, want) {
		t.Errorf("notes %q; want %q", res.Notes, want)
	}
}

func TestProxyEnvironment(t *testing.T) {
	for list, want := range map[string]string{
		"api.example.com":                "NO_PROXY=localhost,127.0.0.1,::1",
		"api.example.com 127.0.0.1:8080": "NO_PROXY=localhost,::1",
		"[::1]:8080":                     "NO_PROXY=localhost,127.0.0.1",
	} {
		if env := proxyEnvironment(allowed(t, strings.Fields(list)...)); !slices.Contains(env, want) {
			t.Errorf("with %s the environment is %q; want %s", list, env, want)
		}
	}
}

// The way that a command begins does not show: its program, its arguments, its
// status, and the sandbox's word where there is no such program.
func TestNetworkBeginsAsEver(t *testing.T) {
	needBwrap(t)
	s := open(t, Bubblewrap, Config{Network: Network{Allow: allowed(t, "example.com")}})
	out, res := sh(t, s, `echo "$0 $#"; exit 7`)
	if out != "/bin/sh 0\n" || res.ExitCode != 7 {
		t.Errorf("Run = %q, %+v", out, res)
	}
	for name, want := range map[string]string{
		"no-such-program":      `run command: program "no-such-program" cannot be run in the sandbox: not found on its PATH`,
		"/etc/passwd":          `run command: program "/etc/passwd" cannot be run in the sandbox: permission denied`,
		"/bin/no-such-program": `run command: program "/bin/no-such-program" cannot be run in the sandbox: no such file or directory`,
	} {
		_, err := s.Run(t.Context(), Command{Argv: []string{name}})
		if err == nil || err.Error() != want || errors.Is(err, ErrUnavailable) {
			t.Errorf("Run(%s) = %v; want %s", name, err, want)
		}
	}
	// Started by the command itself, Wharf's program hands nothing over.
	if out, res := sh(t, s, boxPath+" echo ran; "+boxPath+"; "+boxPath+" run hello"); out != "" || res.ExitCode != 1 {
		t.Errorf("by itself it printed %q, %+v", out, res)
	}
}

// At a terminal of its own a command has its network too.
func TestNetworkAtATerminal(t *testing.T) {
	needBwrap(t)
	at := greeter(t, false)
	s := open(t, Bubblewrap, Config{Network: Network{Allow: allowed(t, at)}})
	var out strings.Builder
	res, err := s.Run(t.Context(), Command{
		Line: "test -t 0 && " + probe(t, "fetch", "http_proxy", "http://"+at), Stdout: &out, Terminal: Terminal{Rows: 24, Columns: 80},
	})
	if err != nil || !strings.Contains(out.String(), "200 hello from outside") {
		t.Errorf("Run = %+v, %v: %s", res, err, out.String())
	}
}

// What a command leaves connected is closed when it ends, and its time limit
// holds while a server does not answer.
func TestNetworkEndsWithTheCommand(t *testing.T) {
	needBwrap(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			for err == nil {
				_, err = conn.Read(make([]byte, 1<<10))
			}
		}
		gone <- err
	}()
	at := l.Addr().String()
	s := open(t, Bubblewrap, Config{Network: Network{Allow: allowed(t, at)}})
	var out strings.Builder
	res, err := s.Run(t.Context(), Command{
		Line: probe(t, "fetch", "http_proxy", "http://"+at) + " & " + probe(t, "fetch", "http_proxy", "http://"+at), Stdout: &out, Stderr: &out, Timeout: time.Second,
	})
	if err != nil || !res.TimedOut {
		t.Errorf("Run = %+v, %v: %s", res, err, out.String())
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the server is still connected")
	}
}

// Under Landlock an allow-list cannot be held: the network stays closed, and
// that is said.
func TestNetworkUnderLandlock(t *testing.T) {
	need(t, landlockVersion() > 0, "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK")
	at := greeter(t, false)
	s := open(t, Landlock, Config{Network: Network{Allow: allowed(t, at)}})
	out, _ := sh(t, s, "env | grep -i proxy=; "+probe(t, "dial", "tcp", at))
	if want := "GOPROXY=off\ndial dial tcp " + at + ": socket: operation not permitted\n"; out != want {
		t.Errorf("got %q; want %q", out, want)
	}
	if !strings.HasSuffix(s.Notice(), "In it "+networkGap+".") || !strings.Contains(s.Explain(t.Context()), networkGap) {
		t.Errorf("notice %q, and\n%s", s.Notice(), s.Explain(t.Context()))
	}
	res, err := open(t, Landlock, Config{}).Run(t.Context(), Command{Line: "true", Network: allowed(t, at)})
	if err != nil || !slices.Equal(res.Notes, []string{networkGap}) {
		t.Errorf("Run = %+v, %v", res, err)
	}
}

func TestExplainsTheNetwork(t *testing.T) {
	needBwrap(t)
	text := open(t, Bubblewrap, Config{Network: Network{Allow: allowed(t, "api.example.com", "*.example.org:8443")}}).Explain(t.Context())
	for _, want := range []string{"network      api.example.com, *.example.org:8443, by Wharf's proxy at 127.0.0.1:3128; else", " HTTPS_PROXY"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// A program that was replaced while it runs does not let another begin in a
// command's place.
func TestReplacedProgramOpensNoNetwork(t *testing.T) {
	needBwrap(t)
	text, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder(t), "program")
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{
		"replaced": "Sandbox unavailable: " + program + " was replaced while it runs: start Wharf again. The command was not run.\n",
		"gone":     "Sandbox unavailable: this program's own file is gone: start Wharf again. The command was not run.\n",
	} {
		if err := os.WriteFile(program, text, 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "probe", "replace", program, how, folder(t)).CombinedOutput()
		if string(out) != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", how, out, err, want)
		}
		_ = os.Remove(program)
	}
}

// Only the socket that was to come is taken, whoever sends it.
func TestHandoverTakesNoOther(t *testing.T) {
	listen := func(address string) int {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return int(file.Fd())
	}
	elsewhere := listen("127.0.0.1:0")
	quiet, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(quiet)
	file, err := os.Open(write(t, filepath.Join(folder(t), "f"), ""))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tests := []struct {
		name string
		text string
		fds  []int
		want string
	}{
		{"a listener elsewhere", "x", []int{elsewhere}, "run command: its way to the network broke down: what came listens elsewhere"},
		{"a socket that does not listen", "x", []int{quiet}, "run command: its way to the network broke down: what came does not listen"},
		{"a file", "x", []int{int(file.Fd())}, "run command: its way to the network broke down: what came does not listen"},
		{"two", "x", []int{quiet, elsewhere}, "run command: its way to the network broke down: there is none in the message"},
		{"none", "x", nil, "run command: the process that opens the way to the network broke down"},
		{"a reason", `{"failure":"no luck"}`, nil, "run command: no luck"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, inside, err := newHandover(egress.ProxyConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer h.close()
			var rights []byte
			if tt.fds != nil {
				rights = unix.UnixRights(tt.fds...)
			}
			if err := unix.Sendmsg(int(inside.Fd()), []byte(tt.text), rights, nil, 0); err != nil {
				t.Fatal(err)
			}
			inside.Close()
			if err := h.failed(); err == nil || err.Error() != tt.want {
				t.Errorf("failed = %v; want %s", err, tt.want)
			}
			if notes := h.refused(); notes != nil {
				t.Errorf("refused = %q", notes)
			}
		})
	}
}
