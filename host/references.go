package host

import (
	"fmt"

	"github.com/wharf-agent/wharf/host/abi"
)

// This file checks what the sections around the code refer to.

// What a call of an imported function costs in fuel, in bytes of code. A
// function of WASI can take long at once, so each of its calls takes all there is.
const (
	costImport = 4 << 10
	costWASI   = fuelFull * costUnit
)

func importCost(i external) uint32 {
	if i.module == abi.WASI {
		return costWASI
	}
	return costImport
}

// each reads a section that is a list.
func (w *rewriting) each(id byte, item func(r *reader)) error {
	data, ok := w.data[id]
	if !ok {
		return nil
	}
	r := &reader{data: data}
	for n := r.count("a list", limitItems); n > 0 && r.err == nil; n-- {
		item(r)
	}
	if r.err == nil && r.at != len(r.data) {
		r.err = errMalformed
	}
	if r.err != nil {
		return fmt.Errorf("section %d: %w", id, r.err)
	}
	return nil
}

func (w *rewriting) checkElements() error { return w.each(sectionElement, w.element) }

func (w *rewriting) checkGlobals() error {
	return w.each(sectionGlobal, func(r *reader) {
		r.valueType()
		r.byte()
		w.expression(r)
	})
}

func (w *rewriting) checkData() error {
	return w.each(sectionData, func(r *reader) {
		flags := r.u32()
		if flags == 2 {
			r.u32()
		}
		if flags != 1 {
			w.expression(r)
		}
		if flags > 2 {
			r.unsupported("data with flags", byte(min(flags, 255)))
		}
		r.bytes(r.u32())
	})
}

func (w *rewriting) checkExports() error {
	for _, e := range w.exports {
		switch {
		case e.name == exportYield:
			return fmt.Errorf("it exports %q, which is a name of the host's: build it with another", e.name)
		case e.kind == kindGlobal && e.index >= w.space.globals:
			return outside("global variable", e.index, w.space.globals)
		case e.kind == kindTable && e.index >= w.space.tables:
			return outside("table", e.index, w.space.tables)
		case e.kind != kindFunction:
		case e.index >= w.space.funcs:
			return outside("function", e.index, w.space.funcs)
		default:
			w.space.declared[e.index] = true
		}
	}
	return nil
}

func (w *rewriting) checkStart() error {
	data, ok := w.data[sectionStart]
	if !ok {
		return nil
	}
	r := &reader{data: data}
	if i := r.u32(); r.err == nil && i >= w.space.funcs {
		return outside("function", i, w.space.funcs)
	}
	return r.err
}

// element reads one segment of elements.
func (w *rewriting) element(r *reader) {
	flags := r.u32()
	if flags > 7 {
		r.unsupported("elements with flags", byte(min(flags, 255)))
		return
	}
	if flags&1 == 0 { // it is put into a table
		if flags&2 != 0 {
			w.below(r, w.space.tables, "table")
		}
		w.expression(r)
	}
	switch {
	case flags&3 == 0:
	case flags&4 != 0:
		r.valueType()
	case r.byte() != 0 && r.err == nil: // the kind of the elements: functions
		r.err = errMalformed
	}
	n := r.u32()
	if w.elements += uint64(n); w.elements > limitTableElements && r.err == nil {
		r.err = fmt.Errorf("there are more than %d elements for tables: that is over the limit tables", limitTableElements)
	}
	for ; n > 0 && r.err == nil; n-- {
		if flags&4 != 0 {
			w.expression(r)
		} else {
			w.refer(r)
		}
	}
}

// refer reads the index of a function that a table or variable refers to.
func (w *rewriting) refer(r *reader) {
	i := w.below(r, w.space.funcs, "function")
	if r.err == nil {
		w.space.declared[i] = true
	}
}

func (w *rewriting) below(r *reader, n uint32, what string) uint32 {
	i := r.u32()
	if r.err == nil && i >= n {
		r.err = outside(what, i, n)
	}
	return i
}

// expression reads a constant expression.
func (w *rewriting) expression(r *reader) {
	for r.err == nil {
		switch op := r.byte(); op {
		case opEnd:
			return
		case opGlobalGet:
			w.below(r, w.space.globals, "global variable")
		case opRefFunc:
			w.refer(r)
		case opI32Const, opI64Const, opRefNull:
			r.number()
		case opF32Const:
			r.bytes(4)
		case opF64Const:
			r.bytes(8)
		case opVector:
			if r.u32() != 12 && r.err == nil {
				r.unsupported("in an initial value an instruction", op)
			}
			r.bytes(16)
		default:
			r.unsupported("in an initial value an instruction", op)
		}
	}
}
