package builtin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const maxOutput = 64 << 10 // bytes of output that the model gets, half from each end

// headTail keeps the beginning and the end of what is written to it, and
// counts what was between. It is safe for concurrent use: output that comes
// after a command's end was waited for must not corrupt what is read.
type headTail struct {
	mu      sync.Mutex
	head    []byte
	tail    []byte
	dropped int
}

func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	room := min(maxOutput/2-len(h.head), len(p))
	h.head = append(h.head, p[:room]...)
	h.tail = append(h.tail, p[room:]...)
	if extra := len(h.tail) - maxOutput/2; extra > maxOutput { // seldom, so that it costs little
		h.drop(extra)
	}
	return n, nil
}

func (h *headTail) drop(n int) {
	h.dropped += n
	h.tail = append(h.tail[:0], h.tail[n:]...)
}

// String returns what was kept, ending in a newline unless it is empty.
func (h *headTail) String() string { return lines(h.kept()) }

// lines returns a text that ends in a newline unless it is empty.
func lines(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// kept returns what was kept, as whole characters.
func (h *headTail) kept() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keptLocked()
}

// take returns what was kept and begins anew. Unless it is the last time, what may be the
// first part of a character or a line's end waits for the next.
func (h *headTail) take(last bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trimLocked()
	end := &h.tail
	if h.dropped == 0 {
		h.head, h.tail = append(h.head, h.tail...), nil
		end = &h.head
	}
	var rest []byte
	if n := unfinished(*end); n > 0 && !last {
		at := len(*end) - n
		rest, *end = slices.Clone((*end)[at:]), (*end)[:at]
	}
	text := h.keptLocked()
	h.head, h.tail, h.dropped = rest, nil, 0
	return text
}

// unfinished returns how many bytes at the end of b may go on in what comes next.
func unfinished(b []byte) int {
	if bytes.HasSuffix(b, []byte("\r")) {
		return 1
	}
	n := 0
	for !endsWhole(b[:len(b)-n]) {
		n++
	}
	return n
}

// size returns how many bytes were written, kept or not.
func (h *headTail) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.head) + len(h.tail) + h.dropped
}

// trimLocked drops what is not kept for good.
func (h *headTail) trimLocked() {
	if extra := len(h.tail) - maxOutput/2; extra > 0 {
		h.drop(extra)
	}
}

func (h *headTail) keptLocked() string {
	h.trimLocked()
	head, tail := h.head, h.tail
	if h.dropped == 0 {
		head, tail = append(head[:len(head):len(head)], tail...), nil
	} else {
		for len(head) > 0 && !endsWhole(head) {
			head = head[:len(head)-1]
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	var b strings.Builder
	b.WriteString(strings.ToValidUTF8(string(head), "�"))
	if h.dropped > 0 {
		fmt.Fprintf(&b, "\n[… %d bytes left out …]\n", h.dropped)
		b.WriteString(strings.ToValidUTF8(string(tail), "�"))
	}
	return b.String()
}

// endsWhole reports whether b does not end within a character.
func endsWhole(b []byte) bool {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return utf8.FullRune(b[i:])
		}
	}
	return true // no character is that long: it is not text
}
