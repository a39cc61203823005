package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
)

// Budget limits what one turn may use up. A zero is no limit. Tokens and cost are
// looked at before each request, so that what a turn has begun is not lost: it may
// end over them by one request with its calls. When the time is over, what runs is
// cancelled.
type Budget struct {
	Tokens int64         // of input and output together
	Cost   float64       // in the currency of Config.Prices
	Time   time.Duration // from the turn's start
}

// Price is what a model costs, for a million tokens each, in whatever currency.
type Price struct {
	Input  float64
	Cached float64 // of the input, what came out of the server's cache
	Output float64
}

// Cost returns what that use of the model costs.
func (p Price) Cost(u session.Usage) float64 {
	fresh := max(0, u.InputTokens-u.CacheReadTokens)
	return (float64(fresh)*p.Input + float64(u.CacheReadTokens)*p.Cached + float64(u.OutputTokens)*p.Output) / 1e6
}

// check says what is wrong with the budget of a configuration.
func (c *Config) checkBudget() error {
	b := c.Budget
	if b.Tokens < 0 || !isAmount(b.Cost) || b.Time < 0 {
		return errors.New("engine: a budget is negative, or no number: use 0 for no limit")
	}
	for model, p := range c.Prices {
		if !isAmount(p.Input) || !isAmount(p.Cached) || !isAmount(p.Output) {
			return fmt.Errorf("engine: a price of the model %q is negative, or no number", model)
		}
	}
	if b.Cost == 0 {
		return nil
	}
	for _, model := range append([]string{c.Model}, c.Fallbacks...) {
		if _, ok := c.Prices[model]; !ok {
			return fmt.Errorf("engine: the cost of a turn is limited, and there is no price for the model %q: add one, or limit tokens", model)
		}
	}
	return nil
}

// isAmount reports whether a number can be counted up to. NaN is neither over nor
// under anything, so that a budget of it would be none.
func isAmount(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// overBudget says which budget of the turn is used up.
func (t *turn) overBudget() error {
	b, tokens := t.cfg.Budget, t.usage.InputTokens+t.usage.OutputTokens
	switch {
	case b.Tokens > 0 && tokens >= b.Tokens:
		return &endError{session.Budget, fmt.Errorf("the turn used %d tokens, and its budget is %d: raise it, or resume the session to go on", tokens, b.Tokens)}
	case b.Cost > 0 && t.cost >= b.Cost:
		return &endError{session.Budget, fmt.Errorf("the turn cost %.4g, and its budget is %.4g: raise it, or resume the session to go on", t.cost, b.Cost)}
	}
	return nil
}

// counts is how far the turn has come, for hooks.
func (t *turn) counts() hook.Counts {
	b := t.cfg.Budget
	return hook.Counts{
		Steps: t.step, MaxSteps: t.allowed, Usage: t.usage, Cost: t.cost,
		Budget: hook.Budget{Tokens: b.Tokens, Cost: b.Cost, TimeMS: b.Time.Milliseconds()},
	}
}

// spend counts what a request used up.
func (t *turn) spend(model string, u session.Usage) {
	t.usage = t.usage.Add(u)
	t.cost += t.cfg.Prices[model].Cost(u)
}

// overTime is why a turn is cancelled whose time is over.
func overTime(limit time.Duration) error {
	return &endError{session.Budget, fmt.Errorf("the turn took longer than its budget of %v: raise it, or resume the session to go on", limit)}
}
