package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// composer makes a reply out of the events of the Responses API. Text and
// reasoning leave it at once, calls and what goes back only at the end.
type composer struct {
	model  string
	items  []*item
	finish string
}

// item is a part of a reply: a message, reasoning, a call, or the work of a tool
// that the server runs.
type item struct {
	index    wire.Count
	kind     string
	raw      map[string]json.RawMessage // the newest that is known of it
	done     bool
	text     wire.Joiner
	thinking wire.Joiner
	said     int  // bytes of text that were passed on
	thought  bool // something of the reasoning was passed on
	args     []byte
}

// responseEvent is one event, or a whole answer.
type responseEvent struct {
	Type     wire.Text                  `json:"type"`
	Index    wire.Count                 `json:"output_index"`
	Delta    wire.Text                  `json:"delta"`
	Args     wire.Arguments             `json:"arguments"`
	Item     map[string]json.RawMessage `json:"item"`
	Response *response                  `json:"response"`
	Object   wire.Text                  `json:"object"`
	response
}

type response struct {
	Status     wire.Text                    `json:"status"`
	Error      json.RawMessage              `json:"error"`
	Output     []map[string]json.RawMessage `json:"output"`
	Incomplete struct {
		Reason wire.Text `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input        wire.Count `json:"input_tokens"`
		InputDetails struct {
			Cached wire.Count `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		Output        wire.Count `json:"output_tokens"`
		OutputDetails struct {
			Reasoning wire.Count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// Take takes an event, or a whole answer.
func (c *composer) Take(p *wire.Progress, name string, payload []byte) ([]provider.Delta, error) {
	p.Strict = true
	var e responseEvent
	if err := wire.Decode(payload, &e); err != nil {
		return nil, err
	}
	kind := cmp.Or(string(e.Type), name)
	if kind == "" && string(e.Object) == "response" {
		return c.end(p, &e.response, payload)
	}
	if kind == "error" || says(e.response.Error) {
		return nil, wire.Complain(payload)
	}
	if strings.HasPrefix(kind, "response.") {
		p.Begun = true
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		if e.Response == nil {
			e.Response = &response{Status: wire.Text(strings.TrimPrefix(kind, "response."))}
		}
		return c.end(p, e.Response, payload)
	case "response.output_item.added", "response.output_item.done":
		return c.note(e.Index, e.Item, kind == "response.output_item.done", payload)
	}
	return c.more(kind, e, payload)
}

// more adds to an item. What this program does not know is skipped.
func (c *composer) more(kind string, e responseEvent, payload []byte) ([]provider.Delta, error) {
	switch kind {
	case "response.output_text.delta", "response.refusal.delta":
		x, err := c.at(e.Index, "message")
		return x.say(e.Delta), err
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		x, err := c.at(e.Index, "reasoning")
		return x.think(e.Delta), err
	case "response.reasoning_summary_part.added":
		if x, err := c.at(e.Index, "reasoning"); err != nil || x.thought {
			return x.think([]byte("\n\n")), err
		}
	case "response.function_call_arguments.delta":
		x, err := c.at(e.Index, "function_call")
		x.args = append(x.args, e.Delta...)
		return nil, err
	case "response.function_call_arguments.done":
		x, err := c.at(e.Index, "function_call")
		if len(e.Args) > 0 {
			x.args = slices.Clone(e.Args)
		}
		return nil, err
	default:
		if strings.Contains(kind, "_call.") {
			return []provider.Delta{{ProviderTool: slices.Clone(payload)}}, nil
		}
	}
	return nil, nil
}

// at returns the item of a kind at an index; one that was not announced begins
// there. Some servers leave the index out, so that items of all kinds share it.
func (c *composer) at(index wire.Count, kind string) (*item, error) {
	for _, x := range slices.Backward(c.items) {
		if x.index == index && (x.kind == kind || x.kind == "" || kind == "") {
			return x, nil
		}
	}
	x := &item{index: index, kind: kind}
	if len(c.items) == maxCalls {
		return x, wire.Malformed(fmt.Sprintf("the reply has more than %d parts", maxCalls), "try again")
	}
	c.items = append(c.items, x)
	return x, nil
}

// note takes what the server says of a whole item. What was not streamed of it
// is passed on at its end.
func (c *composer) note(index wire.Count, raw map[string]json.RawMessage, done bool, payload []byte) ([]provider.Delta, error) {
	if raw == nil {
		return nil, nil
	}
	kind := asText(raw["type"])
	x, err := c.at(index, kind)
	if err != nil {
		return nil, err
	}
	x.kind, x.raw, x.done = kind, raw, x.done || done
	if kind == "function_call" {
		if args := argumentsOf(raw["arguments"]); len(args) > 0 && done {
			x.args = args
		}
		return nil, nil
	}
	if !done {
		return nil, nil
	}
	out := append(x.think(nil), x.flush()...)
	if kind == "message" && x.said == 0 {
		out = append(append(out, x.say(contentOf(raw))...), x.flush()...)
	}
	if kind == "reasoning" && !x.thought {
		out = append(append(out, x.think(thoughtsOf(raw))...), x.flush()...)
	}
	if strings.HasSuffix(kind, "_call") && payload != nil {
		out = append(out, provider.Delta{ProviderTool: slices.Clone(payload)})
	}
	return out, nil
}

// end takes the answer as a whole, with what did not come before.
func (c *composer) end(p *wire.Progress, r *response, payload []byte) ([]provider.Delta, error) {
	p.Begun = true
	if says(r.Error) || string(r.Status) == "failed" || string(r.Status) == "cancelled" {
		if says(r.Error) {
			payload = r.Error
		}
		return nil, wire.Complain(payload)
	}
	var out []provider.Delta
	for i, raw := range r.Output {
		x, err := c.at(wire.Count(i), "")
		if err != nil {
			return out, err
		}
		if x.done {
			continue
		}
		deltas, err := c.note(wire.Count(i), raw, true, nil)
		out = append(out, deltas...)
		if err != nil {
			return out, err
		}
	}
	if u := r.Usage; u != nil {
		out = append(out, provider.Delta{Usage: &session.Usage{
			InputTokens: int64(u.Input), OutputTokens: int64(u.Output),
			CacheReadTokens: int64(u.InputDetails.Cached), ReasoningTokens: int64(u.OutputDetails.Reasoning),
		}})
	}
	c.finish = "stop"
	if string(r.Status) == "incomplete" {
		switch c.finish = cmp.Or(wire.Repair(r.Incomplete.Reason), "incomplete"); c.finish {
		case "max_output_tokens", "max_tokens":
			c.finish = "length"
		}
	}
	p.Finished, p.Done = true, true
	return out, nil
}

// Rest returns the calls, what goes back, and why the reply is over.
func (c *composer) Rest() []provider.Delta {
	out := c.calls(func(*item) bool { return true })
	finish := c.finish
	if finish == "stop" && slices.ContainsFunc(out, func(d provider.Delta) bool { return d.Call != nil }) {
		finish = "tool_calls"
	}
	layout := wire.Layout{Model: c.model}
	for _, x := range c.items {
		if part, ok := x.part(); ok {
			layout.Parts = append(layout.Parts, part)
		}
	}
	if extra := layout.Extra(responsesAPI); extra != nil {
		out = append(out, provider.Delta{Extra: extra})
	}
	return append(out, provider.Delta{Finish: finish})
}

// Salvage returns the calls that are whole.
func (c *composer) Salvage() []provider.Delta {
	return c.calls(func(x *item) bool { return x.done && wire.IsObject(x.args) })
}

func (c *composer) calls(whole func(*item) bool) []provider.Delta {
	var out []provider.Delta
	for _, x := range c.items {
		out = append(out, x.flush()...)
		if call := x.call(); call.Name != "" && whole(x) {
			out = append(out, provider.Delta{Call: &call})
		}
	}
	return out
}

func (x *item) call() session.Call {
	if x.kind != "function_call" {
		return session.Call{}
	}
	return session.Call{
		ID: session.CallID(asText(x.raw["call_id"])), Name: strings.TrimSpace(asText(x.raw["name"])),
		Arguments: cmp.Or(wire.Repair(x.args), "{}"),
	}
}

func (x *item) say(piece []byte) []provider.Delta   { return x.spoken(x.text.Add(piece)) }
func (x *item) think(piece []byte) []provider.Delta { return x.pondered(x.thinking.Add(piece)) }

func (x *item) spoken(s string) []provider.Delta {
	if s == "" {
		return nil
	}
	x.said += len(s)
	return []provider.Delta{{Text: s}}
}

func (x *item) pondered(s string) []provider.Delta {
	if s == "" {
		return nil
	}
	x.thought = true
	return []provider.Delta{{Reasoning: s}}
}

func (x *item) flush() []provider.Delta {
	return append(x.pondered(x.thinking.Flush()), x.spoken(x.text.Flush())...)
}

// part returns the item's place in the layout. Reasoning goes back only if it can
// be read without what the server has stored: it stores nothing for us.
func (x *item) part() (wire.Part, bool) {
	switch x.kind {
	case "message":
		return wire.Part{Text: x.said, With: x.besides("type", "role", "content")}, x.said > 0
	case "function_call":
		call := x.call()
		return wire.Part{Call: &call.ID, With: x.besides("type", "call_id", "name", "arguments")}, call.Name != ""
	case "reasoning":
		opaque, content := asText(x.raw["encrypted_content"]), strings.TrimSpace(string(x.raw["content"]))
		if opaque == "" && (content == "" || content == "null" || content == "[]") {
			return wire.Part{}, false
		}
	}
	return wire.Part{Item: wire.Marshal(x.raw)}, x.kind != "" && x.raw != nil
}

// besides returns the fields that the server gave an item, but for some.
func (x *item) besides(names ...string) json.RawMessage {
	left := map[string]json.RawMessage{}
	for name, value := range x.raw {
		if !slices.Contains(names, name) && string(value) != "null" {
			left[name] = value
		}
	}
	if len(left) == 0 {
		return nil
	}
	return wire.Marshal(left)
}

// contentOf returns the text of a message: its answer, or its refusal.
func contentOf(raw map[string]json.RawMessage) (all []byte) {
	var parts []struct {
		Text    wire.Text `json:"text"`
		Refusal wire.Text `json:"refusal"`
	}
	_ = json.Unmarshal(raw["content"], &parts) // what is no list has no text
	for _, part := range parts {
		all = append(append(all, part.Text...), part.Refusal...)
	}
	return all
}

func thoughtsOf(raw map[string]json.RawMessage) (all []byte) {
	for _, name := range []string{"summary", "content"} {
		var parts []struct {
			Text wire.Text `json:"text"`
		}
		_ = json.Unmarshal(raw[name], &parts)
		for i, part := range parts {
			if i > 0 && name == "summary" {
				all = append(all, "\n\n"...)
			}
			all = append(all, part.Text...)
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

func argumentsOf(raw json.RawMessage) []byte {
	var args wire.Arguments
	if len(raw) > 0 {
		_ = args.UnmarshalJSON(raw) // of JSON that was just read
	}
	return args
}

func asText(raw json.RawMessage) string {
	var t wire.Text
	if len(raw) > 0 {
		_ = t.UnmarshalJSON(raw) // never fails: what is no text is empty
	}
	return wire.Repair(t)
}
