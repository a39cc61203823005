package host

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// forge makes a module with 64 MiB of memory. Function 0 is the import log, 1
// is WASI's fd_write, 2 is alloc, 3 is the hook; the others take and give nothing.
func forge(hook []byte, others ...[]byte) []byte {
	types := []byte{
		5,
		0x60, 1, 0x7f, 1, 0x7f,
		0x60, 2, 0x7f, 0x7f, 1, 0x7e,
		0x60, 0, 0,
		0x60, 3, 0x7f, 0x7f, 0x7f, 0,
		0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f,
	}
	imports := append(appendName(appendName([]byte{2}, "wharf_v1"), "log"), kindFunction, 3)
	imports = append(appendName(appendName(imports, "wasi_snapshot_preview1"), "fd_write"), kindFunction, 4)
	exports := append(appendName([]byte{3}, "memory"), kindMemory, 0)
	exports = append(appendName(exports, "wharf_v1_alloc"), kindFunction, 2)
	exports = append(appendName(exports, "before_execute_tool"), kindFunction, 3)
	funcs, code := []byte{byte(2 + len(others)), 0, 1}, []byte{byte(2 + len(others))}
	funcs = append(funcs, bytes.Repeat([]byte{2}, len(others))...)
	for _, body := range append([][]byte{{0, opI32Const, 16, opEnd}, hook}, others...) {
		code = append(appendU32(code, uint32(len(body))), body...)
	}
	out := bytes.Clone(preamble)
	for _, s := range []section{
		{id: sectionType, data: types},
		{id: sectionImport, data: imports},
		{id: sectionFunction, data: funcs},
		{id: sectionMemory, data: appendU32([]byte{1, 0}, 1024)},
		{id: sectionExport, data: exports},
		{id: sectionCode, data: code},
	} {
		out = append(appendU32(append(out, s.id), uint32(len(s.data))), s.data...)
	}
	return out
}

// silent makes the body of a hook that has no opinion in the end.
func silent(code ...byte) []byte { return slices.Concat([]byte{0}, code, []byte{opI64Const, 0, opEnd}) }

// numbers pushes constants.
func numbers(all ...int32) (code []byte) {
	for _, v := range all {
		code = append(code, opI32Const)
		for ; v < -64 || v > 63; v >>= 7 {
			code = append(code, byte(v)|0x80)
		}
		code = append(code, byte(v)&0x7f)
	}
	return code
}

// blankLines has fd_write write 60,000 pieces of 64 KiB of newlines, 50 times.
func blankLines() []byte {
	const pieces, count = 1 << 20, 60_000
	code := slices.Concat(
		numbers(0, '\n', 1<<16), []byte{opBulk, 11, 0}, // memory.fill
		numbers(pieces, 0), []byte{0x36, 2, 0}, // i32.store: the first piece's address
		numbers(pieces, 1<<16), []byte{0x36, 2, 4}) // and its length
	for n := int32(8); n < count*8; n *= 2 {
		code = append(append(code, numbers(pieces+n, pieces, n)...), opBulk, 10, 0, 0) // memory.copy
	}
	return append(code, bytes.Repeat(append(numbers(1, pieces, count, 64), opCall, 1, 0x1a), 50)...)
}

// callTree makes functions that each call the one before twice.
func callTree(depth int) [][]byte {
	all := [][]byte{{0, opEnd}}
	for i := range depth {
		all = append(all, []byte{0, opCall, byte(4 + i), opCall, byte(4 + i), opEnd})
	}
	return all
}

// Whatever a guest does, its call ends soon after its deadline.
func TestEveryRunEnds(t *testing.T) {
	const all = 64 << 20
	fill := append(numbers(0, 1, all), opBulk, 11, 0)
	move := append(numbers(0, 1, all-1), opBulk, 10, 0, 0)
	write := append(numbers(1, 1<<10, 7_000_000, 64), opCall, 1, 0x1a)
	late := "error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest"
	tests := []struct {
		name   string
		hook   []byte
		others [][]byte
		want   string
	}{
		{"a loop", silent(opLoop, 0x40, 0x0c, 0, opEnd), nil, late},
		{"calls without a loop", silent(opCall, 44), callTree(40), late},
		{"a run of fills", silent(bytes.Repeat(fill, 2000)...), nil, late},
		{"a run of copies", silent(bytes.Repeat(move, 2000)...), nil, late},
		{"a run of slow calls of the host", silent(bytes.Repeat(write, 2000)...), nil, late},
		{"blank lines on standard output", silent(blankLines()...), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := shared.LoadBytes(t.Context(), "x.wasm", embed(t, forge(tt.hook, tt.others...), leastManifest), Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := joinExtension(t, e, &journal{})
			begin := time.Now()
			if got := ask(t, s, "x"); got != tt.want && got != late { // blank lines may end in time or not
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if took := time.Since(begin); took > 2*time.Second { // of which 200ms are the guest's
				t.Errorf("it took %v", took)
			}
		})
	}
}

// oneFunction is a module with one function.
func oneFunction(body []byte) *module {
	code := append(appendU32([]byte{1}, uint32(len(body))), body...)
	return &module{
		types: []signature{{}}, funcs: []uint32{0},
		sections: []section{{id: sectionType, data: []byte{1, 0x60, 0, 0}}, {id: sectionFunction, data: []byte{1, 0}}, {id: sectionCode, data: code}},
	}
}

func TestCodeRefused(t *testing.T) {
	deep := func(n int, op, more byte) []byte {
		return slices.Concat(bytes.Repeat([]byte{op, 0x40}, n), bytes.Repeat([]byte{opEnd}, n), []byte{more})
	}
	tests := []struct {
		name, want string
		body       []byte
	}{
		{"a large body", "function 0: it has 1048577 bytes, and 1048576 is the most: that is over the limit code, since it would take too long to compile", make([]byte, 1<<20+1)},
		{"many variables", "function 0: it has 5001 local variables, and 5000 is the most: that is over the limit code, since it would take too long to compile", append(appendU32([]byte{1}, 5001), 0x7f, opEnd)},
		{"more variables than numbers", "function 0: it has 8589934590 local variables, and 5000 is the most: that is over the limit code, since it would take too long to compile", []byte{2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, opEnd}},
		{"loops in loops with many variables", "function 0: it has 2000 local variables and 11 loops within each other, whose product may be 20000: that is over the limit code, since it would take too long to compile", append(append(appendU32([]byte{1}, 2000), 0x7f), deep(11, opLoop, opEnd)...)},
		{"deep blocks", "function 0: it has more than 20000 blocks within each other: that is over the limit code, since it would take too long to compile", append([]byte{0}, deep(20_000, opBlock, opEnd)...)},
		{"a large table of branches", "function 0: its tables have more than 50000 branches: that is over the limit code, since it would take too long to compile", append(append(appendU32([]byte{0, opBrTable}, 50_001), make([]byte, 50_002)...), opEnd)},
		{"an instruction of a proposal", "function 0: it has an instruction 18, which this host does not know: build it for WebAssembly 2.0 without proposals", []byte{0, 0x12, 0, opEnd}},
		{"a body without end", "function 0: " + errMalformed.Error(), []byte{0, opBlock, 0x40, opEnd}},
		{"code behind the end", "function 0: " + errMalformed.Error(), []byte{0, opEnd, opEnd}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := oneFunction(tt.body).rewrite()
			if err == nil || err.Error() != tt.want {
				t.Errorf("rewrite: %x, %v\nwant %s", got, err, tt.want)
			}
		})
	}
	as := append(append(appendU32([]byte{1}, 2000), 0x7f), deep(10, opLoop, opEnd)...)
	if _, err := oneFunction(as).rewrite(); err != nil {
		t.Errorf("just within the limit: %v", err)
	}
}
