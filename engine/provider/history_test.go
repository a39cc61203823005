package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// randomHistory draws the events of a log, as a hostile or broken writer might leave
// them, and returns what a model is shown of them.
func randomHistory(t *rapid.T) []session.Message {
	text := rapid.SampledFrom([]string{"", " \n", "short", "größe 🚀", "\x00\x1b[2J", strings.Repeat("long ", 300), "[previous assistant message omitted]"})
	id := rapid.SampledFrom([]session.CallID{"", "a", "b", "c", "with space", "größe", session.CallID(strings.Repeat("x", 100))})
	name := rapid.SampledFrom([]string{"exec", "read_file", "no such tool", "", "a.b", "größe"})
	arguments := rapid.SampledFrom([]string{"{}", `{"a":1}`, "{", "", "[1]", "null", "\"s\"", `{"a":1}{"b":2}`, "{\"a\":\"\xff\"}"})
	extra := rapid.SampledFrom([]string{"", `{"anthropic":[{"type":"thinking","thinking":"x","signature":"s"}]}`, `{"responses":[{"type":"reasoning"}]}`, `{"a":1}`})
	images := []session.Image{{MediaType: "image/png", Data: []byte("png")}}
	var h session.History
	var seq int64
	var calls []int64
	add := func(e session.Event) {
		h.Add(session.Record{Seq: seq, Event: e})
		seq++
	}
	for range rapid.IntRange(0, 30).Draw(t, "events") {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			add(session.UserMessage{Content: text.Draw(t, "text"), Images: images[:rapid.IntRange(0, 1).Draw(t, "images")]})
		case 1, 2:
			e := session.AssistantMessage{Text: text.Draw(t, "text"), Reasoning: text.Draw(t, "reasoning"), Interrupted: rapid.Bool().Draw(t, "cut")}
			if raw := extra.Draw(t, "extra"); raw != "" {
				e.Extra = json.RawMessage(raw)
			}
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				e.Calls = append(e.Calls, session.Call{ID: id.Draw(t, "id"), Name: name.Draw(t, "name"), Arguments: arguments.Draw(t, "arguments")})
			}
			add(e)
		case 3:
			calls = append(calls, seq)
			add(session.ToolCall{CallID: id.Draw(t, "id"), Name: "exec"})
		case 4, 5:
			e := session.ToolResult{CallID: id.Draw(t, "id"), Content: text.Draw(t, "text"), IsError: rapid.Bool().Draw(t, "failed"), Images: images[:rapid.IntRange(0, 1).Draw(t, "images")]}
			if len(calls) > 0 {
				e.CallSeq = rapid.SampledFrom(calls).Draw(t, "call")
			}
			add(e)
		case 6:
			e := session.ContextReplaced{By: "x", Content: text.Draw(t, "text"), Targets: []int64{rapid.Int64Range(0, max(seq, 1)).Draw(t, "target")}}
			if h.Check(e) == nil {
				add(e)
			}
		}
	}
	return h.Messages()
}

// Whatever stands in a log, what each API is sent is legal for a strict server.
func TestAnyHistoryIsLegal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		messages := randomHistory(rt)
		if len(messages) == 0 {
			return
		}
		req := provider.Request{Header: question.Header, Messages: messages}
		if rapid.Bool().Draw(rt, "plain") { // such as the last word of a turn whose steps are used up
			req.Tools = nil
		}
		for _, a := range adapters {
			_, body := a.ask(t, req, strings.NewReader(""))
			if body == nil {
				rt.Errorf("%s sends nothing", a.name)
				continue
			}
			for _, problem := range problems(a.name, body) {
				rt.Errorf("%s: %s\n%s", a.name, problem, body)
			}
		}
	})
}
