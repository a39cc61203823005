// Package engine runs the loop around a language model: it asks the model,
// runs the tools that the model calls, and writes down what happened.
//
// An [Engine] belongs to one session and runs one turn at a time: [Engine.Turn]
// returns how it ended, [Engine.Run] also what happens on the way; a second one that is
// begun meanwhile is refused. It has no global
// state: a process may hold thousands. Its three laws: what the model sees is in the log; the
// intent is written before the effect and the result after it; every call
// passes permission, whatever hooks say. The loop itself is turn.go.
package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// Config says what an Engine is made of; a zero optional field means its default.
type Config struct {
	Provider   Provider        // required
	Log        *session.Log    // required; stays the caller's to close
	Tools      *tool.Registry  // nil: no tools
	Policy     Policy          // nil denies every tool call
	Approver   Approver        // who is asked what the Policy leaves open; nil: nobody, and the answer is no
	Hooks      []hook.Hook     // in the order in which they are asked; of Go functions: [hook.Funcs]
	Model      string          // by the provider's name for it
	System     string          // the system text
	Parameters json.RawMessage // of the request: a JSON object, or nil
	// Options of the request, by Wharf's own names. A ToolChoice other than none is for
	// a turn's first request. An answer that does not meet the OutputSchema is asked
	// for again once; then the turn ends with reason model_error.
	Options     session.Options
	MaxSteps    int           // model requests in one turn, or in a round of one with a goal; 0 means 40
	GoalRounds  int           // of a turn with a goal; 0 means 12
	Parallel    int           // calls of one reply that run side by side at most; 0 means 8
	ToolTimeout time.Duration // for a call of a tool that names none; 0 means 2 minutes

	RequestTimeout time.Duration      // for one reply, from request to end; 0 means 10 minutes
	Retry          Retries            // of requests that failed
	Fallbacks      []string           // models to ask in turn when one fails for good; for the rest of the turn
	Budget         Budget             // of each turn; zero means none
	Prices         map[string]Price   // by model; needed where Budget limits the cost
	Repeats        Repeats            // when calls that go nowhere are advised against and refused
	ToolRepeats    map[string]Repeats // the same for single tools, by name

	Context     governance.Config // what the model takes, and where long results are kept
	Governor    Governor          // decides what the model gets to see; nil means governance.New(Context)
	OutputLimit string            // the server's name for the most that it answers, for requests to name Context.MaxOutput; "" names it nowhere

	// Redact takes out of each tool result what neither the model, nor hooks, nor
	// the log may have, such as the values of secrets. Nil takes out nothing.
	Redact func(string) string
}

// Engine runs turns on one session. Its methods are called one at a time, but
// for those that extensions use while a turn runs (nested.go).
type Engine struct {
	cfg      Config
	hooks    *hook.Chain
	header   session.Header
	carried  []string // contexts for the next turn
	inbox    inbox
	governor Governor
	schema   *tool.Schema         // of answers; nil: any text will do
	running  atomic.Pointer[turn] // nil between turns
	busy     atomic.Bool          // with a turn, up to its very end, or with a summary
	replay   *replay              // nil: calls and time are real
}

// New checks cfg, fills in its defaults and returns an idle Engine.
func New(cfg Config) (*Engine, error) {
	if cfg.Provider == nil || cfg.Log == nil {
		return nil, errors.New("engine: Config needs both a Provider and a Log")
	}
	if cfg.MaxSteps < 0 || cfg.GoalRounds < 0 || cfg.Parallel < 0 || cfg.ToolTimeout < 0 || cfg.RequestTimeout < 0 || cfg.Retry.Attempts < 0 || cfg.Retry.MaxWait < 0 {
		return nil, errors.New("engine: a limit in Config is negative: use 0 for its default")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(cfg.Parameters, &fields); len(cfg.Parameters) > 0 && (err != nil || fields == nil) {
		return nil, errors.New("engine: Parameters are no JSON object")
	}
	cfg.Tools = cmp.Or(cfg.Tools, &tool.Registry{})
	cfg.MaxSteps = cmp.Or(cfg.MaxSteps, 40)
	cfg.GoalRounds = cmp.Or(cfg.GoalRounds, goalRounds)
	cfg.Parallel = cmp.Or(cfg.Parallel, 8)
	cfg.ToolTimeout = cmp.Or(cfg.ToolTimeout, 2*time.Minute)
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, 10*time.Minute)
	cfg.Retry = cfg.Retry.defaults()
	if err := cfg.checkBudget(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, header: session.Header{
		System: cfg.System, Tools: cfg.Tools.Specs(), Model: cfg.Model, Parameters: cfg.Parameters, Options: cfg.Options,
	}}
	var err error
	if e.schema, err = cfg.compileOutput(); err != nil {
		return nil, err
	}
	if cfg.Policy != nil {
		for _, rule := range cfg.Log.Granted() { // when the session was in use before
			if err := cfg.Policy.Grant(rule); err != nil {
				return nil, err
			}
		}
	}
	e.hooks = hook.NewChain(cfg.Hooks, e.record)
	if e.governor = cfg.Governor; e.governor == nil {
		e.governor = governance.New(cfg.Context)
	}
	return e, nil
}

// record writes an event for which only the fact matters.
func (e *Engine) record(event session.Event) error {
	_, err := e.cfg.Log.Append(event)
	return err
}

// Result is how a turn ended.
type Result struct {
	Reason  session.Reason
	Text    string          // the final answer, or what there was of it
	Output  json.RawMessage // the answer as a value that meets Options.OutputSchema; nil if none was asked for, or none came
	Usage   session.Usage
	Cost    float64 // by Config.Prices; 0 where they do not say
	Steps   int
	Denials []Denial
	Err     error // why the turn did not complete; nil if it did
}

// Denial is a tool call that was refused.
type Denial struct {
	Tool      string
	CallID    session.CallID
	Arguments string // raw, as the model sent them
	Reason    string
}

// Start tells hooks that the session begins, once before its first turn: source
// is new, resume or fork. What they add is for the next turn. An error means
// that a hook ends the session before it began.
func (e *Engine) Start(ctx context.Context, source string) (err error) {
	e.carried, err = e.hooks.SessionStart(ctx, e.at(), source)
	return err
}

// End tells hooks that the session is left, and why, after its last turn. It
// does not depend on ctx being alive.
func (e *Engine) End(ctx context.Context, reason string) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finallyTimeout)
	defer cancel()
	return e.hooks.SessionEnd(last, e.at(), reason)
}

func (e *Engine) at() hook.At {
	return hook.At{Session: string(e.cfg.Log.ID()), Turn: e.cfg.Log.Turns()}
}

// Turn runs one turn to its end: input in, final answer out. However the turn ends,
// the log says how, unless the log itself is what failed. When ctx ends, Turn stops
// what it started, waits for that and returns with reason cancelled. [Engine.Run] is
// the same for those who want to follow the turn.
func (e *Engine) Turn(ctx context.Context, in Input) Result {
	return e.runTurn(ctx, in, func(Event) {})
}

var errTurnRuns = errors.New("a turn of this session is running: wait for its end, or use Add")

func (e *Engine) runTurn(ctx context.Context, in Input, show func(Event)) Result {
	if !e.busy.CompareAndSwap(false, true) {
		return Result{Reason: session.ToolError, Err: errTurnRuns}
	}
	defer e.busy.Store(false)
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if limit := e.cfg.Budget.Time; limit > 0 {
		timed, cancel := context.WithTimeoutCause(inner, limit, overTime(limit))
		defer cancel()
		inner = timed
	}
	t := &turn{
		Engine: e, number: e.cfg.Log.Turns() + 1, stop: stop, show: show, hooks: e.hooks.With(in.Hooks), model: e.header.Model,
		contexts: e.carried, serial: make(chan struct{}, 1), allowed: e.cfg.MaxSteps,
	}
	e.carried = nil
	e.running.Store(t)
	defer e.running.Store(nil)
	err := e.record(session.TurnStarted{Turn: t.number, Origin: cmp.Or(in.Origin, "user")})
	if err == nil {
		err = t.loop(inner, in)
	}
	return t.end(ctx, err)
}
