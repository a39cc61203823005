package engine

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
)

// Input is what a turn begins with, or what is said while one runs.
type Input struct {
	Text   string
	Images []session.Image
	Goal   bool        // the turn goes on until that is reached, or given up: the user's word alone
	Origin string      // of the turn: user (if empty), api, cron, heartbeat or subagent
	Hooks  []hook.Hook // of this turn alone, asked after the session's
}

// Event is something that happens in a turn: an event of the session's log, or a
// piece of a reply that is still on its way. The log gets a reply when it is whole.
type Event struct {
	session.Record        // its Event is nil if this is a piece of a reply
	Text           string // more of the answer, which may turn out not to be the last one
	Reasoning      string // more of the thinking
}

// Run runs one turn and yields what happens in it, as it happens. The turn's end is
// the last event of its log ([session.TurnEnded]); a turn that did not complete is
// followed by an error that says why. A loop that is left cancels the turn and waits
// for its end. A slow loop does not hold up the turn. Pieces of a reply are yielded
// only where no hook has the final text to itself (finalize_content).
func (e *Engine) Run(ctx context.Context, in Input) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		events := newQueue()
		unwatch := e.cfg.Log.Watch(func(r session.Record) { events.put(Event{Record: r}) })
		var result Result
		go func() {
			defer events.close()
			defer unwatch()
			result = e.runTurn(ctx, in, events.put)
		}()
		for event := range events.all() {
			if !yield(event, nil) {
				cancel(errLeft)
				events.drain()
				return
			}
		}
		if result.Err != nil {
			yield(Event{}, result.Err)
		}
	}
}

var errLeft = errors.New("nobody follows the turn any more")

// queue takes events from any goroutine, without ever making one wait, and hands
// them out in order.
type queue struct {
	mu      sync.Mutex
	waiting []Event
	closed  bool
	changed chan struct{} // has an element if there may be something new
}

func newQueue() *queue { return &queue{changed: make(chan struct{}, 1)} }

func (q *queue) put(e Event) {
	q.mu.Lock()
	q.waiting = append(q.waiting, e)
	q.mu.Unlock()
	q.notify()
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.notify()
}

func (q *queue) notify() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// take returns all that waits, and whether more may come.
func (q *queue) take() (events []Event, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, q.waiting = q.waiting, nil
	return events, !q.closed
}

// all yields the events until the queue is closed.
func (q *queue) all() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for open := true; open; {
			<-q.changed
			var events []Event
			events, open = q.take()
			for _, e := range events {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// drain waits until the queue is closed.
func (q *queue) drain() {
	q.notify() // that it is closed may have been heard already
	for range q.all() {
	}
}
