package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	grace   = 2 * time.Second  // from asking a command to end to ending it
	gone    = 10 * time.Second // for the kernel to be done with a killed tree
	flushed = 5 * time.Second  // for the writers to take the rest of the output
)

// launch is a process that is ready to start.
type launch struct {
	path    string
	argv    []string
	env     []string
	dir     string
	files   []*os.File      // the process's descriptors from 3 on
	status  *os.File        // where the process reports what became of the command; nil if it is the command
	control *os.File        // orders to the process, whose end is the order to end; nil if it ends with our thread
	network *handover       // the way to the network; nil if there is none
	cleanup func()          // after everything has ended; may be nil
	limits  Limits          // of the command; zero if it has none
	group   *group          // the control group of the command; nil if it has none
	gate    *gate           // where the command waits for its limits; nil if it sets them itself
	told    func(int) error // is told the pid of the first process in the sandbox; may be nil. An error is why nothing runs

	terminal bool // the process itself takes its streams' terminal as its own
}

// child is a launch that runs.
type child struct {
	*launch
	process *os.Process
	report  *report
	done    chan struct{} // closed when process has ended and was waited for
	state   *os.ProcessState

	mu     sync.Mutex
	reaped bool // the pid may be another process's
}

// notStarted says that nothing was run, and why.
type notStarted struct {
	reason  string
	program bool // the sandbox was there; the command's own program could not be run in it
}

func (n *notStarted) Error() string { return "run command: " + n.reason }

// start starts l and returns once it runs. The goroutine that waits for it
// keeps its thread: the signal that ends a child with its parent comes when the
// thread ends that started it (golang/go#27505).
func start(by confiner, l *launch, s *streams) (*child, error) {
	sealDescriptors()
	cmd := &exec.Cmd{
		Path: l.path, Args: l.argv, Env: append([]string{}, l.env...), Dir: l.dir, ExtraFiles: l.files,
		Stdin: s.childIn, Stdout: s.childOut, Stderr: s.childErr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: l.terminal}, // of its descriptor 0
	}
	if l.control == nil {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	ch := &child{launch: l, report: readReport(l.status, l.told), done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		ch.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		awaitExit(cmd.Process.Pid)
		by.kill(ch) // what it may have left behind
		ch.report.ends()
		ch.release()
		_ = cmd.Wait()
		ch.state = cmd.ProcessState
		close(ch.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	l.started()
	s.begin()
	return ch, nil
}

// signalGroup sends a signal to the process group of ch.
func (ch *child) signalGroup(sig syscall.Signal) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if !ch.reaped {
		_ = syscall.Kill(-ch.process.Pid, sig)
	}
}

// release gives up the pid of ch, before it is waited for.
func (ch *child) release() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.reaped = true
}

// awaitExit returns when the child pid has ended, and leaves it to be waited for.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

var (
	errTimeout = errors.New("the command reached its time limit")
	errStuck   = errors.New("the command could not be ended")
)

// supervise waits until ch has ended, and ends it at its time limit or when ctx
// ends; then it returns errTimeout or the cause.
func supervise(ctx context.Context, by confiner, ch *child, s *streams, limit time.Duration) (why error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ch.done:
		return nil
	case <-timer.C:
		why = errTimeout
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	by.terminate(ch)
	if ch.endsWithin(grace / 4) {
		return why
	}
	s.hangUp()
	if ch.endsWithin(grace - grace/4) {
		return why
	}
	by.kill(ch)
	if !ch.endsWithin(gone) {
		return errStuck
	}
	return why
}

// endsWithin waits for the end of ch, up to d.
func (ch *child) endsWithin(d time.Duration) bool {
	select {
	case <-ch.done:
		return true
	case <-time.After(d):
		return false
	}
}

// outcome returns the command's exit code. killed says that we ended it; said
// is what came on stderr, which is the sandbox's own voice if the command never
// ran.
func (ch *child) outcome(killed bool, said string) (int, error) {
	status := ch.state.Sys().(syscall.WaitStatus)
	if ch.status == nil {
		return shellCode(status), nil
	}
	final := ch.report.wait()
	switch {
	case final.exited && !killed && ch.network.failed() != nil:
		return 0, ch.network.failed()
	case final.exited:
		return final.code, nil
	case killed:
		return 128 + int(unix.SIGKILL), nil
	case final.failure != "":
		return 0, &notStarted{reason: final.failure, program: final.program}
	case status.Signaled():
		return 128 + int(unix.SIGKILL), fmt.Errorf("run command: the sandbox was ended from outside by %v, and the command with it", status.Signal())
	case ch.control != nil:
		return 0, fmt.Errorf("run command: the sandbox's monitor broke down (%v), and what became of the command is not known", ch.state)
	default:
		return 0, explainSilence(said)
	}
}

// shellCode returns an exit code as a shell tells it.
func shellCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// started closes what the child now holds itself.
func (l *launch) started() {
	closeAll(l.files)
	l.files = nil
}

// close releases all that the launch held.
func (l *launch) close() {
	l.started()
	closeAll([]*os.File{l.status, l.control})
	if l.gate != nil {
		closeAll([]*os.File{l.gate.file})
	}
	if l.group != nil {
		theGroups().give(l.group)
		l.group = nil
	}
	if l.network != nil {
		l.network.close()
	}
	if l.cleanup != nil {
		l.cleanup()
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// sealDescriptors keeps descriptors that Wharf itself inherited, or that
// foreign code opened without care, from being passed on.
func sealDescriptors() {
	if unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	sealEach() // Linux before 5.11
}

func sealEach() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// dataFile returns a file in memory that holds data, ready to be read.
func dataFile(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write file in memory: %w", err)
	}
	return f, nil
}
