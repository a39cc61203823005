package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/wharf-agent/wharf/engine/session"
)

// Decision is the word of a [Verdict].
type Decision string

// The decisions. Which of them a point takes stands in [Points]; no decision
// is no opinion.
const (
	Allow    Decision = "allow"
	Deny     Decision = "deny"
	Ask      Decision = "ask"
	Block    Decision = "block"
	Continue Decision = "continue" // with a message for the model
	Retry    Decision = "retry"
	Fail     Decision = "fail"
)

// Verdict is what a hook answers, in JSON. Every field is optional. What a point
// takes stands in its row of [Points]: the decisions, the keys that Replace may
// hold, and whether there may be a Context. Anything else is a bad answer.
type Verdict struct {
	Decision Decision                   `json:"decision"`
	Reason   string                     `json:"reason"`
	Replace  map[string]json.RawMessage `json:"replace"`
	Context  string                     `json:"context"`
	Message  string                     `json:"message"`
	Error    string                     `json:"error"` // the hook's own failure
}

// opinion reports whether v says anything.
func (v Verdict) opinion() bool {
	return v.Decision != "" || len(v.Replace) > 0 || v.Context != ""
}

// replacement decodes what v puts in the place of key, if it does.
func (v Verdict) replacement(key string, into any) bool {
	raw, ok := v.Replace[key]
	if old, isRaw := into.(*json.RawMessage); ok && isRaw {
		*old = raw // Unmarshal would write over the bytes that are to be replaced, and they are not ours
		return true
	}
	return ok && json.Unmarshal(raw, into) == nil
}

// ParseVerdict reads what a hook answered at a point, as the chain does: it is
// strict, an empty answer is no opinion, and the error says what is bad.
func ParseVerdict(p Point, answer []byte) (Verdict, error) {
	info, ok := Lookup(p)
	if !ok {
		return Verdict{}, fmt.Errorf("there is no hook point %q", p)
	}
	if len(answer) == 0 {
		return Verdict{}, nil
	}
	return parse(info, answer)
}

// parse reads an answer at a point. It is strict: a misspelt "decision" must
// not pass for no opinion. What the point does not take is a bad answer.
func parse(info Info, answer []byte) (Verdict, error) {
	v, err := decode(answer)
	if err != nil {
		return Verdict{}, err
	}
	if v.Error != "" {
		return Verdict{}, errors.New(v.Error)
	}
	switch {
	case v.Decision != "" && !slices.Contains(info.Decisions, v.Decision):
		return Verdict{}, fmt.Errorf("bad answer: %s does not take the decision %q", info.Point, v.Decision)
	case v.Context != "" && !info.Context:
		return Verdict{}, fmt.Errorf("bad answer: %s does not take a context", info.Point)
	case v.Message != "" && !slices.Contains(info.Decisions, Continue):
		return Verdict{}, fmt.Errorf("bad answer: %s does not take a message", info.Point)
	case (v.Message != "") != (v.Decision == Continue):
		return Verdict{}, fmt.Errorf("bad answer: %s takes a message with the decision %q, and that only with one", info.Point, Continue)
	}
	for key, raw := range v.Replace {
		if !slices.Contains(info.Replace, key) {
			return Verdict{}, fmt.Errorf("bad answer: %s does not take a replacement of %q", info.Point, key)
		}
		if err := checkReplacement(key, raw); err != nil {
			return Verdict{}, err
		}
		canonical, err := canonicalize(raw)
		if err == nil && !session.Fits(canonical) {
			err = errors.New("it is nested too deeply")
		}
		if err != nil {
			return Verdict{}, fmt.Errorf("bad answer: the replacement of %q: %w", key, err)
		}
		v.Replace[key] = canonical
	}
	return v, nil
}

// decode reads a JSON value that is a verdict.
func decode(answer []byte) (Verdict, error) {
	if bytes.Equal(bytes.TrimSpace(answer), []byte("null")) {
		return Verdict{}, errors.New("bad answer: null is no verdict")
	}
	d := decoders.Get().(*decoder)
	d.Reset(answer)
	var v Verdict
	if err := d.json.Decode(&v); err != nil {
		return Verdict{}, fmt.Errorf("bad answer: %w", err)
	}
	if _, err := d.json.Token(); err != io.EOF {
		return Verdict{}, errors.New("bad answer: more than one JSON value")
	}
	if len(answer) <= maxReused {
		decoders.Put(d) // all is read, so nothing of this answer can get into the next
	}
	return v, nil
}

// maxReused is how long an answer may be whose decoder, and its buffer, is kept.
const maxReused = 4 << 10

// decoder is a strict decoder and what it reads. Making one anew takes as long as
// reading a verdict.
type decoder struct {
	bytes.Reader
	json *json.Decoder
}

var decoders = sync.Pool{New: func() any {
	d := &decoder{}
	d.json = json.NewDecoder(d)
	d.json.DisallowUnknownFields()
	return d
}}

// canonicalize returns a JSON value in the form in which no key stands twice
// and all text is UTF-8: two readers must not see different values in it.
func canonicalize(raw json.RawMessage) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	return encode(value)
}

// checkReplacement checks that a replacement has its key's type.
func checkReplacement(key string, raw json.RawMessage) error {
	var err error
	switch key {
	case "arguments", "parameters":
		err = holds[map[string]json.RawMessage](raw)
	case "result":
		err = holds[Result](raw)
	case "response":
		err = holds[Response](raw)
	case "hide_tools":
		err = holds[[]string](raw)
	default:
		err = holds[string](raw)
	}
	if err != nil {
		return fmt.Errorf("bad answer: the replacement of %q: %w", key, err)
	}
	return nil
}

// holds checks that raw is a T, and not null.
func holds[T any](raw json.RawMessage) error {
	var value *T
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	if value == nil {
		return errors.New("it is null")
	}
	return nil
}
