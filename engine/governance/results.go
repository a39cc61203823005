package governance

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/session"
)

// Results is the fifth step: it returns the replacements of the results that are
// too long, of those that came since it was asked last. The whole is kept where the model
// can read it, if that is possible; what stays is its beginning.
func (g *Governor) Results(h *session.History) []session.ContextReplaced {
	blocks := h.Blocks()
	var events []session.ContextReplaced
	for i := len(blocks) - 1; i >= 0 && blocks[i].Seq > g.settled; i-- {
		for j, r := range blocks[i].Results {
			if r.Seq > 0 && r.By == "" && blocks[i].Message.Calls[j].Name != exempt && longer(r.Message.Content, g.cfg.MaxResult) {
				events = append(events, session.ContextReplaced{Targets: []int64{r.Seq}, By: ByResult, Content: g.shorten(r)})
			}
		}
	}
	if len(blocks) > 1 {
		g.settled = max(g.settled, blocks[len(blocks)-2].Seq) // the last may yet get results
	}
	return events
}

// longer reports whether text has more than so many characters.
func longer(text string, limit int) bool {
	return len(text) > limit && utf8.RuneCountInString(text) > limit
}

// shorten returns what stays of a result.
func (g *Governor) shorten(r session.Result) string {
	text := r.Message.Content
	if g.cfg.Keep != nil {
		if path, err := g.cfg.Keep(r.Seq, text); err == nil {
			short := fmt.Sprintf("[The result has %d characters. All of it is in %s for 7 days: read there what you need. It begins:]\n%s\n[…]",
				utf8.RuneCountInString(text), path, characters(text, preview))
			if !longer(short, g.cfg.MaxResult) {
				return short
			}
		}
	}
	return truncate(text, g.cfg.MaxResult)
}

// truncate returns text without its middle, in at most limit characters, if that
// is enough for saying so.
func truncate(text string, limit int) string {
	if !longer(text, limit) {
		return text
	}
	total := utf8.RuneCountInString(text)
	note := fmt.Sprintf("\n[… %d characters in all, the middle was left out …]\n", total)
	room := max(0, limit-utf8.RuneCountInString(note))
	head := characters(text, room*3/4)
	tail := text[len(characters(text, total-(room-room*3/4))):]
	return strings.TrimLeft(head+note+tail, "\n")
}

// characters returns the first n characters of text.
func characters(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
