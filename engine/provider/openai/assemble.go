package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// maxCalls is how many calls one reply may make.
const maxCalls = 1000

// assembler makes a reply out of chunks. Text and reasoning leave it at once,
// calls only at the end: any later chunk may still add to them.
type assembler struct {
	text      wire.Joiner
	reasoning wire.Joiner
	model     string
	thoughts  string      // which of the reasoning fields this server uses
	details   []reasoning // OpenRouter's
	calls     []*openCall
	byIndex   map[wire.Count]*openCall
	byID      map[string]*openCall
	finish    string
}

// openCall is a call of which more may come.
type openCall struct {
	id, name string
	indexed  bool
	args     wire.Object
	extra    map[string]json.RawMessage
}

// Take takes a chunk, or a whole answer.
func (a *assembler) Take(p *wire.Progress, event string, payload []byte) ([]provider.Delta, error) {
	var c chunk
	if err := wire.Decode(payload, &c); err != nil {
		return nil, err
	}
	if c.complains(event) {
		return nil, wire.Complain(payload)
	}
	deltas, err := a.add(&c)
	p.Begun = p.Begun || len(c.Choices) > 0
	if err == nil && a.finish == "error" {
		a.finish = ""
		err = &provider.Error{
			Class: provider.Server, Message: "the server ended the reply with an error and no reason",
			Advice: "try again",
		}
	}
	p.Finished = a.finish != ""
	return deltas, err
}

// add takes a chunk and returns what can be passed on of it.
func (a *assembler) add(c *chunk) ([]provider.Delta, error) {
	var out []provider.Delta
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one answer was asked for
		}
		message := choice.Delta
		whole := message == nil && choice.Message != nil
		if whole {
			message = choice.Message
		}
		if message != nil {
			out = append(out, a.speak(message)...)
			for _, d := range message.Calls {
				if err := a.piece(d, whole); err != nil {
					return out, err
				}
			}
		}
		if len(choice.Finish) > 0 {
			a.finish = wire.Repair(choice.Finish)
		}
	}
	if c.Usage != nil {
		out = append(out, provider.Delta{Usage: c.Usage.total()})
	}
	return out, nil
}

// speak returns the text and the reasoning of m, as far as they are whole
// characters.
func (a *assembler) speak(m *delta) []provider.Delta {
	var out []provider.Delta
	a.detail(m.Details)
	if s := a.reasoning.Add(a.thinking(m)); s != "" {
		out = append(out, provider.Delta{Reasoning: s})
	}
	said := m.Content
	if len(said) == 0 {
		said = m.Refusal
	}
	if s := a.text.Add(said); s != "" {
		out = append(out, provider.Delta{Text: s})
	}
	return out
}

// thinking returns the reasoning of m. Some servers send it in two fields at
// once; the field that was the first to have some stays the only one.
func (a *assembler) thinking(m *delta) []byte {
	fields := map[string]wire.Text{
		"reasoning_content": m.ReasoningContent, "reasoning": m.Reasoning, "reasoning_text": m.ReasoningText,
	}
	if a.thoughts == "" {
		for _, name := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
			if len(fields[name]) > 0 {
				a.thoughts = name
				break
			}
		}
	}
	return fields[a.thoughts]
}

// piece adds d to the call that it belongs to. In a whole message every entry is
// a call of its own.
func (a *assembler) piece(d callDelta, whole bool) error {
	call := a.find(d)
	if whole || call == nil {
		if len(a.calls) == maxCalls {
			return wire.Malformed(fmt.Sprintf("the reply makes more than %d tool calls", maxCalls), "try again")
		}
		call = &openCall{}
		a.calls = append(a.calls, call)
	}
	call.take(d)
	if a.byIndex == nil {
		a.byIndex, a.byID = map[wire.Count]*openCall{}, map[string]*openCall{}
	}
	if d.Index != nil {
		call.indexed = true
		a.byIndex[*d.Index] = call
	}
	if d.ID != "" {
		a.byID[d.ID] = call
	}
	return nil
}

// find returns the open call that d goes on with, or nil if d opens another.
func (a *assembler) find(d callDelta) *openCall {
	call := a.candidate(d)
	if call == nil || call.ended(d) {
		return nil
	}
	return call
}

// candidate goes by the index, then by the id, then by the order of things.
func (a *assembler) candidate(d callDelta) *openCall {
	if d.Index != nil {
		if call := a.byIndex[*d.Index]; call != nil {
			return call
		}
		return a.unindexed(d)
	}
	if call := a.byID[d.ID]; d.ID != "" && call != nil {
		return call
	}
	if len(a.calls) == 0 {
		return nil
	}
	return a.calls[len(a.calls)-1]
}

// unindexed returns the call that began without the index that d has: the one
// with d's id, the one at d's place in the order, or the last.
func (a *assembler) unindexed(d callDelta) *openCall {
	candidates := []*openCall{a.byID[d.ID]}
	if i := int(*d.Index); i < len(a.calls) {
		candidates = append(candidates, a.calls[i])
	}
	if n := len(a.calls); n > 0 {
		candidates = append(candidates, a.calls[n-1])
	}
	for _, call := range candidates {
		if call != nil && !call.indexed && (d.ID == "" || call.id == "" || call.id == d.ID) {
			return call
		}
	}
	return nil
}

// ended reports whether d cannot be more of c, though it came in c's place: it
// has a name, and c has got another one, or another id, or all of its arguments.
func (c *openCall) ended(d callDelta) bool {
	if d.Name == "" || c.name == "" {
		return d.Name == "" && d.ID != "" && c.id != "" && d.ID != c.id && c.args.Whole() && len(d.Args) > 0
	}
	switch {
	case d.Name != c.name:
		return true
	case d.ID != "" && c.id != "" && d.ID != c.id:
		return len(c.args.Text) == 0 || c.args.Whole()
	default:
		return c.args.Whole() && len(d.Args) > 0
	}
}

func (c *openCall) take(d callDelta) {
	if c.id == "" {
		c.id = d.ID
	}
	if c.name == "" {
		c.name = d.Name
	}
	c.args.Add(d.Args)
	if len(d.Extra) > 0 {
		if c.extra == nil {
			c.extra = map[string]json.RawMessage{}
		}
		maps.Copy(c.extra, d.Extra)
	}
}

// Rest returns what is left at the end of a reply that is complete: held-back
// characters, the calls, the finish reason.
func (a *assembler) Rest() []provider.Delta {
	out := a.heldBack()
	for _, c := range a.calls {
		for _, call := range c.close() {
			out = append(out, provider.Delta{Call: &call})
		}
	}
	if extra := a.extra(); extra != nil {
		out = append(out, provider.Delta{Extra: extra})
	}
	if a.finish != "" {
		out = append(out, provider.Delta{Finish: a.finish})
	}
	return out
}

// Salvage returns what is left at the end of a reply that broke off: held-back
// characters, and the calls that are whole without doubt.
func (a *assembler) Salvage() []provider.Delta {
	out := a.heldBack()
	for _, c := range a.calls {
		for _, call := range c.close() {
			if wire.IsObject([]byte(call.Arguments)) {
				out = append(out, provider.Delta{Call: &call})
			}
		}
	}
	return out
}

func (a *assembler) heldBack() []provider.Delta {
	var out []provider.Delta
	if s := a.reasoning.Flush(); s != "" {
		out = append(out, provider.Delta{Reasoning: s})
	}
	if s := a.text.Flush(); s != "" {
		out = append(out, provider.Delta{Text: s})
	}
	return out
}

// close returns the calls that c turned out to be: none if it never got a name,
// several if its arguments are several objects one after the other, which a
// server streamed in one place.
func (c *openCall) close() []session.Call {
	if c.name == "" {
		return nil
	}
	var extra json.RawMessage
	if len(c.extra) > 0 {
		extra, _ = json.Marshal(c.extra) // of JSON that was just read
		extra = bytes.ToValidUTF8(extra, []byte("\ufffd"))
	}
	calls := []session.Call{}
	for i, args := range objects(c.args.Text) {
		call := session.Call{Name: c.name, Arguments: wire.Repair(args)}
		if i == 0 {
			call.ID, call.Extra = session.CallID(c.id), extra
		}
		calls = append(calls, call)
	}
	return calls
}

// objects splits a sequence of two or more JSON objects; anything else stays one
// piece.
func objects(args []byte) [][]byte {
	var parts [][]byte
	for in := json.NewDecoder(bytes.NewReader(args)); ; {
		var part json.RawMessage
		err := in.Decode(&part)
		if err == io.EOF && len(parts) > 1 {
			return parts
		}
		if err != nil || part[0] != '{' {
			return [][]byte{args}
		}
		parts = append(parts, part)
	}
}
