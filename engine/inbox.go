package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/wharf-agent/wharf/engine/session"
)

// Delivery says when an input that comes in while a turn runs reaches the model.
type Delivery string

// The ways of delivery. What has not been delivered when the turn ends is there
// for the next one.
const (
	// NextStep is before the next request; a turn that is about to end goes on for it,
	// if it has steps left.
	NextStep Delivery = "step"
	// NextTurn is as a turn of its own: see [Engine.Next].
	NextTurn Delivery = "turn"
	// Quietly is before the next request if there is one, in this turn or in a later one.
	Quietly Delivery = "quiet"
)

// The limits of inputs that come in while a turn runs; the first two are nanobot's.
const (
	maxInputs  = 3  // for one step
	maxSteered = 5  // times that inputs keep one turn from ending
	maxWaiting = 20 // that wait in all
)

// ErrFull reports that too many inputs wait already.
var ErrFull = errors.New("20 inputs wait already: let a step or a turn take them first")

// Add leaves an input for the model, in the way that d names. It may be called at
// any time, from any goroutine. Like a prompt it passes the hooks of
// user_prompt_submit once it is taken; one that they block is dropped. The input's
// origin and hooks count only for a turn of its own.
func (e *Engine) Add(in Input, d Delivery) error {
	switch d {
	case NextStep, NextTurn, Quietly:
		return e.inbox.add(waiting{in, d})
	}
	return errors.New("an input is delivered in one of the ways step, turn, quiet, and not " + string(d))
}

// Next takes the oldest input that waits for a turn of its own. Between turns that
// is also one that came too late for a step of the last.
func (e *Engine) Next() (Input, bool) {
	idle := e.running.Load() == nil
	taken := e.inbox.take(1, func(d Delivery) bool { return d == NextTurn || idle && d == NextStep })
	if len(taken) == 0 {
		return Input{}, false
	}
	return taken[0].Input, true
}

// inbox is what waits to be said to the model.
type inbox struct {
	mu      sync.Mutex
	waiting []waiting // in the order of arrival
}

type waiting struct {
	Input
	delivery Delivery
}

func (b *inbox) add(w waiting) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= maxWaiting {
		return ErrFull
	}
	b.waiting = append(b.waiting, w)
	return nil
}

// take removes and returns the first inputs that are delivered in such a way, up
// to so many.
func (b *inbox) take(most int, wanted func(Delivery) bool) (taken []waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(w waiting) bool {
		if len(taken) == most || !wanted(w.delivery) {
			return false
		}
		taken = append(taken, w)
		return true
	})
	return taken
}

// putBack makes an input the first that waits.
func (b *inbox) putBack(w waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.Insert(b.waiting, 0, w)
}

// wakes reports whether something waits for which a turn goes on.
func (b *inbox) wakes() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.waiting, func(w waiting) bool { return w.delivery == NextStep })
}

// takeInputs takes what waits for the next request into the log, up to so many.
func (t *turn) takeInputs(ctx context.Context, most int) error {
	for range most {
		taken := t.inbox.take(1, func(d Delivery) bool { return d != NextTurn })
		if len(taken) == 0 {
			break
		}
		if _, err := t.prompt(ctx, taken[0].Input, string(taken[0].delivery)); err != nil {
			if ctx.Err() != nil { // it was not judged, and is not lost
				t.inbox.putBack(taken[0])
			}
			return err
		}
	}
	return nil
}

// withheld is what the model is told where an input kept the turn from ending and
// nothing of it is to be said.
const withheld = "Another message came in, and was withheld. Go on without it, or give your answer again."

// somebodySpoke sees to it that the model has something to answer: strict servers take
// no request that ends with its own words.
func (t *turn) somebodySpoke() error {
	var last session.Role
	t.cfg.Log.View(func(h *session.History) {
		if blocks := h.Blocks(); len(blocks) > 0 && len(blocks[len(blocks)-1].Results) == 0 {
			last = blocks[len(blocks)-1].Message.Role
		} else if len(blocks) > 0 {
			last = session.ToolRole
		}
	})
	switch {
	case last == session.User, last == session.ToolRole:
		return nil
	case t.step == 0:
		return &endError{session.Blocked, errors.New("the prompt is empty, and there is nothing to go on with: say something")}
	}
	return t.tell(withheld)
}
