package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Delivery says when an input that comes in while a turn runs reaches the model.
type Delivery string

// The ways of delivery. What has not been delivered when the turn ends is there
// for the next one.
const (
	// NextStep is before the next request; a turn that is about to end goes on for it.
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

// wakes reports whether something waits for which a turn goes on.
func (b *inbox) wakes() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.waiting, func(w waiting) bool { return w.delivery == NextStep })
}

// takeInputs takes what waits for the next request into the log, up to so many.
func (t *turn) takeInputs(ctx context.Context, most int) error {
	for _, w := range t.inbox.take(most, func(d Delivery) bool { return d != NextTurn }) {
		if _, err := t.prompt(ctx, w.Input, string(w.delivery)); err != nil {
			return err
		}
	}
	return nil
}
