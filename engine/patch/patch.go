// Package patch reads and applies patches as models write them:
//
//	*** Begin Patch
//	*** Add File: notes.txt
//	+a line
//	*** Update File: src/main.go
//	*** Move to: src/run.go
//	@@ func main() {
//	 	a line that stays
//	-	a line that goes
//	+	a line that comes
//	*** Delete File: old.txt
//	*** End Patch
//
// The form is that of Codex' apply_patch. A patch is applied where its lines stand in a
// file, exactly or but for blanks at their ends, and at one place only: what could be
// meant for two places is refused. The mark that some files begin with (BOM) is no part of
// their first line. The package touches no files.
package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is what is done to a file.
type Kind string

// The kinds.
const (
	Add    Kind = "Add"
	Update Kind = "Update"
	Delete Kind = "Delete"
)

// File is what a patch does to one file.
type File struct {
	Kind    Kind
	Path    string // as it stands in the patch
	MoveTo  string // of an Update; empty: it stays where it is
	Content string // of an Add
	Hunks   []Hunk // of an Update; none where it is only moved
}

// Hunk is a change at one place.
type Hunk struct {
	Anchors []string // lines that come before it, each further down than the one before
	Lines   []Line
	AtEnd   bool // it is the end of the file
}

// Line is a line of a hunk, without its line break.
type Line struct {
	Op   byte // ' ' stays, '-' goes, '+' comes
	Text string
}

// Paths returns all paths that a patch names, in its order.
func Paths(files []File) []string {
	var all []string
	for _, f := range files {
		all = append(all, f.Path)
		if f.MoveTo != "" {
			all = append(all, f.MoveTo)
		}
	}
	return all
}

const form = "a patch begins with *** Begin Patch, has *** Add File: PATH, *** Update File: PATH or *** Delete File: PATH, and ends with *** End Patch"

// MaxSize is how many bytes a patch may have.
const MaxSize = 1 << 20

// Parse reads a patch. Each file is named once.
func Parse(text string) ([]File, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("the patch has %d bytes, and one may have %d: make several of it", len(text), MaxSize)
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n"), "\n")
	if len(lines) < 2 || strings.TrimSpace(lines[0]) != "*** Begin Patch" || strings.TrimSpace(lines[len(lines)-1]) != "*** End Patch" {
		return nil, errors.New(form)
	}
	p := &parser{lines: lines[1 : len(lines)-1]}
	for p.at < len(p.lines) {
		if err := p.file(); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.at+2, err)
		}
	}
	if len(p.files) == 0 {
		return nil, errors.New("the patch changes no file: " + form)
	}
	named := Paths(p.files)
	slices.Sort(named)
	for i := 1; i < len(named); i++ {
		if named[i] == named[i-1] {
			return nil, fmt.Errorf("%q is named twice: put all changes to it into one part", named[i])
		}
	}
	return p.files, nil
}

type parser struct {
	lines []string
	at    int
	files []File
}

// file reads the part of one file.
func (p *parser) file() error {
	line := p.lines[p.at]
	kind, path, ok := heading(line)
	if !ok {
		if strings.TrimSpace(line) == "" {
			p.at++
			return nil
		}
		return fmt.Errorf("%.80q is outside of any file's part: %s", line, form)
	}
	if path == "" {
		return fmt.Errorf("%q names no path", line)
	}
	p.at++
	f := File{Kind: kind, Path: path}
	var err error
	switch kind {
	case Add:
		err = p.content(&f)
	case Update:
		err = p.update(&f)
	}
	p.files = append(p.files, f)
	return err
}

// heading reads the first line of a file's part.
func heading(line string) (Kind, string, bool) {
	for _, kind := range []Kind{Add, Update, Delete} {
		if path, ok := strings.CutPrefix(line, "*** "+string(kind)+" File:"); ok {
			return kind, strings.TrimSpace(path), true
		}
	}
	return "", "", false
}

// inPart reports whether there is another line of the part that is being read.
func (p *parser) inPart() bool {
	if p.at == len(p.lines) {
		return false
	}
	_, _, next := heading(p.lines[p.at])
	return !next
}

func (p *parser) content(f *File) error {
	var b strings.Builder
	for ; p.inPart(); p.at++ {
		text, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			return fmt.Errorf("%.80q does not begin with +, as each line of a new file does", p.lines[p.at])
		}
		b.WriteString(text + "\n")
	}
	f.Content = b.String()
	return nil
}

func (p *parser) update(f *File) error {
	if p.inPart() {
		if to, ok := strings.CutPrefix(p.lines[p.at], "*** Move to:"); ok {
			if f.MoveTo = strings.TrimSpace(to); f.MoveTo == "" {
				return errors.New("*** Move to: names no path")
			}
			p.at++
		}
	}
	for p.inPart() {
		h, err := p.hunk()
		if err != nil {
			return err
		}
		f.Hunks = append(f.Hunks, h)
	}
	if len(f.Hunks) == 0 && f.MoveTo == "" {
		return fmt.Errorf("nothing changes in %q", f.Path)
	}
	return nil
}

// hunk reads a hunk. The @@ may be left out before the first.
func (p *parser) hunk() (h Hunk, err error) {
	for ; p.inPart() && strings.HasPrefix(p.lines[p.at], "@@"); p.at++ {
		if anchor := strings.TrimSpace(strings.TrimPrefix(p.lines[p.at], "@@")); anchor != "" {
			h.Anchors = append(h.Anchors, anchor)
		}
	}
	for ; p.inPart() && !strings.HasPrefix(p.lines[p.at], "@@"); p.at++ {
		line := p.lines[p.at]
		switch {
		case strings.TrimSpace(line) == "*** End of File":
			h.AtEnd = true
			p.at++
			return h, h.check()
		case line == "": // an empty line that stays: models leave out the blank
			h.Lines = append(h.Lines, Line{Op: ' '})
		case strings.IndexByte(" +-", line[0]) >= 0:
			h.Lines = append(h.Lines, Line{line[0], line[1:]})
		default:
			return h, fmt.Errorf("%.80q begins with none of blank, - and +", line)
		}
	}
	return h, h.check()
}

func (h Hunk) check() error {
	if !slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Op != ' ' }) {
		return errors.New("a part of the file is named, and nothing changes in it: lines that go begin with -, lines that come with +")
	}
	return nil
}

// old returns the lines that must be there.
func (h Hunk) old() (lines []string) {
	for _, l := range h.Lines {
		if l.Op != '+' {
			lines = append(lines, l.Text)
		}
	}
	return lines
}
