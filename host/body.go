package host

import "fmt"

// This file reads the code of a module, instruction by instruction, before it
// is compiled: to refuse what would take the compiler too long, and to find the
// places at which a guest must count, so that it can be stopped. Package doc of
// rewrite.go says what is done there.

// Instructions that the host looks at, or writes.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32LtS       = 0x48
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32ShrU      = 0x76
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opBulk         = 0xfc
	opVector       = 0xfd
)

// What code costs is counted in its bytes: an instruction of one or two bytes
// can miss every cache, so time goes with bytes better than with instructions.
const (
	costCall  = 64  // of a call, which is all that calling a small leaf costs
	costCheck = 512 // a path has no more than this without a check

	largeFrame = 1 << 10 // bytes of stack for which each call pays
)

// cost is what the code on the most expensive path to a place costs.
type cost struct {
	since int // since the last check
	loop  int // since the header of the innermost loop
}

func (c cost) or(d cost) cost { return cost{max(c.since, d.since), max(c.loop, d.loop)} }

// block is an open block, loop or if, or the whole function.
type block struct {
	op    byte
	loop  int  // the innermost loop around what is in it; -1 is none
	arity int  // the values that it takes and gives
	entry cost // of an if, where its else begins
	exit  cost // at its end, by branches
}

// loop is a loop of a function.
type loop struct {
	block int  // its place among the open blocks
	plain bool // it has loops within, or calls
	path  int  // what one round costs at most
}

// markKind says what is done at a mark.
type markKind byte

const (
	markCheck  markKind = iota // counts cost
	markLoop                   // a loop's header
	markEnd                    // a loop's end
	markBranch                 // a branch that leaves a loop
	markBulk                   // an instruction whose operand on top says how long it takes
	markMove                   // one that is cut up if it takes long
	markYield                  // looks at the clock, whatever was counted
	markRef                    // ref.func
)

// mark is a place in a body that is rewritten.
type mark struct {
	kind    markKind
	at, end int    // what the mark stands for in the body; nothing, if it only inserts
	loop    int    // the innermost loop around, or the one that it is about; -1 is none
	n       uint32 // markCheck: the cost; markBranch: the blocks that are open within the loop; markMove: which instruction; markRef: the function
}

// body is a function's body.
type body struct {
	reader
	module  *space
	locals  uint64 // declared ones
	params  uint32
	values  int  // parameters and results
	code    int  // where its instructions begin
	cost    int  // of all of it, each instruction once
	leaf    bool // it has neither calls nor loops
	inLoop  bool // it begins with a loop, whose check is enough
	blocks  []block
	open    uint64 // loops around
	now     cost
	loops   []loop
	marks   []mark
	targets uint32 // of all its tables of branches
}

// overCode is an error about the limit code.
func overCode(format string, args ...any) error {
	return fmt.Errorf(format+": that is over the limit code, since it would take too long to compile", args...)
}

// read reads the body and finds its marks.
func (f *body) read() error {
	if len(f.data) > limitBody {
		return overCode("it has %d bytes, and %d is the most", len(f.data), limitBody)
	}
	for n := f.u32(); n > 0 && f.err == nil; n-- {
		f.locals += uint64(f.u32())
		f.valueType()
	}
	if f.locals > limitLocals && f.err == nil {
		return overCode("it has %d local variables, and %d is the most", f.locals, limitLocals)
	}
	f.code, f.leaf = f.at, true
	f.blocks = append(f.blocks[:0], block{op: opBlock, loop: -1, arity: f.values})
	control := false
	for len(f.blocks) > 0 && f.err == nil {
		at := f.at
		if f.now.since > costCheck {
			f.mark(mark{kind: markCheck, at: at, end: at, n: costCheck})
			f.now.since = 0
		}
		op := f.instruction()
		f.spend(f.at - at)
		if !control && isControl(op) {
			control = true
			f.inLoop = op == opLoop && at-f.code <= costCall && f.frame() <= largeFrame
		}
	}
	if f.err == nil && f.at != len(f.data) {
		return errMalformed
	}
	return f.err
}

// frame estimates what a call of the function takes on the stack, in bytes. It
// is part of the call's cost, so that the stack cannot grow by much between two
// checks.
func (f *body) frame() int { return 8 * (int(f.params) + int(f.locals)) }

// isControl reports whether an instruction can lead elsewhere than to the next
// one, or take long.
func isControl(op byte) bool {
	return op >= opBlock && op <= opCallIndirect || op == opMemoryGrow || op == opBulk
}

// spend adds to the cost of the path.
func (f *body) spend(n int) {
	f.now.since += n
	f.now.loop += n
	f.cost += n
	if i := f.innermost(); i >= 0 {
		f.loops[i].path = max(f.loops[i].path, f.now.loop)
	}
}

func (f *body) innermost() int {
	if len(f.blocks) == 0 {
		return -1
	}
	return f.blocks[len(f.blocks)-1].loop
}

// mark adds a mark, about the innermost loop unless it says another.
func (f *body) mark(m mark) {
	if m.kind != markLoop && m.kind != markEnd {
		m.loop = f.innermost()
	}
	f.marks = append(f.marks, m)
}

// called notes that the function is no leaf, and that its loop is not split.
func (f *body) called() {
	f.leaf = false
	if i := f.innermost(); i >= 0 {
		f.loops[i].plain = true
	}
}

// instruction reads one instruction and what stands behind it.
func (f *body) instruction() byte {
	at := f.at
	op := f.byte()
	switch op {
	case opBlock, opLoop, opIf:
		f.opens(op, at, f.blockType())
	case opElse:
		f.otherwise()
	case opEnd:
		f.ends(at)
	case opBr, opBrIf:
		f.branch(at, f.u32())
		f.markBranch(at)
		if op == opBr {
			f.now = cost{}
		}
	case opBrTable:
		f.table(at)
		f.now = cost{}
	case opReturn, opUnreachable:
		f.now = cost{}
	case opCall:
		f.call(at)
	case opCallIndirect:
		if i := f.index(f.module.types, "type"); f.err == nil {
			f.moves(f.module.arity[i])
		}
		f.numbers(1)
		f.called()
		f.spend(costCall)
	case opLocalGet, opLocalSet, opLocalTee:
		f.index(uint32(f.locals)+f.params, "local variable")
	case opGlobalGet, opGlobalSet:
		f.index(f.module.globals, "global variable")
	case opMemoryGrow:
		f.exactly(0)
		f.called()
		f.mark(mark{kind: markYield, at: at, end: at})
	case opRefFunc:
		f.reference(at)
	default:
		f.plain(op)
	}
	return op
}

// plain reads what stands behind an instruction that only computes.
func (f *body) plain(op byte) {
	switch {
	case op == opSelectTyped:
		f.exactly(1)
		f.valueType()
	case op == opF32Const:
		f.bytes(4)
	case op == opF64Const:
		f.bytes(8)
	case op == opBulk:
		f.bulk(f.at - 1)
	case op == opVector:
		f.vector()
	case op >= 0x28 && op <= 0x3e: // loads and stores: an alignment and an offset
		f.numbers(2)
	case op == opMemorySize:
		f.exactly(0)
	case op == opRefNull:
		f.valueType()
	case op == opTableGet, op == opTableGet+1, op == opI32Const, op == opI64Const:
		f.numbers(1)
	case op == 0x01, op == 0x1a, op == 0x1b, op >= opI32Eqz && op <= 0xc4, op == 0xd1:
	default:
		f.unsupported("an instruction", op)
	}
}

// bulk reads what stands behind 0xfc.
func (f *body) bulk(at int) {
	op := f.u32()
	switch op {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case bulkCopy:
		f.exactly(0)
		f.exactly(0)
	case bulkFill:
		f.exactly(0)
	case 8, 12, 14:
		f.numbers(2)
	case 9, 13, 15, 16, 17:
		f.numbers(1)
	default:
		f.unsupported("an instruction 252", byte(min(op, 255)))
	}
	kind := markBulk
	switch {
	case op < 8, op == 9, op == 13, op == 16: // conversions, data.drop, elem.drop and table.size
		return
	case op == 15: // table.grow
		kind = markYield
	}
	f.called()
	end := at
	if op == bulkCopy || op == bulkFill {
		kind, end = markMove, f.at
	}
	f.mark(mark{kind: kind, at: at, end: end, n: op})
}

// exactly reads a byte that can have one value only.
func (f *body) exactly(value byte) {
	if got := f.byte(); got != value && f.err == nil {
		f.err = errMalformed
	}
}

// vector reads what stands behind 0xfd. The compiler takes one byte for the
// instruction, and the second, which those from 128 on have, for a nop.
func (f *body) vector() {
	op := f.byte()
	if op >= 128 {
		f.exactly(1)
	}
	switch {
	case op <= 11, op == 92, op == 93: // loads and stores
		f.numbers(2)
	case op == 12, op == 13: // a constant, a shuffle
		f.bytes(16)
	case op >= 21 && op <= 34: // a lane
		f.bytes(1)
	case op >= 84 && op <= 91: // a load or store of a lane
		f.numbers(2)
		f.bytes(1)
	}
}

// blockType reads the type of a block, and returns how many values it takes and
// gives. An index counts against the types that the module itself has.
func (f *body) blockType() int {
	switch {
	case f.at >= len(f.data) || f.data[f.at]&0xc0 != 0x40:
		if i := f.index(f.module.types, "type"); f.err == nil {
			return f.module.arity[i]
		}
	case f.data[f.at] == blockEmpty:
		f.at++
	default: // negative: no index
		f.valueType()
		return 1
	}
	return 0
}

// moves counts values that an instruction takes and gives: the compiler looks at
// each, so that a byte of code can be a thousand steps for it.
func (f *body) moves(values int) {
	if f.module.moved += values; f.module.moved > limitMoved && f.err == nil {
		f.err = overCode("its calls, blocks and branches take and give more than %d values", limitMoved)
	}
}

// index reads an index, which must be below n.
func (f *body) index(n uint32, what string) uint32 {
	i := f.u32()
	if i >= n && f.err == nil {
		f.err = outside(what, i, n)
	}
	return i
}

// numbers skips LEB128 numbers of any size and sign.
func (f *body) numbers(n int) {
	for ; n > 0 && f.err == nil; n-- {
		f.number()
	}
}

// call reads a call.
func (f *body) call(at int) {
	callee := f.index(f.module.funcs, "function")
	f.called()
	f.spend(costCall)
	if f.err == nil {
		f.moves(f.module.callees[callee])
	}
	if f.err == nil && callee < uint32(len(f.module.imported)) {
		f.mark(mark{kind: markCheck, at: at, end: at, n: f.module.imported[callee]})
	}
}

// reference reads ref.func.
func (f *body) reference(at int) {
	callee := f.index(f.module.funcs, "function")
	if f.err != nil {
		return
	}
	if !f.module.declared[callee] {
		f.err = fmt.Errorf("it refers to function %d, which is in no table, export or global variable", callee)
	}
	f.mark(mark{kind: markRef, at: at, end: f.at, n: callee})
}

func (f *body) opens(op byte, at, arity int) {
	b := block{op: op, loop: f.innermost(), arity: arity, entry: f.now}
	f.moves(arity)
	if op == opIf {
		b.exit = f.now
	}
	if op == opLoop {
		if b.loop >= 0 {
			f.loops[b.loop].plain = true
		}
		if f.now.since > 2*costUnit { // the loop pays for its rounds alone
			f.mark(mark{kind: markCheck, at: at, end: at, n: uint32(f.now.since)})
		}
		f.open++
		b.loop = len(f.loops)
		f.loops = append(f.loops, loop{block: len(f.blocks)})
		f.mark(mark{kind: markLoop, at: at, end: f.at, loop: b.loop})
		f.now = cost{}
		f.leaf = false
	}
	f.blocks = append(f.blocks, b)
	switch {
	case f.err != nil:
	case len(f.blocks) > limitBlocks:
		f.err = overCode("it has more than %d blocks within each other", limitBlocks)
	case f.open*f.locals > limitLoopLocals:
		f.err = overCode("it has %d local variables and %d loops within each other, whose product may be %d", f.locals, f.open, limitLoopLocals)
	}
}

func (f *body) otherwise() {
	b := &f.blocks[len(f.blocks)-1]
	b.exit = b.exit.or(f.now)
	f.now = b.entry
}

func (f *body) ends(at int) {
	last := len(f.blocks) - 1
	b := f.blocks[last]
	if b.op == opLoop {
		f.open--
		f.mark(mark{kind: markEnd, at: at, end: at, loop: b.loop})
	} else {
		f.now = f.now.or(b.exit)
	}
	f.blocks = f.blocks[:last]
}

// branch reads where a branch goes to, and what the way there costs.
func (f *body) branch(at int, depth uint32) {
	if f.err != nil {
		return
	}
	if int64(depth) >= int64(len(f.blocks)) {
		f.err = outside("block", depth, uint32(len(f.blocks)))
		return
	}
	b := &f.blocks[len(f.blocks)-1-int(depth)]
	f.moves(b.arity)
	now := f.now
	now.since += f.at - at
	now.loop += f.at - at
	b.exit = b.exit.or(now)
}

// table reads what stands behind br_table.
func (f *body) table(at int) {
	n := f.u32()
	if f.targets += min(n, limitBranches+1); f.targets > limitBranches && f.err == nil {
		f.err = overCode("its tables have more than %d branches", limitBranches)
	}
	for i := 0; i <= int(n) && f.err == nil; i++ {
		f.branch(at, f.u32())
	}
	f.markBranch(at)
}

// markBranch marks a branch from within a loop, which may lead out of it.
func (f *body) markBranch(at int) {
	loop := f.innermost()
	if loop < 0 || f.err != nil {
		return
	}
	f.mark(mark{kind: markBranch, at: at, end: f.at, n: uint32(len(f.blocks) - 1 - f.loops[loop].block)})
}
