package host

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/host/abi"
)

// The sections that the host itself looks into; wazero checks the rest.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

// sectionNames is the custom section with the functions' names, which say where
// a guest trapped.
const sectionNames = "name"

// The kinds of imports and exports.
const (
	kindFunction = 0
	kindTable    = 1
	kindMemory   = 2
	kindGlobal   = 3
)

var kindNames = []string{"function", "table", "memory", "global"}

var (
	preamble  = []byte("\x00asm\x01\x00\x00\x00")
	component = []byte("\x00asm\x0d\x00\x01\x00")
)

// section is one section of a module.
type section struct {
	id         byte
	name       string // of a custom section
	data       []byte // without the name
	start, end int    // in the file, with the header
}

// sections splits a module. After an error it returns those in front of it.
func sections(wasm []byte) ([]section, error) {
	if err := checkPreamble(wasm); err != nil {
		return nil, err
	}
	var all []section
	r := &reader{data: wasm, at: len(preamble)}
	for r.at < len(wasm) {
		start := r.at
		s := section{id: r.byte(), start: start}
		size := r.u32()
		if left := len(wasm) - r.at; r.err == nil && int64(size) > int64(left) {
			return all, fmt.Errorf("the file is truncated: its section %d has %d bytes, of which %d are there: get a whole one",
				s.id, size, left)
		}
		s.data = r.bytes(size)
		s.end = r.at
		if r.err != nil {
			return all, r.err
		}
		if s.id == sectionCustom {
			inner := &reader{data: s.data}
			s.name = string(inner.bytes(inner.u32()))
			if inner.err != nil || !utf8.ValidString(s.name) {
				return all, errMalformed
			}
			s.data = s.data[inner.at:]
		}
		if len(all) == limitSections {
			return all, fmt.Errorf("it has more than %d sections: that is over the limit sections", limitSections)
		}
		all = append(all, s)
	}
	return all, nil
}

func checkPreamble(wasm []byte) error {
	switch {
	case bytes.HasPrefix(wasm, preamble):
		return nil
	case bytes.HasPrefix(wasm, component):
		return errors.New("it is a component, and this host runs core modules: build it for wasip1 (wasm32-wasip1), not wasip2")
	case bytes.HasPrefix(preamble, wasm):
		return errors.New("the file is truncated: it ends before the header does: get a whole one")
	case bytes.HasPrefix(wasm, preamble[:4]):
		return fmt.Errorf("it is of version %x of the binary format, and this host knows version 1", wasm[4:min(len(wasm), 8)])
	default:
		return errors.New("it is no WebAssembly module: it does not begin with \\0asm")
	}
}

// signature is the type of a function.
type signature struct{ params, results string } // a byte a value: i32 is 0x7f, i64 is 0x7e

// limits are the smallest and the largest size of a table or memory.
type limits struct {
	kind   byte // the type of a table's elements
	min    uint32
	max    uint32
	hasMax bool
}

// external is an import or export.
type external struct {
	module string // of an import
	name   string
	kind   byte
	index  uint32 // of the function's type, if it is an imported function; of the item, if it is an export
}

// String names an import as module.name, an export by its name, and says
// what it is if it is no function.
func (e external) String() string {
	text := e.name
	if e.module != "" {
		text = e.module + "." + e.name
	}
	if e.kind != kindFunction {
		text += " (" + kindNames[e.kind] + ")"
	}
	return text
}

// module is what the host needs to know of a module before it is compiled.
type module struct {
	sections []section
	types    []signature
	imports  []external
	funcs    []uint32 // the types of the module's own functions
	tables   []limits
	memories []limits
	exports  []external
}

// parseModule reads a core module. It checks what it reads, not the whole
// module: compiling does that.
func parseModule(wasm []byte) (*module, error) {
	all, err := sections(wasm)
	if err != nil {
		return nil, err
	}
	m := &module{sections: all}
	for _, s := range all {
		r := &reader{data: s.data}
		switch s.id {
		case sectionType:
			if m.types = vector(r, (*reader).signature); r.err == nil {
				r.err = checkTypes(m.types)
			}
		case sectionImport:
			m.imports = vector(r, (*reader).imported)
		case sectionFunction:
			m.funcs = vector(r, (*reader).u32)
		case sectionTable:
			m.tables = vector(r, (*reader).table)
		case sectionMemory:
			m.memories = vector(r, (*reader).limits)
		case sectionExport:
			m.exports = vector(r, (*reader).exported)
		default:
			continue
		}
		if r.err == nil && r.at != len(r.data) { // what the host appends would be read as the end of that
			r.err = errMalformed
		}
		if r.err != nil {
			return nil, fmt.Errorf("section %d: %w", s.id, r.err)
		}
	}
	return m, nil
}

// checkTypes refuses more types than the compiler prepares in a moment: it does
// so for all of them, also where the code is in the cache.
func checkTypes(types []signature) error {
	values := 0
	for _, t := range types {
		values += len(t.params) + len(t.results)
	}
	if len(types) > limitTypes || values > limitTypeValues {
		return fmt.Errorf("it has %d types with %d values in all, and %d with %d is the most: make it smaller", len(types), values, limitTypes, limitTypeValues)
	}
	return nil
}

// export finds an export by name.
func (m *module) export(name string) (external, bool) {
	for _, e := range m.exports {
		if e.name == name {
			return e, true
		}
	}
	return external{}, false
}

// signatureOf returns the type of an exported function.
func (m *module) signatureOf(e external) (signature, bool) {
	if e.kind != kindFunction {
		return signature{}, false
	}
	index := e.index
	for _, i := range m.imports {
		if i.kind != kindFunction {
			continue
		}
		if index == 0 {
			return m.typeAt(i.index)
		}
		index--
	}
	if int64(index) >= int64(len(m.funcs)) {
		return signature{}, false
	}
	return m.typeAt(m.funcs[index])
}

func (m *module) typeAt(index uint32) (signature, bool) {
	if int64(index) >= int64(len(m.types)) {
		return signature{}, false
	}
	return m.types[index], true
}

// reader reads the binary format. Its first error sticks, and what is read
// after it is zero.
type reader struct {
	data []byte
	at   int
	err  error
}

var errMalformed = errors.New("the file is damaged: it ends in the middle of an item, or has a number that is none: get a whole one")

func (r *reader) byte() byte {
	if r.err == nil && r.at >= len(r.data) {
		r.err = errMalformed
	}
	if r.err != nil {
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

func (r *reader) bytes(n uint32) []byte {
	if r.err == nil && int64(n) > int64(len(r.data)-r.at) {
		r.err = errMalformed
	}
	if r.err != nil {
		return nil
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

// u32 reads an unsigned LEB128 number of up to 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.err = cmp.Or(r.err, errMalformed)
	return 0
}

// number skips a LEB128 number of any size and sign.
func (r *reader) number() {
	for r.at < len(r.data) && r.data[r.at] >= 0x80 {
		r.at++
	}
	r.byte()
}

func (r *reader) text() string { return string(r.bytes(r.u32())) }

// vector reads a counted list.
func vector[T any](r *reader, read func(*reader) T) []T {
	var all []T
	for n := r.count("a list", limitItems); n > 0 && r.err == nil; n-- {
		all = append(all, read(r))
	}
	return all
}

// count reads how many items a list has.
func (r *reader) count(what string, most uint32) uint32 {
	n := r.u32()
	if n > most && r.err == nil {
		r.err = fmt.Errorf("it has %s of %d items, and %d is the most: make it smaller", what, n, most)
	}
	return n
}

func (r *reader) signature() signature {
	if r.byte() != 0x60 {
		r.err = errMalformed
	}
	return signature{params: r.valueTypes(), results: r.valueTypes()}
}

func (r *reader) valueTypes() string {
	n := r.count("a type with a list", limitValues)
	from := r.at
	for ; n > 0 && r.err == nil; n-- {
		r.valueType()
	}
	return string(r.data[from:r.at])
}

// valueType reads the type of a value. The compiler knows types of several
// bytes, too, from proposals: whoever takes those for one byte reads other code
// than the compiler.
func (r *reader) valueType() {
	if t := r.byte(); !slices.Contains(valueTypes, t) {
		r.unsupported("a value of type", t)
	}
}

// valueTypes are i32, i64, f32, f64, v128, funcref and externref.
var valueTypes = []byte{0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f}

func (r *reader) imported() external {
	e := external{module: r.text(), name: r.text(), kind: r.byte()}
	switch e.kind {
	case kindFunction:
		e.index = r.u32()
	case kindTable:
		r.table()
	case kindMemory:
		r.limits()
	case kindGlobal:
		r.valueType()
		r.byte()
	default:
		r.unsupported("an import of kind", e.kind)
	}
	return e
}

func (r *reader) exported() external {
	e := external{name: r.text(), kind: r.byte(), index: r.u32()}
	if e.kind > kindGlobal {
		r.unsupported("an export of kind", e.kind)
	}
	return e
}

func (r *reader) table() limits {
	kind := r.byte()
	if kind != 0x70 && kind != 0x6f { // funcref, externref
		r.unsupported("a table of type", kind)
	}
	if r.at < len(r.data) && r.data[r.at] > 1 {
		r.unsupported("a table with flags", r.data[r.at])
	}
	l := r.limits()
	l.kind = kind
	return l
}

func (r *reader) limits() limits {
	flags := r.byte()
	l := limits{min: r.u32(), hasMax: flags&1 != 0}
	if l.hasMax {
		l.max = r.u32()
	}
	if flags > 3 {
		r.unsupported("a table or memory with flags", flags)
	}
	return l
}

func (r *reader) unsupported(what string, number byte) {
	if r.err == nil {
		r.err = fmt.Errorf("it has %s %d, which this host does not know: build it for WebAssembly 2.0 without proposals", what, number)
	}
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}

// manifestText returns the text of a module's manifest section.
func manifestText(all []section) (string, error) {
	text, found := "", false
	for _, s := range all {
		if s.id != sectionCustom || s.name != abi.ManifestSection {
			continue
		}
		if found {
			return "", fmt.Errorf("it has two sections %s: build it again", abi.ManifestSection)
		}
		text, found = string(s.data), true
	}
	if !found {
		return "", errNoManifest
	}
	return text, nil
}

var errNoManifest = fmt.Errorf("it has no manifest (custom section %s): build it with wharf ext build, or embed one", abi.ManifestSection)

// EmbedManifest returns the module with manifest as its first section, in the
// place of any that it had: even a file cut short tells what it would have
// been. The manifest must be a valid one.
func EmbedManifest(wasm []byte, manifest string) ([]byte, error) {
	all, err := sections(wasm)
	if err != nil {
		return nil, fmt.Errorf("embed a manifest: %w", err)
	}
	if _, err := ParseManifest(manifest); err != nil {
		return nil, fmt.Errorf("embed a manifest: %w", err)
	}
	body := append(appendName(nil, abi.ManifestSection), manifest...)
	out := append(bytes.Clone(preamble), sectionCustom)
	out = append(appendU32(out, uint32(len(body))), body...)
	for _, s := range all {
		if s.id != sectionCustom || s.name != abi.ManifestSection {
			out = append(out, wasm[s.start:s.end]...)
		}
	}
	return out, nil
}

// ReadManifest returns the text of the manifest in a module, valid or not. It
// finds one in front of whatever else is wrong with the file.
func ReadManifest(wasm []byte) (string, error) {
	all, broken := sections(wasm)
	text, err := manifestText(all)
	if err != nil && broken != nil {
		return "", fmt.Errorf("read a manifest: %w", broken)
	}
	if err != nil {
		return "", fmt.Errorf("read a manifest: %w", err)
	}
	return text, nil
}
