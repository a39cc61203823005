package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"strings"
)

// Message is one message of a request, computed from events.
type Message struct {
	Role      Role   `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning,omitempty"` // of an assistant message
	Calls     []Call `json:"calls,omitempty"`     // of an assistant message
	CallID    CallID `json:"call_id,omitempty"`   // of a tool message: the call that it answers
	IsError   bool   `json:"is_error,omitempty"`  // of a tool message

	Images []Image         `json:"images,omitempty"` // of a user or a tool message
	Extra  json.RawMessage `json:"extra,omitempty"`  // of an assistant message: see [AssistantMessage]
}

// Role says who speaks in a [Message]. The system text is no message; it
// stands in the [Header].
type Role string

// The roles of messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Scheme names the canonical form of a request that [Digest] hashes: a line of
// JSON for each message, as [Message] encodes, and then one for the header.
const Scheme = "wharf-1"

// History is what a model is shown, computed from a session's events. The zero
// value is the history of an empty log. Adding an event costs what that event
// holds, however long the history is.
type History struct {
	header   Header
	messages []Message
	sum      hash.Hash // of the messages' canonical form; nil while there are none
}

// Add accounts for the next event of the log.
func (h *History) Add(e Event) {
	switch e := e.(type) {
	case Header:
		h.header = e
	case UserMessage:
		h.add(Message{Role: User, Content: e.Content, Images: e.Images})
	case AssistantMessage:
		if strings.TrimSpace(e.Text) != "" || len(e.Calls) > 0 { // servers refuse an empty message
			h.add(Message{Role: Assistant, Content: e.Text, Reasoning: e.Reasoning, Calls: e.Calls, Extra: e.Extra})
		}
	case ToolResult:
		h.add(Message{Role: ToolRole, Content: e.Content, CallID: e.CallID, IsError: e.IsError, Images: e.Images})
	}
}

func (h *History) add(m Message) {
	if h.sum == nil {
		h.sum = sha256.New()
	}
	h.messages = append(h.messages, m)
	hashLine(h.sum, m)
}

// Header returns the header that the last request.header event set.
func (h *History) Header() Header { return h.header }

// Messages returns the messages in order. The caller must not change them;
// they stay as they are when more events are added.
func (h *History) Messages() []Message { return h.messages[:len(h.messages):len(h.messages)] }

// Digest returns [Digest] of the current messages under the current header.
func (h *History) Digest() string {
	if h.sum == nil {
		return Digest(h.header, nil)
	}
	sum, err := h.sum.(hash.Cloner).Clone()
	if err != nil { // crypto/sha256 documents that it does not happen
		return Digest(h.header, h.messages)
	}
	return finish(sum, h.header)
}

// Digest returns the SHA-256 of a request in the canonical form named by
// [Scheme], in hexadecimal.
func Digest(header Header, messages []Message) string {
	sum := sha256.New()
	for _, m := range messages {
		hashLine(sum, m)
	}
	return finish(sum, header)
}

func finish(sum hash.Hash, header Header) string {
	hashLine(sum, header)
	return hex.EncodeToString(sum.Sum(nil))
}

// hashLine hashes v's encoding. Every v here came out of a decoded line, so it
// encodes.
func hashLine(sum hash.Hash, v any) {
	line, err := marshal(v)
	if err != nil {
		panic("session: an event that was decoded does not encode: " + err.Error())
	}
	sum.Write(line)
}
