package host

// This file writes what takes the place of instructions that move much memory
// at once. Nothing can end one of those while it runs, and 64 MiB take up to
// tens of milliseconds; so what is longer than a piece is handed to a function
// that is added, which moves it piece by piece and yields between.

// pieceFull is how long a piece is; a test takes shorter ones.
const pieceFull = 1 << 20

// The instructions behind 0xfc that are cut up.
const (
	bulkCopy = 10
	bulkFill = 11
)

// More instructions that are written.
const (
	opMemorySize = 0x3f
	opI32GtU     = 0x4b
	opI32LeU     = 0x4d
	opI64GtU     = 0x56
	opI64Add     = 0x7c
	opI64Shl     = 0x86
	opI64ExtendU = 0xad // from i32
)

// moved writes a memory.copy or memory.fill, whose operands lie on top: a short
// one takes fuel for its length.
func (w *writer) moved(op byte, source []byte) {
	w.op(opLocalTee, w.spare)
	w.op(opLocalGet, w.spare)
	w.constant(w.added.piece)
	w.op(opI32GtU)
	w.op(opIf, w.added.operands)
	w.op(opCall, w.added.long(op))
	w.op(opElse)
	w.bulk()
	w.out = append(w.out, source...)
	w.op(opEnd)
}

// The parameters of the added functions: where to, from where or which byte,
// and how much.
const (
	paramTo = iota
	paramFrom
	paramLength
)

// longMove writes the body of the function for long ones.
func (w *writer) longMove(op byte) {
	w.out = append(w.out[:0], 0)
	w.trapOutside(op, paramTo)
	if op == bulkFill {
		w.upward(op)
	} else {
		w.trapOutside(op, paramFrom)
		w.op(opLocalGet, paramTo)
		w.op(opLocalGet, paramFrom)
		w.op(opI32LeU)
		w.op(opIf, blockEmpty)
		w.upward(op)
		w.op(opElse)
		w.downward(op)
		w.op(opEnd)
	}
	w.whole(op) // what is left
	w.op(opEnd)
}

// trapOutside does it all at once if it ends outside the memory: then nothing
// may be moved before it traps.
func (w *writer) trapOutside(op byte, from uint32) {
	w.op(opLocalGet, from)
	w.op(opI64ExtendU)
	w.op(opLocalGet, paramLength)
	w.op(opI64ExtendU)
	w.op(opI64Add)
	w.op(opMemorySize, 0)
	w.op(opI64ExtendU)
	w.op(opI64Const, 16)
	w.op(opI64Shl)
	w.op(opI64GtU)
	w.op(opIf, blockEmpty)
	w.whole(op)
	w.op(opEnd)
}

// upward moves pieces until one is left, the lowest first.
func (w *writer) upward(op byte) {
	w.op(opLoop, blockEmpty)
	w.op(opCall, w.added.yield)
	w.op(opLocalGet, paramTo)
	w.op(opLocalGet, paramFrom)
	w.constant(w.added.piece)
	w.operate(op)
	w.advance(paramTo, opI32Add)
	if op == bulkCopy {
		w.advance(paramFrom, opI32Add)
	}
	w.advance(paramLength, opI32Sub)
	w.againIfLong()
}

// downward moves pieces until one is left, the highest first: the source would
// else be overwritten before it is read.
func (w *writer) downward(op byte) {
	w.op(opLoop, blockEmpty)
	w.op(opCall, w.added.yield)
	w.advance(paramLength, opI32Sub)
	for _, end := range []uint32{paramTo, paramFrom} {
		w.op(opLocalGet, end)
		w.op(opLocalGet, paramLength)
		w.op(opI32Add)
	}
	w.constant(w.added.piece)
	w.operate(op)
	w.againIfLong()
}

// advance adds a piece to a parameter, or subtracts it.
func (w *writer) advance(param uint32, op byte) {
	w.op(opLocalGet, param)
	w.constant(w.added.piece)
	w.op(op)
	w.op(opLocalSet, param)
}

// againIfLong ends a loop.
func (w *writer) againIfLong() {
	w.op(opLocalGet, paramLength)
	w.constant(w.added.piece)
	w.op(opI32GtU)
	w.op(opBrIf, 0)
	w.op(opEnd)
}

// whole moves all that the parameters say.
func (w *writer) whole(op byte) {
	for _, p := range []uint32{paramTo, paramFrom, paramLength} {
		w.op(opLocalGet, p)
	}
	w.operate(op)
}

// operate writes the instruction itself.
func (w *writer) operate(op byte) {
	w.out = append(w.out, opBulk, op, 0)
	if op == bulkCopy {
		w.out = append(w.out, 0)
	}
}
