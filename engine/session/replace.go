package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Check says what is wrong with a replacement here and now: nil, or why it must
// not be added. Its targets are of the history's own; they are either results,
// whose content is replaced, or whole blocks, which are.
func (h *History) Check(e ContextReplaced) error {
	switch {
	case e.By == "":
		return errors.New("a replacement that does not say by what")
	case len(e.Targets) == 0:
		return errors.New("a replacement of nothing")
	}
	removed, results, missing := 0, 0, map[int64]int{} // results that a removed block still misses, by its place
	for i, seq := range e.Targets {
		if i > 0 && seq <= e.Targets[i-1] {
			return fmt.Errorf("a replacement whose targets are not in order: %d after %d", seq, e.Targets[i-1])
		}
		at, result, ok := h.locate(seq)
		if !ok {
			return fmt.Errorf("a replacement of event %d, which the model is not shown", seq)
		}
		b := &h.blocks[at]
		if result < 0 {
			removed++
			missing[b.place] += b.answered()
		} else {
			results++
			missing[b.place]--
		}
	}
	if removed == 0 {
		if strings.TrimSpace(e.Content) == "" {
			return errors.New("a replacement of results by nothing")
		}
		return nil
	}
	for place, n := range missing {
		if n != 0 {
			i, _ := h.find(place)
			return fmt.Errorf("a replacement that parts the calls of event %d from their results", h.blocks[i].Seq)
		}
	}
	return nil
}

// answered returns how many of a block's calls have their result.
func (b *Block) answered() int {
	n := 0
	for _, r := range b.Results {
		if r.Seq > 0 {
			n++
		}
	}
	return n
}

// check refuses what Add would leave out.
func (h *History) check(e Event) error {
	if e, ok := e.(ContextReplaced); ok {
		return h.Check(e)
	}
	return nil
}

// locate returns the block that shows an event, and which of its results does;
// -1 for the message itself.
func (h *History) locate(seq int64) (block, result int, ok bool) {
	place, moved := h.moved[seq]
	if !moved {
		place = seq
	}
	i, exact := h.find(place)
	if !exact {
		i--
	}
	if i < 0 {
		return 0, 0, false
	}
	if h.blocks[i].Seq == seq {
		return i, -1, true
	}
	for j, r := range h.blocks[i].Results {
		if r.Seq == seq && seq > 0 {
			return i, j, true
		}
	}
	return 0, 0, false
}

// replace applies a replacement that Check has nothing against.
func (h *History) replace(seq int64, e ContextReplaced) {
	var removed []int
	for _, target := range e.Targets {
		if i, j, _ := h.locate(target); j < 0 {
			removed = append(removed, i)
		}
	}
	if len(removed) > 0 {
		h.replaceBlocks(seq, removed, e)
		return
	}
	for _, target := range e.Targets {
		i, j, _ := h.locate(target)
		b := h.touch(i)
		h.size -= b.Size()
		r := &b.Results[j]
		r.By, r.Message = e.By, Message{Role: ToolRole, Content: e.Content, CallID: r.Message.CallID, IsError: r.Message.IsError}
		h.size += b.Size()
	}
}

// replaceBlocks removes blocks, and puts a message in the place of the first.
func (h *History) replaceBlocks(seq int64, removed []int, e ContextReplaced) {
	slices.Sort(removed)
	first := removed[0]
	h.touch(first)
	place := h.blocks[first].place
	blocks, kept := h.blocks[first:], h.blocks[:first:first]
	if strings.TrimSpace(e.Content) != "" {
		b := Block{Seq: seq, place: place, Message: Message{Role: User, Content: e.Content}, By: e.By}
		b.Opens = len(removed) == 1 && blocks[0].Opens // it is the same prompt in other words
		kept = append(kept, b)
		h.size += b.Size()
		defer h.move(seq, place)
	}
	for i, b := range blocks {
		i += first
		if len(removed) == 0 || removed[0] != i {
			kept = append(kept, b)
			continue
		}
		removed = removed[1:]
		h.size -= b.Size()
		h.weight -= b.weight
		delete(h.moved, b.Seq)
		for _, r := range b.Results {
			delete(h.moved, r.Seq)
		}
	}
	h.blocks = kept
}
