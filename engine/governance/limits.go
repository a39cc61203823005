package governance

import (
	"fmt"

	"github.com/wharf-agent/wharf/engine/session"
)

// mostBytes is what a token has on average at most, in whatever language: some four in
// English, and up to eight where a tokenizer knows words of three-byte letters.
const mostBytes = 8

// TooLong returns an error if the next request is surely over the window, whatever the
// model's tokenizer is: as it is estimated, and also if each token had eight bytes.
// Where nobody said how large the window is, that is for the server to say.
func (g *Governor) TooLong(h *session.History) error {
	if !g.told || h.Size()/mostBytes <= int64(g.cfg.Window) {
		return nil
	}
	tokens := g.Estimate(h)
	if tokens <= g.cfg.Window {
		return nil
	}
	return fmt.Errorf("the request has about %d tokens, and the model's window is %d, so it is not sent: shorten the prompt, or raise context.window if the model takes more", tokens, g.cfg.Window)
}

// Allowance returns how many tokens a request may have, not positive if the answer takes
// up the window; and about how many of them a header takes.
func (g *Governor) Allowance(header session.Header) (budget, taken int) {
	budget, taken = min(g.cfg.BlockLimit, g.cfg.Window), headerBytes(header)
	if taken > budget/2 { // worth a closer look
		taken = g.headerTokens(header)
	}
	return budget, taken
}
