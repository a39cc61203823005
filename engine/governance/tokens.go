package governance

import (
	"slices"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/wharf-agent/wharf/engine/session"
)

// perMessage are the tokens that a message costs besides its text.
const perMessage = 4

// perImage is about what servers count for an image that fills a screen.
const perImage = 1_500

// loaded is the tokenizer, cl100k_base. It takes some 13 ms to load and 3 MiB, so it
// is loaded when somebody needs to know, which most sessions never do.
var loaded = sync.OnceValue(codec.NewCl100kBase)

// sample is how much of a long text is counted; the rest is taken to be like it.
const sample = 64 << 10

// Tokens returns how many tokens a text has: as cl100k_base counts, and if it fails,
// as many as the text has bytes. Of a text over 64 KiB that much is counted.
func Tokens(text string) int {
	if text == "" {
		return 0
	}
	part := text[:min(len(text), sample)]
	n, err := loaded().Count(part)
	if err != nil {
		return len(text)
	}
	return int(float64(n) * (float64(len(text)) / float64(len(part))))
}

// weigh returns the tokens of a block.
func weigh(b session.Block) int {
	n := messageTokens(b.Message)
	for _, r := range b.Results {
		n += messageTokens(r.Message)
	}
	return n
}

func messageTokens(m session.Message) int {
	n := perMessage + Tokens(m.Content) + perImage*len(m.Images)
	for _, c := range m.Calls {
		n += perMessage + Tokens(c.Name) + Tokens(c.Arguments)
	}
	return n
}

// headerWeight is what is known of a header's tokens.
type headerWeight struct {
	system string
	tools  []session.Tool
	tokens int // 0: not counted
}

// headerTokens returns the tokens of the system text and the tools.
func (g *Governor) headerTokens(h session.Header) int {
	w := &g.header
	if w.tokens == 0 || w.system != h.System || !slices.EqualFunc(w.tools, h.Tools, sameTool) {
		*w = headerWeight{h.System, h.Tools, perMessage + Tokens(h.System)}
		for _, t := range h.Tools {
			w.tokens += perMessage + Tokens(t.Name) + Tokens(t.Description) + Tokens(string(t.InputSchema))
		}
	}
	return w.tokens
}

func sameTool(a, b session.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && string(a.InputSchema) == string(b.InputSchema)
}

// atMost returns a number of tokens that a request does not exceed, without a
// tokenizer: tokens are made of bytes.
func (g *Governor) atMost(h *session.History) int {
	n := headerBytes(h.Header()) + int(h.Size())
	count := countOf(h)
	if count.tokens == 0 {
		return n
	}
	since := int(count.tokens)
	for _, b := range h.Blocks()[count.blocks:] {
		since += int(b.Size())
	}
	return min(n, since)
}

// headerBytes is what a header makes of atMost.
func headerBytes(h session.Header) int {
	n := margin + len(h.System)
	for _, t := range h.Tools {
		n += len(t.Name) + len(t.Description) + len(t.InputSchema) + perMessage
	}
	return n
}

// Estimate returns about how many tokens the next request has.
func (g *Governor) Estimate(h *session.History) int {
	count := countOf(h)
	n := int(count.tokens) + h.Weigh(count.blocks, weigh)
	if count.tokens == 0 || count == g.used {
		n = int(g.scale * float64(g.ours(h)))
	}
	return min(n, g.atMost(h)) // a server's count may be anything
}

// count is what a server said of so many blocks.
type count struct {
	tokens int64
	blocks int
}

// mostTokens is more than any request has: a server's count may be anything, and is
// added to.
const mostTokens = 1 << 40

func countOf(h *session.History) count {
	tokens, blocks := h.Counted()
	return count{min(tokens, mostTokens), blocks}
}

// ours returns the tokens of the next request as we count them.
func (g *Governor) ours(h *session.History) int {
	return g.headerTokens(h.Header()) + h.Weigh(0, weigh)
}

// over returns the estimate if it is over a limit. What cannot be is not estimated.
// Something has to go then, and what the server counted does not hold any more: what
// it counted for a token of ours is kept, and used until it counts again.
func (g *Governor) over(h *session.History, limit int) (tokens int, over bool) {
	if g.atMost(h) <= limit {
		return 0, false
	}
	tokens = g.Estimate(h)
	if tokens > limit {
		g.scale, g.used = float64(tokens)/float64(g.ours(h)), countOf(h)
	}
	return tokens, tokens > limit
}

// Room returns how many tokens are left of the window for an answer to a request with
// that header, in whole thousands as long as there are some; at least 1.
func (g *Governor) Room(h *session.History, header session.Header) int {
	prompt := headerBytes(header) + int(h.Size())
	if prompt > g.cfg.Window/2 { // worth a closer look, with something for what the estimate misses
		prompt = (g.headerTokens(header)+h.Weigh(0, weigh))*21/20 + margin
	}
	room := g.cfg.Window - prompt
	if room > 2*margin {
		room -= room % margin // else each request would have another header
	}
	return max(1, room)
}
