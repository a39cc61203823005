// Package extism is the host's side of the Extism ABI: the functions that a
// plugin imports from extism:host/env, and the memory behind them.
//
// A [Kernel] belongs to one instance of a plugin. Begin gives it a call's input,
// then the guest runs, and then Output and Failure tell what came of it. The
// package knows no more of Wharf than the [Host] that a kernel is made with;
// package host loads plugins, runs them under their limits, and gives them
// its operations as one function, wharf_call of extism:host/user.
//
// It stands in the place of the SDK for Go, whose kernel is a WebAssembly
// module that cannot be interrupted cheaply: see RATIONALE.md, "Why is the Extism
// ABI hosted by ourselves?".
package extism

import (
	"bytes"
	"fmt"
)

// Host is what a plugin reaches.
type Host interface {
	// Config answers config_get.
	Config(key string) (string, bool)
	// Log takes a text at one of the levels of Wharf's ABI.
	Log(level uint32, text []byte)
	// Call runs a host operation and returns what wharf_call gives the guest.
	// The slices are valid until it returns.
	Call(operation, request []byte) []byte
	// Room returns how many bytes the kernel's memory may take now.
	Room() int
}

// Kernel is the state that one instance shares with its host. One goroutine at
// a time uses it.
type Kernel struct {
	host    Host
	memory  memory
	vars    map[string][]byte
	varCost int // of all vars

	input, output, failure span
}

// span is a part of the kernel's memory.
type span struct{ at, length uint64 }

// New returns the kernel of an instance.
func New(host Host) *Kernel {
	k := &Kernel{host: host, vars: map[string][]byte{}}
	k.memory.reset()
	return k
}

// Begin starts a call: it frees what earlier calls left and takes the input. It
// reports whether the input fits.
func (k *Kernel) Begin(input []byte) bool {
	k.memory.reset()
	k.input, k.output, k.failure = span{}, span{}, span{}
	if len(input) == 0 {
		return true
	}
	at := k.memory.alloc(uint64(len(input)), k.host.Room())
	if at == 0 {
		return false
	}
	copy(k.memory.block(at), input)
	k.input = span{at, uint64(len(input))}
	return true
}

// Size returns how many bytes the kernel's memory has.
func (k *Kernel) Size() int { return len(k.memory.data) }

// Output returns what the guest gave as its output, valid until the next Begin.
func (k *Kernel) Output() []byte { return k.memory.bytes(k.output.at, k.output.length) }

// maxFailure bounds an error: whoever reads it should not take long, since the
// call's time may be over already.
const maxFailure = 1 << 20

// Failure returns the beginning of the error that the guest set; empty if it set none.
func (k *Kernel) Failure() string {
	text := k.memory.block(k.failure.at)
	return string(text[:min(len(text), maxFailure)])
}

// maxVars bounds all variables of an instance together, with their names and
// what it takes to keep them.
const maxVars = 1 << 20

// setVar sets a variable, or removes it where there is no value.
func (k *Kernel) setVar(name, value []byte, remove bool) {
	if old, ok := k.vars[string(name)]; ok {
		k.varCost -= blockCost + len(name) + len(old)
		delete(k.vars, string(name))
	}
	if remove {
		return
	}
	cost := blockCost + len(name) + len(value)
	if k.varCost+cost > maxVars {
		panic(faultf("var_set: the variables have more than %d KiB: keep large values with wharf_call and kv.set", maxVars>>10))
	}
	k.varCost += cost
	k.vars[string(name)] = bytes.Clone(value)
}

// give puts bytes into a new block for the guest. A guest that has no memory
// left cannot be told so.
func (k *Kernel) give(data []byte) uint64 {
	if len(data) == 0 {
		return 0
	}
	at := k.memory.alloc(uint64(len(data)), k.host.Room())
	if at == 0 {
		panic(faultf("there is no memory left for %d bytes", len(data)))
	}
	copy(k.memory.block(at), data)
	return at
}

// Fault is what a guest did against the ABI. As a panic in a host function it
// ends the guest's call.
type Fault struct{ text string }

// Error says what the guest did.
func (f *Fault) Error() string { return f.text }

func faultf(format string, args ...any) *Fault { return &Fault{fmt.Sprintf(format, args...)} }
