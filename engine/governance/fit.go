package governance

import (
	"slices"

	"github.com/wharf-agent/wharf/engine/session"
)

// leftOut stands for a result that made way.
const leftOut = "[This result was left out to make room for newer ones: it was shown to you before. Do not repeat the call as it was; " +
	"if you still need something of it, ask for that alone.]"

// Fit is the sixth and the seventh step: if the next request is over the budget,
// it returns what makes it fit. Results of the turn under way make way first,
// oldest first, until the request is at 85 % of the budget; the newest is spared unless it
// is still over the whole. If that does not do, old messages are left out, but for the prompt
// of the turn, down to the same mark: were it the budget itself, each step would have
// to do it again.
//
// refused says that a server took the request for too long, so that the budget
// cannot be right: half of what the request has is taken for it.
func (g *Governor) Fit(h *session.History, refused bool) []session.ContextReplaced {
	budget := g.cfg.BlockLimit
	if refused {
		budget = g.Estimate(h) / 2
	}
	if budget <= 0 || len(h.Blocks()) == 0 {
		return nil
	}
	tokens, over := g.over(h, budget)
	if !over {
		return nil
	}
	f := fit{history: h, blocks: h.Blocks(), scale: g.scale, tokens: float64(tokens), budget: float64(budget), header: g.headerTokens(h.Header())}
	f.start = turnStart(f.blocks)
	f.inFlight()
	if f.tokens > f.budget {
		f.snip()
	}
	return f.events
}

// fit is a history on its way into the budget.
type fit struct {
	history *session.History
	blocks  []session.Block
	start   int     // the block that opened the turn
	header  int     // tokens that stay, whatever is done
	scale   float64 // what a server counts for a token of ours
	tokens  float64 // of the request, as the server would count
	budget  float64
	saved   map[int]float64 // of blocks whose results were replaced
	events  []session.ContextReplaced
}

// inFlight replaces results of the turn under way.
func (f *fit) inFlight() {
	type candidate struct {
		block int
		seq   int64
		saves float64
	}
	var all []candidate
	for i := f.start + 1; i < len(f.blocks); i++ {
		for j, r := range f.blocks[i].Results {
			if r.Seq > 0 && r.By == "" && replaceable[f.blocks[i].Message.Calls[j].Name] && longer(r.Message.Content, smallest-1) {
				all = append(all, candidate{i, r.Seq, f.scale * float64(Tokens(r.Message.Content)-Tokens(leftOut))})
			}
		}
	}
	e := session.ContextReplaced{By: ByInFlight, Content: leftOut}
	f.saved = map[int]float64{}
	for n, c := range all {
		enough := lowMark * f.budget
		if n == len(all)-1 {
			enough = f.budget
		}
		if f.tokens <= enough {
			break
		}
		f.tokens -= c.saves
		f.saved[c.block] += c.saves
		e.Targets = append(e.Targets, c.seq)
	}
	if len(e.Targets) > 0 {
		slices.Sort(e.Targets)
		f.events = append(f.events, e)
	}
}

// snip removes the oldest messages.
func (f *fit) snip() {
	room := lowMark*f.budget - f.scale*float64(f.header)
	first := len(f.blocks) - 1 // the first that stays
	if f.start >= 0 && f.start != first {
		room -= f.weight(f.start)
	}
	for room -= f.weight(first); first > 0; first-- {
		if first-1 != f.start {
			room -= f.weight(first - 1)
		}
		if room < 0 {
			break
		}
	}
	if first <= f.start { // whole turns stay: they begin with the user
		first += slices.IndexFunc(f.blocks[first:], func(b session.Block) bool { return b.Message.Role == session.User })
	}
	removed := slices.Clone(f.blocks[:max(0, first)])
	if f.start >= 0 && f.start < first {
		removed = slices.Delete(removed, f.start, f.start+1)
	}
	if seqs := targets(removed); len(seqs) > 0 {
		f.events = append(f.events, session.ContextReplaced{Targets: seqs, By: BySnip})
	}
}

// weight returns what a server counts for a block as it is by now.
func (f *fit) weight(i int) float64 {
	return f.scale*float64(f.history.WeighBlock(i, weigh)) - f.saved[i]
}

func sorted(seqs []int64) []int64 {
	slices.Sort(seqs)
	return seqs
}
