package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// ask sends a request and has take take what comes of it, whatever the Provider
// does: once ctx has ended nothing more of it counts, a panic is a failure, and a
// failure of no class is one that is not tried again.
func (e *Engine) ask(ctx context.Context, req provider.Request, take func(provider.Delta) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &provider.Error{Class: provider.Malformed, Message: fmt.Sprintf("the provider broke down: %v", p)}
		}
	}()
	for delta, failure := range e.cfg.Provider.Stream(ctx, req) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case failure != nil:
			return classed(failure)
		}
		if delta.Usage != nil {
			usage := plausible(*delta.Usage)
			delta.Usage = &usage
		}
		if err := take(delta); err != nil {
			return err
		}
	}
	if ctx.Err() != nil { // who knows whether that was all
		return context.Cause(ctx)
	}
	return nil
}

// classed returns a failure of a provider with a class.
func classed(failure error) error {
	if _, ok := errors.AsType[*provider.Error](failure); ok {
		return failure
	}
	return &provider.Error{Class: provider.Server, Message: failure.Error(), Permanent: true, Err: failure}
}

// mostTokens is more than any request has, and little enough for sums of it.
const mostTokens = 1 << 40

// plausible returns what a server says that a request used up, without what cannot be.
func plausible(u session.Usage) session.Usage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.ReasoningTokens} {
		*n = min(max(*n, 0), mostTokens)
	}
	return u
}
