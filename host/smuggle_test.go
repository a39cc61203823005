package host

import (
	"bytes"
	"slices"
	"testing"
)

// withSection changes one section of a module.
func withSection(t testing.TB, wasm []byte, id byte, change func([]byte) []byte) []byte {
	t.Helper()
	all, err := sections(wasm)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].id == id {
			all[i].data = change(bytes.Clone(all[i].data))
		}
	}
	return joinSections(all...)
}

// Where the host and the compiler would read the same bytes in two ways, a loop
// could hide from the host, or what the host adds from the compiler: nothing
// would end such a guest. The compiler accepts each of these but for the host.
func TestSmuggledCode(t *testing.T) {
	hidden := []byte{opEnd, opLoop, 0x40, opBr, 0, opEnd, opBlock, 0x40}
	hidden = append(hidden, bytes.Repeat([]byte{0x01}, 16-len(hidden))...)
	constant := slices.Concat([]byte{opBlock, 0x40, opBr, 0, opVector, 0x8c, 0}, hidden, []byte{opEnd})
	swallowing := func(exports []byte) []byte { return append(exports, byte(len(exportYield)+1)) }
	unknown := func(number string) string {
		return "it has a value of type " + number + ", which this host does not know: build it for WebAssembly 2.0 without proposals"
	}
	tests := []struct {
		name, want string
		wasm       []byte
	}{
		{"an export that swallows the name of the host's", "section 7: " + errMalformed.Error(), withSection(t, forge(forever()), sectionExport, swallowing)},
		{"a vector constant that the compiler takes for another instruction", "function 3: " + errMalformed.Error(), forge(silent(constant...))},
		{"a local variable whose type has two bytes", "function 3: " + unknown("99"), forge([]byte{1, 1, 0x63, 0x70, opI64Const, 0, opEnd})},
		{"a parameter whose type has two bytes", "section 1: " + unknown("100"), withSection(t, forge(silent()), sectionType, func(types []byte) []byte {
			return append([]byte{types[0] + 1, 0x60, 1, 0x64, 0x70, 0}, types[1:]...)
		})},
		{"a select whose type has two bytes", "function 3: " + unknown("99"), forge(silent(slices.Concat(numbers(0), []byte{opRefNull, 0x70, opRefNull, 0x70}, numbers(1), []byte{opSelectTyped, 1, 0x63, 1, 0x1a, 0x1a})...))},
		{"a block whose type has two bytes", "function 3: " + unknown("99"), forge(silent(opBlock, 0x63, 0x70, opRefNull, 0x70, opEnd, 0x1a))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := shared.LoadBytes(t.Context(), "x.wasm", embed(t, tt.wasm, leastManifest), Options{})
			if want := `load extension "least": ` + tt.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// The compiler makes room for as many names as the section says it has. It does
// not get to see one that lies; one that is true tells where a guest trapped.
func TestNamesThatLie(t *testing.T) {
	named := func(count uint32, names ...byte) []byte {
		part := append(appendU32(nil, count), names...)
		data := append(appendU32(append(appendName(nil, "name"), namesOfFunctions), uint32(len(part))), part...)
		return append(appendU32(append(forge(silent(opUnreachable)), sectionCustom), uint32(len(data))), data...)
	}
	const memory = ": it had 65536 KiB of memory: the limit memory is 64MiB"
	const nameless = "error: the guest trapped: unreachable in .$3(i32,i32) i64" + memory
	tests := []struct {
		name, want string
		wasm       []byte
	}{
		{"a true name", "error: the guest trapped: unreachable in .boom(i32,i32) i64" + memory, named(1, append([]byte{3, 4}, "boom"...)...)},
		{"four billion names", nameless, named(1<<32 - 1)},
		{"more names than functions", nameless, named(5)},
		{"a name without end", nameless, named(1, 3, 200)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := shared.LoadBytes(t.Context(), "x.wasm", embed(t, tt.wasm, leastManifest), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := ask(t, joinExtension(t, e, &journal{}), "x"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// addSection adds a section that the module does not have.
func addSection(t testing.TB, wasm []byte, id byte, data []byte) []byte {
	t.Helper()
	all, err := sections(wasm)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, section{id: id, data: data})
	slices.SortStableFunc(all, func(a, b section) int {
		return slices.Index(sectionOrder, a.id) - slices.Index(sectionOrder, b.id)
	})
	return joinSections(all...)
}

// What the compiler does with a module before it looks into its cache happens in
// this process, and each instance has its own variables and elements: what would
// take seconds, or many times the limit memory, is refused.
func TestModulesThatAreTooMuch(t *testing.T) {
	many := func(n int, item ...byte) []byte { return append(appendU32(nil, uint32(n)), bytes.Repeat(item, n)...) }
	wide := slices.Concat([]byte{0x60}, many(900, 0x7f), many(900, 0x7f)) // a type
	moving := func(code ...byte) []byte {
		return withSection(t, forge(silent(append([]byte{opUnreachable}, code...)...)), sectionType, func(types []byte) []byte {
			return slices.Concat([]byte{types[0] + 1}, types[1:], wide)
		})
	}
	withTypes := func(types []byte) []byte {
		return withSection(t, forge(silent()), sectionType, func([]byte) []byte { return types })
	}
	const slow = "function 3: its calls, blocks and branches take and give more than 33554432 values: that is over the limit code, since it would take too long to compile"
	tests := []struct {
		name, want string
		wasm       []byte
	}{
		{"many types", "section 1: it has 2001 types with 0 values in all, and 2000 with 20000 is the most: make it smaller", withTypes(many(2001, 0x60, 0, 0))},
		{"large types", "section 1: it has 12 types with 21600 values in all, and 2000 with 20000 is the most: make it smaller", withTypes(many(12, wide...))},
		{"a huge type", "section 1: it has a type with a list of 1001 items, and 1000 is the most: make it smaller", withTypes(slices.Concat([]byte{1, 0x60}, many(1001, 0x7f), []byte{0}))},
		{"many blocks with many values", slow, moving(bytes.Repeat([]byte{opBlock, 6, opEnd}, 20_000)...)},
		{"many branches with many values", slow, moving(slices.Concat([]byte{opBlock, 6, opBrTable}, many(40_000, 0), []byte{0, opEnd})...)},
		{"many indirect calls with many values", slow, moving(bytes.Repeat([]byte{opCallIndirect, 6, 0}, 20_000)...)},
		{"many global variables", "it has a list of global variables of 10001 items, and 10000 is the most: make it smaller", addSection(t, forge(silent()), sectionGlobal, many(10_001, 0x7f, 1, opI32Const, 0, opEnd))},
		{"many elements", "section 9: there are more than 100000 elements for tables: that is over the limit tables", addSection(t, forge(silent()), sectionElement, slices.Concat([]byte{2, 1, 0}, many(100_000, 3), []byte{1, 0, 1, 3}))},
		{"many segments of data", "section 11: it has a list of 100001 items, and 100000 is the most: make it smaller", addSection(t, forge(silent()), sectionData, many(100_001, 0, opI32Const, 0, opEnd, 0))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := shared.LoadBytes(t.Context(), "x.wasm", embed(t, tt.wasm, leastManifest), Options{})
			if want := `load extension "least": ` + tt.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}
