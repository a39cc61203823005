package sandbox

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Under Landlock a command is the work of two processes besides Wharf, both
// Wharf's own program, started again under these names. The monitor stays
// outside the confinement, adopts whatever the command leaves behind, and ends
// the whole tree when it is told to or when Wharf is gone. The confiner locks
// itself in and then becomes the command.
const (
	monitorName  = "wharf-sandbox-monitor"
	confinerName = "wharf-sandbox-confiner"
)

// The descriptors of the two; of the confiner's, none reaches the command.
const (
	monitorSpec     = 3
	monitorOrders   = 4
	monitorStatus   = 5
	confinerSpec    = 3
	confinerFailure = 4
)

const orderTerminate = 't' // on monitorOrders; the end of that pipe is the order to kill

var initCalled atomic.Bool

// Init must be called first thing in main, and in TestMain of tests that run
// commands: where Wharf's program was started again to confine a command, it
// does that and does not return. It also keeps descriptors that the program
// inherited from being passed on. A program that never calls it has no
// Landlock rung, and under bubblewrap nobody who ends a command if the program
// is killed at the moment when the command starts.
func Init() {
	sealDescriptors()
	switch os.Args[0] {
	case monitorName:
		syscall.Exit(monitor()) // at once: nothing of Go's is left to do, and the command's caller waits
	case confinerName:
		syscall.Exit(confine())
	case boxPath:
		if len(os.Args) < 2 {
			syscall.Exit(2)
		}
		syscall.Exit(becomeBoxed(os.Args[1:]))
	case keeperName:
		if len(os.Args) != 3 {
			syscall.Exit(2)
		}
		syscall.Exit(keep(os.Args[1], os.Args[2]))
	}
	initCalled.Store(true)
}

// monitor runs the confiner and reports how the command ended, after all that
// it left behind has ended too.
func monitor() int {
	runtime.LockOSThread() // the confiner ends with this thread
	status := json.NewEncoder(os.NewFile(monitorStatus, "status"))
	file := os.NewFile(monitorSpec, "confinement")
	spec, err := readConfinement(io.NewSectionReader(file, 0, 1<<30)) // the confiner reads it from its start again
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err == nil {
		err = makeScratch(spec.Scratch, spec.Git)
	}
	t := &tree{}
	var failure io.Reader
	if err == nil {
		reserveThreads()
		t.scoped = scopeSignals(spec.ABI)
		t.main, failure, err = startConfiner(file, spec.Terminal)
	}
	if err != nil {
		removeScratch(spec.Scratch)
		_ = status.Encode(statusLine{Failure: "start the confining process: " + err.Error()})
		return 1
	}
	go t.obey(os.NewFile(monitorOrders, "orders"))
	said, _ := io.ReadAll(failure) // ends when the command runs
	code := t.end()
	removeScratch(spec.Scratch) // Wharf may be gone
	last := statusLine{ExitCode: &code}
	if len(said) > 0 {
		last = statusLine{}
		if json.Unmarshal(said, &last) != nil {
			last.Failure = "the confining process broke down"
		}
	}
	_ = status.Encode(last)
	return 0
}

// startConfiner starts the confiner and returns its pid and the pipe on which
// it says why it could not start the command. With a terminal, the streams are
// one, which becomes the command's own.
func startConfiner(spec *os.File, terminal bool) (pid int, failure io.Reader, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{confinerName}, Env: []string{},
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles:  []*os.File{spec, w},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Pdeathsig: syscall.SIGKILL},
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	// The command's end must be the end of its streams.
	closeAll([]*os.File{w, os.Stdin, os.Stdout, os.Stderr})
	return cmd.Process.Pid, r, nil
}

// reserveThreads makes threads that the runtime will need when the command may
// have taken all processes that the user can have.
func reserveThreads() {
	var made, over sync.WaitGroup
	over.Add(1)
	for range runtime.GOMAXPROCS(0) + 6 {
		made.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			over.Wait()
		}()
	}
	made.Wait()
	over.Done()
}

// tree is the command and all that descends from the monitor.
type tree struct {
	main   int  // the first process, which leads a session
	scoped bool // the signals of the monitor's first thread reach the tree alone

	mu     sync.Mutex
	reaped bool // main's pid may be another process's
}

// obey carries out orders until their pipe ends: then Wharf is gone or wants
// the command gone. A signal to the monitor means the same. Having waited for
// the last process, the monitor ends, and obey with it.
func (t *tree) obey(orders io.Reader) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	over := make(chan struct{})
	go func() {
		defer close(over)
		order := make([]byte, 1)
		for {
			n, err := orders.Read(order)
			if n == 1 && order[0] == orderTerminate {
				t.signal(unix.SIGTERM)
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-signals:
	case <-over:
	}
	for {
		t.signal(unix.SIGKILL)
		time.Sleep(time.Millisecond)
	}
}

// signal signals the session of main, at one stroke, and then everything else
// that descends from the monitor.
func (t *tree) signal(sig syscall.Signal) {
	t.mu.Lock()
	if !t.reaped {
		_ = unix.Kill(-t.main, sig)
	}
	t.mu.Unlock()
	self := os.Getpid()
	for _, pid := range descendants(self) {
		if group, err := unix.Getpgid(pid); err == nil && group != t.main {
			signalIf(pid, sig, func() bool { return isBelow(pid, self) })
		}
	}
}

// killAll kills the whole tree; only on the monitor's first thread. A tree that
// renews itself faster than it can be looked at does not escape a signal to all.
func (t *tree) killAll() {
	if t.scoped {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	t.signal(unix.SIGKILL)
}

// end waits for main, kills whatever it left behind, and returns its exit code.
func (t *tree) end() int {
	awaitExit(t.main)
	t.killAll()
	t.mu.Lock()
	t.reaped = true
	t.mu.Unlock()
	var status, other unix.WaitStatus
	_, _ = unix.Wait4(t.main, &status, 0, nil)
	for {
		pid, err := unix.Wait4(-1, &other, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return shellCode(syscall.WaitStatus(status))
		case pid <= 0:
			t.killAll()
			time.Sleep(time.Millisecond)
		}
	}
}

// confine locks this process in and becomes the command. It returns only when
// that failed, after it has said why.
func confine() int {
	runtime.LockOSThread() // rights belong to a thread; the command inherits this one's
	said := os.NewFile(confinerFailure, "failure")
	spec, err := readConfinement(os.NewFile(confinerSpec, "confinement"))
	var bounds []bound
	if err == nil {
		bounds, err = spec.limits()
	}
	if err == nil {
		err = lockIn(spec)
	}
	if err == nil {
		err = applyAll(bounds, 0) // last: this program may need more to get here
	}
	line := statusLine{}
	if err == nil {
		line.Program, err = true, become(spec)
	}
	line.Failure = err.Error()
	_ = json.NewEncoder(said).Encode(line)
	return 1
}

// limits enters the control groups and returns the limits that are left to be set.
func (c confinement) limits() ([]bound, error) {
	if err := enterGroups(c.Groups, 0); err != nil {
		return nil, err
	}
	grouped, others := len(c.Groups) > 0, 0
	if uid := os.Getuid(); !grouped && uid != 0 { // whom that limit never holds
		others = tasksOf(uid)
	}
	return c.Limits.bounds(c.Timeout, grouped, others), nil
}

func readConfinement(f io.Reader) (spec confinement, err error) {
	if err := gob.NewDecoder(f).Decode(&spec); err != nil {
		return spec, fmt.Errorf("read the confinement: %w", err)
	}
	if len(spec.Argv) == 0 || spec.Dir == "" || spec.Scratch == "" {
		return spec, errors.New("read the confinement: it is incomplete")
	}
	return spec, nil
}

// lockIn takes from the calling thread all that spec does not grant.
func lockIn(spec confinement) error {
	if err := unix.Chdir(spec.Dir); err != nil {
		return fmt.Errorf("enter %q: %w", spec.Dir, err)
	}
	filter, err := filterFor(filter{rung: Landlock, abi: spec.ABI, open: spec.Open})
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := restrict(spec); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return install(filter)
}

// become replaces this process by the command; it returns only with an error.
func become(spec confinement) error {
	program, err := lookPath(spec.Argv[0], spec.Env)
	if nothing, ok := errors.AsType[*notStarted](err); ok {
		return errors.New(nothing.reason)
	}
	sealDescriptors()
	return errors.New(cannotRun(spec.Argv[0], syscall.Exec(program, spec.Argv, spec.Env).Error()).reason)
}

// dropCapabilities gives up all capabilities, which matter where Wharf is run
// by root, and the way to get them back by running a program.
func dropCapabilities() error {
	for c := 0; ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // there is no such capability: that was the last
		}
		if errors.Is(err, unix.EPERM) {
			break // not a privileged process: there is nothing that could be had
		}
		if err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// install sets the system call filter for the calling thread.
func install(filter []bpf.RawInstruction) error {
	code := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		code[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	runtime.KeepAlive(code)
	if err != nil {
		return fmt.Errorf("install the system call filter: %w", err)
	}
	return nil
}
