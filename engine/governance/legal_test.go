package governance_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/session"
)

// illegal says why a strict server would refuse messages; empty if it would not.
func illegal(messages []session.Message) string {
	seen, open := map[session.CallID]bool{}, map[session.CallID]bool{}
	for i, m := range messages {
		bad := func(format string, args ...any) string {
			return fmt.Sprintf("message %d: ", i) + fmt.Sprintf(format, args...)
		}
		if m.Role != session.ToolRole && len(open) > 0 {
			return bad("stands before the results of %v", open)
		}
		switch m.Role {
		case session.User, session.Assistant:
			if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 && len(m.Images) == 0 {
				return bad("empty")
			}
			if i == 0 && m.Role != session.User {
				return bad("the first is not the user's")
			}
		case session.ToolRole:
			if !open[m.CallID] {
				return bad("a result of %q, which is not the next to be answered", m.CallID)
			}
			if m.Content == "" {
				return bad("an empty result")
			}
			delete(open, m.CallID)
		default:
			return bad("role %q", m.Role)
		}
		for _, c := range m.Calls {
			if c.ID == "" || seen[c.ID] || strings.TrimSpace(c.Name) == "" {
				return bad("call %q of %q", c.ID, c.Name)
			}
			seen[c.ID], open[c.ID] = true, true
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("the calls %v have no result", open)
	}
	return ""
}

// log is a session's events with what they add up to.
type log struct {
	history session.History
	records []session.Record
}

func (l *log) add(events ...session.Event) {
	for _, e := range events {
		r := session.Record{Seq: int64(len(l.records)), Event: e}
		l.records = append(l.records, r)
		l.history.Add(r)
	}
}

// call adds a call of a tool with its result, and returns the result's seq.
func (l *log) call(tool, content string) int64 {
	n := len(l.records)
	id := session.CallID(fmt.Sprintf("c%d", n))
	arguments, _ := json.Marshal(map[string]string{"path": fmt.Sprintf("file%d.go", n)})
	l.add(
		session.AssistantMessage{Calls: []session.Call{{ID: id, Name: tool, Arguments: string(arguments)}}},
		session.ToolCall{CallID: id, Name: tool},
		session.ToolResult{CallID: id, CallSeq: int64(n) + 1, Content: content},
	)
	return int64(n) + 2
}

// newLog is a log whose first turn has begun.
func newLog(prompt string) *log {
	l := &log{}
	l.add(session.Started{ID: "s"}, session.UserMessage{Content: prompt, Delivery: "turn"})
	return l
}

// apply adds replacements, each of which must fit.
func (l *log) apply(events []session.ContextReplaced) error {
	for _, e := range events {
		if err := l.history.Check(e); err != nil {
			return fmt.Errorf("%+v: %w", e, err)
		}
		l.add(e)
	}
	return nil
}

// words is a text of n words, a token each.
func words(n int) string { return strings.Repeat(" word", n) }
