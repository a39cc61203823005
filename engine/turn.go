package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
)

// turn is one turn under way: an Engine's configuration, and how far it has come.
type turn struct {
	*Engine
	hooks       *hook.Chain // the session's, and this turn's own
	number      int
	step        int
	allowed     int             // steps, before a last word
	goal        *goal           // nil: the user gave none
	text        string          // the final answer
	output      json.RawMessage // the same as a value, where a schema asks for one
	unmet       bool            // an answer that did not meet the schema was asked for again
	limit       error           // for which the answer is not the whole one, or none; nil: it is
	usage       session.Usage
	cost        float64
	model       string      // that is asked
	fallback    int         // how many models of the list after the first have been
	contexts    []string    // of hooks, for the next request
	done        []hook.Done // the step's calls
	denials     []Denial
	recovery                // from replies that are no answer: recover.go
	steered     int         // how often in the turn an input kept it from ending
	objected    int         // how often in a row hooks did
	repeats     repeats     // calls that go nowhere: repeat.go
	uncompacted bool        // a hook is against a summary: it is not asked again in this turn
	show        func(Event) // shows a piece of a reply to whoever follows the turn
	stop        context.CancelCauseFunc
	serial      chan struct{} // held by whoever is in the serial part: see schedule.go
}

// loop runs the turn up to its final text. nil means that it completed; an
// error carries the reason for which it did not (see reasonOf).
func (t *turn) loop(ctx context.Context, in Input) error {
	if err := t.submit(ctx, in); err != nil {
		return err
	}
	for t.step < t.allowed {
		if err := t.startStep(ctx, maxInputs); err != nil {
			return err
		}
		reply, err := t.request(ctx)
		if err != nil {
			return t.giveUp(ctx, err)
		}
		over := false
		switch {
		case len(reply.Calls) > 0:
			err = t.runCalls(ctx, reply)
		case blank(reply.Text) && reply.Dropped == 0:
			over, err = t.askAgain(ctx, reply)
		case reply.cut() || blank(reply.Text):
			over, err = t.goOn(ctx, reply)
		default:
			over, err = t.stopOrGoOn(ctx, reply)
		}
		if err == nil {
			err = t.endStep(ctx)
		}
		if err != nil {
			return err
		}
		if over {
			return t.answered()
		}
		if err := t.extend(); err != nil {
			return err
		}
	}
	return t.lastWord(ctx)
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// submit takes the input that opens the turn into the log, as hooks leave it.
func (t *turn) submit(ctx context.Context, in Input) error {
	s, err := t.prompt(ctx, in, "turn")
	if err != nil {
		return err
	}
	if s.Blocked != "" {
		return &endError{session.Blocked, errors.New(s.Blocked)}
	}
	if err := t.pass(t.hooks.BeforeRun(ctx, t.at(), s.Text)); err != nil {
		return err
	}
	if in.Goal {
		return t.setGoal()
	}
	return nil
}

// prompt takes an input into the log, unless a hook blocks it.
func (t *turn) prompt(ctx context.Context, in Input, delivery string) (hook.Submitted, error) {
	s, err := t.hooks.UserPromptSubmit(ctx, t.at(), in.Text)
	if err != nil || s.Blocked != "" {
		return s, err
	}
	t.contexts = append(t.contexts, s.Contexts...)
	return s, t.record(session.UserMessage{Content: s.Text, Origin: "user", Delivery: delivery, Images: in.Images})
}

// pass takes what hooks say of something that is about to begin.
func (t *turn) pass(g hook.Gated, err error) error {
	if err == nil && g.Blocked != "" {
		err = &endError{session.Blocked, errors.New(g.Blocked)}
	}
	t.contexts = append(t.contexts, g.Contexts...)
	return err
}

// startStep opens a step, unless a budget or a hook is against it, with what
// came in for it: up to so many inputs, and what hooks had to add.
func (t *turn) startStep(ctx context.Context, inputs int) error {
	if err := t.overBudget(); err != nil {
		return err
	}
	if err := t.pass(t.hooks.BeforeIteration(ctx, t.at(), t.counts())); err != nil {
		return err
	}
	if err := t.takeInputs(ctx, inputs); err != nil {
		return err
	}
	for _, text := range t.contexts {
		if err := t.record(session.UserMessage{Content: text, Origin: "hook", Delivery: "step"}); err != nil {
			return err
		}
	}
	t.contexts, t.done = nil, nil
	if err := t.somebodySpoke(); err != nil {
		return err
	}
	t.step++
	return t.record(session.StepStarted{Turn: t.number, Step: t.step})
}

func (t *turn) endStep(ctx context.Context) error {
	if err := t.hooks.AfterIteration(ctx, t.at(), t.done); err != nil {
		return err
	}
	return t.record(session.StepEnded{Turn: t.number, Step: t.step})
}

// keep takes a reply that is not the last into the log.
func (t *turn) keep(ctx context.Context, r reply) (session.Record, error) {
	if err := t.hooks.StreamEnd(ctx, t.at(), r.Reasoning != "", true); err != nil {
		return session.Record{}, t.keepPrefix(r, err)
	}
	return t.cfg.Log.Append(r.AssistantMessage)
}

// maxObjections is how often in a row hooks may keep a turn from ending.
const maxObjections = 8

// stopOrGoOn ends the turn with a text, unless somebody has something to say to
// the model first: whoever gave an input meanwhile, or a hook.
func (t *turn) stopOrGoOn(ctx context.Context, r reply) (over bool, err error) {
	if t.steered < maxSteered && t.step < t.allowed && t.inbox.wakes() {
		t.steered++
		t.parts = nil
		_, err := t.keep(ctx, r)
		return false, err
	}
	if again, err := t.pursue(ctx, r); again || err != nil {
		return false, err
	}
	if again, err := t.meet(ctx, r); again || err != nil {
		return false, err
	}
	if t.objected == maxObjections {
		return true, t.finish(ctx, r)
	}
	message, err := t.hooks.TurnStopping(ctx, t.at(), t.whole(r.Text))
	if err != nil {
		return false, t.keepPrefix(r, err)
	}
	if message == "" {
		return true, t.finish(ctx, r)
	}
	t.objected++
	t.parts = nil
	if _, err := t.keep(ctx, r); err != nil {
		return false, err
	}
	return false, t.record(session.UserMessage{Content: message, Origin: "hook", Delivery: "step"})
}

// finish passes the final text through finalize_content and takes it into the log.
func (t *turn) finish(ctx context.Context, r reply) error {
	final, err := t.hooks.FinalizeContent(ctx, t.at(), t.whole(r.Text))
	if err != nil {
		return err
	}
	if err := t.hooks.StreamEnd(ctx, t.at(), r.Reasoning != "", false); err != nil {
		return t.keepPrefix(r, err)
	}
	r.Text, t.text = final, final
	if err := t.joinParts(); err != nil {
		return err
	}
	return t.record(r.AssistantMessage)
}

func (t *turn) at() hook.At {
	return hook.At{Session: string(t.cfg.Log.ID()), Turn: t.number, Step: t.step}
}
