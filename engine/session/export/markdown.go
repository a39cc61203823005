package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/wharf-agent/wharf/engine/session"
)

// Markdown writes a session as a conversation to be read. Whatever the model,
// tools or users said stands in blocks of code, letter for letter: there it can
// neither pass for a heading of this text nor have anything loaded.
func Markdown(w io.Writer, records []session.Record) error {
	c := read(records)
	out := &markdown{bufio.NewWriter(w)}
	out.line("# Session %s\n", inline(string(c.Start.ID)))
	for _, f := range c.Facts() {
		out.line("- %s: %s", f.Name, inline(f.Value))
	}
	for _, i := range c.Between {
		out.item(i)
	}
	for _, t := range c.Turns {
		out.line("\n## Turn %d: %s\n", t.Number, inline(t.State()))
		out.line("%s", inline(t.Measure()))
		for _, i := range t.Items {
			out.item(i)
		}
		out.block(t.Error)
	}
	return out.Flush()
}

type markdown struct{ *bufio.Writer }

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// block writes text as a block of code, whose fence is longer than any in it.
func (m *markdown) block(text string) {
	if text == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.line("\n%stext\n%s\n%s", fence, strings.TrimRight(clean(text), "\n"), fence)
}

func (m *markdown) item(i *item) {
	switch i.Kind {
	case "step":
		return
	case "call":
		m.line("\n### Call of %s\n", inline(i.Call.Name))
		m.line("%s", inline(i.Call.State()))
		m.block(i.Call.Arguments)
		for _, n := range i.Call.Notes {
			m.line("\n%s:", inline(n.Title))
			m.block(n.Text)
		}
		m.block(i.Call.Result)
	case "note":
		m.line("\n%s:", inline(i.Title))
		m.block(i.Text)
	default:
		m.line("\n### %s", inline(i.Title))
		m.block(i.Text)
	}
	if n := len(i.Images); n > 0 {
		m.line("\n(%s)", count(n, "image"))
	}
}

// inline returns text as a piece of code on one line.
func inline(text string) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if text == "" || strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " " // which a reader takes off again
	}
	return fence + text + fence
}
