package host

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// This file rewrites a module before it is compiled, so that it can be stopped
// while it runs. The guest counts what it does, and yields by itself: it has
// fuel, and each function, each round of a loop and each long run of
// instructions takes some. Out of fuel it calls the function yield, where the
// host looks whether the call is over or its stack too large (interrupt.go) and
// else gives it more.
//
// All that is added stands behind what the module has, so nothing is
// renumbered. A table takes the place of ref.func, of which each would leave
// memory of the host's behind. Whatever the module refers to is
// checked against what it had before: an invalid module must not become a
// valid one, and no guest reaches what was added.

// exportYield is the export by which the host finds the function that was added.
const exportYield = "wharf: yield"

// space is what the code of a module can refer to.
type space struct {
	types, funcs, globals, tables uint32
	arity                         []int    // of each type: parameters and results
	callees                       []int    // of each function, likewise
	moved                         int      // values that the code takes and gives
	imported                      []uint32 // for each imported function, what a call of it costs
	declared                      []bool   // whether ref.func may name the function
}

// added is what the rewriter adds, by index.
type added struct {
	yield    uint32
	fuel     uint32
	table    uint32
	slots    map[uint32]uint32 // functions in the table
	order    []uint32          // of them
	piece    int               // what is moved at once
	operands uint32            // the type of the functions that move more
	moves    []byte            // the instructions for which there is one, behind yield
}

// slot returns the place of a function in the added table.
func (a *added) slot(function uint32) uint32 {
	i, ok := a.slots[function]
	if !ok {
		i = uint32(len(a.order))
		a.slots[function] = i
		a.order = append(a.order, function)
	}
	return i
}

// long returns the function that takes the place of an instruction.
func (a *added) long(op byte) uint32 {
	i := slices.Index(a.moves, op)
	if i < 0 {
		i = len(a.moves)
		a.moves = append(a.moves, op)
	}
	return a.yield + 1 + uint32(i)
}

// outside is an error about an index of nothing that there is.
func outside(what string, index, count uint32) error {
	return fmt.Errorf("it refers to %s %d, and has %d", what, index, count)
}

// rewriting is the work on one module.
type rewriting struct {
	*module
	space space
	added added
	data  map[byte][]byte // the sections as they were
	fuel  int             // what a guest has between yields
	piece int

	elements uint64 // of all segments
}

// rewrite returns the module as it is compiled: with bounded tables, and so
// that it can be stopped. What it does not know, it refuses. What is left of
// an invalid module is for the compiler to refuse.
func (m *module) rewrite() ([]byte, error) {
	if err := m.boundTables(); err != nil {
		return nil, err
	}
	return m.count(fuelFull, pieceFull)
}

// count makes the module count, with so much fuel between yields and memory
// moved in pieces so long.
func (m *module) count(fuel, piece int) ([]byte, error) {
	w := &rewriting{module: m, data: map[byte][]byte{}, fuel: fuel, piece: piece}
	if err := m.checkOrder(); err != nil {
		return nil, err
	}
	for _, s := range m.sections {
		if s.id != sectionCustom {
			w.data[s.id] = s.data
		}
	}
	for _, step := range []func() error{w.measure, w.checkElements, w.checkGlobals, w.checkExports, w.checkStart, w.checkData, w.code} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return w.assemble(), nil
}

// measure counts what the module has.
func (w *rewriting) measure() error {
	s := &w.space
	s.types, s.funcs, s.tables = uint32(len(w.types)), uint32(len(w.funcs)), uint32(len(w.module.tables))
	if data, ok := w.data[sectionGlobal]; ok {
		r := &reader{data: data}
		if s.globals = r.count("a list of global variables", limitGlobals); r.err != nil {
			return r.err
		}
	}
	for _, t := range w.types {
		s.arity = append(s.arity, len(t.params)+len(t.results))
	}
	for _, i := range w.imports {
		switch i.kind {
		case kindFunction:
			if i.index >= s.types {
				return outside("type", i.index, s.types)
			}
			s.funcs++
			s.callees = append(s.callees, s.arity[i.index])
			s.imported = append(s.imported, importCost(i))
		case kindTable:
			s.tables++
		case kindGlobal:
			s.globals++
		}
	}
	for _, t := range w.funcs {
		if t >= s.types {
			return outside("type", t, s.types)
		}
		s.callees = append(s.callees, s.arity[t])
	}
	s.declared = make([]bool, s.funcs)
	w.added = added{
		yield: s.funcs, fuel: s.globals, table: s.tables, slots: map[uint32]uint32{},
		piece: w.piece, operands: s.types + 1,
	}
	return nil
}

// code rewrites the code section.
func (w *rewriting) code() error {
	r := &reader{data: w.data[sectionCode]}
	if len(w.funcs) == 0 {
		return nil
	}
	if n := r.u32(); r.err != nil || int(n) != len(w.funcs) {
		return errors.New("it has not one body for each of its functions: build it again")
	}
	imported := len(w.space.imported)
	pen, blocks := &writer{added: &w.added}, []block(nil)
	out := make([]byte, 0, len(r.data)*5/4)
	for i, t := range w.funcs {
		f := &body{reader: reader{data: r.bytes(r.u32())}, module: &w.space, params: uint32(len(w.types[t].params)), values: w.space.arity[t], blocks: blocks}
		if r.err != nil {
			return r.err
		}
		if err := f.read(); err != nil {
			return fmt.Errorf("function %d: %w", imported+i, err)
		}
		out = pen.append(out, f)
		blocks = f.blocks
	}
	if r.at != len(r.data) {
		return errMalformed
	}
	out = w.addBodies(out, pen)
	w.data[sectionCode] = append(appendU32(nil, uint32(len(w.funcs)+1+len(w.added.moves))), out...)
	return nil
}

// addBodies appends the bodies of what is added: yield, which fills up the
// fuel, and what moves much memory.
func (w *rewriting) addBodies(out []byte, pen *writer) []byte {
	pen.out = append(pen.out[:0], 0)
	pen.constant(w.fuel)
	pen.op(opGlobalSet, w.added.fuel)
	pen.op(opEnd)
	out = append(appendU32(out, uint32(len(pen.out))), pen.out...)
	for _, op := range w.added.moves {
		pen.longMove(op)
		out = append(appendU32(out, uint32(len(pen.out))), pen.out...)
	}
	return out
}

// addTable adds the table for ref.func.
func (w *rewriting) addTable() {
	if len(w.added.order) == 0 {
		return
	}
	n := uint32(len(w.added.order))
	w.extend(sectionTable, appendU32(appendU32([]byte{0x70, 1}, n), n))
	segment := append(appendU32([]byte{2}, w.added.table), opI32Const, 0, opEnd, 0)
	segment = appendU32(segment, n)
	for _, f := range w.added.order {
		segment = appendU32(segment, f)
	}
	w.extend(sectionElement, segment)
}

// extend adds items to a section that is a list.
func (w *rewriting) extend(id byte, items ...[]byte) {
	r := &reader{data: w.data[id]}
	n := uint32(0)
	if len(r.data) > 0 {
		n = r.u32()
	}
	data := appendU32(nil, n+uint32(len(items)))
	data = append(data, r.data[r.at:]...)
	for _, item := range items {
		data = append(data, item...)
	}
	w.data[id] = data
}

// sectionOrder is the order of the sections in a file.
var sectionOrder = []byte{
	sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal, sectionExport,
	sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData,
}

// assemble puts the module together.
func (w *rewriting) assemble() []byte {
	w.addTable()
	if len(w.funcs) > 0 {
		w.extend(sectionType, []byte{0x60, 0, 0}, append([]byte{0x60, 3}, i32+i32+i32+"\x00"...))
		own := [][]byte{appendU32(nil, w.space.types)}
		for range w.added.moves {
			own = append(own, appendU32(nil, w.added.operands))
		}
		w.extend(sectionFunction, own...)
		global := func(v int) []byte { return append(appendS32([]byte{i32[0], 1, opI32Const}, int32(v)), opEnd) }
		w.extend(sectionGlobal, global(w.fuel))
		export := func(name string, i uint32) []byte { return appendU32(append(appendName(nil, name), kindFunction), i) }
		w.extend(sectionExport, export(exportYield, w.added.yield))
	}
	out := bytes.Clone(preamble)
	add := func(id byte, data []byte) { out = append(appendU32(append(out, id), uint32(len(data))), data...) }
	for _, id := range sectionOrder {
		if data, ok := w.data[id]; ok {
			add(id, data)
		}
	}
	if names := w.functionNames(); names != nil {
		add(sectionCustom, append(appendName(nil, sectionNames), names...))
	}
	return out
}

// functionNames returns what the compiler gets to know of the section with
// names: those of functions, which say where a guest trapped. It would make room
// for as many as the section claims to have; a section that claims too much is
// left out.
func (w *rewriting) functionNames() []byte {
	for _, s := range w.sections {
		if s.id != sectionCustom || s.name != sectionNames {
			continue
		}
		for r := (&reader{data: s.data}); r.at < len(r.data) && r.err == nil; {
			id, data := r.byte(), r.bytes(r.u32())
			if id == namesOfFunctions && r.err == nil && w.namesFit(data) {
				return append(appendU32([]byte{id}, uint32(len(data))), data...)
			}
		}
	}
	return nil
}

// namesOfFunctions is the part of the section with names that is about functions.
const namesOfFunctions = 1

func (w *rewriting) namesFit(data []byte) bool {
	r := &reader{data: data}
	n := r.u32()
	if n > w.space.funcs {
		return false
	}
	for ; n > 0 && r.err == nil; n-- {
		r.u32()
		r.bytes(r.u32())
	}
	return r.err == nil && r.at == len(data)
}

// boundTables cuts each table's largest size down so that all tables together never hold more than limitTableElements;
// the runtime itself has no such limit.
func (m *module) boundTables() error {
	left := int64(limitTableElements)
	for _, t := range m.tables {
		left -= int64(t.min)
	}
	if left < 0 {
		return fmt.Errorf("its tables have more than %d elements in all: that is over the limit tables", limitTableElements)
	}
	body := appendU32(nil, uint32(len(m.tables)))
	for _, t := range m.tables {
		most := int64(t.min) + left
		if t.hasMax {
			most = min(most, int64(t.max))
		}
		left -= max(most-int64(t.min), 0)
		body = append(body, t.kind, 1)
		body = appendU32(appendU32(body, t.min), uint32(most))
	}
	for i := range m.sections {
		if m.sections[i].id == sectionTable {
			m.sections[i].data = body
		}
	}
	return nil
}

// checkOrder refuses sections that are not in their order: putting them
// together again would make the file valid.
func (m *module) checkOrder() error {
	last := -1
	for _, s := range m.sections {
		if s.id == sectionCustom {
			continue
		}
		at := slices.Index(sectionOrder, s.id)
		if at <= last {
			return fmt.Errorf("its section %d is unknown, twice there or out of order: build it again", s.id)
		}
		last = at
	}
	return nil
}
