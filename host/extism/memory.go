package extism

import (
	"encoding/binary"
	"math/bits"
)

// memory is what the ABI calls the kernel's: blocks of bytes, outside of the
// guest's own memory, that both sides read and write. The addresses are
// indexes into one slice; which blocks there are stands outside of it, where no
// guest can write.
type memory struct {
	data   []byte
	blocks map[uint64]uint64 // the lengths of those in use, by address
	free   [33][]uint64      // the addresses of those that are not, by the power of two that is their size
}

const (
	firstAddress = 16 // so that 0 is no block
	smallest     = 4  // a power of two
	largest      = 32

	// blockCost is what a block takes besides its bytes, in a map and a list.
	blockCost = 64
)

// reset frees all blocks. A memory that grew large is given back.
func (m *memory) reset() {
	if cap(m.data) > 1<<20 {
		m.data = nil
	}
	m.data = append(m.data[:0], make([]byte, firstAddress)...)
	clear(m.blocks)
	m.free = [33][]uint64{}
}

// alloc returns the address of n new bytes, which are zero. It is 0 if n is, or
// if they would take more than room besides what is there.
func (m *memory) alloc(n uint64, room int) uint64 {
	if n == 0 || n > 1<<largest {
		return 0
	}
	class := max(bits.Len64(n-1), smallest)
	var at uint64
	if list := m.free[class]; len(list) > 0 {
		at = list[len(list)-1]
		m.free[class] = list[:len(list)-1]
		clear(m.data[at : at+1<<class])
	} else {
		if int64(len(m.data))+1<<class+blockCost*int64(len(m.blocks)) > int64(room) {
			return 0
		}
		at = uint64(len(m.data))
		m.data = append(m.data, make([]byte, 1<<class)...)
	}
	if m.blocks == nil {
		m.blocks = map[uint64]uint64{}
	}
	m.blocks[at] = n
	return at
}

// release frees a block. What is no block is let be.
func (m *memory) release(at uint64) {
	n, ok := m.blocks[at]
	if !ok {
		return
	}
	delete(m.blocks, at)
	class := max(bits.Len64(n-1), smallest)
	m.free[class] = append(m.free[class], at)
}

// block returns a block's bytes, which stay valid until the next alloc; nil if
// there is none.
func (m *memory) block(at uint64) []byte {
	n := m.blocks[at]
	return m.data[at*min(n, 1):][:n]
}

// bytes returns n bytes at an address, which need not be a block's. They must
// be there.
func (m *memory) bytes(at, n uint64) []byte {
	if at > uint64(len(m.data)) || n > uint64(len(m.data))-at {
		panic(faultf("%d bytes at %#x are in no block of Extism's memory", n, at))
	}
	return m.data[at : at+n]
}

func (m *memory) loadU64(at uint64) uint64 { return binary.LittleEndian.Uint64(m.bytes(at, 8)) }
