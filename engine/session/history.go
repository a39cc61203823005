package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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

// What stands where a strict server takes no gap.
const (
	noOutput = "(no output)" // for an empty result
	noResult = "(no result: the call was interrupted, is still running, or its result was lost)"
)

// History is what a model is shown, computed from a session's events. The zero
// value is the history of an empty log. Adding an event costs what that event
// holds, however long the history is.
//
// Whatever the events are, the messages are legal for a strict server: they
// begin with the user's, none is empty, every call has a name and an id of its
// own, and exactly one result right behind it. What a log has too little or too
// much of is mended here and never decided: see RATIONALE.md, "What is mended,
// and what is decided?". What was decided is in the log as [ContextReplaced].
type History struct {
	header  Header
	blocks  []Block            // by their place
	used    map[CallID]bool    // ids under which calls are or were shown
	open    map[CallID][]*slot // calls that wait for a result, by the log's id, oldest first
	started map[int64]*slot    // of them, by the sequence number of their tool.call
	moved   map[int64]int64    // the place of the block of what does not stand where its number says
	counted counted
	size    int64 // see Size
	weight  int   // see Weigh: of all blocks that were weighed
	weighed int   // the blocks before this one all were
	flat    flat
}

// Block is what one event shows the model, with what belongs to it: a message,
// and behind an assistant's the results of its calls.
type Block struct {
	Seq     int64 // of the event
	Message Message
	Results []Result // of the message's calls, in their order
	Opens   bool     // it is a user's message that opens a turn
	By      string   // what put it in the place of other blocks; empty for most

	place  int64 // by which blocks are sorted: of the event, or of the first that it replaced
	weight int   // see Weigh; 0 means not weighed
}

// Result is a tool message of a [Block].
type Result struct {
	Seq     int64 // of its event; 0 if there is none, and Message says so
	Message Message
	By      string // what replaced its content; empty for most
}

// slot is a call's place for a result.
type slot struct {
	place   int64 // of its block
	index   int
	id      CallID // in the log
	started bool
}

// counted is what a server said of a request: so many tokens up to that block.
type counted struct {
	tokens int64
	blocks int
}

// Add accounts for the next record of the log. A replacement that [History.Check]
// refuses changes nothing.
func (h *History) Add(r Record) {
	switch e := r.Event.(type) {
	case Header:
		h.header, h.counted = e, counted{}
	case UserMessage:
		m := Message{Role: User, Content: e.Content, Images: e.Images}
		if strings.TrimSpace(e.Content) != "" || len(e.Images) > 0 {
			h.push(Block{Seq: r.Seq, place: r.Seq, Message: m, Opens: e.Delivery == "turn"})
		}
	case AssistantMessage:
		if e.Usage.InputTokens > 0 {
			h.counted = counted{e.Usage.InputTokens, len(h.blocks)}
		}
		h.addAssistant(r.Seq, e)
	case ToolCall:
		h.addCall(r.Seq, e)
	case ToolResult:
		h.addResult(r.Seq, e)
	case ContextReplaced:
		if h.Check(e) == nil {
			h.replace(r.Seq, e)
		}
	}
}

func (h *History) push(b Block) {
	h.blocks = append(h.blocks, b)
	h.size += b.Size()
}

// addAssistant adds what the model said, if it said anything.
func (h *History) addAssistant(seq int64, e AssistantMessage) {
	calls, extra := e.Calls, e.Extra
	if slices.ContainsFunc(calls, nameless) {
		calls, extra = slices.DeleteFunc(slices.Clone(calls), nameless), nil
	}
	if len(calls) == 0 && (strings.TrimSpace(e.Text) == "" || placeholder(e.Text)) {
		return
	}
	adopted, results, renamed := h.adopt(seq, calls)
	if renamed {
		extra = nil // it may name the calls as they were
	}
	h.push(Block{
		Seq: seq, place: seq, Results: results,
		Message: Message{Role: Assistant, Content: e.Text, Reasoning: e.Reasoning, Calls: adopted, Extra: extra},
	})
}

func nameless(c Call) bool { return strings.TrimSpace(c.Name) == "" }

// placeholder reports whether text is what other systems write for an
// assistant's message that they left out.
func placeholder(text string) bool {
	return strings.EqualFold(strings.Trim(text, " \t\r\n[]()."), "previous assistant message omitted")
}

// adopt opens a slot for each call, and gives a new id to those whose own is
// missing or was used before.
func (h *History) adopt(seq int64, calls []Call) (adopted []Call, results []Result, renamed bool) {
	if len(calls) == 0 {
		return nil, nil, false
	}
	if h.used == nil {
		h.used, h.open, h.started = map[CallID]bool{}, map[CallID][]*slot{}, map[int64]*slot{}
	}
	results = make([]Result, len(calls))
	for i, c := range calls {
		h.open[c.ID] = append(h.open[c.ID], &slot{place: seq, index: i, id: c.ID})
		id := c.ID
		for id == "" || h.used[id] {
			if id = CallID(fmt.Sprintf("wharf_e%d_%d", seq, i+1)); h.used[id] {
				id = CallID(fmt.Sprintf("wharf_e%d_%d_%d", seq, i+1, len(h.used)))
			}
		}
		h.used[id] = true
		if id != c.ID {
			if !renamed {
				calls, renamed = slices.Clone(calls), true // the slice was the event's
			}
			calls[i].ID = id
		}
		results[i].Message = Message{Role: ToolRole, Content: noResult, CallID: id, IsError: true}
	}
	return calls, results, renamed
}

// addCall notes which call a result will mean that cites this event: the first
// of the last message that has one of that id.
func (h *History) addCall(seq int64, e ToolCall) {
	if s := h.waiting(e.CallID, func(s *slot) bool { return !s.started }); s != nil {
		s.started = true
		h.started[seq] = s
	}
}

// addResult puts a result where its call waits for it: the one that it cites, or
// else the nearest one of that id. A result that nothing waits for is left out.
func (h *History) addResult(seq int64, e ToolResult) {
	s := h.started[e.CallSeq]
	if s == nil || s.id != e.CallID {
		s = h.waiting(e.CallID, func(*slot) bool { return true })
	}
	if s == nil {
		return
	}
	h.answered(e.CallSeq, s)
	i, ok := h.find(s.place)
	if !ok || h.blocks[i].Seq != s.place {
		return // its call was replaced
	}
	content := e.Content
	if strings.TrimSpace(content) == "" && len(e.Images) == 0 {
		content = noOutput
	}
	b := h.touch(i)
	h.size -= b.Size()
	result := &b.Results[s.index]
	result.Seq = seq
	result.Message.Content, result.Message.Images, result.Message.IsError = content, e.Images, e.IsError
	h.size += b.Size()
	if i != len(h.blocks)-1 {
		h.move(seq, b.place)
	}
}

// waiting returns the first fitting slot of an id within the last message that
// has one.
func (h *History) waiting(id CallID, fits func(*slot) bool) *slot {
	var found *slot
	list := h.open[id]
	for i := len(list) - 1; i >= 0; i-- {
		if s := list[i]; found != nil && s.place != found.place {
			break
		} else if fits(s) {
			found = s
		}
	}
	return found
}

// answered closes a slot.
func (h *History) answered(callSeq int64, s *slot) {
	if h.started[callSeq] == s {
		delete(h.started, callSeq)
	}
	list := slices.DeleteFunc(h.open[s.id], func(o *slot) bool { return o == s })
	if len(list) == 0 {
		delete(h.open, s.id)
	} else {
		h.open[s.id] = list
	}
}

// find returns the block of a place.
func (h *History) find(place int64) (int, bool) {
	return slices.BinarySearchFunc(h.blocks, place, func(b Block, place int64) int { return cmp.Compare(b.place, place) })
}

// touch returns a block in order to change it.
func (h *History) touch(i int) *Block {
	h.flat.cut(i)
	if i < h.counted.blocks {
		h.counted = counted{}
	}
	h.weight -= h.blocks[i].weight
	h.blocks[i].weight = 0
	h.weighed = min(h.weighed, i)
	return &h.blocks[i]
}

// move notes that what event seq shows is in the block at a place.
func (h *History) move(seq, place int64) {
	if h.moved == nil {
		h.moved = map[int64]int64{}
	}
	h.moved[seq] = place
}

// Header returns the header that the last request.header event set.
func (h *History) Header() Header { return h.header }

// Messages returns the messages in order. The caller must not change them;
// they stay as they are when more events are added.
func (h *History) Messages() []Message { return h.flat.all(h.blocks) }

// Digest returns [Digest] of the current messages under the current header.
func (h *History) Digest() string { return h.flat.digest(h.blocks, h.header) }

// Blocks returns the history block by block. The caller must not change them,
// nor use them any more once another record was added.
func (h *History) Blocks() []Block { return h.blocks }

// Size returns the [Block.Size] of all blocks together.
func (h *History) Size() int64 { return h.size }

// Counted returns how many tokens a server counted in the request that the first
// so many blocks made; 0 and 0 if it did not say, or they have changed since.
func (h *History) Counted() (tokens int64, blocks int) { return h.counted.tokens, h.counted.blocks }

// Weigh returns what weigh says of the blocks from the given one on together.
// It asks once for each block, until the block changes: weigh must be the same
// for a history's whole life, and positive. All blocks together cost what is new.
func (h *History) Weigh(from int, weigh func(Block) int) int {
	if from == 0 {
		for ; h.weighed < len(h.blocks); h.weighed++ {
			h.WeighBlock(h.weighed, weigh)
		}
		return h.weight
	}
	sum := 0
	for i := from; i < len(h.blocks); i++ {
		sum += h.WeighBlock(i, weigh)
	}
	return sum
}

// WeighBlock is [History.Weigh] of one block.
func (h *History) WeighBlock(i int, weigh func(Block) int) int {
	b := &h.blocks[i]
	if b.weight == 0 {
		b.weight = weigh(*b)
		h.weight += b.weight
	}
	return b.weight
}

// What else than text counts for in [Block.Size], at the most.
const (
	imageSize   = 8 << 10
	messageSize = 16
)

// Size returns a number of tokens that no server makes more of from a block: the bytes
// of its text and calls, since tokens are made of bytes, and something for each message,
// call and image.
func (b *Block) Size() int64 {
	n := b.Message.size() + len(b.Message.Reasoning)
	for _, c := range b.Message.Calls {
		n += messageSize + len(c.ID) + len(c.Name) + len(c.Arguments) + len(c.Extra)
	}
	for _, r := range b.Results {
		n += r.Message.size() + len(r.Message.CallID)
	}
	return int64(n)
}

func (m *Message) size() int { return messageSize + len(m.Content) + len(m.Images)*imageSize }
