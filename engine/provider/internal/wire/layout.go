package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// Layout is the order in which the parts of a reply came, with what a server wants
// to have back beside text and calls. An adapter keeps it in a message's Extra,
// under the name of its API. It holds no text of the answer: a hook may have
// changed that before it was logged.
type Layout struct {
	Model string `json:"model"` // that made the reply: another cannot read what is opaque
	Parts []Part `json:"parts"`
}

// Part is one part of a reply: an item, a piece of the text, or a call.
type Part struct {
	Item json.RawMessage `json:"item,omitempty"` // goes back as it is
	Text int             `json:"text,omitempty"` // so many bytes of the text
	Call *session.CallID `json:"call,omitempty"`
	With json.RawMessage `json:"with,omitempty"` // an object of what the API adds to that text or call, such as its id
}

// Extra returns the layout as the value of a message's Extra, or nil if it says
// nothing that the message does not.
func (l Layout) Extra(api string) json.RawMessage {
	if !slices.ContainsFunc(l.Parts, func(p Part) bool { return p.Item != nil || p.With != nil }) {
		return nil
	}
	return Marshal(map[string]Layout{api: l})
}

// Piece is a part of a message as it goes out: one of its fields is set.
type Piece struct {
	Item json.RawMessage
	Text string
	Call *session.Call
	With json.RawMessage // of a text or a call
}

// Pieces takes an assistant message apart for a request to the API and the
// model: in the order of its layout, if it has one, else the text and then the
// calls. Every call is there exactly once, no text is blank, and an item whose
// call is not there any more, or that nothing follows, is left out.
func Pieces(api, model string, m session.Message) []Piece {
	var all map[string]json.RawMessage
	var l Layout
	if json.Unmarshal(m.Extra, &all) != nil || json.Unmarshal(all[api], &l) != nil || l.Model != model {
		l = Layout{}
	}
	out := pieces{text: m.Content, calls: slices.Clone(m.Calls)}
	out.inOrder = countCalls(l.Parts) == len(m.Calls)
	whole := textLength(l.Parts) == len(m.Content)
	for _, p := range l.Parts {
		switch {
		case p.Item != nil:
			out.items = append(out.items, Piece{Item: p.Item})
		case p.Call != nil:
			out.call(*p.Call, p.With)
		case whole:
			out.say(p.Text, p.With)
		default:
			out.say(len(out.text), p.With)
		}
	}
	out.say(len(out.text), nil)
	for len(out.calls) > 0 {
		out.take(0, nil)
	}
	return out.done
}

// pieces is a message that is being taken apart.
type pieces struct {
	done    []Piece
	items   []Piece        // that wait for what belongs to them
	text    string         // that is left
	calls   []session.Call // that are left
	inOrder bool           // the layout has as many calls as the message
}

func (p *pieces) say(n int, with json.RawMessage) {
	n = min(max(n, 0), len(p.text))
	said := p.text[:n]
	p.text = p.text[n:]
	if strings.TrimSpace(said) != "" {
		p.add(Piece{Text: said, With: with})
	}
}

// call takes the call that the layout means: the next one, or, where calls were
// left out since, the one with the id.
func (p *pieces) call(id session.CallID, with json.RawMessage) {
	i := 0
	if !p.inOrder {
		i = slices.IndexFunc(p.calls, func(c session.Call) bool { return c.ID == id })
	}
	if i >= 0 && i < len(p.calls) {
		p.take(i, with)
	} else {
		p.items = nil
	}
}

func (p *pieces) take(i int, with json.RawMessage) {
	call := p.calls[i]
	p.calls = slices.Delete(p.calls, i, i+1)
	p.add(Piece{Call: &call, With: with})
}

func (p *pieces) add(piece Piece) {
	p.done = append(append(p.done, p.items...), piece)
	p.items = nil
}

func countCalls(parts []Part) (n int) {
	for _, p := range parts {
		if p.Call != nil {
			n++
		}
	}
	return n
}

func textLength(parts []Part) (n int) {
	for _, p := range parts {
		n += p.Text
	}
	return n
}

// Parameters returns a request's parameters by name, as they were written. What
// the adapter itself sets is not for them to set.
func Parameters(req provider.Request, own ...string) (map[string]any, error) {
	fields := map[string]any{}
	if len(req.Parameters) == 0 {
		return fields, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(req.Parameters, &raw); err != nil {
		return nil, Invalid("the model's parameters are no JSON object", "write them as a table of names and values")
	}
	for name, value := range raw {
		if slices.Contains(own, name) {
			return nil, Invalid("the model's parameters hold \""+name+"\", which is not for them to set", "take it out")
		}
		fields[name] = value
	}
	return fields, nil
}

// LimitAs moves the limit of a reply to the name that the API has for it, if it is
// there under one that another API has.
func LimitAs(name string, fields map[string]any) {
	for _, other := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		value, ok := fields[other]
		if other == name || !ok {
			continue
		}
		delete(fields, other)
		if _, set := fields[name]; !set {
			fields[name] = value
		}
	}
}

// StrictSchema reports whether servers can hold a model to the schema: all objects
// in it name all that they may and must have.
func StrictSchema(schema json.RawMessage) bool {
	var doc any
	return json.Unmarshal(schema, &doc) == nil && strict(doc)
}

func strict(node any) bool {
	switch node := node.(type) {
	case []any:
		return !slices.ContainsFunc(node, func(n any) bool { return !strict(n) })
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok || node["type"] == "object" {
			required, _ := node["required"].([]any)
			if node["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for _, value := range node {
			if !strict(value) {
				return false
			}
		}
	}
	return true
}

// SchemaWords asks for an answer that meets a schema, where the API has no way
// to be told of it.
func SchemaWords(schema json.RawMessage) string {
	return "Answer with one JSON value that meets this JSON Schema, and with nothing else:\n" + string(schema)
}
