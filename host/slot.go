package host

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// slot is held by whoever uses a session's instance. It is a lock for which one
// can wait for a time only; a channel would do, and takes as long as the guest's
// own part in a short call.
type slot struct {
	taken   atomic.Bool
	waiting atomic.Int32
	free    chan struct{} // tells one who waits to try again
}

func newSlot() *slot { return &slot{free: make(chan struct{}, 1)} }

// try takes the slot if it is free.
func (s *slot) try() bool { return s.taken.CompareAndSwap(false, true) }

// take takes the slot as soon as it is free, if that is within limit.
func (s *slot) take(ctx context.Context, limit time.Duration) error {
	s.waiting.Add(1) // before it tries: then whoever leaves later sees that somebody waits
	defer s.waiting.Add(-1)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for !s.try() {
		select {
		case <-s.free:
		case <-timer.C:
			return errors.New("another call of this extension was running all the time")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// leave frees the slot.
func (s *slot) leave() {
	s.taken.Store(false)
	if s.waiting.Load() > 0 {
		select {
		case s.free <- struct{}{}:
		default: // somebody was told already, and has not tried yet
		}
	}
}
