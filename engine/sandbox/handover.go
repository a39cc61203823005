package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/egress"
)

// A command that may reach some hosts still has a network of its own with
// nothing in it. Wharf's own program, which bubblewrap starts inside in the
// command's place, opens a listening socket there, sends it out by a pair of
// sockets, and becomes the command. Wharf accepts on it from outside, as a proxy.
// So no process is left inside for the proxy, the filter needs no exception for
// Unix sockets, and there is no path to protect.

// boxPath is where Wharf's program is inside, and the name that it is started by.
const boxPath = "/.box"

// handover is the end of the pair that Wharf holds, and what came of it.
type handover struct {
	pair *net.UnixConn
	over chan struct{} // closed when nothing more can come; then the rest is set

	proxy   *egress.Proxy // nil if there was no socket
	failure error         // why the command was not started, or has no way out; nil if all went well
}

// newHandover returns a handover and the end of the pair for the inside.
func newHandover(cfg egress.ProxyConfig) (*handover, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	ours, inside := os.NewFile(uintptr(fds[0]), "pair"), os.NewFile(uintptr(fds[1]), "pair")
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	pair, ok := conn.(*net.UnixConn)
	if err != nil || !ok {
		_ = inside.Close()
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	h := &handover{pair: pair, over: make(chan struct{})}
	go h.receive(cfg)
	return h, inside, nil
}

// receive takes what comes by the pair: the socket, and then the end, or why the
// command could not be started.
func (h *handover) receive(cfg egress.ProxyConfig) {
	defer close(h.over)
	text, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, count, _, _, err := h.pair.ReadMsgUnix(text, rights)
		if err != nil {
			return
		}
		if count > 0 && h.proxy == nil {
			l, err := listenerIn(rights[:count])
			if err != nil {
				h.failure = fmt.Errorf("run command: its way to the network broke down: %w", err)
				return
			}
			h.proxy = egress.StartProxy(l, cfg)
			continue
		}
		var line statusLine
		if json.Unmarshal(text[:n], &line) == nil && line.Failure != "" {
			h.failure = &notStarted{reason: line.Failure, program: line.Program}
		}
		return
	}
}

// box returns the arguments that show the command Wharf's own program, which
// opens its way to the network; none if it has none.
func (b bwrap) box(c Command) ([]string, error) {
	if len(b.sandbox.openTo(c)) == 0 {
		return nil, nil
	}
	program, err := ownProgram()
	return []string{"--ro-bind", program, boxPath}, err
}

// openNetwork opens a way to some hosts: Wharf's own program begins in the
// command's place, see handover.
func (b bwrap) openNetwork(l *launch, open []egress.Entry) error {
	cfg := b.sandbox.cfg.Network
	network, inside, err := newHandover(egress.ProxyConfig{Allow: open, Audit: cfg.Audit, Budget: cfg.Budget})
	if err != nil {
		return err
	}
	l.network, l.files = network, append(l.files, inside)
	const before = 4 // the mark, and bubblewrap's own words
	l.argv = slices.Insert(l.argv, before, boxPath)
	l.env = append(l.env, proxyEnvironment(open)...)
	return nil
}

// listenerIn returns the socket that came with a message, if it is the one that
// was to come.
func listenerIn(rights []byte) (net.Listener, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, errors.New("there is none in the message")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("there is none in the message")
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer func() { _ = file.Close() }()
	listens, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || listens != 1 {
		return nil, errors.New("what came does not listen")
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	if l.Addr().Network() != "tcp" || l.Addr().String() != proxyAddress {
		_ = l.Close()
		return nil, errors.New("what came listens elsewhere")
	}
	return l, nil
}

// failed says why the command, whose process has ended, was not started, or nil.
func (h *handover) failed() error {
	if h == nil {
		return nil
	}
	select {
	case <-h.over:
	case <-time.After(time.Second):
		return &notStarted{reason: "the process that opens the way to the network did not end"}
	}
	if h.failure != nil {
		return h.failure
	}
	if h.proxy == nil {
		return &notStarted{reason: "the process that opens the way to the network broke down"}
	}
	return nil
}

// close ends the proxy and all its connections. The refusals are those of the
// whole run.
func (h *handover) close() {
	_ = h.pair.Close()
	<-h.over
	if h.proxy != nil {
		h.proxy.Close()
	}
}

// refused tells of the hosts that the command was kept from.
func (h *handover) refused() []string {
	if h == nil {
		return nil
	}
	select {
	case <-h.over:
	default:
		return nil
	}
	if h.proxy == nil {
		return nil
	}
	return refusals(h.proxy)
}

// ownProgram returns the path of this program, which must be what runs: a newer
// one would not know how to talk to it.
func ownProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	there, err := os.Stat(path)
	if err != nil {
		return "", errors.New("this program's own file is gone: start Wharf again")
	}
	running, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", err
	}
	if !os.SameFile(there, running) {
		return "", fmt.Errorf("%s was replaced while it runs: start Wharf again", path)
	}
	return path, nil
}

// becomeBoxed is the other side, inside: it hands the socket over and becomes
// the command argv. It returns only when that failed, after it has said why.
func becomeBoxed(argv []string) int {
	line := statusLine{}
	err := sendListener(fdNetwork)
	if err == nil {
		line.Program = true
		var program string
		if program, err = lookPath(argv[0], os.Environ()); err == nil {
			// The pair's end is closed by the call that makes this the command.
			err = cannotRun(argv[0], syscall.Exec(program, argv, os.Environ()).Error())
		}
	}
	line.Failure = err.Error()
	if nothing, ok := errors.AsType[*notStarted](err); ok {
		line.Failure = nothing.reason
	}
	text, _ := json.Marshal(line)
	_, _ = unix.Write(fdNetwork, text)
	return 1
}

// sendListener opens the proxy's socket and sends it by the descriptor pair.
func sendListener(pair int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: proxyPort}
		err = unix.Bind(fd, at)
	}
	if err == nil {
		err = unix.Listen(fd, 128)
	}
	if err == nil {
		err = unix.Sendmsg(pair, []byte{0}, unix.UnixRights(fd), nil, 0)
	}
	if err != nil {
		return fmt.Errorf("open the way to the network: %w", err)
	}
	return unix.Close(fd)
}
