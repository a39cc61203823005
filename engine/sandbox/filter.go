package sandbox

import (
	"encoding/binary"
	"fmt"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The answers of the filter: a refusal that programs report, and "no such
// call", at which they take an older one that the filter can look into.
const (
	refuse  = seccomp.ActionErrno
	missing = seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)
)

// namespaceFlags are the flags of clone that make a namespace.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// filterFor assembles the system call filter of a rung: the ways to a socket
// that the rung does not hold itself, the ways around a filter (io_uring and
// calls whose arguments it cannot read), nested namespaces and the kernel's
// key store. abi is the version of Landlock, for that rung.
func filterFor(rung Rung, abi int) ([]bpf.RawInstruction, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("assemble the system call filter: %w", err)
	}
	groups := []seccomp.SyscallGroup{
		{Action: missing, Names: []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"}},
		{Action: refuse, Names: []string{"unshare", "setns", "add_key", "request_key", "keyctl"}},
		{Action: refuse, NamesWithCondtions: []seccomp.NameWithConditions{
			when("clone", seccomp.Condition{Argument: 0, Operation: seccomp.BitsSet, Value: namespaceFlags}),
			// A datagram end can be pointed at a path; streams and packets (types 1 and 5) cannot.
			when("socketpair", seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_UNIX}),
			when("socketpair", seccomp.Condition{Argument: 1, Operation: seccomp.BitsSet, Value: unix.SOCK_DGRAM}),
		}},
	}
	if rung == Landlock {
		groups = append(groups, seccomp.SyscallGroup{Action: refuse, Names: []string{"socket"}})
		groups = append(groups, truncation(info, abi)...)
	} else {
		groups = append(groups, socketsOfOwnNamespace())
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: groups}
	body, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assemble the system call filter: %w", err)
	}
	return bpf.Assemble(append(nativeOnly(info), body...))
}

// when names a call with conditions that must all hold.
func when(call string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: call, Conditions: conditions}
}

// socketsOfOwnNamespace refuses all sockets but IP and route look-ups: these
// stay in the network namespace, a Unix socket is reached through the files.
func socketsOfOwnNamespace() seccomp.SyscallGroup {
	is := func(op seccomp.Operation, argument uint32, value uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: op, Value: value}
	}
	return seccomp.SyscallGroup{Action: refuse, NamesWithCondtions: []seccomp.NameWithConditions{
		when("socket", is(seccomp.NotEqual, 0, unix.AF_INET), is(seccomp.NotEqual, 0, unix.AF_INET6),
			is(seccomp.NotEqual, 0, unix.AF_NETLINK)),
		when("socket", is(seccomp.Equal, 0, unix.AF_NETLINK), is(seccomp.NotEqual, 2, unix.NETLINK_ROUTE)),
	}}
}

// truncation closes what Landlock before version 3 leaves open: emptying a file
// that may only be read, by truncate or by opening it so.
func truncation(info *arch.Info, abi int) []seccomp.SyscallGroup {
	if abi >= 3 {
		return nil
	}
	bits := func(op seccomp.Operation, argument uint32, value uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: op, Value: value}
	}
	refused := seccomp.SyscallGroup{Action: refuse, Names: []string{"truncate"}}
	for flags, call := range []string{1: "open", 2: "openat"} { // by the argument that holds the flags
		if _, known := info.SyscallNames[call]; !known {
			continue // newer machines have no open
		}
		empties := bits(seccomp.BitsSet, uint32(flags), unix.O_TRUNC)
		write, both := bits(seccomp.BitsSet, uint32(flags), unix.O_WRONLY), bits(seccomp.BitsSet, uint32(flags), unix.O_RDWR)
		neither := bits(seccomp.BitsNotSet, uint32(flags), unix.O_WRONLY|unix.O_RDWR)
		refused.NamesWithCondtions = append(refused.NamesWithCondtions, when(call, empties, neither), when(call, empties, write, both))
	}
	return []seccomp.SyscallGroup{{Action: missing, Names: []string{"openat2"}}, refused}
}

// nativeOnly kills a process that enters the kernel by another machine's table
// of calls, such as the 32-bit one.
func nativeOnly(info *arch.Info) []bpf.Instruction {
	const archOffset = 4 // of struct seccomp_data
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
	}
}

// filterBytes returns a filter as the kernel's array of instructions.
func filterBytes(filter []bpf.RawInstruction) []byte {
	var b []byte
	for _, i := range filter {
		b = binary.NativeEndian.AppendUint16(b, i.Op)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}
