package patch

import (
	"iter"
	"slices"
)

// view is a file's lines as they are compared, and where those stand that hunks name.
type view struct {
	lines  []string
	places map[string][]int
}

func newView(lines []string, hunks []Hunk, blind func(string) string) *view {
	v := &view{lines: mapped(lines, blind), places: map[string][]int{}}
	for _, h := range hunks {
		for _, line := range h.old() {
			v.places[blind(line)] = nil
		}
	}
	for i, line := range v.lines {
		if all, named := v.places[line]; named {
			v.places[line] = append(all, i)
		}
	}
	return v
}

// occurrences yields where some lines stand, at or after one. It looks where the rarest
// of them stands; if that is so often that this takes longer, it reads all lines.
func (v *view) occurrences(wanted []string, from int) iter.Seq[int] {
	rarest := 0
	for i, line := range wanted {
		if len(v.places[line]) < len(v.places[wanted[rarest]]) {
			rarest = i
		}
	}
	places := v.places[wanted[rarest]]
	next, _ := slices.BinarySearch(places, from+rarest)
	if places = places[next:]; len(places)*len(wanted) > len(v.lines)-from {
		return search(v.lines, wanted, from)
	}
	return func(yield func(int) bool) {
		for _, place := range places {
			at := place - rarest
			if at+len(wanted) <= len(v.lines) && slices.Equal(v.lines[at:at+len(wanted)], wanted) && !yield(at) {
				return
			}
		}
	}
}

// search does the same by the algorithm of Knuth, Morris and Pratt: files of a million
// equal lines are searched in one pass.
func search(lines, wanted []string, from int) iter.Seq[int] {
	border := make([]int, len(wanted)+1) // the longest proper prefix that is a suffix too
	border[0] = -1
	step := func(matched int, line string) int {
		for matched >= 0 && (matched == len(wanted) || wanted[matched] != line) {
			matched = border[matched]
		}
		return matched + 1
	}
	for i, line := range wanted {
		if i > 0 {
			border[i+1] = step(border[i], line)
		}
	}
	return func(yield func(int) bool) {
		matched := 0
		for i, line := range lines[from:] {
			if matched = step(matched, line); matched == len(wanted) && !yield(from+i+1-len(wanted)) {
				return
			}
		}
	}
}
