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
	number   int
	step     int
	empty    int    // replies in a row that held neither text nor calls
	text     string // the final answer
	usage    session.Usage
	contexts []string // of hooks, for the next request
	denials  []Denial
	stop     context.CancelCauseFunc // ends the turn from within what it called
}

// loop runs the turn up to its final text. nil means that it completed; an
// error carries the reason for which it did not (see reasonOf).
func (t *turn) loop(ctx context.Context, prompt string) error {
	if err := t.submit(ctx, prompt); err != nil {
		return err
	}
	for t.step < t.cfg.MaxSteps {
		if err := t.startStep(); err != nil {
			return err
		}
		reply, err := t.request(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(reply.Calls) > 0:
			t.empty = 0
			err = t.runCalls(ctx, reply)
		case reply.FinishReason == "length":
			return t.cutOff(ctx, reply)
		case strings.TrimSpace(reply.Text) == "":
			err = t.askAgain(reply)
		default:
			return t.finish(ctx, reply)
		}
		if err != nil {
			return err
		}
		if err := t.endStep(); err != nil {
			return err
		}
	}
	return &endError{session.MaxSteps, fmt.Errorf("the turn took all of its %d steps: raise --max-steps, or resume the session to go on", t.cfg.MaxSteps)}
}

// submit takes the prompt into the log, as hooks leave it.
func (t *turn) submit(ctx context.Context, prompt string) error {
	s, err := t.hooks.UserPromptSubmit(ctx, t.at(), prompt)
	if err != nil {
		return err
	}
	if s.Blocked != "" {
		return &endError{session.Blocked, errors.New(s.Blocked)}
	}
	t.contexts = append(t.contexts, s.Contexts...)
	return t.record(session.UserMessage{Content: s.Text, Origin: "user", Delivery: "turn"})
}

func (t *turn) startStep() error {
	for _, text := range t.contexts {
		if err := t.record(session.UserMessage{Content: text, Origin: "hook", Delivery: "step"}); err != nil {
			return err
		}
	}
	t.contexts = nil
	t.step++
	return t.record(session.StepStarted{Turn: t.number, Step: t.step})
}

func (t *turn) endStep() error {
	return t.record(session.StepEnded{Turn: t.number, Step: t.step})
}

// maxEmpty is how many empty replies are simply asked for again; after the
// next, a request without tools must bring a text.
const maxEmpty = 2

// askAgain notes an empty reply, so that the loop asks again: twice as it
// was, then once without tools, and then no more.
func (t *turn) askAgain(reply session.AssistantMessage) error {
	if err := t.record(reply); err != nil {
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

// finish passes the final text through finalize_content and takes it into the log.
func (t *turn) finish(ctx context.Context, reply session.AssistantMessage) error {
	final, err := t.hooks.FinalizeContent(ctx, t.at(), reply.Text)
	if err != nil {
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
