package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
)

// turn is one turn under way: an Engine's configuration, and how far it has come.
type turn struct {
	*Engine
	hooks      *hook.Chain // the session's, and this turn's own
	number     int
	step       int
	empty      int    // replies in a row that held neither text nor calls
	objections int    // of hooks to the turn's end, in a row
	text       string // the final answer
	usage      session.Usage
	contexts   []string    // of hooks, for the next request
	done       []hook.Done // the step's calls
	denials    []Denial
	stop       context.CancelCauseFunc // ends the turn from within what it called
	show       func(Event)             // shows a piece of a reply to whoever follows the turn
	serial     chan struct{}           // held by whoever is in the serial part: see schedule.go
}

// loop runs the turn up to its final text. nil means that it completed; an
// error carries the reason for which it did not (see reasonOf).
func (t *turn) loop(ctx context.Context, in Input) error {
	if err := t.submit(ctx, in); err != nil {
		return err
	}
	for t.step < t.cfg.MaxSteps {
		if err := t.startStep(ctx); err != nil {
			return err
		}
		reply, err := t.request(ctx)
		if err != nil {
			return err
		}
		over := false
		switch {
		case len(reply.Calls) > 0:
			err = t.runCalls(ctx, reply)
		case reply.FinishReason == "length":
			err = t.cutOff(ctx, reply)
		case strings.TrimSpace(reply.Text) == "":
			err = t.askAgain(ctx, reply)
		default:
			over, err = t.stopOrGoOn(ctx, reply)
		}
		if err == nil {
			err = t.endStep(ctx)
		}
		if err != nil || over {
			return err
		}
	}
	return &endError{session.MaxSteps, fmt.Errorf("the turn took all of its %d steps: raise --max-steps, or resume the session to go on", t.cfg.MaxSteps)}
}

// submit takes the input into the log, as hooks leave it.
func (t *turn) submit(ctx context.Context, in Input) error {
	s, err := t.hooks.UserPromptSubmit(ctx, t.at(), in.Text)
	if err != nil {
		return err
	}
	if s.Blocked != "" {
		return &endError{session.Blocked, errors.New(s.Blocked)}
	}
	t.contexts = append(t.contexts, s.Contexts...)
	if err := t.record(session.UserMessage{Content: s.Text, Origin: "user", Delivery: "turn"}); err != nil {
		return err
	}
	return t.pass(t.hooks.BeforeRun(ctx, t.at(), s.Text))
}

// pass takes what hooks say of something that is about to begin.
func (t *turn) pass(g hook.Gated, err error) error {
	if err == nil && g.Blocked != "" {
		err = &endError{session.Blocked, errors.New(g.Blocked)}
	}
	t.contexts = append(t.contexts, g.Contexts...)
	return err
}

func (t *turn) startStep(ctx context.Context) error {
	counts := hook.Counts{Steps: t.step, MaxSteps: t.cfg.MaxSteps, Usage: t.usage}
	if err := t.pass(t.hooks.BeforeIteration(ctx, t.at(), counts)); err != nil {
		return err
	}
	for _, text := range t.contexts {
		if err := t.record(session.UserMessage{Content: text, Origin: "hook", Delivery: "step"}); err != nil {
			return err
		}
	}
	t.contexts, t.done = nil, nil
	t.step++
	return t.record(session.StepStarted{Turn: t.number, Step: t.step})
}

func (t *turn) endStep(ctx context.Context) error {
	if err := t.hooks.AfterIteration(ctx, t.at(), t.done); err != nil {
		return err
	}
	return t.record(session.StepEnded{Turn: t.number, Step: t.step})
}

// maxEmpty is how many empty replies are simply asked for again; after the
// next, a request without tools must bring a text.
const maxEmpty = 2

// askAgain notes an empty reply, so that the loop asks again: twice as it
// was, then once without tools, and then no more.
func (t *turn) askAgain(ctx context.Context, reply session.AssistantMessage) error {
	if err := t.keep(ctx, reply); err != nil {
		return err
	}
	t.empty++
	if t.empty <= maxEmpty {
		return nil
	}
	if t.empty == maxEmpty+1 {
		return t.record(session.UserMessage{Content: answerInText, Origin: "engine", Delivery: "step"})
	}
	return &endError{session.EmptyResponse, fmt.Errorf("the model answered nothing, %d times in a row: try another model, or look at the server", t.empty)}
}

const answerInText = "Your last replies were empty. Answer now in plain text, without calling a tool."

// keep takes a reply that is not the last into the log.
func (t *turn) keep(ctx context.Context, reply session.AssistantMessage) error {
	if err := t.hooks.StreamEnd(ctx, t.at(), reply.Reasoning != "", true); err != nil {
		return err
	}
	return t.record(reply)
}

// maxObjections is how often in a row hooks may keep a turn from ending.
const maxObjections = 8

// stopOrGoOn ends the turn with a text, unless a hook has something to say to
// the model first.
func (t *turn) stopOrGoOn(ctx context.Context, reply session.AssistantMessage) (over bool, err error) {
	if t.objections == maxObjections {
		return true, t.finish(ctx, reply)
	}
	message, err := t.hooks.TurnStopping(ctx, t.at(), reply.Text)
	if err != nil {
		return false, err
	}
	if message == "" {
		return true, t.finish(ctx, reply)
	}
	t.objections++
	if err := t.keep(ctx, reply); err != nil {
		return false, err
	}
	return false, t.record(session.UserMessage{Content: message, Origin: "hook", Delivery: "step"})
}

// finish passes the final text through finalize_content and takes it into the log.
func (t *turn) finish(ctx context.Context, reply session.AssistantMessage) error {
	final, err := t.hooks.FinalizeContent(ctx, t.at(), reply.Text)
	if err != nil {
		return err
	}
	if err := t.hooks.StreamEnd(ctx, t.at(), reply.Reasoning != "", false); err != nil {
		return err
	}
	reply.Text, t.text = final, final
	return t.record(reply)
}

// cutOff ends the turn with as much of the answer as its token limit let through.
func (t *turn) cutOff(ctx context.Context, reply session.AssistantMessage) error {
	if err := t.finish(ctx, reply); err != nil {
		return err
	}
	return &endError{session.MaxTokens, errors.New("the answer was cut off at the model's output limit: raise it in [parameters], or ask for less")}
}

func (t *turn) at() hook.At {
	return hook.At{Session: string(t.cfg.Log.ID()), Turn: t.number, Step: t.step}
}
