package secret

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Scanner finds known values. It is safe for concurrent use, costs next to
// nothing while nothing is known, and a nil or zero Scanner knows nothing.
//
// A value is found as it is, in base64 wherever it stands in what was encoded,
// in hexadecimal, each also with line breaks in it, and each with any of its
// characters escaped as in URLs or JSON.
type Scanner struct {
	mu    sync.Mutex // held while a value is added
	known atomic.Pointer[needles]
}

// Add makes a value known under a name; one that is too short is not looked for.
func (s *Scanner) Add(name, value string) {
	if len(value) < minValue {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Store(s.known.Load().with(name, value))
}

// Knows reports whether there is anything to be found.
func (s *Scanner) Knows() bool { return s != nil && s.known.Load() != nil }

// Find returns the name of a secret whose value is in parts, which are looked
// at as one text, so that a value that goes from one into the next is found too.
func (s *Scanner) Find(parts ...string) (name string, found bool) {
	if !s.Knows() {
		return "", false
	}
	hit, found := s.known.Load().next(strings.Join(parts, ""), 0)
	return hit.name, found
}

// Redact returns text with a mark in the place of each value, and whether there
// was any.
func (s *Scanner) Redact(text string) (string, bool) {
	if !s.Knows() {
		return text, false
	}
	parts, found := s.redact(text)
	return parts[0], found
}

// RedactParts is Redact for texts that follow each other. The mark of a value
// that goes from one into the next stands where the value begins.
func (s *Scanner) RedactParts(parts ...string) ([]string, bool) {
	if !s.Knows() {
		return parts, false
	}
	return s.redact(parts...)
}

func (s *Scanner) redact(parts ...string) ([]string, bool) {
	known, text := s.known.Load(), strings.Join(parts, "")
	hit, found := known.next(text, 0)
	if !found {
		return parts, false
	}
	redacted := make([]string, 0, len(parts))
	at, end := 0, 0 // in text
	for _, part := range parts {
		end += len(part)
		var b strings.Builder
		for ; found && hit.start < end; hit, found = known.next(text, at) {
			b.WriteString(text[at:hit.start] + mark(hit.name))
			at = hit.end
		}
		if at < end {
			b.WriteString(text[at:end])
			at = end
		}
		redacted = append(redacted, b.String())
	}
	return redacted, true
}

// Partial returns in how many parts, counted from the last, a value may have
// begun of which the next text would have the rest.
func (s *Scanner) Partial(parts ...string) int {
	if !s.Knows() {
		return 0
	}
	text := strings.Join(parts, "")
	begin := s.known.Load().partial(text)
	at := len(text)
	for n := range len(parts) {
		if begin >= at {
			return n
		}
		at -= len(parts[len(parts)-1-n])
	}
	return len(parts)
}

// mark stands for a value.
func mark(name string) string { return "[redacted:" + name + "]" }

var (
	nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	markForm = regexp.MustCompile(`\[redacted:[A-Za-z_][A-Za-z0-9_]*\]`)
)

func isName(text string) bool { return nameForm.MatchString(text) }

// Mark returns the first mark in text, if there is one: a text with a mark is
// not what it was, so it must not be written over the original.
func Mark(text string) (mark string, found bool) {
	mark = markForm.FindString(text)
	return mark, mark != ""
}

// needles is all that is looked for. It is constant.
type needles struct {
	all   []needle
	marks []string
	first [256]bool            // the bytes with which a value can begin
	pairs [1 << 16 / 64]uint64 // the two bytes with which a match can begin, if not with an escape
	long  int                  // bytes of the longest match
}

// hit is a match in a text.
type hit struct {
	start, end int
	name       string
}

// with returns n and what a value adds. n may be nil.
func (n *needles) with(name, value string) *needles {
	more := &needles{}
	if n != nil {
		*more = *n
	}
	more.all = slices.Clone(more.all)
	more.marks = append(slices.Clone(more.marks), mark(name))
	for _, added := range needlesOf(name, value) {
		more.all = append(more.all, added)
		more.long = max(more.long, len(added.text)*maxStep)
		added.begin(func(first, second byte) {
			more.first[first] = true
			pair := int(first)<<8 | int(second)
			more.pairs[pair/64] |= 1 << (pair % 64)
		})
	}
	return more
}

// next returns the first match at from or later; of two at one place the longer.
func (n *needles) next(text string, from int) (hit, bool) {
	for i := from; i < len(text)-1; i++ {
		if text[i] == '[' {
			if end := n.markEnd(text[i:]); end > 0 { // what was redacted stays as it is
				i += end - 1
				continue
			}
		}
		if !n.mayBegin(text, i) {
			continue
		}
		best := hit{start: i}
		for _, c := range n.all {
			if end, _ := c.match(text, i); end > best.end {
				best.end, best.name = end, c.name
			}
		}
		if best.end > 0 {
			return best, true
		}
	}
	return hit{}, false
}

// mayBegin is a quick way to say no.
func (n *needles) mayBegin(text string, i int) bool {
	pair := int(text[i])<<8 | int(text[i+1])
	if n.pairs[pair/64]>>(pair%64)&1 != 0 {
		return true
	}
	if text[i] != '%' && text[i] != '\\' {
		return false
	}
	for _, extra := range [2]int{0, deepen(text, i)} {
		if letters, length := decode(text, i, extra); length > 0 && n.first[letters[0]] {
			return true
		}
	}
	return false
}

// markEnd returns the length of the mark of a known secret with which text
// begins, or 0. Any other name could be a value.
func (n *needles) markEnd(text string) int {
	for _, m := range n.marks {
		if strings.HasPrefix(text, m) {
			return len(m)
		}
	}
	return 0
}

// partial returns where a match begins that may end behind text, or the
// length of text.
func (n *needles) partial(text string) int {
	for i := max(0, len(text)-n.long); i < len(text); i++ {
		if i+maxEscape < len(text) && !n.mayBegin(text, i) {
			continue
		}
		for _, c := range n.all {
			if _, open := c.match(text, i); open {
				return i
			}
		}
	}
	return len(text)
}
