package engine

import (
	"context"
	"iter"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// Provider is the model behind a turn.
type Provider interface {
	// Stream sends req and yields deltas until the reply is complete. A pair
	// with an error is the last; if ctx ends first, that error is
	// context.Cause(ctx).
	Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error]
}

// Policy judges tool calls.
type Policy interface {
	// Decide judges a call and says by what.
	Decide(permission.Call) (permission.Verdict, string)
	// Answer answers a question that nobody is there to answer, and says why.
	Answer(permission.Call) (bool, string)
	// Suggest names the narrowest rule by which such a call would be allowed; empty if
	// there is none.
	Suggest(permission.Call) string
	// Grant has questions be answered by such a rule from now on.
	Grant(rule string) error
}

// Approver asks a person about a call. Calls that run side by side may ask at once;
// an error means that nobody could be asked, and is a no.
type Approver interface {
	Approve(ctx context.Context, q permission.Question) (permission.Answer, error)
}

// Governor decides what the model gets to see of a session. What it decides is
// written to the log and takes effect there; a Governor that is fed with a log's
// decisions repeats them.
type Governor interface {
	// Results returns what is to be in the place of results that are too long.
	Results(*session.History) []session.ContextReplaced
	// Compaction returns the summary that is due for a reason, or nil; turn is
	// whether a turn is under way.
	Compaction(h *session.History, reason governance.Reason, turn bool) *governance.Compaction
	// Fit returns what makes the next request fit; refused is whether a server
	// took it for too long.
	Fit(h *session.History, refused bool) []session.ContextReplaced
	// Estimate returns about how many tokens the next request has.
	Estimate(*session.History) int
	// Room returns how many are left for an answer to a request with that header.
	Room(*session.History, session.Header) int
	// TooLong says that the next request is surely more than the model takes, after
	// all that Fit could do; nil if it may be taken.
	TooLong(*session.History) error
}

var (
	_ Policy   = (*permission.Policy)(nil)
	_ Governor = (*governance.Governor)(nil)
)
