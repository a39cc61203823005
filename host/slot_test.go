package host

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever waits for a slot gets it when it is free, or is told why not.
func TestSlotIsWaitedFor(t *testing.T) {
	gone := errors.New("the user left")
	tests := []struct {
		name  string
		freed time.Duration // after which it is free
		left  time.Duration // after which the caller's context ends
		want  string
		took  time.Duration
	}{
		{"it is free in time", 2 * time.Second, time.Hour, "", 2 * time.Second},
		{"it is not free in time", time.Hour, time.Hour, "another call of this extension was running all the time", 10 * time.Second},
		{"the caller leaves", time.Hour, 3 * time.Second, "the user left", 3 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlot()
				s.try()
				time.AfterFunc(tt.freed, s.leave)
				ctx, cancel := context.WithTimeoutCause(t.Context(), tt.left, gone)
				defer cancel()
				begin := time.Now()
				err := s.take(ctx, 10*time.Second)
				if got := errorText(err); got != tt.want || time.Since(begin) != tt.took {
					t.Errorf("take = %q after %v; want %q after %v", got, time.Since(begin), tt.want, tt.took)
				}
			})
		})
	}
}

// A slot that many want at once is held by one, and each gets it.
func TestHammerSlot(t *testing.T) {
	const users, times = 16, 500
	s, held, ended := newSlot(), 0, 0
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			for range times {
				if i%4 == 0 { // some do not wait for long
					if s.take(t.Context(), time.Microsecond) != nil {
						continue
					}
				} else if err := s.take(t.Context(), math.MaxInt64); err != nil {
					t.Error(err)
				}
				held++
				if held != 1 {
					t.Errorf("%d hold it", held)
				}
				held--
				ended++
				s.leave()
			}
		})
	}
	all.Wait()
	if least := users * 3 / 4 * times; ended < least {
		t.Errorf("it was taken %d times; want at least %d", ended, least)
	}
	if !s.try() {
		t.Error("it is not free in the end")
	}
}
