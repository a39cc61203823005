package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bounds what a command may use of the machine; a zero field means its
// default. A limit that cannot be set keeps the command from running.
type Limits struct {
	Memory    int64         // bytes for the command with all that it starts or, where there is no control group, for each process; 0 means 2 GiB
	Processes int           // processes and threads at once; 0 means 256
	CPU       time.Duration // processor time of each process, in whole seconds; 0 means the time limit on all cores
	FileSize  int64         // bytes of a file that is written; 0 means 1 GiB
	OpenFiles int           // descriptors of each process; 0 means 4096
	Disk      int64         // bytes written where the files are the host's, by a look each second; 0 means 5 GiB
}

// The least that a command can be started with.
const (
	leastMemory    = 16 << 20
	leastProcesses = 8
	leastOpenFiles = 16
)

// check refuses limits that nothing could run with, and fills in the defaults.
func (l *Limits) check() error {
	l.Memory = cmp.Or(l.Memory, 2<<30)
	l.Processes = cmp.Or(l.Processes, 256)
	l.FileSize = cmp.Or(l.FileSize, 1<<30)
	l.OpenFiles = cmp.Or(l.OpenFiles, 4096)
	l.Disk = cmp.Or(l.Disk, 5<<30)
	switch {
	case l.Memory < leastMemory:
		return fmt.Errorf("%d bytes of memory are too few: allow %d MiB at least", l.Memory, leastMemory>>20)
	case l.Processes < leastProcesses:
		return fmt.Errorf("%d processes are too few: allow %d at least", l.Processes, leastProcesses)
	case l.OpenFiles < leastOpenFiles:
		return fmt.Errorf("%d open files are too few: allow %d at least", l.OpenFiles, leastOpenFiles)
	case l.FileSize < 0:
		return fmt.Errorf("a file cannot have %d bytes", l.FileSize)
	case l.Disk < 0:
		return fmt.Errorf("a command cannot write %d bytes", l.Disk)
	case l.CPU < 0 || l.CPU > 0 && l.CPU < time.Second:
		return fmt.Errorf("a processor time of %v is too short: allow a second at least", l.CPU)
	}
	return nil
}

// inWords says what the limits are, for people.
func (l Limits) inWords(grouped bool) string {
	cpu := "processor time up to the time limit on all cores"
	if l.CPU > 0 {
		cpu = fmt.Sprintf("%v of processor time", l.CPU)
	}
	memory := "for each process"
	if grouped {
		memory = "for all processes together"
	}
	return fmt.Sprintf("%d MiB of memory %s, %d processes, %s, files of %d MiB, %d MiB written in all, %d open files",
		l.Memory>>20, memory, l.Processes, cpu, l.FileSize>>20, l.Disk>>20, l.OpenFiles)
}

// processorTime is what each process of a command may use that has a time limit.
func (l Limits) processorTime(timeout time.Duration) time.Duration {
	limit := cmp.Or(l.CPU, timeout*time.Duration(runtime.NumCPU()))
	return max(limit.Truncate(time.Second), time.Second)
}

// bound is a limit of the kernel on a process, which those that it starts inherit.
type bound struct {
	name       string
	resource   int
	soft, hard uint64
}

// bounds returns the limits on the first process of a command. others is how
// many processes are counted with the command's own, which only a user
// namespace keeps apart. With a control group memory and processes are its business.
func (l Limits) bounds(timeout time.Duration, grouped bool, others int) []bound {
	same := func(name string, resource int, value uint64) bound { return bound{name, resource, value, value} }
	seconds := uint64(l.processorTime(timeout) / time.Second)
	all := []bound{
		{"processor time", unix.RLIMIT_CPU, seconds, seconds + 2}, // the signal at the first can be ignored
		same("file size", unix.RLIMIT_FSIZE, uint64(l.FileSize)),
		same("open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)),
		same("core dumps", unix.RLIMIT_CORE, 0),
		same("locked memory", unix.RLIMIT_MEMLOCK, 64<<10),
		same("message queues", unix.RLIMIT_MSGQUEUE, 0),
		same("realtime priority", unix.RLIMIT_RTPRIO, 0),
	}
	if !grouped { // the data and not the address space, of which some programs reserve far more than they use
		all = append(all, same("processes", unix.RLIMIT_NPROC, uint64(l.Processes+others)), same("memory", unix.RLIMIT_DATA, uint64(l.Memory)))
	}
	return all
}

// apply sets a limit of pid, and none that is wider than what it has; 0 is the
// calling process.
func (b bound) apply(pid int) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, b.resource, nil, &now); err != nil {
		return fmt.Errorf("limit %s: %w", b.name, err)
	}
	narrow := unix.Rlimit{Cur: min(b.soft, now.Max), Max: min(b.hard, now.Max)}
	if err := unix.Prlimit(pid, b.resource, &narrow, nil); err != nil {
		return fmt.Errorf("limit %s: %w", b.name, err)
	}
	return nil
}

// applyAll sets limits of pid, or says which one could not be set.
func applyAll(bounds []bound, pid int) error {
	for _, b := range bounds {
		if err := b.apply(pid); err != nil {
			return err
		}
	}
	return nil
}

// gate holds a command back until its limits are set. Bubblewrap waits at it
// when everything else is done.
type gate struct {
	file   *os.File // a pipe, open at both ends here and there: that we end is no answer
	bounds []bound
	group  *group // nil if there is none
	guard  *guard // what was looked at; nil if nothing was
}

func newGate(bounds []bound, group *group) (*gate, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make the gate for limits: %w", err)
	}
	both, err := unix.Open("/proc/self/fd/"+strconv.Itoa(ends[0]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	_, _ = unix.Close(ends[0]), unix.Close(ends[1])
	if err != nil {
		return nil, fmt.Errorf("make the gate for limits: %w", err)
	}
	return &gate{file: os.NewFile(uintptr(both), "gate"), bounds: bounds, group: group}, nil
}

// forChild returns the gate as bubblewrap gets it.
func (g *gate) forChild() (*os.File, error) {
	fd, err := unix.FcntlInt(g.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the gate for limits: %w", err)
	}
	return os.NewFile(uintptr(fd), "gate"), nil
}

// open limits the first process of a command and lets it go on; if that fails,
// it ends the process.
func (g *gate) open(pid int) error {
	err := applyAll(g.bounds, pid)
	if err == nil && g.group != nil {
		err = g.group.enter(pid)
	}
	if err == nil && g.guard != nil {
		err = moored(pid, g.guard.seen)
	}
	if err == nil {
		_, err = g.file.Write([]byte{1})
	}
	if err != nil {
		signalIf(pid, syscall.SIGKILL, func() bool { return isBelow(pid, os.Getpid()) })
	}
	return err
}

// tasksOf counts the threads of all processes of a user that are not in a user
// namespace of their own, as far as /proc shows them.
func tasksOf(uid int) (tasks int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+e.Name(), &st) != nil || int(st.Uid) != uid {
			continue
		}
		threads, _ := strconv.Atoi(statField(pid, 20))
		tasks += threads
	}
	return tasks
}

// reached says which limits a command met, as far as that is certain.
func (l *launch) reached(exitCode int, timeout time.Duration) (notes []string) {
	limits := l.limits
	if l.group != nil {
		notes = l.group.reached(limits)
	}
	switch exitCode {
	case 128 + int(unix.SIGXCPU):
		notes = append(notes, fmt.Sprintf("a process was ended at the limit of %v of processor time (sandbox.limits.cpu)", limits.processorTime(timeout)))
	case 128 + int(unix.SIGXFSZ):
		notes = append(notes, fmt.Sprintf("a process was ended at the %d MiB limit on the size of a file (sandbox.limits.file_size)", limits.FileSize>>20))
	}
	return notes
}
