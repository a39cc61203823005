package host

// This file writes a body that has been read, with the code by which the guest
// counts.
//
// A loop with neither loops nor calls within is split in two. The outer one
// takes fuel for some rounds in advance; the inner one counts only them, in a
// variable of its own, so that no call stands in it: a call in a loop, even one
// that is never reached, has the compiler keep the loop's values in memory.
//
//	loop            outer: fuel -= rounds × cost; below 0: yield
//	  rounds → left
//	  loop          inner: left -= 1; is it 0: go round the outer
//	    …           the body; its own branches to the loop lead here
//	  end
//	end

const (
	fuelFull    = 8192 // what a guest gets each time it yields
	costUnit    = 64   // bytes of code that one unit of fuel is good for
	bulkShift   = 10   // a unit of fuel is good for 2 to the power of this bytes or elements that are moved
	maxRounds   = 32   // of a split loop, paid in advance
	roundsUnits = 64   // the most fuel that is taken in advance for more than one round
	maxSplit    = 4096 // a loop with a longer path is not split: most rounds would take a shorter one
)

const blockEmpty = 0x40

// writer writes bodies.
type writer struct {
	out   []byte
	added *added

	body  *body  // that is being written
	spare uint32 // a variable of it for a moment
	left  uint32 // and one for the rounds that are left
}

// append appends the body, behind its size.
func (w *writer) append(out []byte, f *body) []byte {
	w.body, w.out = f, w.out[:0]
	w.spare = f.params + uint32(f.locals)
	w.left = w.spare + 1
	w.declare()
	from := f.code
	if !f.inLoop && !(f.leaf && f.cost <= costCall) {
		w.check(min(f.cost, costCheck) + f.frame())
	}
	for _, m := range f.marks {
		w.out = append(w.out, f.data[from:m.at]...)
		w.write(m)
		from = m.end
	}
	w.out = append(w.out, f.data[from:]...)
	return append(appendU32(out, uint32(len(w.out))), w.out...)
}

// declare writes the declarations, with two variables more.
func (w *writer) declare() {
	r := &reader{data: w.body.data}
	w.out = appendU32(w.out, r.u32()+1)
	w.out = append(w.out, w.body.data[r.at:w.body.code]...)
	w.out = append(w.out, 2, i32[0])
}

// splitting reports whether a loop is split.
func (w *writer) splitting(loop int) bool {
	if loop < 0 {
		return false
	}
	l := w.body.loops[loop]
	return !l.plain && l.path <= maxSplit
}

// units is the fuel for code that costs so much.
func units(cost int) int { return 1 + cost/costUnit }

func (w *writer) write(m mark) {
	source := w.body.data[m.at:m.end]
	switch m.kind {
	case markCheck:
		if !w.splitting(m.loop) {
			w.check(int(m.n))
		}
	case markLoop:
		w.loop(m, source)
	case markEnd:
		if w.splitting(m.loop) {
			w.op(opEnd)
		}
	case markBranch:
		w.branch(m, source)
	case markBulk:
		w.bulk()
	case markMove:
		w.moved(byte(m.n), source)
	case markYield:
		w.op(opCall, w.added.yield)
	case markRef:
		w.op(opI32Const)
		w.out = appendS32(w.out, int32(w.added.slot(m.n)))
		w.op(opTableGet, w.added.table)
	}
}

// op writes an instruction with indexes behind it.
func (w *writer) op(op byte, indexes ...uint32) {
	w.out = append(w.out, op)
	for _, i := range indexes {
		w.out = appendU32(w.out, i)
	}
}

func (w *writer) constant(v int) { w.out = appendS32(append(w.out, opI32Const), int32(v)) }

// check takes fuel for code that costs so much.
func (w *writer) check(cost int) {
	w.op(opGlobalGet, w.added.fuel)
	w.constant(units(cost))
	w.take()
}

// take subtracts what lies on top from the fuel that lies below it, and yields
// if less than nothing is left.
func (w *writer) take() {
	w.op(opI32Sub)
	w.op(opLocalTee, w.spare)
	w.op(opGlobalSet, w.added.fuel)
	w.op(opLocalGet, w.spare)
	w.constant(0)
	w.op(opI32LtS)
	w.out = append(w.out, opIf, blockEmpty)
	w.op(opCall, w.added.yield)
	w.op(opEnd)
}

// bulk takes fuel for an instruction that moves as much as the operand on top says.
func (w *writer) bulk() {
	w.op(opLocalTee, w.spare)
	w.op(opGlobalGet, w.added.fuel)
	w.op(opLocalGet, w.spare)
	w.constant(bulkShift)
	w.op(opI32ShrU)
	w.constant(1)
	w.op(opI32Add)
	w.take()
}

// loop writes a loop's header.
func (w *writer) loop(m mark, source []byte) {
	l := w.body.loops[m.loop]
	w.out = append(w.out, source...)
	if !w.splitting(m.loop) {
		w.check(min(l.path, costCheck))
		return
	}
	round := units(l.path)
	rounds := min(max(roundsUnits/round, 1), maxRounds)
	w.check((rounds*round - 1) * costUnit)
	w.constant(rounds + 1)
	w.op(opLocalSet, w.left)
	w.out = append(w.out, source...)
	w.op(opLocalGet, w.left)
	w.constant(1)
	w.op(opI32Sub)
	w.op(opLocalTee, w.left)
	w.op(opI32Eqz)
	w.op(opBrIf, 1)
}

// branch writes a branch. What leads out of a split loop passes one block more.
func (w *writer) branch(m mark, source []byte) {
	if !w.splitting(m.loop) {
		w.out = append(w.out, source...)
		return
	}
	r := &reader{data: source}
	op, n := r.byte(), uint32(0)
	w.out = append(w.out, op)
	if op == opBrTable {
		n = r.u32()
		w.out = appendU32(w.out, n)
	}
	for i := 0; i <= int(n); i++ {
		depth := r.u32()
		if depth > m.n {
			depth++
		}
		w.out = appendU32(w.out, depth)
	}
}

// appendS32 appends a signed LEB128 number.
func appendS32(b []byte, v int32) []byte {
	for v < -64 || v > 63 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}
