package quirks

import (
	"encoding/json"
	"slices"
)

// Guard is a reply that goes before the script when a request looks a certain
// way.
type Guard struct {
	When  Condition       `json:"when"`
	Reply json.RawMessage `json:"reply"`
	Max   int             `json:"max"` // how often at most; 0 means always
}

// Condition holds for a request if any of its set fields does.
type Condition struct {
	Role             string   `json:"role"`              // a message has it
	ArrayContent     bool     `json:"array_content"`     // a message's text parts are a list
	Reasoning        bool     `json:"reasoning"`         // an assistant message carries reasoning_content
	ReasoningMissing bool     `json:"reasoning_missing"` // one with calls does not
	GrownBy          int      `json:"grown_by"`          // the body is this much larger than the first
	ExtraFields      []string `json:"extra_fields"`      // the body has one of them
	BadArgs          bool     `json:"bad_args"`          // a call's arguments are no string of JSON
	ToolThenUser     bool     `json:"tool_then_user"`    // a user message right after a tool message
	Request          int      `json:"request"`           // it is the n-th of all, from 1 on
}

// holds tells whether the condition holds for r, the n-th request; first is the
// length of the first one.
func (c Condition) holds(r Request, n, first int) bool {
	if c.Request == n || c.GrownBy > 0 && len(r.Body) >= first+c.GrownBy {
		return true
	}
	for _, name := range c.ExtraFields {
		if _, there := r.fields[name]; there {
			return true
		}
	}
	for i, m := range r.messages {
		thinks := len(m.Reasoning) > 0 && string(m.Reasoning) != "null"
		switch {
		case c.Role != "" && m.Role == c.Role,
			c.ArrayContent && len(m.Content) > 0 && m.Content[0] == '[',
			c.Reasoning && thinks,
			c.ReasoningMissing && len(m.Calls) > 0 && !thinks,
			c.ToolThenUser && m.Role == "user" && i > 0 && r.messages[i-1].Role == "tool",
			c.BadArgs && slices.ContainsFunc(m.Calls, func(s sentCall) bool { return !json.Valid([]byte(s.arguments())) }):
			return true
		}
	}
	return false
}
