package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// chunk is one event of a stream, or a whole answer: the two differ in that a
// whole one has a message where the other has a delta.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  wire.Text       `json:"object"`
	Type    wire.Text       `json:"type"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

type choice struct {
	Index   wire.Count `json:"index"`
	Delta   *delta     `json:"delta"`
	Message *delta     `json:"message"`
	Finish  wire.Text  `json:"finish_reason"`
}

type delta struct {
	Content          wire.Text   `json:"content"`
	Refusal          wire.Text   `json:"refusal"`
	ReasoningContent wire.Text   `json:"reasoning_content"`
	Reasoning        wire.Text   `json:"reasoning"`
	ReasoningText    wire.Text   `json:"reasoning_text"`
	Details          []reasoning `json:"reasoning_details"`
	Calls            []callDelta `json:"tool_calls"`
}

// callDelta is a piece of a call. Which call it belongs to is often unsaid.
type callDelta struct {
	Index *wire.Count
	ID    string
	Name  string
	Args  []byte
	Extra map[string]json.RawMessage // every field that the protocol does not have
}

// UnmarshalJSON keeps what it does not know. What is no object is an empty piece.
func (d *callDelta) UnmarshalJSON(raw []byte) error {
	*d = callDelta{}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	var known struct {
		Index    *wire.Count `json:"index"`
		ID       wire.Text   `json:"id"`
		Function struct {
			Name wire.Text      `json:"name"`
			Args wire.Arguments `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return err
	}
	for _, name := range []string{"index", "id", "type", "function"} {
		delete(fields, name)
	}
	for name, value := range fields {
		if string(value) == "null" {
			delete(fields, name)
		}
	}
	d.Index, d.ID, d.Name = known.Index, wire.Repair(known.ID), strings.TrimSpace(wire.Repair(known.Function.Name))
	d.Args, d.Extra = known.Function.Args, fields
	return nil
}

// usage has the fields of several servers.
type usage struct {
	Prompt        wire.Count `json:"prompt_tokens"`
	Completion    wire.Count `json:"completion_tokens"`
	CacheHit      wire.Count `json:"prompt_cache_hit_tokens"`
	PromptDetails struct {
		Cached wire.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *usage) total() *session.Usage {
	return &session.Usage{
		InputTokens:     int64(u.Prompt),
		OutputTokens:    int64(u.Completion),
		CacheReadTokens: int64(cmp.Or(u.PromptDetails.Cached, u.CacheHit)),
		ReasoningTokens: int64(u.CompletionDetails.Reasoning),
	}
}

// complains reports whether the chunk is an error in place of an answer.
// eventName is the name of the event that it came in.
func (c *chunk) complains(eventName string) bool {
	switch strings.TrimSpace(string(c.Error)) {
	case "", "null", "false", "{}", `""`:
	default:
		return true
	}
	if eventName == "error" || string(c.Object) == "error" || string(c.Type) == "error" {
		return true
	}
	return c.Choices == nil && c.Usage == nil && (says(c.Message) || says(c.Detail))
}

func says(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }
