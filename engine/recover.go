package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/session"
)

// recovery is how far a turn has come with replies that are no answer. The
// counts are nanobot's.
type recovery struct {
	empty    int    // replies in a row that held nothing
	nameless int    // and of them or besides, those whose calls had no name
	cuts     int    // replies of the turn that the output limit cut off
	parts    []part // of an answer that was cut off, before the latest
	plain    bool   // the next request is to bring a text: no tools
}

// part is a reply that was cut off, as it is in the log, and what was said to it.
type part struct {
	text string
	seqs []int64
}

// What the engine tells the model of a reply that is no answer.
const (
	answerInText = "Your last replies were empty. Answer now in plain text, without calling a tool."
	nameTheTool  = "Your last reply called a tool without naming it, and nothing was run. Make the call again with the tool's name, or answer in plain text."
	callAgain    = "Your last reply was cut off at the output limit before its tool call was complete, and nothing of it was run. " +
		"Make the call again with less in it: write a large file in several parts."
	goOnFrom  = "Your last reply was cut off at the output limit. Go on exactly where it ended, without repeating any of it and without a remark. It ended with:\n"
	stepsUsed = "You have used all steps of this turn. Answer now in plain text, without calling a tool: what was done, what was found, and what is left to do."
)

// maxEmpty is how many empty replies are simply asked for again; after the
// next, a request without tools must bring a text.
const maxEmpty = 2

// askAgain notes an empty reply, so that the loop asks again: twice as it
// was, then once without tools, and then no more.
func (t *turn) askAgain(ctx context.Context, r reply) (over bool, err error) {
	t.empty++
	if t.empty > maxEmpty+1 {
		t.limit = emptyError(r, t.empty)
		return true, t.last(ctx, r)
	}
	if _, err := t.keep(ctx, r); err != nil || t.empty <= maxEmpty {
		return false, err
	}
	return false, t.askInText(answerInText)
}

func emptyError(r reply, times int) error {
	if r.cut() {
		return &endError{session.MaxTokens, fmt.Errorf("the model spent its output limit on reasoning, %d times in a row: raise the limit in [parameters], or ask for less", times)}
	}
	return &endError{session.EmptyResponse, fmt.Errorf("the model answered nothing, %d times in a row: try another model, or look at the server", times)}
}

// askInText has the next request bring a text, without tools.
func (t *turn) askInText(why string) error {
	t.plain = true
	return t.tell(why)
}

// tell says something to the model in the engine's own name.
func (t *turn) tell(text string) error {
	return t.record(session.UserMessage{Content: text, Origin: "engine", Delivery: "step"})
}

// last takes a reply into the log that is the last one, but no answer.
func (t *turn) last(ctx context.Context, r reply) error {
	if err := t.hooks.StreamEnd(ctx, t.at(), r.Reasoning != "", false); err != nil {
		return err
	}
	return t.record(r.AssistantMessage)
}

// maxCuts is how often in a turn a reply that was cut off is gone on with.
const maxCuts = 3

// goOn has the model go on with an answer that was cut off, or make a call again
// that was cut off or had no name.
func (t *turn) goOn(ctx context.Context, r reply) (over bool, err error) {
	if !r.cut() {
		return t.askForName(ctx, r)
	}
	if t.cuts++; t.cuts > maxCuts {
		t.limit = &endError{session.MaxTokens, errors.New("the answer was cut off at the model's output limit again and again: raise it in [parameters], or ask for less")}
		if blank(t.whole(r.Text)) {
			return true, t.last(ctx, r)
		}
		return true, t.finish(ctx, r)
	}
	t.empty = 0
	kept, err := t.keep(ctx, r)
	if err != nil {
		return false, err
	}
	if r.Dropped > 0 { // what was cut off is a call, and the text before it is not the answer
		t.parts = nil
		return false, t.tell(callAgain)
	}
	said, err := t.cfg.Log.Append(session.UserMessage{Content: goOnFrom + tail(r.Text), Origin: "engine", Delivery: "step"})
	t.parts = append(t.parts, part{r.Text, []int64{kept.Seq, said.Seq}})
	return false, err
}

// giveUp ends a turn whose request failed: with what there is of an answer that
// was cut off, or with none.
func (t *turn) giveUp(ctx context.Context, failure error) error {
	if len(t.parts) == 0 || reasonOf(ctx, failure) != session.ModelError {
		return failure
	}
	if err := t.finish(ctx, reply{}); err != nil {
		return err
	}
	cut := errors.New("the answer was cut off at the model's output limit: raise it in [parameters], or ask for less")
	return errors.Join(&endError{session.MaxTokens, cut}, failure)
}

// askForName asks once for the name of a call that had none, and then for a text.
func (t *turn) askForName(ctx context.Context, r reply) (over bool, err error) {
	switch t.nameless++; t.nameless {
	case 1:
		if _, err := t.keep(ctx, r); err != nil {
			return false, err
		}
		return false, t.tell(nameTheTool)
	case 2:
		if _, err := t.keep(ctx, r); err != nil {
			return false, err
		}
		return false, t.askInText(answerInText)
	}
	t.limit = emptyError(r, t.nameless)
	return true, t.last(ctx, r)
}

// tailLength is how much of a text that was cut off is quoted, in characters.
const tailLength = 64

// tail returns the end of a text.
func tail(text string) string {
	start := len(text)
	for n := 0; n < tailLength && start > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	return text[start:]
}

// whole returns an answer whose last part is text. A part that begins with all
// that was quoted to the model repeats it; less than that may be meant.
func (t *turn) whole(text string) string {
	var b strings.Builder
	quoted := ""
	for _, p := range append(slices.Clip(t.parts), part{text: text}) {
		b.WriteString(strings.TrimPrefix(p.text, quoted))
		if quoted = tail(p.text); utf8.RuneCountInString(quoted) < tailLength {
			quoted = ""
		}
	}
	return b.String()
}

// lastWord asks for an answer without tools, when all steps are used up. The turn
// ends for that reason, whatever comes of it.
func (t *turn) lastWord(ctx context.Context) error {
	spent := &endError{session.MaxSteps, fmt.Errorf("the turn took all of its %d steps: raise --max-steps, or resume the session to go on", t.allowed)}
	if err := t.overBudget(); err != nil {
		return err
	}
	if err := t.askInText(stepsUsed); err != nil {
		return err
	}
	err := t.startStep(ctx, 0)
	var r reply
	if err == nil {
		r, err = t.request(ctx)
	}
	switch {
	case err != nil:
	case blank(r.Text):
		err = t.last(ctx, r)
	default:
		err = t.finish(ctx, r)
	}
	if err == nil {
		err = t.endStep(ctx)
	}
	if err != nil && reasonOf(ctx, err) != session.ModelError {
		return err
	}
	return errors.Join(spent, err)
}

// joinParts has later turns see one answer where this one saw parts: the whole,
// which follows. What governance replaced already stays as it is.
func (t *turn) joinParts() error {
	whole := session.ContextReplaced{By: "length"}
	t.cfg.Log.View(func(h *session.History) {
		for _, p := range t.parts {
			for _, seq := range p.seqs {
				if h.Check(session.ContextReplaced{By: whole.By, Targets: []int64{seq}}) == nil {
					whole.Targets = append(whole.Targets, seq)
				}
			}
		}
	})
	t.parts = nil
	if len(whole.Targets) == 0 {
		return nil
	}
	return t.record(whole)
}
