package script

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// maxLine is how long a line of a script may be.
const maxLine = 16 << 20

// Reply is one answer of the model, as a line of a script has it.
type Reply struct {
	At           string // where it stands, as FILE:LINE, for error texts; may be empty
	Text         string
	Reasoning    string
	Calls        []session.Call
	FinishReason string // "" means tool_calls if there are calls, else stop
	Usage        *session.Usage
	Extra        json.RawMessage // an object of what a server attached to the reply
	Delay        time.Duration   // before the first delta
	Failure      *Failure        // ends the reply after its text and its calls
	LastContains string          // what the request's last message must contain; "" means nothing
}

// Failure is a server's error. A status of 0 is a connection that broke.
type Failure struct {
	Status       int            `json:"status,omitempty"`
	Message      string         `json:"message"`
	Class        provider.Class `json:"class,omitempty"` // "" means what the status says
	Advice       string         `json:"advice,omitempty"`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
	Permanent    bool           `json:"permanent,omitempty"`
}

// line is a reply as it is written.
type line struct {
	Text         string          `json:"text"`
	Reasoning    string          `json:"reasoning"`
	Calls        []call          `json:"calls"`
	FinishReason string          `json:"finish_reason"`
	Usage        *session.Usage  `json:"usage"`
	Extra        json.RawMessage `json:"extra"`
	DelayMS      int64           `json:"delay_ms"`
	Error        *Failure        `json:"error"`
	Expect       *struct {
		LastContains string `json:"last_contains"`
	} `json:"expect"`
}

type call struct {
	CallID    session.CallID  `json:"call_id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

const keys = "the keys are text, reasoning, calls [{name, arguments, call_id, extra}], finish_reason, usage, extra, " +
	"delay_ms, error {status, message, class, advice, retry_after_ms, permanent}, expect {last_contains}"

// Parse reads a script: JSON Lines, one reply each; empty lines are skipped.
// An error names the file by name, the line, and what to do.
func Parse(name string, r io.Reader) ([]Reply, error) {
	var replies []Reply
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		reply, err := parseLine(text)
		if err != nil {
			return nil, fmt.Errorf("read script %s: line %d: %w", name, n, err)
		}
		reply.At = fmt.Sprintf("%s:%d", name, n)
		replies = append(replies, reply)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("read script %s: line %d: longer than %d MiB: make it shorter", name, n+1, maxLine>>20)
	case err != nil:
		return nil, fmt.Errorf("read script %s: %w", name, err)
	case len(replies) == 0:
		return nil, fmt.Errorf("read script %s: it has no reply: write one JSON object a line, such as {\"text\":\"Hello.\"}", name)
	}
	return replies, nil
}

func parseLine(text []byte) (Reply, error) {
	var l line
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&l); err != nil {
		return Reply{}, fmt.Errorf("%s: write one JSON object; %s", whatIsWrong(err), keys)
	}
	if text[0] != '{' || !json.Valid(text) {
		return Reply{}, errors.New("more or other than one JSON object: write one a line")
	}
	if l.DelayMS < 0 {
		return Reply{}, fmt.Errorf("delay_ms is %d: write milliseconds, from 0 on", l.DelayMS)
	}
	reply := Reply{
		Text: l.Text, Reasoning: l.Reasoning, FinishReason: l.FinishReason, Usage: l.Usage,
		Extra: present(l.Extra),
		Delay: time.Duration(min(l.DelayMS, maxDelay.Milliseconds())) * time.Millisecond, Failure: l.Error,
	}
	if l.Expect != nil {
		reply.LastContains = l.Expect.LastContains
	}
	for i, c := range l.Calls {
		made, err := c.session()
		if err != nil {
			return Reply{}, fmt.Errorf("call %d: %w", i+1, err)
		}
		reply.Calls = append(reply.Calls, made)
	}
	return reply, nil
}

// whatIsWrong puts a decoder's error into the script's own words.
func whatIsWrong(err error) string {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Sprintf("%s cannot be a %s", cmp.Or(wrong.Field, "a reply"), wrong.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

const maxDelay = 24 * time.Hour

// present returns raw unless it is null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// session returns the call as a model makes it: the argument text compact if it
// was written as an object, as it is if it was written as a string.
func (c call) session() (session.Call, error) {
	made := session.Call{ID: c.CallID, Name: c.Name, Arguments: "{}", Extra: present(c.Extra)}
	if c.Name == "" {
		return made, errors.New("it has no name: name the tool")
	}
	switch {
	case len(c.Arguments) == 0:
	case c.Arguments[0] == '"':
		if err := json.Unmarshal(c.Arguments, &made.Arguments); err != nil {
			return made, err
		}
	case c.Arguments[0] == '{':
		var compact bytes.Buffer
		if err := json.Compact(&compact, c.Arguments); err != nil {
			return made, err
		}
		made.Arguments = compact.String()
	default:
		return made, fmt.Errorf("arguments are %s: write an object, or a string for a broken text", c.Arguments)
	}
	return made, nil
}
