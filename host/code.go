package host

import "fmt"

// This file reads the code of a module, instruction by instruction, before it
// is compiled: to refuse what would take the compiler too long, and to put in
// the points at which a guest can be stopped.
//
// wazero looks whether a call is over at the header of each loop, and nowhere
// else. Recursion without a loop, a run of instructions that each move much
// memory and a run of calls to the host would go on for minutes. So an empty
// loop, which changes nothing else, is put where those begin.

// stop is a point at which the guest can be stopped: loop (without a type) end.
var stop = []byte{0x03, 0x40, 0x0b}

// Instructions that the host looks at.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opEnd          = 0x0b
	opBrTable      = 0x0e
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opBulk         = 0xfc
	opVector       = 0xfd
)

// addStops returns the code section with stops.
func (m *module) addStops(data []byte) ([]byte, error) {
	imported := 0
	for _, i := range m.imports {
		if i.kind == kindFunction {
			imported++
		}
	}
	r := &reader{data: data}
	count := r.u32()
	out := appendU32(make([]byte, 0, len(data)+len(data)/8), count)
	f := &function{imported: uint32(imported)}
	for i := 0; uint32(i) < count && r.err == nil; i++ {
		body := r.bytes(r.u32())
		if r.err != nil {
			break
		}
		if err := f.read(body); err != nil {
			return nil, fmt.Errorf("function %d: %w", imported+i, err)
		}
		out = f.appendTo(out)
	}
	if r.err != nil {
		return nil, r.err
	}
	return append(out, data[r.at:]...), nil // anything left over is for the compiler to refuse
}

// function is a function's body that is being read.
type function struct {
	reader
	imported uint32 // this many functions are imported
	locals   uint64
	blocks   []byte // the instructions that opened the blocks around
	loops    uint64 // of them
	branches uint32 // in all its tables
	stops    []int  // where one is needed
}

// read finds out where the body needs stops. The first is for the function as
// a whole, which needs one if it calls others of the module.
func (f *function) read(body []byte) error {
	*f = function{reader: reader{data: body}, imported: f.imported, blocks: append(f.blocks[:0], opBlock), stops: f.stops[:0]}
	if len(body) > limitBody {
		return overCode("it has %d bytes, and %d is the most", len(body), limitBody)
	}
	for n := f.u32(); n > 0 && f.err == nil; n-- {
		f.locals += uint64(f.u32())
		f.byte()
	}
	if f.locals > limitLocals && f.err == nil {
		return overCode("it has %d local variables, and %d is the most", f.locals, limitLocals)
	}
	f.stops = append(f.stops, f.at)
	calls := false
	for len(f.blocks) > 0 && f.err == nil {
		calls = f.instruction() || calls
	}
	if !calls {
		f.stops = f.stops[1:]
	}
	if f.err == nil && f.at != len(body) {
		return errMalformed
	}
	return f.err
}

// appendTo appends the body with its stops, behind its size.
func (f *function) appendTo(out []byte) []byte {
	out = appendU32(out, uint32(len(f.data)+len(stop)*len(f.stops)))
	from := 0
	for _, at := range f.stops {
		out = append(append(out, f.data[from:at]...), stop...)
		from = at
	}
	return append(out, f.data[from:]...)
}

// overCode is an error about the limit code.
func overCode(format string, args ...any) error {
	return fmt.Errorf(format+": that is over the limit code, since it would take too long to compile", args...)
}

// instruction reads one instruction and what stands behind it, and reports
// whether it may call a function of the module.
func (f *function) instruction() (calls bool) {
	at := f.at
	switch op := f.byte(); op {
	case opBlock, opLoop, opIf:
		f.numbers(1)
		f.open(op)
	case opEnd:
		f.end()
	case opBrTable:
		f.table()
	case opCall:
		if f.u32() >= f.imported {
			return true
		}
		f.stops = append(f.stops, at)
	case opCallIndirect:
		f.numbers(2)
		f.stops = append(f.stops, at)
		return true
	case opMemoryGrow:
		f.numbers(1)
		f.stops = append(f.stops, at)
	case opSelectTyped:
		f.bytes(f.u32())
	case opF32Const:
		f.bytes(4)
	case opF64Const:
		f.bytes(8)
	case opBulk:
		f.bulk(at)
	case opVector:
		f.vector()
	default:
		f.plain(op)
	}
	return false
}

// plain reads what stands behind an instruction that has numbers behind it, or
// nothing.
func (f *function) plain(op byte) {
	switch {
	case op >= 0x28 && op <= 0x3e: // loads and stores: an alignment and an offset
		f.numbers(2)
	case op == 0x0c, op == 0x0d, // br, br_if
		op >= 0x20 && op <= 0x26, // local, global and table variables
		op == 0x3f, op == opI32Const, op == opI64Const,
		op == 0xd0, op == 0xd2: // ref.null, ref.func
		f.numbers(1)
	case op <= 0x01, op == 0x05, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	default:
		f.unsupported("an instruction", op)
	}
}

// bulk reads what stands behind 0xfc. What moves memory or tables gets a stop.
func (f *function) bulk(at int) {
	op := f.u32()
	if op >= 8 && op != 9 && op != 13 && op != 16 { // all but data.drop, elem.drop and table.size
		f.stops = append(f.stops, at)
	}
	switch op {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case 8, 10, 12, 14:
		f.numbers(2)
	case 9, 11, 13, 15, 16, 17:
		f.numbers(1)
	default:
		f.unsupported("an instruction 252", byte(min(op, 255)))
	}
}

// vector reads what stands behind 0xfd.
func (f *function) vector() {
	switch op := f.u32(); {
	case op <= 11, op == 92, op == 93: // loads and stores
		f.numbers(2)
	case op == 12, op == 13: // a constant, a shuffle
		f.bytes(16)
	case op >= 21 && op <= 34: // a lane
		f.bytes(1)
	case op >= 84 && op <= 91: // a load or store of a lane
		f.numbers(2)
		f.bytes(1)
	case op > 255:
		f.unsupported("an instruction 253", 255)
	}
}

func (f *function) open(op byte) {
	f.blocks = append(f.blocks, op)
	if op == opLoop {
		f.loops++
	}
	switch {
	case f.err != nil:
	case len(f.blocks) > limitBlocks:
		f.err = overCode("it has more than %d blocks within each other", limitBlocks)
	case f.loops*f.locals > limitLoopLocals:
		f.err = overCode("it has %d local variables and %d loops within each other, whose product may be %d", f.locals, f.loops, limitLoopLocals)
	}
}

func (f *function) end() {
	last := len(f.blocks) - 1
	if f.blocks[last] == opLoop {
		f.loops--
	}
	f.blocks = f.blocks[:last]
}

// table reads what stands behind br_table.
func (f *function) table() {
	n := f.u32()
	if f.branches += min(n, limitBranches+1); f.branches > limitBranches && f.err == nil {
		f.err = overCode("its tables have more than %d branches", limitBranches)
		return
	}
	f.numbers(int(n) + 1)
}

// numbers skips LEB128 numbers of any size and sign.
func (f *function) numbers(n int) {
	for ; n > 0 && f.err == nil; n-- {
		for f.at < len(f.data) && f.data[f.at] >= 0x80 {
			f.at++
		}
		f.byte()
	}
}
