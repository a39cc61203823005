package anthropic

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

// maxBlocks is how many blocks one reply may have.
const maxBlocks = 1000

// assembler makes a reply out of events. Text and thinking leave it at once, calls
// and what goes back only at the end.
type assembler struct {
	model  string
	blocks []*block
	usage  usage
	finish string
}

// block is a part of a reply, of which more may come until it is stopped.
type block struct {
	index   wire.Count
	kind    string
	raw     map[string]json.RawMessage // as it began
	stopped bool

	said      int // bytes of text that were passed on
	text      wire.Joiner
	thinking  wire.Joiner
	thought   strings.Builder
	signature []byte
	input     []byte
}

// event is one event of a stream, or a whole answer.
type event struct {
	Type    wire.Text                  `json:"type"`
	Index   wire.Count                 `json:"index"`
	Message *message                   `json:"message"`
	Block   map[string]json.RawMessage `json:"content_block"`
	Delta   struct {
		Type      wire.Text `json:"type"`
		Text      wire.Text `json:"text"`
		Thinking  wire.Text `json:"thinking"`
		Signature wire.Text `json:"signature"`
		Partial   wire.Text `json:"partial_json"`
		Stop      wire.Text `json:"stop_reason"`
	} `json:"delta"`
	Usage usage           `json:"usage"`
	Error json.RawMessage `json:"error"`
	message
}

type message struct {
	Content []map[string]json.RawMessage `json:"content"`
	Stop    wire.Text                    `json:"stop_reason"`
	Usage   usage                        `json:"usage"`
}

// usage counts tokens. What a server leaves out stays as it was reported before.
type usage struct {
	Input   wire.Count `json:"input_tokens"` // besides what the cache has a part in
	Read    wire.Count `json:"cache_read_input_tokens"`
	Created wire.Count `json:"cache_creation_input_tokens"`
	Output  wire.Count `json:"output_tokens"`
	Details struct {
		Thinking wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) add(v usage) {
	u.Input, u.Read, u.Created = max(u.Input, v.Input), max(u.Read, v.Read), max(u.Created, v.Created)
	u.Output = max(u.Output, v.Output)
	u.Details.Thinking = max(u.Details.Thinking, v.Details.Thinking)
}

func (u usage) delta() []provider.Delta {
	if u == (usage{}) {
		return nil
	}
	return []provider.Delta{{Usage: &session.Usage{
		InputTokens: int64(u.Input + u.Read + u.Created), OutputTokens: int64(u.Output),
		CacheReadTokens: int64(u.Read), ReasoningTokens: int64(u.Details.Thinking),
	}}}
}

// Take takes an event, or a whole answer.
func (a *assembler) Take(p *wire.Progress, name string, payload []byte) ([]provider.Delta, error) {
	p.Strict = true
	var e event
	if err := wire.Decode(payload, &e); err != nil {
		return nil, err
	}
	kind := cmp.Or(string(e.Type), name)
	if kind == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		return nil, wire.Complain(payload)
	}
	if kind == "message" || kind == "message_start" || e.Content != nil {
		p.Begun = true
	}
	switch kind {
	case "message_start":
		if e.Message != nil {
			a.usage.add(e.Message.Usage)
		}
		return a.usage.delta(), nil
	case "content_block_start":
		return a.start(e.Index, e.Block, payload)
	case "content_block_delta":
		return a.more(e), nil
	case "content_block_stop":
		if b := a.find(e.Index); b != nil {
			return a.stop(b), nil
		}
	case "message_delta":
		a.finish = cmp.Or(finishOf(wire.Repair(e.Delta.Stop)), a.finish)
		p.Finished = a.finish != ""
		a.usage.add(e.Usage)
		return a.usage.delta(), nil
	case "message_stop":
		p.Finished, p.Done = true, true
	case "message":
		return a.whole(p, e)
	}
	return nil, nil
}

// whole takes an answer that is no stream.
func (a *assembler) whole(p *wire.Progress, e event) ([]provider.Delta, error) {
	var out []provider.Delta
	for i, content := range e.Content {
		deltas, err := a.start(wire.Count(i), content, nil)
		out = append(out, deltas...)
		if err != nil {
			return out, err
		}
		out = append(out, a.stop(a.blocks[len(a.blocks)-1])...)
	}
	a.finish = finishOf(wire.Repair(e.message.Stop))
	p.Finished = true
	a.usage.add(e.Usage)
	return append(out, a.usage.delta()...), nil
}

func (a *assembler) find(index wire.Count) *block {
	for _, b := range slices.Backward(a.blocks) {
		if b.index == index && !b.stopped {
			return b
		}
	}
	return nil
}

// start opens a block, with what is in it already.
func (a *assembler) start(index wire.Count, raw map[string]json.RawMessage, payload []byte) ([]provider.Delta, error) {
	if len(a.blocks) == maxBlocks {
		return nil, wire.Malformed(fmt.Sprintf("the reply has more than %d parts", maxBlocks), "try again")
	}
	b := &block{index: index, kind: text(raw["type"]), raw: raw}
	a.blocks = append(a.blocks, b)
	switch b.kind {
	case "text":
		return b.say(textOf(raw["text"])), nil
	case "thinking":
		b.signature = textOf(raw["signature"])
		return b.think(textOf(raw["thinking"])), nil
	case "tool_use", "redacted_thinking":
		return nil, nil
	}
	if payload == nil {
		payload = wire.Marshal(map[string]any{"type": "content_block_start", "content_block": raw})
	}
	return []provider.Delta{{ProviderTool: slices.Clone(payload)}}, nil
}

// more adds to a block. A piece of a block that never began is none.
func (a *assembler) more(e event) []provider.Delta {
	b := a.find(e.Index)
	if b == nil {
		return nil
	}
	switch string(e.Delta.Type) {
	case "text_delta":
		return b.say(e.Delta.Text)
	case "thinking_delta":
		return b.think(e.Delta.Thinking)
	case "signature_delta":
		b.signature = append(b.signature, e.Delta.Signature...)
	case "input_json_delta":
		b.input = append(b.input, e.Delta.Partial...)
	}
	return nil
}

func (b *block) say(piece []byte) []provider.Delta { return b.spoken(b.text.Add(piece)) }

func (b *block) spoken(s string) []provider.Delta {
	if s == "" || b.kind != "text" {
		return nil
	}
	b.said += len(s)
	return []provider.Delta{{Text: s}}
}

func (b *block) think(piece []byte) []provider.Delta { return b.thoughtOf(b.thinking.Add(piece)) }

func (b *block) thoughtOf(s string) []provider.Delta {
	if s == "" || b.kind != "thinking" {
		return nil
	}
	b.thought.WriteString(s)
	return []provider.Delta{{Reasoning: s}}
}

// stop closes a block, and passes on characters that were held back.
func (a *assembler) stop(b *block) []provider.Delta {
	b.stopped = true
	return append(b.thoughtOf(b.thinking.Flush()), b.spoken(b.text.Flush())...)
}

// Rest returns the calls, what goes back, and why the reply is over.
func (a *assembler) Rest() []provider.Delta {
	out := a.calls(false)
	layout := wire.Layout{Model: a.model}
	for _, b := range a.blocks {
		if part, ok := b.part(); ok {
			layout.Parts = append(layout.Parts, part)
		}
	}
	if extra := layout.Extra(api); extra != nil {
		out = append(out, provider.Delta{Extra: extra})
	}
	if a.finish != "" {
		out = append(out, provider.Delta{Finish: a.finish})
	}
	return out
}

// Salvage returns the calls that are whole.
func (a *assembler) Salvage() []provider.Delta { return a.calls(true) }

func (a *assembler) calls(stoppedOnly bool) []provider.Delta {
	var out []provider.Delta
	for _, b := range a.blocks {
		if !b.stopped && stoppedOnly {
			out = append(out, a.stop(b)...) // a call stays out: more of it was to come
			continue
		}
		out = append(out, a.stop(b)...)
		call := b.call()
		if call.Name != "" && (!stoppedOnly || wire.IsObject([]byte(call.Arguments))) {
			out = append(out, provider.Delta{Call: &call})
		}
	}
	return out
}

func (b *block) call() session.Call {
	if b.kind != "tool_use" {
		return session.Call{}
	}
	return session.Call{
		ID: session.CallID(text(b.raw["id"])), Name: strings.TrimSpace(text(b.raw["name"])), Arguments: wire.Repair(b.arguments()),
	}
}

// arguments returns the input that came in pieces, else what the block began with.
func (b *block) arguments() []byte {
	if len(b.input) > 0 {
		return b.input
	}
	if raw := b.raw["input"]; len(raw) > 0 && string(raw) != "null" {
		return raw
	}
	return []byte("{}")
}

// part returns the block's place in the layout.
func (b *block) part() (wire.Part, bool) {
	switch b.kind {
	case "text":
		return wire.Part{Text: b.said}, b.said > 0
	case "tool_use":
		call := b.call()
		return wire.Part{Call: &call.ID}, call.Name != ""
	case "thinking":
		return wire.Part{Item: wire.Marshal(struct {
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature"`
		}{"thinking", b.thought.String(), wire.Repair(b.signature)})}, true
	case "":
		return wire.Part{}, false
	}
	if len(b.input) > 0 && wire.IsObject(b.input) {
		b.raw["input"] = b.input
	}
	return wire.Part{Item: wire.Marshal(b.raw)}, true
}

// finishOf puts a stop reason into the words that all APIs share.
func finishOf(stop string) string {
	switch stop {
	case "end_turn", "stop_sequence":
		return "stop"
	case "tool_use":
		return "tool_calls"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "refusal":
		return "content_filter"
	}
	return stop
}

func textOf(raw json.RawMessage) wire.Text {
	var t wire.Text
	if len(raw) > 0 {
		_ = t.UnmarshalJSON(raw) // never fails: what is no text is empty
	}
	return t
}

func text(raw json.RawMessage) string { return wire.Repair(textOf(raw)) }
