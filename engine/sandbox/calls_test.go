package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// raw makes a system call that the filter answers, and says what it answered.
func raw(name string, number uintptr, args ...uintptr) {
	args = append(args, make([]uintptr, 6)...)
	_, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	if errno == 0 {
		fmt.Println(name, "ok")
		return
	}
	fmt.Println(name, unix.ErrnoName(errno))
}

// refusedCalls makes each call that the filter refuses, in a way that does
// nothing where it is not refused.
func refusedCalls() {
	info, err := arch.GetInfo("")
	if err != nil {
		fmt.Println(err)
		return
	}
	f := filter{rung: Landlock}
	for _, name := range slices.Concat(f.refused(), f.absent()) {
		if number, known := info.SyscallNames[name]; known {
			raw(name, uintptr(number))
		}
	}
}

// Every call that is to be refused is refused inside, and so for a program that
// has a reason to try it.
func TestRefusedCalls(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	onEachRung(t, func(t *testing.T, rung Rung) {
		out, _ := sh(t, open(t, rung, Config{}), probe(t, "refused"))
		f := filter{rung: rung, abi: landlockVersion()}
		for answer, names := range map[string][]string{"EPERM": f.refused(), "ENOSYS": f.absent()} {
			for _, name := range names {
				if _, known := info.SyscallNames[name]; known && !has(out, name+" "+answer) {
					t.Errorf("%s is not answered by %s", name, answer)
				}
			}
		}
		if t.Failed() {
			t.Log(out)
		}
	})
}

// judgedCalls makes calls with arguments that matter, in the current folder.
// What the upper half of an argument holds is rubbish, as far as it can.
func judgedCalls() {
	const rubbish = 0xdead << 32
	path := func(name string) uintptr {
		p, _ := unix.BytePtrFromString(name)
		return uintptr(unsafe.Pointer(p))
	}
	here := uintptr(^uintptr(99)) // AT_FDCWD
	fd, err := unix.Open("file", unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		fmt.Println(err)
	}
	raw("a device", unix.SYS_MKNODAT, here, path("device"), unix.S_IFCHR|0o600|rubbish, 1<<8|3)
	raw("a disk", unix.SYS_MKNODAT, here, path("disk"), unix.S_IFBLK|0o600, 7<<8)
	raw("a pipe", unix.SYS_MKNODAT, here, path("pipe"), unix.S_IFIFO|0o600)
	raw("set-user-id by mknod", unix.SYS_MKNODAT, here, path("suid1"), unix.S_IFREG|0o4700)
	raw("set-user-id by fchmod", unix.SYS_FCHMOD, uintptr(fd), 0o4700|rubbish)
	raw("set-group-id by fchmodat", unix.SYS_FCHMODAT, here, path("file"), 0o2700)
	raw("set-user-id by fchmodat2", unix.SYS_FCHMODAT2, here, path("file"), 0o4700)
	raw("sticky by fchmod", unix.SYS_FCHMOD, uintptr(fd), 0o1700)
	raw("set-user-id by openat", unix.SYS_OPENAT, here, path("suid2"), unix.O_CREAT|unix.O_WRONLY, 0o4700)
	raw("set-user-id by a nameless file", unix.SYS_OPENAT, here, path("."), unix.O_TMPFILE|unix.O_WRONLY, 0o4700)
	raw("a mode that does not count", unix.SYS_OPENAT, here, path("file"), unix.O_RDONLY, 0o4700)
	raw("typing into a terminal", unix.SYS_IOCTL, 0, unix.TIOCSTI|rubbish, path("x"))
	raw("the console", unix.SYS_IOCTL, 0, unix.TIOCLINUX, path("x"))
	raw("the size of a terminal", unix.SYS_IOCTL, 0, unix.TIOCGWINSZ, path("x"))
	raw("a usual personality", unix.SYS_PERSONALITY, allBits)
	raw("a personality without random addresses", unix.SYS_PERSONALITY, 0x40000)
	raw("clone by rubbish", unix.SYS_CLONE, unix.CLONE_NEWUSER|rubbish)
	raw("raw", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 1)
	raw("raw6", unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_RAW, 1)
	raw("packet by its old name", unix.SYS_SOCKET, unix.AF_INET, 10, 0)
	raw("tracing", unix.SYS_PTRACE, unix.PTRACE_TRACEME)
	raw("unix", unix.SYS_SOCKET, unix.AF_UNIX|rubbish, unix.SOCK_STREAM)
	var ends [2]int32
	raw("datagram pair", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM, 0, uintptr(unsafe.Pointer(&ends)))
	raw("ip pair", unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&ends)))
}

func TestJudgedCalls(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		want := map[string]string{
			"a device": "EPERM", "a disk": "EPERM", "a pipe": "ok", "set-user-id by mknod": "EPERM", "set-user-id by fchmod": "EPERM",
			"set-group-id by fchmodat": "EPERM", "set-user-id by fchmodat2": "EPERM", "sticky by fchmod": "ok",
			"set-user-id by openat": "EPERM", "set-user-id by a nameless file": "EPERM", "a mode that does not count": "ok",
			"typing into a terminal": "EPERM", "the console": "EPERM", "the size of a terminal": "ENOTTY", "a usual personality": "ok",
			"a personality without random addresses": "EPERM", "clone by rubbish": "EPERM", "raw": "EPERM", "raw6": "EPERM",
			"packet by its old name": "EPERM", "tracing": "EPERM", "unix": "EPERM", "datagram pair": "EPERM", "ip pair": "EPERM",
		}
		for _, allow := range [][]string{nil, {AllowPtrace}, {AllowUnixSockets}} {
			t.Run(fmt.Sprint(allow), func(t *testing.T) {
				want := maps.Clone(want)
				switch {
				case slices.Contains(allow, AllowPtrace):
					want["tracing"], want["a personality without random addresses"] = "ok", "ok"
				case slices.Contains(allow, AllowUnixSockets) && (rung == Bubblewrap || landlockVersion() >= 9):
					want["unix"], want["datagram pair"] = "ok", "ok"
				}
				s := open(t, rung, Config{Allow: allow})
				out, _ := sh(t, s, probe(t, "judged"))
				for name, answer := range want {
					if !has(out, name+" "+answer) {
						t.Errorf("%s is not answered by %s:\n%s", name, answer, out)
					}
				}
				entries, _ := os.ReadDir(s.cfg.Workspace)
				for _, e := range entries {
					if info, err := e.Info(); err == nil && info.Mode()&(os.ModeDevice|os.ModeSetuid|os.ModeSetgid) != 0 {
						t.Errorf("%s was made with the mode %v", e.Name(), info.Mode())
					}
				}
			})
		}
	})
}

// The filters of all machines, run by an interpreter of their instructions.
func TestFilterOfEachMachine(t *testing.T) {
	for _, info := range []*arch.Info{arch.X86_64, arch.AARCH64} {
		t.Run(info.Name, func(t *testing.T) {
			f := filter{rung: Bubblewrap}
			program := f.program(info)
			if len(program) > 500 {
				t.Errorf("the filter has %d instructions", len(program))
			}
			vm, err := bpf.NewVM(program)
			if err != nil {
				t.Fatal(err)
			}
			answer := func(machine uint32, number int, args ...uint64) uint32 {
				data := make([]byte, 64) // as the interpreter wants it, which is the other way round in each word
				binary.BigEndian.PutUint32(data[offsetCall:], uint32(number))
				binary.BigEndian.PutUint32(data[offsetArch:], machine)
				for i, a := range args {
					binary.BigEndian.PutUint32(data[offsetArgs+8*i:], uint32(a))
					binary.BigEndian.PutUint32(data[offsetArgs+8*i+4:], uint32(a>>32))
				}
				n, err := vm.Run(data)
				if err != nil {
					t.Fatal(err)
				}
				return uint32(n)
			}
			machine := uint32(info.ID)
			for want, names := range map[uint32][]string{refuse: f.refused(), missing: f.absent(), pass: {"read", "write", "execve", "getpid", "openat", "clone", "socket", "exit_group"}} {
				for _, name := range names {
					args := []uint64{}
					if name == "socket" {
						args = []uint64{unix.AF_INET, unix.SOCK_STREAM}
					}
					if number, known := info.SyscallNames[name]; known && answer(machine, number, args...) != want {
						t.Errorf("%s is answered by %#x; want %#x", name, answer(machine, number, args...), want)
					}
				}
			}
			if got := answer(machine, info.SyscallNames["clone"], namespaceFlags|0xdead<<32); got != refuse {
				t.Errorf("clone with namespaces is answered by %#x", got)
			}
			if got := answer(machine, info.SyscallNames["fchmodat"], 0, 0, 0o4755); got != refuse {
				t.Errorf("fchmodat with a set-user-id bit is answered by %#x", got)
			}
			if got := answer(uint32(arch.I386.ID), 1); got != kill {
				t.Errorf("another machine's call is answered by %#x", got)
			}
			if got := answer(machine, 0x40000000); info == arch.X86_64 && got != missing {
				t.Errorf("a call with short pointers is answered by %#x", got)
			}
		})
	}
}

// A name that no machine has is a mistake of ours: the call would pass.
func TestFilterNamesExist(t *testing.T) {
	f := filter{rung: Landlock}
	names := slices.Concat(f.refused(), f.absent())
	for _, c := range append(f.judged(), filter{}.judged()...) {
		names = append(names, c.name)
		if len(c.body()) > 255 {
			t.Errorf("%s has more cases than a jump can pass", c.name)
		}
	}
	for _, name := range names {
		_, amd := arch.X86_64.SyscallNames[name]
		_, arm := arch.AARCH64.SyscallNames[name]
		if !amd && !arm {
			t.Errorf("no machine has %s", name)
		}
	}
}

func TestOpenings(t *testing.T) {
	if _, err := openingsOf([]string{AllowPtrace, "everything"}); err == nil || err.Error() != `cannot allow "everything": use "unix-sockets" or "ptrace"` {
		t.Errorf("openingsOf error = %v", err)
	}
	closed := strings.Join(filter{}.refused(), " ")
	opened := strings.Join(filter{open: openings{Ptrace: true}}.refused(), " ")
	if closed != opened+" ptrace process_vm_readv process_vm_writev" {
		t.Errorf("with tracing allowed, refused is\n%s; want\n%s without the three calls", opened, closed)
	}
}
