package session

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
)

// Scheme names the canonical form of a request that [Digest] hashes: a line of
// JSON for each message, as [Message] encodes, and then one for the header. It
// also names how [History] computes the messages: in wharf-1 events were taken
// as they are, in wharf-2 they are mended and replaced.
const Scheme = "wharf-2"

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

// flat is a history's blocks as messages, and their running digest. Both follow
// the blocks when they are asked for, from the first one that changed on.
type flat struct {
	messages []Message
	starts   []int       // of each block that is among the messages, where it begins
	given    int         // messages that a caller has, which must stay as they are
	hashed   int         // messages in sum
	sum      hash.Hash   // nil while hashed is 0
	marks    []hash.Hash // sum as it was after every markEvery messages
}

// markEvery is how far a change near the tail makes the digest go back at most.
const markEvery = 64

// cut forgets the messages from a block on.
func (f *flat) cut(block int) {
	if block >= len(f.starts) {
		return
	}
	n := f.starts[block]
	f.starts = f.starts[:block]
	f.messages = f.messages[:n]
	if n < f.given {
		f.messages, f.given = f.messages[:n:n], n
	}
	if n < f.hashed {
		f.marks = f.marks[:n/markEvery]
		f.hashed, f.sum = len(f.marks)*markEvery, nil
		if f.hashed > 0 {
			f.sum = clone(f.marks[len(f.marks)-1])
		}
	}
}

// follow adds the messages of the blocks that are not among them.
func (f *flat) follow(blocks []Block) {
	for _, b := range blocks[len(f.starts):] {
		f.starts = append(f.starts, len(f.messages))
		if len(f.messages) == 0 && b.Message.Role != User {
			continue // a conversation begins with the user
		}
		f.messages = append(f.messages, b.Message)
		for _, r := range b.Results {
			f.messages = append(f.messages, r.Message)
		}
	}
}

func (f *flat) all(blocks []Block) []Message {
	f.follow(blocks)
	if f.given = len(f.messages); f.given == 0 {
		return nil
	}
	return f.messages[:f.given:f.given]
}

func (f *flat) digest(blocks []Block, header Header) string {
	f.follow(blocks)
	for ; f.hashed < len(f.messages); f.hashed++ {
		if f.sum == nil {
			f.sum = sha256.New()
		}
		if f.hashed%markEvery == 0 && f.hashed > 0 && len(f.marks) < f.hashed/markEvery {
			f.marks = append(f.marks, clone(f.sum))
		}
		hashLine(f.sum, f.messages[f.hashed])
	}
	if f.sum == nil {
		return Digest(header, nil)
	}
	return finish(clone(f.sum), header)
}

// clone copies a running SHA-256, which crypto/sha256 documents not to fail.
func clone(sum hash.Hash) hash.Hash {
	copied, err := sum.(hash.Cloner).Clone()
	if err != nil {
		panic("session: crypto/sha256 does not clone: " + err.Error())
	}
	return copied
}

// plainScheme is the scheme of logs before there was governance.
const plainScheme = "wharf-1"

// plain is the history of plainScheme, kept for the logs that were written by it.
type plain struct {
	header Header
	sum    hash.Hash
}

func (p *plain) add(e Event) {
	switch e := e.(type) {
	case Header:
		p.header = e
	case UserMessage:
		p.show(Message{Role: User, Content: e.Content})
	case AssistantMessage:
		if strings.TrimSpace(e.Text) != "" || len(e.Calls) > 0 {
			p.show(Message{Role: Assistant, Content: e.Text, Reasoning: e.Reasoning, Calls: e.Calls})
		}
	case ToolResult:
		p.show(Message{Role: ToolRole, Content: e.Content, CallID: e.CallID, IsError: e.IsError})
	}
}

func (p *plain) show(m Message) {
	if p.sum == nil {
		p.sum = sha256.New()
	}
	hashLine(p.sum, m)
}

func (p *plain) digest() string {
	if p.sum == nil {
		return Digest(p.header, nil)
	}
	return finish(clone(p.sum), p.header)
}
