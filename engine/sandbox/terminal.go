package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is the size of a command's own terminal; zero means that it has none.
// The terminal is made for the command: the engine holds its other end, and the
// command can reach no other, the user's least of all.
type Terminal struct{ Rows, Columns int }

const (
	maxSide    = 1000
	endOfInput = 4 // Ctrl-D, as terminals begin
)

func (t Terminal) shown() bool { return t != Terminal{} }

// takeTerminal stands in front of a program that bubblewrap runs: it is in a session that
// its init leads, which has no terminal. It needs one of its own to take the terminal
// for its own; else there are no Ctrl-C, no /dev/tty and no jobs.
var takeTerminal = []string{
	"/bin/sh", "-c",
	`if command -v setsid >/dev/null; then exec setsid -c "$@"; fi; echo "[no Ctrl-C and no jobs here: setsid is not installed]"; exec "$@"`, "sh",
}

// openTerminal makes the streams of c a terminal.
func (s *streams) openTerminal(c Command) error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("make a terminal: %w", err)
	}
	s.terminal, s.in = true, master
	s.pumps = []*pump{{from: master, to: tee(c.Stdout, s.said)}}
	s.childIn, err = openSlave(master, c.Terminal)
	if err != nil {
		return fmt.Errorf("make a terminal: %w", err)
	}
	s.childOut, s.childErr = s.childIn, s.childIn
	return nil
}

// openSlave returns the command's end of a terminal.
func openSlave(master *os.File, size Terminal) (*os.File, error) {
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd uintptr
	failed := raw.Control(func(m uintptr) {
		if err = unix.IoctlSetPointerInt(int(m), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		winsize := unix.Winsize{Row: uint16(size.Rows), Col: uint16(size.Columns)}
		if err = unix.IoctlSetWinsize(int(m), unix.TIOCSWINSZ, &winsize); err != nil {
			return
		}
		// Not by its name, which may be another's in a namespace of Wharf's own.
		var errno syscall.Errno
		if fd, _, errno = unix.Syscall(unix.SYS_IOCTL, m, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC); errno != 0 {
			err = errno
		}
	})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(fd, "terminal"), nil
}

// hangUp takes away the terminal, for which programs end that mind no request,
// shells among them. Streams that are none stay.
func (s *streams) hangUp() {
	if s.terminal {
		_ = s.in.Close()
	}
}
