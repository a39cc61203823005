package engine

import (
	"context"
	"iter"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider"
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
}

var _ Policy = (*permission.Policy)(nil)
