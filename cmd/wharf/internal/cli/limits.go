package cli

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// The tables of the configuration that say when enough is enough.
type (
	retryConfig struct {
		Attempts int      `toml:"attempts"`
		MaxWait  duration `toml:"max_wait"`
	}
	budgetConfig struct {
		Tokens int64    `toml:"tokens"`
		Cost   float64  `toml:"cost"`
		Time   duration `toml:"time"`
	}
	priceConfig struct {
		Input  float64 `toml:"input"`
		Cached float64 `toml:"cached"`
		Output float64 `toml:"output"`
	}
	repeatConfig struct {
		Advise int                   `toml:"advise"`
		Refuse int                   `toml:"refuse"`
		Tools  map[string]repeatRule `toml:"tools"`
	}
	goalConfig struct {
		Rounds int `toml:"rounds"`
	}
	repeatRule struct {
		Advise int `toml:"advise"`
		Refuse int `toml:"refuse"`
	}
)

// contextConfig says what a model takes; zero means the default.
type contextConfig struct {
	Window     int `toml:"window"`
	MaxOutput  int `toml:"max_output"`
	BlockLimit int `toml:"block_limit"`
	MaxResult  int `toml:"max_result"`
}

// check says what is wrong with it.
func (c contextConfig) check() error {
	switch {
	case c.Window < 0 || c.MaxOutput < 0 || c.BlockLimit < 0 || c.MaxResult < 0:
		return usagef("context: its values are numbers of tokens, max_result of characters, and must be positive")
	case c.Window > 0 && c.MaxOutput > c.Window:
		return usagef("context.max_output %d: it is more than context.window, %d, which holds the answer too", c.MaxOutput, c.Window)
	}
	return nil
}

// promptRoom is the least number of tokens for a prompt and what comes of it.
const promptRoom = 200

// checkRoom refuses limits that leave no room for a conversation beside a header, which
// is in every request.
func (c config) checkRoom(header session.Header) error {
	budget, taken := governance.New(c.governance()).Allowance(header)
	if budget >= taken+promptRoom {
		return nil
	}
	need := fmt.Sprintf("the system text and tools need about %d", taken)
	if budget == c.Context.BlockLimit {
		return usagef("context.block_limit %d is too little for a request: %s: raise it", budget, need)
	}
	return usagef("context.window %d leaves %d tokens for a request, and %s: raise it", cmp.Or(c.Context.Window, governance.DefaultWindow), max(budget, 0), need)
}

// checkToolChoice refuses the name of a tool that there is not.
func (c config) checkToolChoice(tools *tool.Registry) error {
	switch c.ToolChoice {
	case "", "auto", "none", "required":
		return nil
	}
	if _, unknown := tools.Lookup(c.ToolChoice); unknown == nil {
		return nil
	}
	known := []string{"auto", "none", "required"}
	for _, spec := range tools.Specs() {
		known = append(known, spec.Name)
	}
	return usagef("tool_choice %q: not one of %s%s", c.ToolChoice, strings.Join(known, ", "), didYouMean(c.ToolChoice, known))
}

// governance returns what the configuration says of the model's context.
func (c config) governance() governance.Config {
	return governance.Config{
		Window: c.Context.Window, MaxOutput: c.maxOutput(), BlockLimit: c.Context.BlockLimit, MaxResult: c.Context.MaxResult,
	}
}

// outputLimit returns the server's name for the most that it answers. Of those that
// speak OpenAI's API most know only the older one.
func (c config) outputLimit() string {
	switch {
	case c.Provider != "openai":
		return "max_tokens"
	case c.API == "responses":
		return "max_output_tokens"
	case cmp.Or(c.BaseURL, os.Getenv("OPENAI_BASE_URL")) == "":
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// maxOutput returns the largest answer, as [context] or else [parameters] has it.
func (c config) maxOutput() int {
	for _, name := range []string{"max_completion_tokens", "max_output_tokens", "max_tokens"} {
		if n, ok := c.Parameters[name].(int64); ok && n > 0 && c.Context.MaxOutput == 0 {
			return int(n)
		}
	}
	return c.Context.MaxOutput
}

// limit fills in what the configuration says of limits.
func (c config) limit(e *engine.Config) {
	e.MaxSteps, e.Parallel, e.GoalRounds = c.MaxSteps, c.Parallel, c.Goal.Rounds
	e.RequestTimeout = time.Duration(c.RequestTimeout)
	e.Retry = engine.Retries{Attempts: c.Retry.Attempts, MaxWait: time.Duration(c.Retry.MaxWait)}
	e.Fallbacks = c.Fallbacks
	e.Context = c.governance()
	e.OutputLimit = c.outputLimit()
	e.Budget = engine.Budget{Tokens: c.Budget.Tokens, Cost: c.Budget.Cost, Time: time.Duration(c.Budget.Time)}
	e.Repeats = engine.Repeats{Advise: c.Repeat.Advise, Refuse: c.Repeat.Refuse}
	e.ToolRepeats = map[string]engine.Repeats{}
	for name, rule := range c.Repeat.Tools {
		e.ToolRepeats[name] = engine.Repeats(rule)
	}
	e.Prices = map[string]engine.Price{}
	for model, price := range c.Prices {
		e.Prices[model] = engine.Price(price)
	}
}

// mostSteps is more than any turn takes; the steps of all rounds of a goal are added up.
const mostSteps = 1_000_000

// checkLimits says what is wrong with the limits before anything is begun.
func (c config) checkLimits() error {
	switch {
	case c.MaxSteps < 0:
		return usagef("max_steps %d: it must be positive", c.MaxSteps)
	case c.MaxSteps > mostSteps:
		return usagef("max_steps %d: the most is %d", c.MaxSteps, mostSteps)
	case c.Parallel < 0:
		return usagef("parallel_calls %d: it must be positive", c.Parallel)
	case c.Goal.Rounds < 0:
		return usagef("goal.rounds %d: it must be positive", c.Goal.Rounds)
	case c.Retry.Attempts < 0:
		return usagef("retry.attempts %d: it must be positive; 1 is no second try", c.Retry.Attempts)
	case c.Budget.Tokens < 0 || !isAmount(c.Budget.Cost):
		return usagef("budget: it must not be negative; leave it out for none")
	}
	for model, price := range c.Prices {
		if !isAmount(price.Input) || !isAmount(price.Cached) || !isAmount(price.Output) {
			return usagef("prices.%q: a price is a number, and not negative", model)
		}
	}
	if c.Budget.Cost > 0 {
		for _, model := range append([]string{c.Model}, c.Fallbacks...) {
			if _, ok := c.Prices[model]; !ok {
				return usagef("budget.cost: there is no price for the model %q: add [prices.%q] with input and output, for a million tokens each", model, model)
			}
		}
	}
	if err := c.WebSearch.check(); err != nil {
		return err
	}
	return c.Context.check()
}

// isAmount reports whether x can be counted up to: neither NaN nor infinity can.
func isAmount(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
