package sandbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/egress"
)

// attempt is what a probe does inside a sandbox.
func attempt(name string, args []string) int {
	switch name {
	case "hold":
		return hold(args[0])
	case "dial":
		dial(args[0], args[1])
	case "fetch":
		fetch(args[0], args[1:])
	case "replace":
		replaceSelf(args[0], args[1], args[2])
	case "deep":
		n, _ := strconv.Atoi(args[1])
		tell("deep", deepen(args[0], n))
	case "truncate":
		truncateAll(args[0])
	case "calls":
		calls()
	case "refused":
		refusedCalls()
	case "judged":
		judgedCalls()
	case "privileges":
		privileges()
	case "descriptors":
		descriptors()
	case "loopback":
		loopback()
	case "signal":
		pid, _ := strconv.Atoi(args[0])
		tell("signal", unix.Kill(pid, 0))
		tell("group", unix.Kill(0, 0))
	case "exchange":
		tell("exchange", unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE))
	case "stay":
		return stay(os.Getenv(args[0]))
	case "reach":
		return reach(args[0], args[1:])
	case "renew":
		renew(args[0])
	case "scope":
		scope()
	case "run":
		return runAndHang(Rung(args[0]), args[1])
	case "once":
		return runOnce(Rung(args[0]), args[1])
	case "begin":
		return beginAndHang(args[0])
	default:
		fmt.Println("unknown probe", name)
		return 2
	}
	return 0
}

// hold locks a file and stays, whatever it is asked.
func hold(path string) int {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	tell("hold", err)
	if err == nil {
		time.Sleep(5 * time.Minute) // longer than any test; no stray is left for good
	}
	return 1
}

func dial(network, address string) {
	conn, err := net.DialTimeout(network, address, 2*time.Second)
	if err == nil {
		_, err = conn.Write([]byte("out"))
	}
	tell("dial", err)
}

// fetch gets URLs, one after the other, by the proxy that the environment names,
// whatever it says of addresses that need none.
func fetch(proxy string, urls []string) {
	at, err := url.Parse(os.Getenv(proxy))
	if err != nil || at.Host == "" {
		fmt.Println("no proxy", err)
		return
	}
	client := http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	for _, u := range urls {
		r, err := client.Get(u)
		if err != nil {
			fmt.Println("error", errors.Unwrap(err))
			continue
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.StatusCode, strings.TrimSpace(string(body)))
	}
}

// replaceSelf does away with its own program, and then runs a command that is to
// have a network.
func replaceSelf(program, how, workspace string) {
	err := os.Remove(program)
	if err == nil && how == "replaced" {
		err = os.WriteFile(program, nil, 0o755)
	}
	entry, _ := egress.ParseEntry("example.com")
	s, bad := New(Config{Workspace: workspace, Network: Network{Allow: []egress.Entry{entry}}})
	if err = errors.Join(err, bad); err == nil {
		_, err = s.Run(context.Background(), Command{Line: "echo ran", Stdout: os.Stdout})
	}
	fmt.Println(err)
}

// deepen makes n folders, one in the other.
func deepen(dir string, n int) error {
	err := os.Chdir(dir)
	for ; n > 0 && err == nil; n-- {
		if err = os.Mkdir("d", 0o700); err == nil {
			err = os.Chdir("d")
		}
	}
	return err
}

// truncateAll tries every way to empty a file that may only be read.
func truncateAll(path string) {
	tell("truncate", unix.Truncate(path, 0))
	for name, mode := range map[string]int{"read": unix.O_RDONLY, "neither": unix.O_ACCMODE, "write": unix.O_WRONLY} {
		_, err := unix.Open(path, mode|unix.O_TRUNC, 0)
		tell(name, err)
	}
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_TRUNC}
	_, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	tell("openat2", err)
}

// calls makes system calls that the filter answers.
func calls() {
	var zero [256]byte
	at := uintptr(unsafe.Pointer(&zero))
	raw("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, at, 0)
	raw("clone3", unix.SYS_CLONE3, 0, 0, 0)
	raw("clone", unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0)
	raw("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
	raw("setns", unix.SYS_SETNS, 0, 0, 0)
	raw("keyctl", unix.SYS_KEYCTL, 0, 0, 0)
	for _, s := range []struct {
		name             string
		domain, typ, how uintptr
	}{
		{"inet", unix.AF_INET, unix.SOCK_STREAM, 0},
		{"inet6", unix.AF_INET6, unix.SOCK_DGRAM, 0},
		{"unix", unix.AF_UNIX, unix.SOCK_STREAM, 0},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		{"packet", unix.AF_PACKET, unix.SOCK_DGRAM, 0},
		{"route", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
		{"audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT},
	} {
		raw("socket "+s.name, unix.SYS_SOCKET, s.domain, s.typ, s.how)
	}
	for name, typ := range map[string]int{"stream": unix.SOCK_STREAM, "datagram": unix.SOCK_DGRAM, "raw": unix.SOCK_RAW, "packet": unix.SOCK_SEQPACKET} {
		_, err := unix.Socketpair(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			fmt.Println("pair", name, "ok")
			continue
		}
		fmt.Println("pair", name, unix.ErrnoName(err.(unix.Errno)))
	}
}

// privileges tells what this process has of them.
func privileges() {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		tell("capget", err)
	}
	bounding := 0
	for c := range uintptr(64) {
		if r, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, c, 0); errno == 0 && r == 1 {
			bounding++
		}
	}
	noNew, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	fmt.Println("effective", caps[0].Effective, caps[1].Effective, "permitted", caps[0].Permitted, caps[1].Permitted)
	fmt.Println("bounding", bounding, "nonew", noNew)
}

// descriptors lists what is open besides the three streams and what Go's own
// runtime opens for itself.
func descriptors() {
	for fd := 3; fd < 1024; fd++ {
		var st unix.Stat_t
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 && unix.Fstat(fd, &st) == nil {
			fmt.Println("open", fd)
		}
	}
	_, err := unix.IoctlGetTermios(0, unix.TCGETS)
	fmt.Println("terminal", err == nil)
	tty, err := os.Open("/dev/tty")
	fmt.Println("controlling terminal", tty != nil && err == nil)
}

// renew leaves 30 processes that each start another in their place and end, as
// fast as they can, while the file at path is there.
func renew(path string) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		panic(err)
	}
	at := uintptr(unsafe.Pointer(name))
	fork := func() uintptr {
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		return pid
	}
	for range 30 {
		if fork() != 0 {
			continue
		}
		for { // without Go's runtime, which is not made for a fork
			if pid := fork(); pid != 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
			if _, _, gone := unix.RawSyscall6(unix.SYS_FACCESSAT, ^uintptr(99), at, 0, 0, 0, 0); gone != 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
	}
	runtime.KeepAlive(name)
}

// scope tells whom signals reach once they are scoped.
func scope() {
	runtime.LockOSThread()
	fmt.Println("scoped", scopeSignals(landlockVersion()))
	tell("parent", unix.Kill(os.Getppid(), 0))
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	tell("child", errors.Join(err, unix.Kill(child.Process.Pid, 0), in.Close(), child.Wait()))
}

// loopback is a server and its client in one run.
func loopback() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		go func() { _, _ = l.Accept() }()
		_, err = net.Dial("tcp", l.Addr().String())
	}
	tell("loopback", err)
}

// runAndHang is a supervisor that a test kills: it runs a command that holds a
// lock, and waits for it.
func runAndHang(rung Rung, workspace string) int {
	name, terminal := strings.CutSuffix(string(rung), " at a terminal")
	program, err := os.Executable()
	if err != nil {
		return 2
	}
	s, err := New(Config{Workspace: workspace, Roots: []string{filepath.Dir(program)}})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	switch Rung(name) {
	case Landlock:
		s.bwrapPaths = nil
	case "untied":
		by, err := s.choose(context.Background())
		if err != nil {
			fmt.Println(err)
			return 2
		}
		s.chosen = untiedBwrap{by.(bwrap)}
	}
	line := "setsid " + program + " probe hold left & " + program + " probe hold main"
	c := Command{Line: line, Stdout: os.Stdout, Stderr: os.Stderr, Timeout: time.Minute}
	if terminal {
		c.Line, c.Terminal = "stty -onlcr; "+line, Terminal{24, 80}
	}
	_, err = s.Run(context.Background(), c)
	fmt.Println(err)
	return 1
}

// untiedBwrap is a bubblewrap whose command has undone, by tracing the first
// process inside, what ties it to Wharf.
type untiedBwrap struct{ bwrap }

func (b untiedBwrap) launch(c Command) (*launch, error) {
	l, err := b.bwrap.launch(c)
	if err != nil {
		return nil, err
	}
	args := slices.DeleteFunc(b.args(c), func(arg string) bool { return arg == "--die-with-parent" })
	file, err := dataFile("args", zeroEnded(args))
	if err != nil {
		return nil, err
	}
	l.argv[0] = "renamed"
	file, l.files[0] = l.files[0], file
	return l, file.Close()
}

// beginAndHang is a supervisor that a test kills while bubblewrap is building
// the file system.
func beginAndHang(workspace string) int {
	s, err := New(Config{Workspace: workspace})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	by, err := s.choose(context.Background())
	if err != nil {
		fmt.Println(err)
		return 2
	}
	s.chosen = slowBwrap{by.(bwrap), filepath.Join(workspace, "fifo")}
	_, err = s.Run(context.Background(), Command{Line: "echo ran > ran", Timeout: time.Minute})
	fmt.Println(err)
	return 1
}

// slowBwrap is a bubblewrap that waits for a file of its file system.
type slowBwrap struct {
	bwrap
	fifo string
}

func (b slowBwrap) launch(c Command) (*launch, error) {
	l, err := b.bwrap.launch(c)
	if err != nil {
		return nil, err
	}
	fifo, err := os.OpenFile(b.fifo, os.O_RDWR, 0) // has a writer for as long as it has a reader
	if err != nil {
		return nil, err
	}
	l.files[fdPasswd-fdArgs], fifo = fifo, l.files[fdPasswd-fdArgs]
	return l, fifo.Close()
}
