package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// editor reads lines that can be edited, with those before at the arrow keys. The
// terminal is its own only while it waits for a line.
type editor struct {
	keys *keyboard
	in   *os.File
	out  io.Writer
	term *term.Terminal
	from reading
	ctrl bool // Ctrl-C was typed
}

// prompt reads a line. One that ends with a backslash is gone on with, and what is
// pasted is one prompt with all its lines.
func (e *editor) prompt(ctx context.Context) (string, error) {
	if e.term == nil {
		e.open(nil)
	}
	e.term.SetBracketedPasteMode(true)
	defer func() { e.term.SetBracketedPasteMode(false) }()
	before, err := term.MakeRaw(int(e.in.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(e.in.Fd()), before) }()
	e.from, e.ctrl = reading{e.keys, ctx}, false
	if width, height, err := term.GetSize(int(e.in.Fd())); err == nil && width > 0 { // some terminals do not know
		_ = e.term.SetSize(width, height)
	}
	return e.whole(ctx)
}

// open makes a terminal with the lines of another one.
func (e *editor) open(history term.History) {
	e.term = term.NewTerminal(typed{e}, "> ")
	if history != nil {
		e.term.History = history
	}
}

// maxTyped is where the terminal stops to take what is typed into a line, silently.
// What is pasted may be longer.
const maxTyped = 4096

var errLongLine = fmt.Errorf("a typed line has at most %d characters: paste it, or put it into a file and name that", maxTyped-1)

// whole reads as many lines as belong together.
func (e *editor) whole(ctx context.Context) (string, error) {
	var text strings.Builder
	defer func() { e.term.SetPrompt("> ") }()
	for {
		line, err := e.term.ReadLine()
		pasted := errors.Is(err, term.ErrPasteIndicator)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case e.ctrl: // of which the terminal would tell again and again
			e.open(e.term.History)
			_, _ = io.WriteString(e.out, "\r\n")
			return "", errInterrupted
		case err != nil && !pasted:
			_, _ = io.WriteString(e.out, "\r\n")
			return "", err
		}
		if utf8.RuneCountInString(line) == maxTyped {
			return "", errLongLine
		}
		more, goesOn := strings.CutSuffix(line, `\`)
		text.WriteString(more)
		if !pasted && !goesOn {
			return text.String(), nil
		}
		text.WriteString("\n")
		e.term.SetPrompt("… ")
	}
}

// typed is what the editor's terminal reads and writes.
type typed struct{ *editor }

// Read notes Ctrl-C, which the terminal takes for the end of the input, like Ctrl-D.
func (t typed) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	for _, b := range p[:n] {
		t.editor.ctrl = t.editor.ctrl || b == 3
	}
	return n, err
}

func (t typed) Write(p []byte) (int, error) { return t.out.Write(p) }
