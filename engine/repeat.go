package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// Repeats says when a call that the model makes again and again, with the same
// arguments and none other in between, is advised against, and from when on it is
// refused: each the n-th time. 0 means the default, 3 and 5; below 0 means never.
type Repeats struct{ Advise, Refuse int }

// repeatsOf returns the rule for a tool: its own, where it has one.
func (c *Config) repeatsOf(name string) Repeats {
	own, all := c.ToolRepeats[name], c.Repeats
	return Repeats{cmp.Or(own.Advise, all.Advise, 3), cmp.Or(own.Refuse, all.Refuse, 5)}
}

// The counts of invalid calls of one tool in a row.
const (
	adviseInvalid = 3
	maxInvalid    = 5
)

// repeats counts a turn's calls that go nowhere.
type repeats struct {
	last      string // the last call: its tool, and its arguments in one form
	times     int    // in a row
	wrongTool string // of the last call, if it was invalid
	wrong     int    // invalid calls of that tool in a row
	wrongFrom int    // the step in which they began
}

// count takes a call of the model's into account, and returns how often in a row it
// was made.
func (r *repeats) count(call session.Call) int {
	this := call.Name + "\x00" + canonical(call.Arguments)
	if this != r.last {
		r.last, r.times = this, 0
	}
	r.times++
	return r.times
}

// timesInRow counts a call of the model's. One that looks again at what goes on by itself is
// always the first.
func (t *turn) timesInRow(call session.Call) int {
	times := t.repeats.count(call)
	if t.polls(call) {
		t.repeats.times, times = 1, 1
	}
	return times
}

// polls asks a tool for that; only a clear yes is one.
func (t *turn) polls(call session.Call) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	target, bad := t.cfg.Tools.Lookup(call.Name)
	if bad != nil {
		return false
	}
	p, ok := target.(tool.Poller)
	return ok && p.Polls([]byte(call.Arguments))
}

// canonical returns arguments in one form, whatever the order of their keys, the
// space between them and the way in which their text and numbers are written.
func canonical(arguments string) string {
	if blank(arguments) {
		return "{}" // as which they are run
	}
	var value any
	dec := json.NewDecoder(bytes.NewReader([]byte(arguments)))
	dec.UseNumber()
	if dec.Decode(&value) != nil || dec.More() {
		return arguments
	}
	text, err := json.Marshal(plainNumbers(value))
	if err != nil {
		return arguments
	}
	return string(text)
}

// plainNumbers writes each number in a JSON value in one way.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		return plainNumber(string(v))
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = plainNumbers(v[key])
		}
	}
	return value
}

// plainNumber writes a number as its digits and how many places they are moved, which
// is the same for 10, 1e1 and 10.0, and costs no more than the text, however large it is.
func plainNumber(text string) json.Number {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	moved, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if err != nil {
		return json.Number(text)
	}
	unsigned, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(unsigned, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	if digits == "" {
		return "0"
	}
	moved += len(all) - len(digits) - len(fraction)
	if negative {
		digits = "-" + digits
	}
	return json.Number(digits + "e" + strconv.Itoa(moved))
}

// repeated returns the refusal of a call that was made too often in a row. One
// that is invalid is left to that rule.
func (t *turn) repeated(call session.Call, times int) *tool.Result {
	if refuse := t.cfg.repeatsOf(call.Name).Refuse; refuse < 0 || times < refuse {
		return nil
	}
	if _, bad := t.cfg.Tools.Lookup(call.Name); bad != nil {
		return nil
	}
	if _, bad := t.cfg.Tools.Check(call.Name, call.Arguments); bad != nil {
		return nil
	}
	return &tool.Result{IsError: true, Code: tool.Repeated, Content: fmt.Sprintf(
		"refused: this is call number %d in a row of %s with the same arguments, and it is not run again. Its result would be the same: do something else, or say what stands in the way.", times, call.Name)}
}

// advice returns what is added to the result of a call that goes nowhere.
func (t *turn) advice(call session.Call, times, wrong int) string {
	rule := t.cfg.repeatsOf(call.Name)
	switch {
	case wrong >= adviseInvalid:
		return fmt.Sprintf("\n\nThis was invalid call number %d of %s in a row. Read its input schema again, or do without it: after %d the turn ends.", wrong, call.Name, maxInvalid)
	case rule.Advise > 0 && times >= rule.Advise && (rule.Refuse < 0 || times < rule.Refuse):
		return fmt.Sprintf("\n\nThis was call number %d in a row of %s with the same arguments. Doing it again will not change the result: do something else.", times, call.Name)
	}
	return ""
}

// invalid counts the calls of a tool in a row that could not be what the model meant.
func (r *repeats) invalid(step int, call session.Call, result tool.Result) int {
	if result.Code != tool.InvalidArgs && result.Code != tool.UnknownTool {
		r.wrongTool, r.wrong = "", 0
		return 0
	}
	if r.wrongTool != call.Name {
		r.wrongTool, r.wrong, r.wrongFrom = call.Name, 0, step
	}
	r.wrong++
	return r.wrong
}

// guard looks at a result for signs that the turn goes nowhere: it adds advice, or
// says that the turn is to end. It does not end for the calls of one reply alone,
// since the model has not been told yet.
func (t *turn) guard(x *slot) error {
	wrong := t.repeats.invalid(t.step, x.call, x.result)
	if t.replay == nil { // a recorded result has it
		x.result.Content += t.advice(x.call, x.times, wrong)
	}
	if wrong < maxInvalid || t.repeats.wrongFrom == t.step {
		return nil
	}
	return &endError{session.ToolError, fmt.Errorf("the model called %.100q invalidly, %d times in a row: try another model, or look at the tool's schema", x.call.Name, wrong)}
}
