package extism

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The modules of which a plugin may import functions.
const (
	Env  = "extism:host/env"
	User = "extism:host/user"
)

// Call is the function of [User] that runs a host operation:
// (operation, request: i64) -> i64, each the address of a block.
const Call = "wharf_call"

// function is one that a plugin may import from [Env].
type function struct {
	params, results string // a letter a value: i is i32, I is i64
	run             func(k *Kernel, stack []uint64)
}

// env is every function of [Env]. A guest calls them with whatever it likes: an
// address that is no block's is an empty block where one is read as a whole, and
// a fault where its bytes are meant.
var env = map[string]function{
	"alloc": {"I", "I", func(k *Kernel, s []uint64) { s[0] = k.memory.alloc(s[0], k.host.Room()) }},
	"free":  {"I", "", func(k *Kernel, s []uint64) { k.memory.release(s[0]) }},

	"length":        {"I", "I", func(k *Kernel, s []uint64) { s[0] = k.memory.blocks[s[0]] }},
	"length_unsafe": {"I", "I", func(k *Kernel, s []uint64) { s[0] = k.memory.blocks[s[0]] }},
	"memory_bytes":  {"", "I", func(k *Kernel, s []uint64) { s[0] = uint64(len(k.memory.data)) }},
	"reset":         {"", "", func(k *Kernel, _ []uint64) { k.Begin(nil) }},

	"load_u8":   {"I", "i", func(k *Kernel, s []uint64) { s[0] = uint64(k.memory.bytes(s[0], 1)[0]) }},
	"load_u64":  {"I", "I", func(k *Kernel, s []uint64) { s[0] = k.memory.loadU64(s[0]) }},
	"store_u8":  {"Ii", "", func(k *Kernel, s []uint64) { k.memory.bytes(s[0], 1)[0] = byte(s[1]) }},
	"store_u64": {"II", "", func(k *Kernel, s []uint64) { binary.LittleEndian.PutUint64(k.memory.bytes(s[0], 8), s[1]) }},

	"input_set":      {"II", "", func(k *Kernel, s []uint64) { k.input = span{s[0], uint64(len(k.memory.bytes(s[0], s[1])))} }},
	"input_offset":   {"", "I", func(k *Kernel, s []uint64) { s[0] = k.input.at }},
	"input_length":   {"", "I", func(k *Kernel, s []uint64) { s[0] = k.input.length }},
	"input_load_u8":  {"I", "i", func(k *Kernel, s []uint64) { s[0] = uint64(k.inputBytes(s[0], 1)[0]) }},
	"input_load_u64": {"I", "I", func(k *Kernel, s []uint64) { s[0] = binary.LittleEndian.Uint64(k.inputBytes(s[0], 8)) }},

	"output_set":    {"II", "", func(k *Kernel, s []uint64) { k.output = span{s[0], uint64(len(k.memory.bytes(s[0], s[1])))} }},
	"output_offset": {"", "I", func(k *Kernel, s []uint64) { s[0] = k.output.at }},
	"output_length": {"", "I", func(k *Kernel, s []uint64) { s[0] = k.output.length }},
	"error_set":     {"I", "", func(k *Kernel, s []uint64) { k.failure = span{s[0], k.memory.blocks[s[0]]} }},
	"error_get":     {"", "I", func(k *Kernel, s []uint64) { s[0] = k.failure.at }},

	"config_get": {"I", "I", configGet},
	"var_get":    {"I", "I", func(k *Kernel, s []uint64) { s[0] = k.give(k.vars[string(k.memory.block(s[0]))]) }},
	"var_set": {"II", "", func(k *Kernel, s []uint64) {
		k.setVar(k.memory.block(s[0]), k.memory.block(s[1]), s[1] == 0)
	}},

	"http_request":     {"II", "I", func(*Kernel, []uint64) { panic(faultf(noHTTP)) }},
	"http_status_code": {"", "i", func(_ *Kernel, s []uint64) { s[0] = 0 }},
	"http_headers":     {"", "I", func(_ *Kernel, s []uint64) { s[0] = 0 }},

	"log_trace":     {"I", "", logAt(0)},
	"log_debug":     {"I", "", logAt(0)},
	"log_info":      {"I", "", logAt(1)},
	"log_warn":      {"I", "", logAt(2)},
	"log_error":     {"I", "", logAt(3)},
	"get_log_level": {"", "i", func(_ *Kernel, s []uint64) { s[0] = 1 }}, // debug: the host keeps them all
}

const noHTTP = "http_request: Extism's own HTTP is off: call wharf_call of " + User + " with http.fetch, and ask for http in the manifest"

// inputBytes returns bytes of the input, counted from its start. A word may end
// behind the input's end, where its block has room.
func (k *Kernel) inputBytes(from, n uint64) []byte {
	if from >= k.input.length {
		panic(faultf("%d bytes at %d are behind the end of the input, which has %d", n, from, k.input.length))
	}
	return k.memory.bytes(k.input.at+from, n)
}

func configGet(k *Kernel, s []uint64) {
	value, ok := k.host.Config(string(k.memory.block(s[0])))
	s[0] = 0
	if ok {
		s[0] = k.give([]byte(value))
	}
}

func logAt(level uint32) func(*Kernel, []uint64) {
	return func(k *Kernel, s []uint64) { k.host.Log(level, k.memory.block(s[0])) }
}

// unsupported are the functions that hosts of other plugins have in [User]. A
// plugin that imports one loads, and is told when it calls it.
var unsupported = map[string]bool{
	"create_elicitation": true, "create_message": true, "list_roots": true,
	"get_access_token": true, "get_keyring_secret": true,
}

// notifications begin the names of functions of [User] that tell the host
// something, which it need not hear.
const notifications = "notify_"

// Knows reports whether a plugin may import the function, and with what type: a
// letter a value, i for i32 and I for i64. An empty type is any of i64 alone.
func Knows(module, name string) (params, results string, anyType, ok bool) {
	switch {
	case module == Env:
		f, ok := env[name]
		return f.params, f.results, false, ok
	case module == User && name == Call:
		return "II", "I", false, true
	case module == User && (unsupported[name] || strings.HasPrefix(name, notifications)):
		return "", "", true, true
	}
	return "", "", false, false
}

// Import is a function of [User] that a plugin imports.
type Import struct {
	Name            string
	Params, Results int // i64 values
}

// Provide makes the functions of both modules in a runtime. of leads a running
// call to its instance's kernel. user are those that the plugin imports from
// [User] besides wharf_call.
func Provide(ctx context.Context, r wazero.Runtime, of func(context.Context) *Kernel, user []Import) error {
	b := r.NewHostModuleBuilder(Env)
	for name, f := range env {
		run := f.run
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
			run(of(ctx), stack)
		}), types(f.params), types(f.results)).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return err
	}
	b = r.NewHostModuleBuilder(User)
	b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
		k := of(ctx)
		stack[0] = k.give(k.host.Call(k.memory.block(stack[0]), k.memory.block(stack[1])))
	}), types("II"), types("I")).Export(Call)
	for _, i := range user {
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
			if i.Results > 0 {
				stack[0] = of(ctx).give([]byte(`{"error":"` + i.Name + ` is not supported by this host"}`))
			}
		}), types(strings.Repeat("I", i.Params)), types(strings.Repeat("I", i.Results))).Export(i.Name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

func types(letters string) []api.ValueType {
	all := make([]api.ValueType, len(letters))
	for i := range letters {
		all[i] = api.ValueTypeI64
		if letters[i] == 'i' {
			all[i] = api.ValueTypeI32
		}
	}
	return all
}
