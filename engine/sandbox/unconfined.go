package sandbox

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

// unconfined runs commands as they are, in a session of their own: the user's
// word for one run of Wharf. A process that leaves the session outlives it, as does one that
// leaves the process group where there is no terminal.
type unconfined struct{ env []string }

func (unconfined) rung() Rung { return Unconfined }

func (unconfined) gaps() []string {
	return []string{"commands are not confined at all, by --no-sandbox"}
}

func (u unconfined) launch(c Command) (*launch, error) {
	path, err := lookPath(c.Argv[0], u.env)
	if err != nil {
		return nil, err
	}
	return &launch{path: path, argv: c.Argv, env: u.env, dir: c.Dir, terminal: c.Terminal.shown()}, nil
}

func (unconfined) terminate(ch *child) { ch.signalGroup(syscall.SIGTERM) }

// kill ends the command's process group. The shell of a terminal makes a group of each job, in
// one session.
func (unconfined) kill(ch *child) {
	ch.signalGroup(syscall.SIGKILL)
	// One look may come just before a process starts another, or before one that was killed is gone.
	for tries := 0; ch.terminal && tries < 1000 && ch.killSession() > 0; tries++ {
		time.Sleep(time.Millisecond)
	}
}

// killSession kills all processes of the session that ch leads, and returns how many there
// were.
func (ch *child) killSession() (found int) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.reaped {
		return 0
	}
	leader := strconv.Itoa(ch.process.Pid)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		belongs := func() bool { return statField(pid, 6) == leader && statField(pid, 3) != "Z" }
		if err == nil && belongs() {
			found++
			signalIf(pid, syscall.SIGKILL, belongs)
		}
	}
	return found
}
