package host

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// forge makes a module with 64 MiB of memory. Function 0 is the import log, 1
// is WASI's fd_write, 2 is alloc, 3 is the hook; the others take and give nothing.
func forge(hook []byte, others ...[]byte) []byte {
	types := []byte{
		6,
		0x60, 1, 0x7f, 1, 0x7f,
		0x60, 2, 0x7f, 0x7f, 1, 0x7e,
		0x60, 0, 0,
		0x60, 3, 0x7f, 0x7f, 0x7f, 0,
		0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f,
		0x60, 1, 0x7f, 1, 0x7f,
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

// recurse makes a function, number 4, that calls itself to a depth of 65,535 in all
// of its calls together, with so many variables that outlive a call.
func recurse(variables int) []byte {
	body := append(appendU32([]byte{1}, uint32(variables)), 0x7f)
	for i := range variables {
		body = append(append(body, numbers(8)...), 0x28, 2) // i32.load
		body = append(appendU32(body, uint32(4*i)), opLocalSet)
		body = appendU32(body, uint32(i))
	}
	body = append(body, numbers(0, 0)...)
	body = append(body, 0x28, 2, 0, opI32Const, 1, opI32Add, 0x36, 2, 0)
	body = append(body, numbers(0)...)
	body = append(append(body, 0x28, 2, 0), numbers(1<<16-1)...)
	body = append(body, 0x71, opIf, 0x40, opCall, 4, opEnd) // i32.and
	for i := range variables {
		body = append(append(body, numbers(8)...), opLocalGet)
		body = append(appendU32(body, uint32(i)), 0x36, 2)
		body = appendU32(body, uint32(4*i))
	}
	return append(body, opEnd)
}

// chase makes code that loads an address from where the last load led to, so
// often that it takes all of a body. Before, addresses are laid out so that no
// cache holds them.
func chase() []byte {
	const span, stride = 1 << 25, 4097 * 4
	code := numbers(0)
	code = append(code, opLocalSet, 0, opLoop, 0x40, opLocalGet, 0) // i: store the next address at i
	code = append(append(code, opLocalGet, 0), numbers(stride)...)
	code = append(append(code, opI32Add), numbers(span-4)...)
	code = append(append(code, 0x71, 0x36, 2, 0, opLocalGet, 0), numbers(stride)...)
	code = append(append(code, opI32Add), numbers(span-4)...)
	code = append(code, 0x71, opLocalTee, 0, opBrIf, 0, opEnd)
	code = append(code, opLoop, 0x40, opLocalGet, 0)
	code = append(code, bytes.Repeat([]byte{0x28, 2, 0}, 100_000)...)
	return append(code, opLocalSet, 0, opBr, 0, opEnd)
}

// spin is code that does not end by itself in time.
type spin struct {
	name   string
	hook   []byte
	others [][]byte
}

// forever puts code into a loop.
func forever(code ...byte) []byte {
	return silent(slices.Concat([]byte{opLoop, 0x40}, code, []byte{opBr, 0, opEnd})...)
}

func spins() []spin {
	const all = 64 << 20
	fill := append(numbers(0, 1, all), opBulk, 11, 0)
	move := append(numbers(0, 1, all-1), opBulk, 10, 0, 0)
	write := append(numbers(1, 1<<10, 7_000_000, 64), opCall, 1, 0x1a)
	chasing := slices.Concat([]byte{1, 1, 0x7f}, chase(), []byte{opI64Const, 0, opEnd})
	small := bytes.Repeat(append(numbers(0), 0x28, 2, 0, 0x1a), 12)
	return []spin{
		{"an empty loop", forever(), nil},
		{"a loop on a condition", silent(slices.Concat([]byte{opLoop, 0x40}, numbers(1), []byte{opBrIf, 0, opEnd})...), nil},
		{"a loop by a table", silent(slices.Concat([]byte{opLoop, 0x40}, numbers(7), []byte{opBrTable, 1, 0, 0, opEnd})...), nil},
		{"a loop with a value", silent(slices.Concat(numbers(1), []byte{opLoop, 5, opI32Const, 1, opI32Add, opBr, 0, opEnd, 0x1a})...), nil},
		{"loops within each other", forever(opLoop, 0x40, opLoop, 0x40, opI32Const, 0, opBrIf, 0, opEnd, opI32Const, 0, opBrIf, 0, opEnd), nil},
		{"short loops one after the other", forever(bytes.Repeat([]byte{opLoop, 0x40, opI32Const, 0, opBrIf, 0, opEnd}, 1000)...), nil},
		{"a loop around a small function", forever(bytes.Repeat([]byte{opCall, 4}, 100)...), [][]byte{append(append([]byte{0}, small...), opEnd)}},
		{"a loop around a call of the host", forever(append(numbers(0, 0, 0), opCall, 0)...), nil},
		{"a loop of loads that miss all caches", chasing, nil},
		{"calls without a loop", silent(opCall, 44), callTree(40)},
		{"recursion that comes back", forever(opCall, 4), [][]byte{recurse(0)}},
		{"recursion with many variables", forever(opCall, 4), [][]byte{recurse(16)}},
		{"a loop of fills", forever(fill...), nil},
		{"a run of fills", silent(bytes.Repeat(fill, 2000)...), nil},
		{"a run of copies", silent(bytes.Repeat(move, 2000)...), nil},
		{"memory that does not grow", forever(slices.Concat(numbers(1), []byte{opMemoryGrow, 0, 0x1a})...), nil},
		{"a run of slow calls of the host", silent(bytes.Repeat(write, 2000)...), nil},
		{"references to functions", forever(opRefFunc, 3, 0x1a), nil},
	}
}

const spinManifest = `name = "spin"
version = "0.1.0"
abi = 1

[hooks.before_execute_tool]
timeout = "50ms"
`

const spinLate = "error: no answer in time: it ran for 50ms: make it faster, or raise its timeout in the manifest"

func joinSpin(t testing.TB, s spin) *Session {
	t.Helper()
	return joinSpinFor(t, s, spinManifest)
}

func joinSpinFor(t testing.TB, s spin, manifest string) *Session {
	t.Helper()
	e, err := shared.LoadBytes(t.Context(), "spin.wasm", embed(t, forge(s.hook, s.others...), manifest), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return joinExtension(t, e, &journal{})
}

// Whatever a guest does, its call ends soon after its deadline.
func TestEveryRunEnds(t *testing.T) {
	for _, spin := range spins() {
		t.Run(spin.name, func(t *testing.T) {
			s := joinSpin(t, spin)
			late := lateness(t, s)
			for range 2 { // a busy machine alone can make a call late, not again and again
				if late > 250*time.Millisecond {
					late = lateness(t, s)
				}
			}
			if late > 250*time.Millisecond {
				t.Errorf("it ended %v late, and before that too", late)
			}
		})
	}
}

// What a guest writes without end costs no more than its time, either.
func TestBlankLinesEnd(t *testing.T) {
	s := joinSpin(t, spin{hook: silent(blankLines()...)})
	begin := time.Now()
	if got := ask(t, s, "x"); got != "" && got != spinLate {
		t.Errorf("got %s", got)
	}
	if late := time.Since(begin) - 50*time.Millisecond; late > 250*time.Millisecond {
		t.Errorf("it ended %v late", late)
	}
}

// Recursion that does not end by itself is ended before its stack is large,
// whatever a call of it takes.
func TestDeepRecursion(t *testing.T) {
	for _, variables := range []int{0, 16, 200} {
		body := recurse(variables)
		body = bytes.Replace(body, []byte{0x71, opIf}, []byte{0x1a, opIf}, 1) // no end
		s := joinSpinFor(t, spin{hook: silent(opCall, 4), others: [][]byte{body}}, strings.Replace(spinManifest, "50ms", "30s", 1))
		if got, want := ask(t, s, "x"), "error: its functions call each other too deeply: that is over the limit depth"; got != want {
			t.Errorf("with %d variables: %s\nwant %s", variables, got, want)
		}
	}
}

// A call of WASI's that is about as much as fits into the memory ends late by
// itself alone, not by several.
func TestSlowCallsOfWASIEnd(t *testing.T) {
	poll := append(numbers(0, 0, 1_398_000, 64), opCall, 1, 0x1a)
	wasm := withSection(t, forge(silent(bytes.Repeat(poll, 50)...)), sectionImport, func(imports []byte) []byte {
		return bytes.Replace(imports, appendName(nil, "fd_write"), appendName(nil, "poll_oneoff"), 1)
	})
	e, err := shared.LoadBytes(t.Context(), "spin.wasm", embed(t, wasm, spinManifest), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := joinExtension(t, e, &journal{})
	for tries := 3; ; tries-- { // a busy machine alone can make a call late
		late := lateness(t, s)
		if late <= 250*time.Millisecond*slowdown { // the host's own code is slower under the race detector
			return
		}
		if tries == 0 {
			t.Fatalf("it ended %v late, and before that too", late)
		}
	}
}

// BenchmarkLateness is how long after its deadline a call ends.
func BenchmarkLateness(b *testing.B) {
	for _, spin := range spins() {
		b.Run("spin="+strings.ReplaceAll(spin.name, " ", "-"), func(b *testing.B) {
			s := joinSpin(b, spin)
			var late []time.Duration
			for b.Loop() {
				late = append(late, lateness(b, s))
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(late[(len(late)*99-1)/100].Microseconds())/1000, "ms-p99")
		})
	}
}

// lateness calls the hook in an instance of its own, which is dropped then.
func lateness(t testing.TB, s *Session) time.Duration {
	t.Helper()
	const limit = 50 * time.Millisecond
	x, err := s.extension.instantiate(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = x.invoke(t.Context(), "before_execute_tool", limit, []byte("x"))
	late := time.Since(begin) - limit
	if err == nil || "error: "+err.Error() != spinLate {
		t.Fatalf("got  %v\nwant %s", err, spinLate)
	}
	if x.usable() {
		t.Fatal("its instance could be used again")
	}
	return late
}
