package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// report is what bubblewrap, or our own monitor, tells of a command by a pipe
// that the command cannot reach: the side channel that tells "could not start"
// from "failed".
type report struct {
	ended chan struct{}       // the pipe was read to its end
	known chan struct{}       // pid is known, or will not be; closed by announce
	told  func(pid int) error // is told pid; may be nil. An error is why nothing runs

	once  sync.Once // for announce
	mu    sync.Mutex
	pid   int      // of the first process in the sandbox, as the host sees it
	whole identity // the same, which ends when all in its namespace has
	final final
}

// final is what became of the command.
type final struct {
	exited  bool
	code    int
	failure string // why nothing was run
	program bool   // the failure is that the command's own program could not be run
}

// statusLine is one document on the pipe; the first two are bubblewrap's.
type statusLine struct {
	ChildPID *int   `json:"child-pid,omitempty"`
	ExitCode *int   `json:"exit-code,omitempty"`
	Failure  string `json:"failure,omitempty"`
	Program  bool   `json:"program,omitempty"`
}

const longestReport = 64 << 10

// readReport reads from f in the background until its end; bubblewrap waits
// for ever if nobody does. A nil f has nothing to tell.
func readReport(f *os.File, told func(pid int) error) *report {
	r := &report{ended: make(chan struct{}), known: make(chan struct{}), told: told}
	if f == nil {
		close(r.known)
		close(r.ended)
		return r
	}
	go func() {
		defer close(r.ended)
		r.read(f)
	}()
	return r
}

// read takes in each document; after one that is malformed it only drains.
func (r *report) read(f io.Reader) {
	defer r.announce()
	dec := json.NewDecoder(io.LimitReader(f, longestReport))
	for {
		var line statusLine
		if dec.Decode(&line) != nil {
			_, _ = io.Copy(io.Discard, f)
			return
		}
		r.take(line)
		if line.ChildPID != nil {
			r.announce()
		}
	}
}

// announce says that pid is known, or will not be.
func (r *report) announce() { r.once.Do(func() { close(r.known) }) }

func (r *report) take(line statusLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.final.failure != "": // that is the last word
	case line.ChildPID != nil && *line.ChildPID > 1:
		r.pid, r.whole = *line.ChildPID, identify(*line.ChildPID)
		if r.told == nil {
			return
		}
		r.mu.Unlock() // it may take a while, in which the command can be ended
		r.announce()
		err := r.told(*line.ChildPID)
		r.mu.Lock()
		if err != nil {
			r.final = final{failure: err.Error()}
		}
	case line.ExitCode != nil:
		r.final = final{exited: true, code: *line.ExitCode}
	case line.Failure != "":
		r.final = final{failure: line.Failure, program: line.Program}
	}
}

// first returns the pid of the first process in the sandbox, waiting for it up
// to a second; 0 if there is none.
func (r *report) first() int {
	select {
	case <-r.known:
	case <-time.After(time.Second):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pid
}

// ends waits for the end of the first process in the sandbox, and so of all in it, if there was
// one, but not for ever.
func (r *report) ends() {
	r.mu.Lock()
	whole := r.whole
	r.mu.Unlock()
	if !whole.lives() {
		return
	}
	fd, err := unix.PidfdOpen(whole.pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if !whole.lives() { // it might be another process since
		return
	}
	for late := time.Now().Add(gone); time.Until(late) > 0; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(late).Milliseconds()))
		if n > 0 || !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// wait returns the last word, once the pipe has ended.
func (r *report) wait() final {
	select {
	case <-r.ended:
	case <-time.After(time.Second):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.final
}
