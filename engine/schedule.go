package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// slot is a call of a reply, from its start to its result.
type slot struct {
	call     session.Call
	times    int   // that it was made in a row
	begun    int64 // the event that wrote it down
	start    time.Time
	judged   *judged // nil: there is no body to run
	alone    bool    // nothing runs beside its body
	settled  bool    // there is a result, which is not reviewed yet
	result   tool.Result
	failed   bool
	failure  error // ends the turn
	finished time.Time
}

// schedule runs the calls of one reply. Everything but their bodies happens in
// the turn's own goroutine and in the model's order: writing down, judging,
// reviewing, the results. Bodies of calls that may run side by side do so, up
// to a cap; any other runs alone.
type schedule struct {
	*turn
	slots     []*slot
	started   int        // the slots before this one were started
	committed int        // the slots before this one have their results in the log
	active    int        // bodies that run
	ended     chan *slot // whose body has ended
	stopped   error      // why no more calls are started; nil: they are
}

// runCalls takes a reply with calls into the log and runs them. Each call gets
// exactly one result, whatever happens; only a log that cannot be written, a
// hook that ends the turn or the end of ctx stops it.
func (t *turn) runCalls(ctx context.Context, reply reply) error {
	t.empty, t.nameless, t.objected, t.parts = 0, 0, 0, nil
	if _, err := t.keep(ctx, reply); err != nil {
		return err
	}
	blocked, stop := t.hooks.BeforeExecuteTools(inSerial(ctx), t.at(), asCalls(reply.Calls))
	s := &schedule{turn: t, ended: make(chan *slot), stopped: stop}
	for _, call := range reply.Calls {
		s.slots = append(s.slots, &slot{call: call})
	}
	for s.committed < len(s.slots) {
		leave := s.enter(ctx)
		s.commit(ctx)
		s.fill(ctx, blocked)
		leave()
		if s.active > 0 {
			x := <-s.ended
			x.settled = true
			s.active--
		}
	}
	return s.stopped
}

// commit takes the results into the log that are next in the model's order.
func (s *schedule) commit(ctx context.Context) {
	for s.committed < s.started && s.slots[s.committed].settled {
		x := s.slots[s.committed]
		s.committed++
		if x.judged != nil && x.failure == nil {
			x.result, x.failure = s.review(inSerial(ctx), x.judged, x.result, x.failed)
		}
		s.fail(x.failure)
		s.fail(s.guard(x))
		x.result = s.redact(x.result)
		s.done = append(s.done, hook.Done{Call: asCall(x.call), Result: seen(x.result)})
		s.fail(s.record(session.ToolResult{
			CallID: x.call.ID, CallSeq: x.begun, Content: strings.ToValidUTF8(x.result.Content, "�"),
			IsError: x.result.IsError, Code: string(x.result.Code), DurationMS: x.finished.Sub(x.start).Milliseconds(),
			Images: x.result.Images,
		}))
		s.fail(s.noteGoal(x.call, x.result))
	}
}

// fill starts calls as long as the next one may run now.
func (s *schedule) fill(ctx context.Context, blocked string) {
	for s.started < len(s.slots) {
		x := s.slots[s.started]
		s.fail(context.Cause(ctx))
		x.alone = !s.parallel(x.call)
		if s.committed < s.started && (x.alone || s.slots[s.started-1].alone || s.active >= s.cfg.Parallel) {
			return // what came before has its results first
		}
		s.started++
		s.begin(ctx, x, blocked)
		if x.settled {
			s.commit(ctx)
		}
	}
}

// begin writes a call down and judges it. Its body, if it gets that far, runs
// in a goroutine of its own.
func (s *schedule) begin(ctx context.Context, x *slot, blocked string) {
	x.start = time.Now()
	event, err := s.cfg.Log.Append(session.ToolCall{CallID: x.call.ID, Name: x.call.Name, Arguments: x.call.Arguments, Step: s.step})
	s.fail(err)
	x.begun, x.times = event.Seq, s.timesInRow(x.call)
	inner, refusal := ctx, ""
	switch {
	case s.stopped != nil:
		x.result = tool.Result{Content: "the turn ended before the call was started", IsError: true, Code: tool.AbortedBeforeDispatch}
	case s.replay != nil:
		x.result = s.replay.recall(x.call)
	case blocked != "":
		x.result = s.deny("", x.call, blocked)
	case s.repeated(x.call, x.times) != nil:
		x.result = *s.repeated(x.call, x.times)
	default:
		if inner, refusal = within(ctx, "", x.call.Name, !x.alone); refusal != "" {
			x.result = s.deny("", x.call, refusal)
			break
		}
		x.judged, x.result, x.failure = s.judge(inSerial(inner), "", x.call)
	}
	if x.judged == nil {
		x.settled, x.finished = true, time.Now()
		return
	}
	s.active++
	x.result, x.failed = tool.Result{Content: "the tool " + x.call.Name + " ended its goroutine", IsError: true}, true
	go func() {
		defer func() { // also where the tool calls runtime.Goexit
			x.finished = time.Now()
			s.ended <- x
		}()
		x.result, x.failed, x.failure = s.body(inner, x.judged, false)
	}()
}

// fail keeps the first reason for which no more calls are started, and what else
// goes wrong from then on.
func (s *schedule) fail(err error) {
	if err != nil && !errors.Is(s.stopped, err) {
		s.stopped = errors.Join(s.stopped, err)
	}
}

// parallel asks a tool whether others may run beside this call; only a clear yes
// is one.
func (t *turn) parallel(call session.Call) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	target, bad := t.cfg.Tools.Lookup(call.Name)
	if bad != nil {
		return false
	}
	if c, ok := target.(tool.Classifier); ok {
		return c.Parallel([]byte(call.Arguments))
	}
	return target.Spec().Parallel
}

// The serial part of a turn is one: what is judged, reviewed and taken into the log
// there is never judged beside something else. It belongs to the turn's own
// goroutine, and to a body's for as long as that has the engine judge a call.
type serialKey struct{}

// inSerial marks a context as within the serial part: what a hook has the engine
// do belongs to the part that the hook is in.
func inSerial(ctx context.Context) context.Context { return context.WithValue(ctx, serialKey{}, true) }

// enter waits for the serial part, unless ctx is within it already.
func (t *turn) enter(ctx context.Context) (leave func()) {
	if ctx.Value(serialKey{}) != nil {
		return func() {}
	}
	t.serial <- struct{}{}
	return func() { <-t.serial }
}
