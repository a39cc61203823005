package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// filter says what the system call filter of a command is to refuse. It is a
// list of what no build or test needs, for a list of all that they do need would
// be another one on every machine.
type filter struct {
	rung Rung
	abi  int // the version of Landlock, for that rung
	open openings
}

// openings are the entries of the filter that are left out.
type openings struct {
	UnixSockets bool
	Ptrace      bool
	Namespaces  bool
	Network     bool // the host's; under bubblewrap it is the namespace that holds it
}

// The calls that are refused whatever their arguments are, by what they are for.
var (
	callsOfMounts = []string{
		"mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig",
		"fsmount", "fspick", "mount_setattr",
	}
	callsOfNamespaces = []string{"setns", "unshare"}
	callsOfTheMachine = []string{
		"swapon", "swapoff", "reboot", "acct", "quotactl", "quotactl_fd", "kexec_load", "kexec_file_load", "init_module", "finit_module",
		"delete_module", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
		"iopl", "ioperm", "modify_ldt", "vhangup", "syslog",
	}
	callsOfHandles = []string{"open_by_handle_at", "name_to_handle_at", "lookup_dcookie"}
	callsOfKernel  = []string{
		"bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl", "fanotify_init",
		"migrate_pages", "move_pages", "set_mempolicy", "mbind", "set_mempolicy_home_node",
	}
	callsThatAreDead = []string{
		"nfsservctl", "uselib", "ustat", "sysfs", "_sysctl", "create_module", "get_kernel_syms", "query_module",
		"getpmsg", "putpmsg", "afs_syscall", "tuxcall", "security", "vserver", "epoll_ctl_old", "epoll_wait_old",
	}
	callsOfOthers  = []string{"kcmp", "pidfd_getfd"}
	callsOfTracing = []string{"ptrace", "process_vm_readv", "process_vm_writev"}
)

// namespaceFlags are the flags of clone that make a namespace.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

const (
	setIDBits   = unix.S_ISUID | unix.S_ISGID
	socketTypes = 0xf // the bits of a socket's type that are not flags
	typePacket  = 10  // SOCK_PACKET, an old way to ask for another family
	makesFile   = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

	// Personalities that are harmless, which the kernel's headers call PER_LINUX32,
	// UNAME26 and ADDR_NO_RANDOMIZE.
	personality32    = 8
	personalityOld   = 0x20000
	personalityFixed = 0x40000
)

// refused returns the calls that are refused.
func (f filter) refused() []string {
	all := slices.Concat(callsOfMounts, callsOfTheMachine, callsOfHandles, callsOfKernel, callsThatAreDead, callsOfOthers)
	if !f.open.Namespaces {
		all = append(all, callsOfNamespaces...)
	}
	if !f.open.Ptrace {
		all = append(all, callsOfTracing...)
	}
	if f.rung == Landlock {
		if !f.unixSockets() {
			all = append(all, "socket")
		}
		if f.abi < 3 { // which leaves this to everyone who may read
			all = append(all, "truncate")
		}
	}
	return all
}

// absent returns the calls that are said not to exist: their arguments, or what
// they have the kernel do, cannot be looked into.
func (f filter) absent() []string {
	all := []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "openat2"}
	if !f.open.Namespaces {
		all = append(all, "clone3")
	}
	return all
}

// unixSockets reports whether Unix sockets can be had. Under Landlock they are
// kept to the files that a command sees only from version 9 on.
func (f filter) unixSockets() bool {
	return f.open.UnixSockets && (f.rung != Landlock || f.abi >= 9 || f.open.Network)
}

// judged returns the calls that are judged by their arguments.
func (f filter) judged() []call {
	all := append(f.sockets(), f.modes()...)
	known := []test{}
	for _, value := range []uint32{0, personality32, personalityOld, personalityOld | personality32, allBits} {
		known = append(known, notEqual(0, value))
	}
	if f.open.Ptrace { // a debugger wants its program where it was the last time
		known = append(known, notEqual(0, personalityFixed))
	}
	all = append(all,
		call{"personality", [][]test{known}},
		// Typing into a terminal, and what the console does for whoever asks.
		call{"ioctl", [][]test{{equal(1, unix.TIOCSTI)}, {equal(1, unix.TIOCLINUX)}}},
	)
	if !f.open.Namespaces {
		all = append(all, call{"clone", [][]test{{anyOf(0, namespaceFlags)}}})
	}
	return all
}

// sockets leaves a command the sockets that stay in its own network namespace,
// and pairs that cannot be pointed elsewhere: a Unix socket is reached through
// the files, and a datagram end of a pair can be connected to one.
func (f filter) sockets() []call {
	family := []test{notEqual(0, unix.AF_INET), notEqual(0, unix.AF_INET6), notEqual(0, unix.AF_NETLINK)}
	pair := [][]test{{notEqual(0, unix.AF_UNIX)}}
	if f.rung == Landlock && !f.open.Network {
		family = nil
	}
	if f.unixSockets() {
		family = append(family, notEqual(0, unix.AF_UNIX))
	} else {
		pair = append(pair, []test{{1, socketTypes, false, unix.SOCK_STREAM}, {1, socketTypes, false, unix.SOCK_SEQPACKET}})
	}
	all := []call{{"socketpair", pair}}
	if f.rung == Landlock && !f.unixSockets() {
		return all // refused as a whole
	}
	cases := [][]test{family, {equal(0, unix.AF_NETLINK), notEqual(2, unix.NETLINK_ROUTE)}}
	for _, raw := range []uint32{unix.SOCK_RAW, typePacket} {
		cases = append(cases,
			[]test{equal(0, unix.AF_INET), {1, socketTypes, true, raw}},
			[]test{equal(0, unix.AF_INET6), {1, socketTypes, true, raw}})
	}
	return append(all, call{"socket", cases})
}

// modes refuses devices, programs that run as who owns them, and, where Landlock
// does not, emptying a file by opening it for reading.
func (f filter) modes() []call {
	device := func(mode uint32) [][]test {
		return [][]test{
			{{mode, unix.S_IFMT, true, unix.S_IFCHR}}, {{mode, unix.S_IFMT, true, unix.S_IFBLK}}, {anyOf(mode, setIDBits)},
		}
	}
	opening := func(flags uint32) [][]test {
		cases := [][]test{{anyOf(flags, makesFile), anyOf(flags+1, setIDBits)}}
		if f.rung == Landlock && f.abi < 3 {
			empties := anyOf(flags, unix.O_TRUNC)
			cases = append(cases,
				[]test{empties, noneOf(flags, unix.O_ACCMODE)},
				[]test{empties, {flags, unix.O_ACCMODE, true, unix.O_ACCMODE}})
		}
		return cases
	}
	return []call{
		{"mknod", device(1)},
		{"mknodat", device(2)},
		{"chmod", [][]test{{anyOf(1, setIDBits)}}},
		{"fchmod", [][]test{{anyOf(1, setIDBits)}}},
		{"fchmodat", [][]test{{anyOf(2, setIDBits)}}},
		{"fchmodat2", [][]test{{anyOf(2, setIDBits)}}},
		{"creat", [][]test{{anyOf(1, setIDBits)}}},
		{"open", opening(1)},
		{"openat", opening(2)},
	}
}
