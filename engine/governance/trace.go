package governance

import (
	"fmt"

	"github.com/wharf-agent/wharf/engine/session"
)

// Trace tells of one request what the model saw, and how that came about.
type Trace struct {
	Turn     int           `json:"turn"`
	Step     int           `json:"step"`
	Seq      int64         `json:"seq"` // of its request.sent
	Digest   string        `json:"digest"`
	Model    string        `json:"model"`
	Header   int           `json:"header_tokens"` // the system text and the tools
	Tokens   int           `json:"tokens"`        // all of it, as Tokens counts
	Messages []Shown       `json:"messages"`
	Replaced []Replacement `json:"replaced"` // in all the session up to there
}

// Shown is a message of a request.
type Shown struct {
	Seq    int64        `json:"seq"` // of the event that shows it; 0 for a result that there is not
	Role   session.Role `json:"role"`
	Tokens int          `json:"tokens"`
	By     string       `json:"by,omitempty"` // the step that put it, or its content, there
	Text   string       `json:"text"`         // its beginning
}

// Replacement is a decision of governance.
type Replacement struct {
	Seq     int64   `json:"seq"`
	By      string  `json:"by"`
	Why     string  `json:"why"`
	Targets []int64 `json:"targets"`
	Before  int     `json:"tokens_before"` // of all messages
	After   int     `json:"tokens_after"`
}

// reasons say why a step replaces something.
var reasons = map[string]string{
	ByResult:     "a result had more characters than max_result",
	ByInFlight:   "the request was over its budget, so results of the turn made way, oldest first",
	BySnip:       "the request was over its budget, so old messages made way",
	ByCompaction: "the history came near the model's window, or somebody asked, so older messages were summarized",
	"images":     "the server refused the images of a message",
	"length":     "an answer that came in parts is one message for later turns",
}

// TraceRequest computes the trace of a step's last request from a session's log; turn 0
// means the last turn that has such a step.
func TraceRequest(records []session.Record, turn, step int) (*Trace, error) {
	at, found := findRequest(records, turn, step)
	if !found {
		if turn > 0 {
			return nil, fmt.Errorf("turn %d has no request of step %d", turn, step)
		}
		return nil, fmt.Errorf("no turn has a request of step %d", step)
	}
	t := &Trace{Step: step, Messages: []Shown{}, Replaced: []Replacement{}}
	var h session.History
	for _, r := range records[:at+1] {
		switch e := r.Event.(type) {
		case session.TurnStarted:
			t.Turn = e.Turn
		case session.RequestSent:
			t.Seq, t.Digest = r.Seq, e.Digest
		case session.ContextReplaced:
			before := h.Weigh(0, weigh)
			h.Add(r)
			t.Replaced = append(t.Replaced, Replacement{r.Seq, e.By, reasons[e.By], e.Targets, before, h.Weigh(0, weigh)})
			continue
		}
		h.Add(r)
	}
	t.Model, t.Header = h.Header().Model, New(Config{}).headerTokens(h.Header())
	t.Tokens = t.Header + h.Weigh(0, weigh)
	for _, b := range h.Blocks() {
		t.show(b.Seq, b.By, b.Message)
		for _, r := range b.Results {
			t.show(r.Seq, r.By, r.Message)
		}
	}
	return t, nil
}

// findRequest returns the index of a step's last request.
func findRequest(records []session.Record, turn, step int) (index int, found bool) {
	current := 0
	for i, r := range records {
		switch e := r.Event.(type) {
		case session.TurnStarted:
			current = e.Turn
		case session.RequestSent:
			if e.Step == step && (turn == 0 || turn == current) {
				index, found = i, true
			}
		}
	}
	return index, found
}

func (t *Trace) show(seq int64, by string, m session.Message) {
	text := m.Content
	for _, c := range m.Calls {
		text += fmt.Sprintf(" → %s %s", c.Name, c.Arguments)
	}
	t.Messages = append(t.Messages, Shown{Seq: seq, Role: m.Role, Tokens: messageTokens(m), By: by, Text: oneLine(text)})
}
