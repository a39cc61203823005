package patch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// BOM is the mark that some programs begin a text file with. It is no part of a line.
const BOM = "\ufeff"

// Apply returns a file's content as the hunks of an Update make it. Line breaks stay
// as they are in the file, also where there is none at its end; a line that comes gets
// that of the line it replaces, or of its neighbour. If a hunk does not fit in exactly
// one place, or ctx ends before all are done, nothing is returned.
func (f File) Apply(ctx context.Context, content string) (string, error) {
	content, marked := strings.CutPrefix(content, BOM)
	t := split(content, f.Hunks)
	for n, h := range f.Hunks {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err := t.apply(h); err != nil {
			return "", fmt.Errorf("change %d of %q: %w", n+1, f.Path, err)
		}
	}
	after := t.join()
	if marked {
		after = BOM + strings.TrimPrefix(after, BOM)
	}
	return after, nil
}

// text is a file's content, and what the hunks made of its beginning. Hunks follow each
// other down the file, so each line is looked at once, however many they are.
type text struct {
	lines []string // each with its end
	hunks []Hunk
	views [2]*view // exactly, and but for blanks at the ends
	made  strings.Builder
	last  string // the line break that it ends with
	done  int    // lines that it stands for
}

func split(content string, hunks []Hunk) *text {
	return &text{lines: slices.Collect(strings.Lines(content)), hunks: hunks}
}

// end returns the line break of a line, or of the nearest before it that has one.
func (t *text) end(at int) string {
	at = min(max(at, 0), len(t.lines)-1)
	switch {
	case at < 0:
		return "\n"
	case strings.HasSuffix(t.lines[at], "\r\n"):
		return "\r\n"
	case strings.HasSuffix(t.lines[at], "\n") || at == 0:
		return "\n"
	}
	return t.end(at - 1) // the last line has none
}

// keep has lines stay as they are, up to one.
func (t *text) keep(upTo int) {
	for ; t.done < upTo; t.done++ {
		t.put(bare(t.lines[t.done]), t.end(t.done))
	}
}

func (t *text) put(line, end string) {
	t.made.WriteString(line)
	t.made.WriteString(end)
	t.last = end
}

// join returns the whole content.
func (t *text) join() string {
	t.keep(len(t.lines))
	after := t.made.String()
	if n := len(t.lines); n > 0 && !strings.HasSuffix(t.lines[n-1], "\n") {
		after = strings.TrimSuffix(after, t.last)
	}
	return after
}

// bare returns a line without its line break.
func bare(line string) string {
	if cut, ok := strings.CutSuffix(line, "\n"); ok {
		return strings.TrimSuffix(cut, "\r")
	}
	return line
}

// apply applies a hunk below those before it.
func (t *text) apply(h Hunk) error {
	from := t.done
	for _, anchor := range h.Anchors {
		found := slices.IndexFunc(t.lines[from:], func(line string) bool { return strings.TrimSpace(line) == anchor })
		if found < 0 {
			return fmt.Errorf("the line %q, which is to stand before it, is not there (any more, after the changes before)", anchor)
		}
		from += found + 1
	}
	at, err := t.find(h, from)
	if err != nil {
		return err
	}
	t.keep(at)
	var coming []string
	for _, l := range h.Lines {
		switch l.Op {
		case '+':
			coming = append(coming, l.Text)
		case '-':
			at++
		case ' ':
			t.replace(at, coming)
			coming = nil
			at++
			t.keep(at) // as it is in the file
		}
	}
	t.replace(at, coming)
	return nil
}

// replace puts lines in the place of those up to one.
func (t *text) replace(upTo int, lines []string) {
	gone := upTo - t.done
	for i, line := range lines {
		t.put(line, t.end(t.done+min(i, gone-1)))
	}
	t.done = upTo
}

// find returns the one place at or after a line where a hunk's old lines stand. A hunk
// that only adds is for the place after its last anchor, or for the end.
func (t *text) find(h Hunk, from int) (int, error) {
	old := h.old()
	switch {
	case len(old) == 0 && len(h.Anchors) > 0 && !h.AtEnd:
		return from, nil
	case len(old) == 0:
		return len(t.lines), nil
	case h.AtEnd:
		from = max(from, len(t.lines)-len(old))
	}
	for i, blind := range []func(string) string{
		bare,
		func(line string) string { return strings.TrimRight(strings.TrimPrefix(line, BOM), " \t\r\n") },
	} {
		if t.views[i] == nil {
			t.views[i] = newView(t.lines, t.hunks, blind)
		}
		first, places := 0, 0
		for at := range t.views[i].occurrences(mapped(old, blind), from) {
			if places++; places == 1 {
				first = at
			}
			if len(h.Anchors) > 0 { // the anchor says which
				break
			}
		}
		switch {
		case places == 1:
			return first, nil
		case places > 1:
			return 0, fmt.Errorf("its lines stand at %d places: add lines around them, or an @@ with a line before", places)
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
