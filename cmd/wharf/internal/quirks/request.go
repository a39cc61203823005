package quirks

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Request is a model request as the server got it.
type Request struct {
	Body     []byte
	Came     time.Time
	messages []message
	tools    []toolOnOffer
	stream   bool
	fields   map[string]json.RawMessage
	broken   error
}

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning json.RawMessage `json:"reasoning_content"`
	Calls     []sentCall      `json:"tool_calls"`
	CallID    string          `json:"tool_call_id"`
}

type sentCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	fields map[string]json.RawMessage
}

func (c *sentCall) UnmarshalJSON(b []byte) error {
	type plain sentCall
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return err
	}
	return json.Unmarshal(b, &c.fields)
}

type toolOnOffer struct {
	Function struct {
		Name       string `json:"name"`
		Parameters struct {
			Required []string `json:"required"`
		} `json:"parameters"`
	} `json:"function"`
}

func parseRequest(body []byte) Request {
	r := Request{Body: body, Came: time.Now()}
	var known struct {
		Messages []message     `json:"messages"`
		Tools    []toolOnOffer `json:"tools"`
		Stream   bool          `json:"stream"`
	}
	if r.broken = json.Unmarshal(body, &known); r.broken == nil {
		r.broken = json.Unmarshal(body, &r.fields)
	}
	r.messages, r.tools, r.stream = known.Messages, known.Tools, known.Stream
	return r
}

// Problems lists why a strict server would refuse the request.
func (r Request) Problems() []string {
	if r.broken != nil {
		return []string{"the body cannot be read: " + r.broken.Error()}
	}
	var found []string
	report := func(i int, format string, args ...any) {
		found = append(found, fmt.Sprintf("message %d: ", i)+fmt.Sprintf(format, args...))
	}
	if len(r.messages) == 0 {
		found = append(found, "no messages")
	}
	open := map[string]bool{} // ids of the calls that still want an answer; false once answered
	for i, m := range r.messages {
		if m.Role == "tool" {
			if wants, known := open[m.CallID]; !known || !wants {
				report(i, "answers no open call: %q", m.CallID)
			}
			open[m.CallID] = false
		} else {
			for id, wants := range open {
				if wants {
					report(i, "stands before the answer to the call %q", id)
				}
			}
			open = map[string]bool{}
		}
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool":
		default:
			report(i, "unknown role %q", m.Role)
		}
		if m.text() == "" && len(m.Calls) == 0 {
			report(i, "empty")
		}
		for _, c := range m.Calls {
			if _, twice := open[c.ID]; c.ID == "" || twice {
				report(i, "call id %q is empty or not unique", c.ID)
			}
			open[c.ID] = true
			if c.Function.Name == "" || !json.Valid([]byte(c.arguments())) {
				report(i, "call %q has no name, or arguments that are no string of JSON: %s", c.Function.Name, c.Function.Arguments)
			}
		}
	}
	for id, wants := range open {
		if wants {
			found = append(found, fmt.Sprintf("the call %q has no answer", id))
		}
	}
	return found
}

// text is the message's content: a string, or the texts of its parts.
func (m message) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) == nil {
		for _, p := range parts {
			s += p.Text
		}
	}
	return s
}

// arguments returns the text of the arguments, or "" if they are no string.
func (c sentCall) arguments() string {
	var s string
	if json.Unmarshal(c.Function.Arguments, &s) != nil {
		return ""
	}
	return s
}

// maxTokens is the largest answer that the request asks for, or 0.
func (r Request) maxTokens() int64 {
	var n int64
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if raw, there := r.fields[name]; there {
			_ = json.Unmarshal(raw, &n) // what is no number is shown by what it lacks
		}
	}
	return n
}

// ids lists the ids of all calls, in order.
func (r Request) ids() []string {
	var ids []string
	for _, m := range r.messages {
		for _, c := range m.Calls {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// lastCalls returns the calls of the last assistant message that has some, and
// the answers by id.
func (r Request) lastCalls() ([]sentCall, map[string]string) {
	answers := map[string]string{}
	for i := len(r.messages) - 1; i >= 0; i-- {
		m := r.messages[i]
		if m.Role == "tool" {
			answers[m.CallID] = m.text()
		}
		if len(m.Calls) > 0 {
			return m.Calls, answers
		}
	}
	return nil, nil
}

// says reports whether some message contains text.
func (r Request) says(text string) bool {
	for _, m := range r.messages {
		if strings.Contains(m.text(), text) {
			return true
		}
	}
	return false
}

// sameJSON compares values, not bytes.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
