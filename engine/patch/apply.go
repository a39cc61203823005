package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Apply returns a file's content as the hunks of an Update make it. Line breaks stay
// as they are in the file, also where there is none at its end. If a hunk does not fit
// in exactly one place, nothing is returned.
func (f File) Apply(content string) (string, error) {
	t := split(content)
	at := 0
	for n, h := range f.Hunks {
		next, err := t.apply(h, at)
		if err != nil {
			return "", fmt.Errorf("change %d of %q: %w", n+1, f.Path, err)
		}
		at = next
	}
	return t.join(), nil
}

// text is a file's content as lines.
type text struct {
	lines []string
	end   string // of each line
	last  bool   // the last line has one too
}

func split(content string) *text {
	t := &text{end: "\n", last: content == "" || strings.HasSuffix(content, "\n")}
	if n := strings.Count(content, "\n"); n > 0 && n == strings.Count(content, "\r\n") {
		t.end = "\r\n"
		content = strings.ReplaceAll(content, "\r\n", "\n")
	}
	if content != "" {
		t.lines = strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	}
	return t
}

func (t *text) join() string {
	if len(t.lines) == 0 {
		return ""
	}
	content := strings.Join(t.lines, t.end)
	if t.last {
		content += t.end
	}
	return content
}

// apply applies a hunk at or after a line, and returns the line after it.
func (t *text) apply(h Hunk, from int) (int, error) {
	for _, anchor := range h.Anchors {
		found := slices.IndexFunc(t.lines[from:], func(line string) bool { return strings.TrimSpace(line) == anchor })
		if found < 0 {
			return 0, fmt.Errorf("the line %q, which is to stand before it, is not there (any more, after the changes before)", anchor)
		}
		from += found + 1
	}
	old := h.old()
	at, err := t.find(h, old, from)
	if err != nil {
		return 0, err
	}
	var lines []string
	was := t.lines[at : at+len(old)]
	for _, l := range h.Lines {
		switch l.Op {
		case '+':
			lines = append(lines, l.Text)
		case ' ':
			lines = append(lines, was[0]) // as it is in the file
			was = was[1:]
		case '-':
			was = was[1:]
		}
	}
	t.lines = slices.Replace(t.lines, at, at+len(old), lines...)
	return at + len(lines), nil
}

// find returns the one place at or after a line where old lines stand. A hunk that only
// adds is for the place after its last anchor, or for the end.
func (t *text) find(h Hunk, old []string, from int) (int, error) {
	if len(old) == 0 {
		if len(h.Anchors) > 0 && !h.AtEnd {
			return from, nil
		}
		return len(t.lines), nil
	}
	for _, blind := range []func(string) string{
		func(line string) string { return line },
		func(line string) string { return strings.TrimRight(line, " \t\r") },
	} {
		places := occurrences(mapped(t.lines[from:], blind), mapped(old, blind))
		if h.AtEnd {
			places = slices.DeleteFunc(places, func(at int) bool { return from+at+len(old) != len(t.lines) })
		}
		switch {
		case len(places) == 1, len(places) > 1 && len(h.Anchors) > 0: // the anchor says which
			return from + places[0], nil
		case len(places) > 1:
			return 0, fmt.Errorf("its lines stand at %d places: add lines around them, or an @@ with a line before", len(places))
		}
	}
	return 0, errors.New("its lines do not stand there: read the file, and copy them exactly")
}

func mapped(lines []string, f func(string) string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = f(line)
	}
	return all
}

// occurrences returns where some lines stand in others, by the algorithm of Knuth, Morris
// and Pratt: files of a million equal lines are searched in one pass.
func occurrences(lines, wanted []string) (places []int) {
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
	matched := 0
	for i, line := range lines {
		if matched = step(matched, line); matched == len(wanted) {
			places = append(places, i+1-len(wanted))
		}
	}
	return places
}
