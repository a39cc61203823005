package export

import (
	"cmp"
	"fmt"
	"time"

	"github.com/wharf-agent/wharf/engine/session"
)

// conversation is a session as a reader sees it.
type conversation struct {
	Start    session.Started
	Begun    time.Time
	Model    string // the last one that was asked
	Usage    session.Usage
	Requests int
	Calls    int
	Turns    []*turn
	Between  []*item // what stands before, between or after turns
}

// turn is one turn: what was said and done in it, in order, and how long it took.
type turn struct {
	Number int
	Origin string
	Reason session.Reason // empty while it is open
	Error  string
	Usage  session.Usage
	Steps  int
	Begun  time.Time
	Took   time.Duration
	Items  []*item
	Lanes  []*lane
}

// item is one thing in a turn: a message, a call with its result, or a note.
type item struct {
	Seq       int64
	At        time.Duration // since the turn began
	Kind      string        // who speaks (user, hook, engine, assistant), call, step or note
	Title     string
	Text      string
	Reasoning string
	Images    []session.Image
	Usage     *session.Usage // of an assistant's message
	Call      *call
}

// call is a tool call with its result and what was said of it.
type call struct {
	Name, Arguments string
	Result          string
	Code            string
	Done, IsError   bool
	Took            time.Duration
	Notes           []*item
	Images          []session.Image
}

// lane is a row of a turn's timeline.
type lane struct {
	Seq   int64
	Kind  string // model or call, with failed after it if that is what it did
	Label string
	From  time.Duration
	Took  time.Duration
}

// reader computes a conversation from the events.
type reader struct {
	conversation
	now    *turn                    // the open turn, or nil
	asking *lane                    // the request that waits for its reply
	calls  map[session.CallID]*item // the last of each id
	bySeq  map[int64]*lane
}

func read(records []session.Record) *conversation {
	r := &reader{calls: map[session.CallID]*item{}, bySeq: map[int64]*lane{}}
	for _, rec := range records {
		r.add(rec)
	}
	if n := len(records); n > 0 && r.now != nil { // it is still running, or the process went away
		r.answered(records[n-1], "")
		r.now.Took = records[n-1].Time.Sub(r.now.Begun)
	}
	return &r.conversation
}

func (r *reader) add(rec session.Record) {
	switch e := rec.Event.(type) {
	case session.Started:
		r.Start, r.Begun = e, rec.Time
	case session.TurnStarted:
		r.now = &turn{Number: e.Turn, Origin: e.Origin, Begun: rec.Time}
		r.Turns = append(r.Turns, r.now)
	case session.TurnEnded:
		r.endTurn(rec, e)
	case session.StepStarted:
		r.put(rec, &item{Kind: "step", Title: fmt.Sprintf("step %d", e.Step)})
	case session.StepEnded:
	case session.Header:
		r.Model = e.Model
	case session.RequestSent:
		r.Requests++
		r.asking = r.lane(rec, fmt.Sprintf("%s, step %d", cmp.Or(r.Model, "model"), e.Step), "model")
	case session.RequestRetried:
		r.answered(rec, " failed")
		r.put(rec, &item{Kind: "note", Title: "sent again", Text: fmt.Sprintf("after %v: %s", time.Duration(e.DelayMS)*time.Millisecond, e.Cause)})
	case session.UserMessage:
		r.put(rec, &item{Kind: speaker(e.Origin), Title: e.Origin, Text: e.Content, Images: e.Images})
	case session.AssistantMessage:
		r.reply(rec, e)
	case session.ToolCall:
		r.startCall(rec, e)
	case session.ToolResult:
		r.endCall(e)
	default:
		r.note(rec)
	}
}

// speaker is the kind of a message in the user's role.
func speaker(origin string) string {
	if origin == "hook" || origin == "engine" {
		return origin
	}
	return "user"
}

// put adds an item to the open turn, or between turns.
func (r *reader) put(rec session.Record, i *item) {
	i.Seq = rec.Seq
	if r.now == nil {
		r.Between = append(r.Between, i)
		return
	}
	i.At = rec.Time.Sub(r.now.Begun)
	r.now.Items = append(r.now.Items, i)
}

func (r *reader) lane(rec session.Record, label, kind string) *lane {
	l := &lane{Seq: rec.Seq, Kind: kind, Label: label}
	if r.now != nil {
		l.From = rec.Time.Sub(r.now.Begun)
		r.now.Lanes = append(r.now.Lanes, l)
	}
	return l
}

// answered ends the bar of the request that waits; how is what is added to its kind.
func (r *reader) answered(rec session.Record, how string) {
	if r.asking == nil || r.now == nil {
		return
	}
	r.asking.Took = rec.Time.Sub(r.now.Begun) - r.asking.From
	r.asking.Kind += how
	r.asking = nil
}

func (r *reader) reply(rec session.Record, e session.AssistantMessage) {
	how, title := "", "assistant"
	if e.Interrupted {
		how, title = " failed", "assistant, broken off"
	}
	r.answered(rec, how)
	if e.Text != "" || e.Reasoning != "" {
		r.put(rec, &item{Kind: "assistant", Title: title, Text: e.Text, Reasoning: e.Reasoning, Usage: &e.Usage})
	}
}

func (r *reader) startCall(rec session.Record, e session.ToolCall) {
	r.Calls++
	i := &item{Kind: "call", Title: e.Name, Call: &call{Name: e.Name, Arguments: e.Arguments}}
	r.calls[e.CallID] = i
	r.bySeq[rec.Seq] = r.lane(rec, e.Name, "call")
	r.put(rec, i)
}

func (r *reader) endCall(e session.ToolResult) {
	i, l := r.calls[e.CallID], r.bySeq[e.CallSeq]
	if i == nil || l == nil {
		return
	}
	c := i.Call
	c.Done, c.Result, c.Code, c.IsError, c.Images = true, e.Content, e.Code, e.IsError, e.Images
	c.Took = time.Duration(e.DurationMS) * time.Millisecond
	l.Took = c.Took
	if e.IsError {
		l.Kind += " failed"
	}
}

func (r *reader) endTurn(rec session.Record, e session.TurnEnded) {
	if r.now == nil {
		return
	}
	r.answered(rec, " failed")
	r.now.Reason, r.now.Error, r.now.Usage, r.now.Steps = e.Reason, e.Error, e.Usage, e.Steps
	r.now.Took = rec.Time.Sub(r.now.Begun)
	r.Usage = r.Usage.Add(e.Usage)
	r.now = nil
}

// note adds any other event, to the call that it is about if there is one.
func (r *reader) note(rec session.Record) {
	title, text, id := describe(rec.Event)
	if title == "" {
		return
	}
	n := &item{Seq: rec.Seq, Kind: "note", Title: title, Text: text}
	if i := r.calls[id]; i != nil && id != "" && !i.Call.Done {
		i.Call.Notes = append(i.Call.Notes, n)
		return
	}
	r.put(rec, n)
}
