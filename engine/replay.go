package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// Replayed is what [Replay] found.
type Replayed struct {
	Turns, Requests int
	Cut             []string // turns that ended for a reason outside of the engine: they were replayed up to there
	Seq             int64    // of the event at which the first difference shows
	Difference      string   // empty: there is none
}

// Replay runs the engine anew over a recorded session, and compares what it asks
// the model with what it asked then: the same log and the same replies give the same
// requests. What came from outside comes from the record: replies and failures of
// the model, results of calls, what hooks and users said, what governance decided.
// Nothing has an effect but for a log, which is written in dir and may be removed
// afterwards. The error is of that log, or that there is nothing to replay.
func Replay(ctx context.Context, records []session.Record, dir string) (Replayed, error) {
	store, err := session.NewStore(dir, "replay", session.SyncNever)
	if err != nil {
		return Replayed{}, err
	}
	r := &replay{store: store, records: records}
	defer r.close()
	for at := 0; at < len(records) && r.Difference == "" && err == nil && ctx.Err() == nil; {
		turn := recordedTurnAt(records, at)
		if turn == nil {
			err = r.copy(records[at:])
			break
		}
		if err = r.copy(records[at:turn.from]); err == nil {
			err = r.replayTurn(ctx, turn)
		}
		at = turn.to
	}
	return r.Replayed, errors.Join(err, context.Cause(ctx))
}

// replay stands in for all that is around an engine: its provider, its governor,
// its hooks and its tools.
type replay struct {
	Replayed
	store   *session.Store
	records []session.Record
	engine  *Engine // of the turn that is replayed
	log     *session.Log
	then    session.History // of the record, up to the latest request
	read    int             // records in it
	shown   [2][]int64      // the events that the model may be shown: of the record, and here
	turn    *recordedTurn
	step    *recordedStep
}

func (r *replay) close() {
	if r.log != nil {
		_ = r.log.Close() // nobody reads it
	}
}

// shows reports whether an event may be replaced by its number.
func shows(e session.Event) bool {
	switch e.(type) {
	case session.UserMessage, session.AssistantMessage, session.ToolResult, session.ContextReplaced:
		return true
	}
	return false
}

// start begins a log with what the record holds before a turn, event for event.
func (r *replay) start(upTo int) (err error) {
	r.close()
	r.shown = [2][]int64{}
	first, ok := r.records[0].Event.(session.Started)
	if !ok {
		return errors.New("replay: a session begins with session.started")
	}
	r.log, err = r.store.Create(first.Cwd, func(rec session.Record) {
		if shows(rec.Event) {
			r.shown[1] = append(r.shown[1], rec.Seq)
		}
	})
	if err != nil {
		return err
	}
	return r.copy(r.records[1:upTo])
}

// copy takes events of the record over.
func (r *replay) copy(records []session.Record) error {
	for _, rec := range records {
		if _, first := rec.Event.(session.Started); first {
			continue
		}
		e := rec.Event
		if replaced, ok := e.(session.ContextReplaced); ok {
			e = r.here(replaced)
		}
		if r.log == nil {
			break // all of it is taken over when the log is started
		}
		if _, err := r.log.Append(e); err != nil {
			return fmt.Errorf("replay event %d: %w", rec.Seq, err)
		}
		if shows(rec.Event) {
			r.shown[0] = append(r.shown[0], rec.Seq)
		}
	}
	return nil
}

// here returns a replacement with the numbers that its targets have in this log.
func (r *replay) here(e session.ContextReplaced) session.ContextReplaced {
	e.Targets = slices.Clone(e.Targets)
	for i, target := range e.Targets {
		if at, ok := slices.BinarySearch(r.shown[0], target); ok && at < len(r.shown[1]) {
			e.Targets[i] = r.shown[1][at]
		}
	}
	return e
}

// replayTurn runs an engine through a turn of the record.
func (r *replay) replayTurn(ctx context.Context, turn *recordedTurn) error {
	if r.log == nil {
		if err := r.start(turn.from); err != nil {
			return err
		}
	}
	r.turn, r.step = turn, nil
	r.Turns++
	header := turn.header()
	e, err := New(Config{
		Provider: r, Governor: r, Log: r.log, Hooks: []hook.Hook{r.hook()}, Model: header.Model, Options: header.Options,
		MaxSteps: turn.maxSteps(), GoalRounds: turn.rounds(), Fallbacks: turn.fallbacks(), Retry: Retries{Attempts: math.MaxInt, MaxWait: math.MaxInt64},
	})
	if err != nil {
		return err
	}
	e.replay, r.engine = r, e
	for _, rec := range r.records[turn.from:turn.to] {
		if shows(rec.Event) {
			r.shown[0] = append(r.shown[0], rec.Seq)
		}
	}
	r.addInputs(turn.steps)
	result := e.Turn(ctx, turn.input())
	if why := turn.cut(); why != "" {
		r.Cut = append(r.Cut, fmt.Sprintf("turn %d: %s", turn.number, why))
		r.close() // what the engine did after that is not what happened
		r.log = nil
		return nil
	}
	r.compareEnd(turn, result)
	return nil
}

// masked reports whether the record does not have the answer as the model gave it,
// but what finalize_content hooks made of it.
func (r *replay) masked(t *turn) bool {
	return r != nil && r.turn.final != nil && t.step == len(r.turn.steps)
}

// compareEnd compares how a turn ended. Whether an answer that is masked met a schema
// cannot be known.
func (r *replay) compareEnd(turn *recordedTurn, result Result) {
	for _, s := range turn.steps {
		if len(s.exchanges) > 0 {
			r.differ(s.exchanges[0].seq, "turn %d ends before this request", turn.number)
			return
		}
	}
	if turn.final != nil && turn.header().OutputSchema != nil {
		return
	}
	// Where hooks were to finalize an answer, nothing is shown of one that was not
	// finished; of such hooks the record does not tell.
	withheld := turn.ended.Text == "" && turn.ended.Error != ""
	if result.Reason != turn.ended.Reason || result.Text != turn.ended.Text && !withheld {
		r.differ(r.records[turn.to-1].Seq, "turn %d ends as %s with\n  %q\nand is recorded as %s with\n  %q",
			turn.number, result.Reason, result.Text, turn.ended.Reason, turn.ended.Text)
	}
}

// differ notes the first difference.
func (r *replay) differ(seq int64, format string, args ...any) {
	if r.Difference == "" {
		r.Seq, r.Difference = seq, fmt.Sprintf(format, args...)
	}
}

// Stream answers a request as it was answered then, once it is the same.
func (r *replay) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		t := r.engine.running.Load()
		if r.step == nil || len(r.step.exchanges) == 0 {
			if r.turn.cut() == "" {
				r.differ(r.records[r.turn.from].Seq, "turn %d makes a request in step %d that the record does not have", r.turn.number, t.step)
			}
			yield(provider.Delta{}, &provider.Error{Class: provider.Script, Message: "the record has no such request"})
			return
		}
		x := r.step.exchanges[0]
		r.step.exchanges = r.step.exchanges[1:]
		r.compare(x, req)
		if r.Difference != "" {
			yield(provider.Delta{}, &provider.Error{Class: provider.Script, Message: "the request is another"})
			return
		}
		for _, d := range x.deltas(t) {
			if !yield(d, nil) {
				return
			}
		}
		if failure := x.failure(t); failure != nil {
			r.step.refused = x.replaced
			yield(provider.Delta{}, failure)
		}
	}
}

// compare compares a request with the one that the record says was sent.
func (r *replay) compare(x *exchange, req provider.Request) {
	r.Requests++
	for ; r.read < len(r.records) && r.records[r.read].Seq < x.seq; r.read++ {
		r.then.Add(r.records[r.read])
	}
	switch {
	case x.sent.Scheme == session.Scheme && x.sent.Digest != r.then.Digest():
		r.differ(x.seq, "the record does not hold: see \"wharf session verify\"")
	case r.log.Digest() != r.then.Digest(): // which is that of req
		r.differ(x.seq, "step %d of turn %d asks the model something else:\n%s", x.sent.Step, r.turn.number, difference(
			provider.Request{Header: r.then.Header(), Messages: r.then.Messages()}, req))
	}
}

// recall returns what a call came to then.
func (r *replay) recall(call session.Call) tool.Result {
	if r.step != nil {
		for i, was := range r.step.results {
			if was.CallID == call.ID {
				r.step.results = slices.Delete(r.step.results, i, i+1)
				return tool.Result{Content: was.Content, IsError: was.IsError, Code: tool.Code(was.Code), Images: was.Images}
			}
		}
	}
	return tool.Result{Content: "the record has no result", IsError: true} // it ends here, or there is a difference
}

// hook says what hooks and users said then.
func (r *replay) hook() hook.Hook {
	on := map[hook.Point]hook.Func{
		hook.UserPromptSubmit: func(context.Context, []byte) (hook.Verdict, error) {
			if r.turn.prompt == nil {
				return hook.Verdict{Decision: hook.Block}, nil
			}
			return hook.Verdict{}, nil
		},
		hook.BeforeIteration: r.beforeIteration,
		hook.BeforeRequest: func(context.Context, []byte) (hook.Verdict, error) {
			if r.step == nil || len(r.step.exchanges) > 0 || r.step.instead == nil || r.unsent() {
				return hook.Verdict{}, nil
			}
			x := exchange{reply: r.step.instead, final: r.lastStep()}
			return replace("response", hook.Response{Text: x.text(r.engine.running.Load())})
		},
		hook.TurnStopping: func(context.Context, []byte) (hook.Verdict, error) {
			if r.step == nil || r.step.objection == "" {
				return hook.Verdict{}, nil
			}
			r.addInputs(r.nextSteps())
			return hook.Verdict{Decision: hook.Continue, Message: r.step.objection}, nil
		},
	}
	if r.turn.final != nil { // such a hook's being there makes a difference
		on[hook.FinalizeContent] = func(context.Context, []byte) (hook.Verdict, error) {
			return replace("text", *r.turn.final)
		}
	}
	return hook.Funcs{ID: "record", Timeout: time.Minute, On: on}
}

// beforeIteration opens the next step of the record, with what hooks had to add.
func (r *replay) beforeIteration(context.Context, []byte) (hook.Verdict, error) {
	t := r.engine.running.Load()
	if t == nil || r.Difference != "" {
		return hook.Verdict{Decision: hook.Block}, nil
	}
	if t.step >= len(r.turn.steps) {
		if r.turn.cut() == "" {
			r.differ(r.records[r.turn.from].Seq, "turn %d takes a step %d that the record does not have", r.turn.number, t.step+1)
		}
		return hook.Verdict{Decision: hook.Block}, nil
	}
	r.step = r.turn.steps[t.step]
	t.contexts = slices.Clone(r.step.contexts)
	return hook.Verdict{}, nil
}

// nextSteps returns the steps after the one that is under way.
func (r *replay) nextSteps() []*recordedStep {
	return r.turn.steps[min(r.engine.running.Load().step, len(r.turn.steps)):]
}

// pursued has what users said wait for the round of a goal that begins.
func (r *replay) pursued() {
	if r != nil && r.step != nil && r.step.pursued {
		r.addInputs(r.nextSteps())
	}
}

// addInputs has what users said before the first of some steps wait for it.
func (r *replay) addInputs(steps []*recordedStep) {
	if len(steps) == 0 {
		return
	}
	for _, in := range steps[0].inputs {
		_ = r.engine.Add(Input{Text: in.Content, Images: in.Images}, Delivery(in.Delivery)) // too many of them are a difference
	}
}

// Results begins a step's request: as the header was then, and with what was replaced,
// up to a summary; Fit has the rest, since that may be about the summary itself.
func (r *replay) Results(*session.History) []session.ContextReplaced {
	t := r.engine.running.Load()
	if r.step == nil || t == nil {
		return nil
	}
	if r.step.objection == "" && !r.step.pursued { // else it came after that, or the turn would have gone on for it
		r.addInputs(r.nextSteps())
	}
	r.engine.header, t.model = r.step.header, cmp.Or(t.fallenBack(), r.step.header.Model)
	before := 1 + slices.IndexFunc(r.step.replaced, func(e session.ContextReplaced) bool { return e.By == governance.ByCompaction })
	if before == 0 {
		before = len(r.step.replaced)
	}
	events := r.all(r.step.replaced[:before])
	r.step.replaced = r.step.replaced[before:]
	return events
}

func (r *replay) all(events []session.ContextReplaced) (here []session.ContextReplaced) {
	for _, e := range events {
		here = append(here, r.here(e))
	}
	return here
}

// Fit returns what was replaced after a summary, or when a server took a request for too long.
func (r *replay) Fit(_ *session.History, refused bool) []session.ContextReplaced {
	switch {
	case r.step == nil:
		return nil
	case refused:
		return r.all(r.step.refused)
	}
	return r.all(r.step.replaced)
}

// Compaction returns nil: a summary of then is a replacement like others.
func (r *replay) Compaction(*session.History, governance.Reason, bool) *governance.Compaction {
	return nil
}

// Estimate returns nothing: it decides nothing here.
func (r *replay) Estimate(*session.History) int { return 0 }

// TooLong repeats that a step's request was too long to be sent.
func (r *replay) TooLong(*session.History) error {
	if r.step == nil || r.turn.cut() != "" || len(r.step.exchanges) > 0 || r.step.instead != nil && !r.unsent() {
		return nil
	}
	return errors.New("the record has no request of this step")
}

// lastStep reports whether the step that is under way is the turn's last.
func (r *replay) lastStep() bool { return r.engine.running.Load().step == len(r.turn.steps) }

// unsent reports whether what stands in the place of the step's reply is only what
// there was of an answer that was cut off: the request that would have gone on with it
// was too long to be sent.
func (r *replay) unsent() bool {
	return r.step.instead != nil && r.lastStep() && r.turn.ended.Reason == session.MaxTokens && len(r.engine.running.Load().parts) > 0
}

// Room returns that there is enough: the record's headers are cut down already.
func (r *replay) Room(*session.History, session.Header) int { return math.MaxInt }

// difference shows where two requests differ first.
func difference(then, now provider.Request) string {
	if !sameHeader(then.Header, now.Header) {
		return besides("the header", then.Header, now.Header)
	}
	for i := range min(len(then.Messages), len(now.Messages)) {
		a, b := then.Messages[i:i+1], now.Messages[i:i+1]
		if session.Digest(session.Header{}, a) != session.Digest(session.Header{}, b) {
			return besides(fmt.Sprintf("message %d", i+1), a[0], b[0])
		}
	}
	return fmt.Sprintf("  recorded: %d messages\n  replayed: %d messages", len(then.Messages), len(now.Messages))
}

// besides shows two values around their first difference.
func besides(what string, then, now any) string {
	a, b := encoded(then), encoded(now)
	from := 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	around := func(text string) string {
		return strings.ToValidUTF8(text[max(0, from-60):min(len(text), from+120)], "")
	}
	return fmt.Sprintf("  %s, recorded: …%s\n  %s, replayed: …%s", what, around(a), what, around(b))
}
