package openai

import (
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// leakReader finds calls that a server left in the text, in the markup of the
// model's template ([Compat].TextCalls). From the first opening mark on, the text
// is held back until the reply is whole. Then either all of the markup is in order
// and calls tools that were on offer, or nothing of it is a call, and the text is
// shown as it came.
type leakReader struct {
	assembler
	tools []session.Tool
	text  string // that is held back
	found bool   // the text held back begins with a mark
	spoke bool   // some text was passed on
}

// Take takes a chunk, or a whole answer.
func (l *leakReader) Take(p *wire.Progress, event string, payload []byte) ([]provider.Delta, error) {
	deltas, err := l.assembler.Take(p, event, payload)
	return l.hold(deltas), err
}

// hold keeps back text that is markup, or may become so.
func (l *leakReader) hold(deltas []provider.Delta) []provider.Delta {
	var out []provider.Delta
	for _, d := range deltas {
		if d.Text == "" {
			out = append(out, d)
			continue
		}
		l.text += d.Text
		if d.Text = l.release(); d.Text != "" {
			out = append(out, d)
		}
	}
	return out
}

// release returns the text that can be passed on.
func (l *leakReader) release() string {
	if l.found {
		return ""
	}
	if !l.spoke {
		if start := strings.TrimSpace(l.text); start == "" || start[0] == '{' || start[0] == '[' {
			return "" // an answer that is nothing but a call in JSON
		}
	}
	cut := len(l.text)
	for _, mark := range openings {
		if i := strings.Index(l.text, mark); i >= 0 && i < cut {
			cut, l.found = i, true
		}
	}
	if !l.found {
		cut -= begun(l.text)
	}
	text := l.text[:cut]
	l.text, l.spoke = l.text[cut:], l.spoke || text != ""
	return text
}

// begun counts the bytes at the end of text that may be the beginning of a mark.
func begun(text string) int {
	longest := 0
	for _, mark := range openings {
		for n := min(len(mark)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, mark[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// Rest returns what is left, with the calls that the text held back turned out to
// be.
func (l *leakReader) Rest() []provider.Delta {
	out := l.hold(l.assembler.Rest())
	made := slices.ContainsFunc(out, func(d provider.Delta) bool { return d.Call != nil })
	m := markup{tools: l.tools, text: l.text}
	if made || l.finish == "length" || !m.read() {
		m = markup{said: l.text}
	}
	var found []provider.Delta
	if m.said != "" {
		found = append(found, provider.Delta{Text: m.said})
	}
	for _, call := range m.calls {
		found = append(found, provider.Delta{Call: &call})
	}
	last := slices.IndexFunc(out, func(d provider.Delta) bool { return d.Finish != "" })
	if last < 0 {
		return append(out, found...)
	}
	if len(m.calls) > 0 {
		out[last].Finish = "tool_calls"
	}
	return slices.Insert(out, last, found...)
}

// Salvage returns what is left of a reply that broke off. What is held back is
// text: nobody knows whether more of it was to come.
func (l *leakReader) Salvage() []provider.Delta {
	out := l.hold(l.assembler.Salvage())
	if l.text != "" {
		out = append([]provider.Delta{{Text: l.text}}, out...)
	}
	return out
}
