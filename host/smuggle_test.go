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
