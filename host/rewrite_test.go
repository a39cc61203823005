package host

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

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

// withSections is a module whose one function has the code, with more sections.
func withSections(code []byte, more ...section) []byte {
	body := append([]byte{0}, code...)
	all := []section{
		{id: sectionType, data: []byte{1, 0x60, 0, 0}},
		{id: sectionFunction, data: []byte{1, 0}},
		{id: sectionCode, data: append(appendU32([]byte{1}, uint32(len(body))), body...)},
	}
	all = append(all, more...)
	slices.SortStableFunc(all, func(a, b section) int {
		return slices.Index(sectionOrder, a.id) - slices.Index(sectionOrder, b.id)
	})
	return joinSections(all...)
}

// joinSections puts sections together.
func joinSections(all ...section) []byte {
	out := bytes.Clone(preamble)
	for _, s := range all {
		out = append(appendU32(append(out, s.id), uint32(len(s.data))), s.data...)
	}
	return out
}

// Whatever names something just past what a module has would get what the host
// adds there, so it is refused.
func TestNothingAddedIsReached(t *testing.T) {
	end := []byte{opEnd}
	tests := []struct {
		name, want string
		wasm       []byte
	}{
		{"a call", "function 0: it refers to function 1, and has 1", withSections([]byte{opCall, 1, opEnd})},
		{"a reference", "function 0: it refers to function 1, and has 1", withSections([]byte{opRefFunc, 1, 0x1a, opEnd})},
		{"a global variable", "function 0: it refers to global variable 0, and has 0", withSections([]byte{opGlobalGet, 0, 0x1a, opEnd})},
		{"setting a global variable", "function 0: it refers to global variable 0, and has 0", withSections([]byte{opI32Const, 0, opGlobalSet, 0, opEnd})},
		{"a local variable", "function 0: it refers to local variable 0, and has 0", withSections([]byte{opLocalGet, 0, 0x1a, opEnd})},
		{"a block's type", "function 0: it refers to type 1, and has 1", withSections([]byte{opBlock, 1, opEnd, opEnd})},
		{"a call through a table", "function 0: it refers to type 1, and has 1", withSections([]byte{opI32Const, 0, opCallIndirect, 1, 0, opEnd}, section{id: sectionTable, data: []byte{1, 0x70, 0, 1}})},
		{"a branch", "function 0: it refers to block 1, and has 1", withSections([]byte{opBr, 1, opEnd})},
		{"a function's type", "it refers to type 1, and has 1", withSections(end, section{id: sectionImport, data: append(appendName(appendName([]byte{1}, "a"), "b"), 0, 1)})},
		{"an exported function", "it refers to function 1, and has 1", withSections(end, section{id: sectionExport, data: append(appendName([]byte{1}, "a"), kindFunction, 1)})},
		{"an exported variable", "it refers to global variable 0, and has 0", withSections(end, section{id: sectionExport, data: append(appendName([]byte{1}, "a"), kindGlobal, 0)})},
		{"an exported table", "it refers to table 0, and has 0", withSections(end, section{id: sectionExport, data: append(appendName([]byte{1}, "a"), kindTable, 0)})},
		{"the start function", "it refers to function 1, and has 1", withSections(end, section{id: sectionStart, data: []byte{1}})},
		{"an element", "section 9: it refers to function 1, and has 1", withSections(end, section{id: sectionElement, data: []byte{1, 1, 0, 1, 1}})},
		{"a variable's value", "section 6: it refers to function 1, and has 1", withSections(end, section{id: sectionGlobal, data: []byte{1, 0x70, 0, opRefFunc, 1, opEnd}})},
		{"data's place", "section 11: it refers to global variable 0, and has 0", withSections(end, section{id: sectionData, data: []byte{1, 0, opGlobalGet, 0, opEnd, 0}})},
		{"a function that nothing declares", "function 0: it refers to function 0, which is in no table, export or global variable", withSections([]byte{opRefFunc, 0, 0x1a, opEnd})},
		{"the added function's name", `it exports "wharf: yield", which is a name of the host's: build it with another`, withSections(end, section{id: sectionExport, data: append(appendName([]byte{1}, exportYield), kindFunction, 0)})},
		{"a section twice", "its section 8 is unknown, twice there or out of order: build it again", withSections(end, section{id: sectionStart, data: []byte{0}}, section{id: sectionStart, data: []byte{0}})},
		{"sections out of order", "its section 1 is unknown, twice there or out of order: build it again", joinSections(section{id: sectionFunction, data: []byte{0}}, section{id: sectionType, data: []byte{0}})},
		{"more bodies than functions", "it has not one body for each of its functions: build it again", joinSections(section{id: sectionType, data: []byte{1, 0x60, 0, 0}}, section{id: sectionFunction, data: []byte{1, 0}}, section{id: sectionCode, data: []byte{2, 2, 0, opEnd, 2, 0, opEnd}})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := parseModule(tt.wasm)
			if err == nil {
				_, err = m.rewrite()
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Loops are split, and checks are where the code between two is long; nowhere else.
func TestChecks(t *testing.T) {
	nop := func(n int) []byte { return bytes.Repeat([]byte{0x01}, n) }
	loop := func(code ...byte) []byte {
		return slices.Concat([]byte{opLoop, blockEmpty}, code, []byte{opEnd})
	}
	tests := []struct {
		name          string
		code          []byte
		checks, loops int
	}{
		{"a small function", nop(60), 0, 0},
		{"a larger one", nop(70), 1, 0},
		{"one that calls", []byte{opCall, 0}, 1, 0},
		{"one without a branch, on its way once in 512 bytes", nop(1100), 3, 0},
		{"the longest of two ways counts", slices.Concat([]byte{opI32Const, 0, opIf, blockEmpty}, nop(400), []byte{opElse}, nop(300), []byte{opEnd}, nop(200)), 2, 0},
		{"a loop is two", loop(opI32Const, 0, opBrIf, 0), 1, 2},
		{"a loop that calls is one", loop(opCall, 0), 1, 1},
		{"the inner of two is split", loop(loop()...), 2, 3},
		{"a long loop has no check within", loop(nop(1000)...), 1, 2},
		{"a very long one is not split", loop(nop(5000)...), 10, 1},
		{"memory.copy has one of its own, and a long one goes by pieces, up or down", []byte{opI32Const, 0, opI32Const, 0, opI32Const, 0, opBulk, 10, 0, 0}, 2, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := parseModule(withSections(append(slices.Clone(tt.code), opEnd), section{id: sectionMemory, data: []byte{1, 0, 1}}))
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.rewrite()
			if err != nil {
				t.Fatal(err)
			}
			checks := bytes.Count(out, []byte{opI32LtS, opIf, blockEmpty, opCall, 1, opEnd})
			if loops := bytes.Count(out, []byte{opLoop, blockEmpty}); checks != tt.checks || loops != tt.loops {
				t.Errorf("%d checks and %d loops; want %d and %d", checks, loops, tt.checks, tt.loops)
			}
			if err := compiles(out); err != nil {
				t.Error(err)
			}
		})
	}
}

// compiles has a module compiled without any deadline.
func compiles(wasm []byte) error {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	_, err := r.CompileModule(ctx, wasm)
	return errors.Join(err, r.Close(ctx))
}

// What is rewritten is valid if and only if it was before, but for sections
// that mean nothing to it.
func FuzzRewrite(f *testing.F) {
	files, err := filepath.Glob("testdata/*.wasm")
	if err != nil || len(files) == 0 {
		f.Fatalf("no modules: %v", err)
	}
	for _, name := range files {
		f.Add(fixture(f, strings.TrimSuffix(filepath.Base(name), ".wasm")))
	}
	for _, s := range spins() {
		if wasm := forge(s.hook, s.others...); len(wasm) < 10_000 {
			f.Add(wasm)
		}
	}
	f.Add(withSections([]byte{opRefFunc, 0, 0x1a, opEnd}, section{id: sectionTable, data: []byte{1, 0x70, 0, 1}}, section{id: sectionElement, data: []byte{1, 3, 0, 1, 0}}))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := parseModule(wasm)
		if err != nil || len(m.memories) > 0 && m.memories[0].min > 1024 {
			return
		}
		plain := joinSections(slices.DeleteFunc(slices.Clone(m.sections), func(s section) bool { return s.id == sectionCustom })...)
		out, err := m.rewrite()
		if err != nil {
			return
		}
		if before, after := compiles(plain), compiles(out); (before == nil) != (after == nil) {
			t.Errorf("as it was: %v; rewritten: %v", before, after)
		}
	})
}
