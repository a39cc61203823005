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
	pass    = uint32(seccomp.ActionAllow)
	refuse  = uint32(seccomp.ActionErrno) | uint32(unix.EPERM)
	missing = uint32(seccomp.ActionErrno) | uint32(unix.ENOSYS)
	kill    = uint32(seccomp.ActionKillProcess)
)

// Where the kernel puts what a filter looks at (struct seccomp_data).
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// filterFor assembles the system call filter of commands for this machine. Others than
// the two that it was written for have calls of their own, with ways around it.
func filterFor(f filter) ([]bpf.RawInstruction, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("assemble the system call filter: %w", err)
	}
	if info != arch.X86_64 && info != arch.AARCH64 {
		return nil, fmt.Errorf("assemble the system call filter: there is none for the machine %q", info.Name)
	}
	return bpf.Assemble(f.program(info))
}

// program returns the filter for a machine. A call that the machine does not
// have is left out.
func (f filter) program(info *arch.Info) []bpf.Instruction {
	load := func(offset uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offset, Size: 4} }
	program := []bpf.Instruction{
		// Whoever enters the kernel by another machine's table of calls, such as the 32-bit one, is killed.
		load(offsetArch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		load(offsetCall),
	}
	if info.ID == arch.X86_64.ID { // whose table has the calls a second time, for programs with short pointers
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(arch.X32.SeccompMask), SkipFalse: 1},
			bpf.RetConstant{Val: missing})
	}
	for _, list := range []struct {
		names  []string
		answer uint32
	}{{f.refused(), refuse}, {f.absent(), missing}} {
		for _, name := range list.names {
			if number, known := info.SyscallNames[name]; known {
				program = append(program,
					bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: 1},
					bpf.RetConstant{Val: list.answer})
			}
		}
	}
	for _, c := range f.judged() {
		if number, known := info.SyscallNames[c.name]; known {
			body := c.body()
			program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: uint8(len(body))})
			program = append(program, body...)
		}
	}
	return append(program, bpf.RetConstant{Val: pass})
}

// call is a system call that is refused where all tests of one of its cases hold.
type call struct {
	name  string
	cases [][]test
}

// test looks at an argument of a call. Only the lower half of it counts: so the
// kernel takes it, and a filter that minded the upper half could be passed with
// rubbish in there.
type test struct {
	argument uint32
	mask     uint32 // of the bits that count
	is       bool   // whether they must be, or must not be, the value
	value    uint32
}

const allBits = 1<<32 - 1

func equal(argument, value uint32) test    { return test{argument, allBits, true, value} }
func notEqual(argument, value uint32) test { return test{argument, allBits, false, value} }

// anyOf holds if one of the bits is set, noneOf if none is.
func anyOf(argument, bits uint32) test  { return test{argument, bits, false, 0} }
func noneOf(argument, bits uint32) test { return test{argument, bits, true, 0} }

// body returns the judgement of a call, the number of which has been compared.
func (c call) body() []bpf.Instruction {
	var all []bpf.Instruction
	for _, tests := range c.cases {
		block := []bpf.Instruction{bpf.RetConstant{Val: refuse}}
		for i := len(tests) - 1; i >= 0; i-- { // from the end, so that it is known how far a jump goes
			t := tests[i]
			jump := bpf.JumpIf{Cond: bpf.JumpEqual, Val: t.value, SkipFalse: uint8(len(block))}
			if !t.is {
				jump = bpf.JumpIf{Cond: bpf.JumpEqual, Val: t.value, SkipTrue: uint8(len(block))}
			}
			block = append([]bpf.Instruction{
				bpf.LoadAbsolute{Off: lowerHalf(t.argument), Size: 4},
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask},
				jump,
			}, block...)
		}
		all = append(all, block...)
	}
	return append(all, bpf.RetConstant{Val: pass})
}

// lowerHalf is where the lower half of an argument is: both machines that Wharf
// runs on put it first.
func lowerHalf(argument uint32) uint32 { return offsetArgs + 8*argument }

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
