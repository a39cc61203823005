package quirks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Outcome is what can be seen of a case's runs.
type Outcome struct {
	Runs      []RunOutcome
	Workspace string
	Requests  []Request
}

// RunOutcome is what one invocation left behind.
type RunOutcome struct {
	Stdout []byte // in the format stream-json
	Stderr []byte
	Exit   int           // 128 + its number after a signal that killed it
	Took   time.Duration // after a signal: from that on
}

// event is a line of the log.
type event struct {
	Seq  *int64          `json:"seq"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

type result struct {
	IsError    bool   `json:"is_error"`
	Result     string `json:"result"`
	StopReason string `json:"stop_reason"`
	Usage      struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cache_read_input_tokens"`
	} `json:"usage"`
}

// run is a RunOutcome that has been read.
type run struct {
	events []event
	result result
	reason string // of the last turn.ended
	calls  []madeCall
	exit   int
	stderr string
	took   time.Duration
}

// madeCall is a tool.call with its result.
type madeCall struct {
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	seq       int64
	results   []toolResult
}

type toolResult struct {
	CallSeq int64  `json:"call_seq"`
	Content string `json:"content"`
	IsError bool   `json:"is_error"`
	Code    string `json:"code"`
}

// read takes an outcome apart and lists what is wrong with it in any case. before is
// the session's run before it, or nil: what that left open is closed in this one.
func (o RunOutcome) read(signal *Signal, before *run) (run, []string) {
	r := run{exit: o.Exit, stderr: string(o.Stderr), took: o.Took}
	var found []string
	killed := signal != nil && signal.Name == "KILL"
	lines := strings.Split(strings.TrimSuffix(string(o.Stdout), "\n"), "\n")
	for i, line := range lines {
		if killed && i == len(lines)-1 && !strings.HasSuffix(string(o.Stdout), "\n") {
			break // cut off in the middle
		}
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			found = append(found, fmt.Sprintf("stdout line %d is no JSON object: %q", i+1, line))
			continue
		}
		if last := i == len(lines)-1 && !killed; last != (e.Type == "result") {
			found = append(found, fmt.Sprintf("stdout line %d of %d has the type %q", i+1, len(lines), e.Type))
		}
		if e.Type == "result" {
			_ = json.Unmarshal([]byte(line), &r.result) // shown by what it lacks
			continue
		}
		if e.Seq == nil || len(r.events) > 0 && *e.Seq != *r.events[len(r.events)-1].Seq+1 {
			found = append(found, fmt.Sprintf("stdout line %d: its seq does not follow", i+1))
			continue
		}
		r.events = append(r.events, e)
		found = append(found, r.take(e, before)...)
	}
	if killed {
		return r, found
	}
	return r, append(found, r.problems(signal)...)
}

// take remembers what an event says about calls and the turn's end.
func (r *run) take(e event, before *run) []string {
	var err error
	switch e.Type {
	case "turn.ended":
		var ended struct {
			Reason string `json:"reason"`
		}
		err = json.Unmarshal(e.Data, &ended)
		r.reason = ended.Reason
	case "tool.call":
		c := madeCall{seq: *e.Seq}
		err = json.Unmarshal(e.Data, &c)
		r.calls = append(r.calls, c)
	case "tool.result":
		var t toolResult
		if err = json.Unmarshal(e.Data, &t); err != nil {
			break
		}
		if r.answer(t) || before != nil && before.answer(t) {
			return nil
		}
		return []string{fmt.Sprintf("the tool.result at seq %d answers no call of this run", *e.Seq)}
	}
	if err != nil {
		return []string{fmt.Sprintf("the %s at seq %d cannot be read: %v", e.Type, *e.Seq, err)}
	}
	return nil
}

// answer gives a result to its call, if that is one of the run's.
func (r *run) answer(t toolResult) bool {
	for i := range r.calls {
		if r.calls[i].seq == t.CallSeq {
			r.calls[i].results = append(r.calls[i].results, t)
			return true
		}
	}
	return false
}

var exitOf = map[string]int{
	"completed": 0, "max_steps": 3, "max_tokens": 3, "budget": 3, "blocked": 4,
	"empty_response": 1, "model_error": 1, "hook_error": 1, "tool_error": 1,
}

// problems lists what does not fit together.
func (r *run) problems(signal *Signal) []string {
	var found []string
	want, known := exitOf[r.reason]
	if signal != nil && r.reason == "cancelled" {
		want, known = 130, true
	}
	if !known || r.exit != want || r.result.IsError != (want != 0) || r.result.StopReason != r.reason {
		found = append(found, fmt.Sprintf("turn.ended says %q, the result %q and is_error %t, and the exit status is %d",
			r.reason, r.result.StopReason, r.result.IsError, r.exit))
	}
	if r.exit != 0 && strings.TrimSpace(r.stderr) == "" {
		found = append(found, "an error, and nothing on stderr")
	}
	if strings.Contains(r.stderr, "panic:") || strings.Contains(r.stderr, "goroutine ") {
		found = append(found, "a crash: "+r.stderr)
	}
	return found
}

// unanswered lists the calls that have not exactly one result.
func (r *run) unanswered() []string {
	var found []string
	for _, c := range r.calls {
		if len(c.results) != 1 {
			found = append(found, fmt.Sprintf("the call %q of %s has %d results", c.CallID, c.Name, len(c.results)))
		}
	}
	return found
}

// strings calls visit for each string in the events' data.
func (r *run) strings(visit func(string)) {
	for _, e := range r.events {
		var v any
		if json.NewDecoder(bytes.NewReader(e.Data)).Decode(&v) == nil {
			walk(v, visit)
		}
	}
}

func walk(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	case map[string]any:
		for _, item := range v {
			walk(item, visit)
		}
	}
}
