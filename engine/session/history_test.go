package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// said is an assistant's message with calls, each "id name".
func said(text string, calls ...string) AssistantMessage {
	e := AssistantMessage{Text: text}
	for _, c := range calls {
		id, name, _ := strings.Cut(c, " ")
		e.Calls = append(e.Calls, Call{ID: CallID(id), Name: name, Arguments: "{}"})
	}
	return e
}

func prompt(text string) UserMessage { return UserMessage{Content: text, Delivery: "turn"} }

// sketch shows messages in a line each.
func sketch(messages []Message) (lines []string) {
	for _, m := range messages {
		line := string(m.Role) + ": " + m.Content
		for _, c := range m.Calls {
			line += fmt.Sprintf(" [%s %s]", c.ID, c.Name)
		}
		if m.CallID != "" {
			line = fmt.Sprintf("%s %s", m.CallID, line)
		}
		lines = append(lines, line)
	}
	return lines
}

// What is wrong with a log's structure is mended on the way to a request.
func TestHistoryMends(t *testing.T) {
	lost := "tool: " + noResult
	tests := []struct {
		name   string
		events []Event // from seq 1 on
		want   []string
	}{
		{
			"step 1: a placeholder without calls is left out",
			[]Event{prompt("a"), said("[Previous assistant message omitted.]"), said("previous assistant message omitted", "c x"), ToolResult{CallID: "c", Content: "r"}},
			[]string{"user: a", "assistant: previous assistant message omitted [c x]", "c tool: r"},
		},
		{
			"step 2: a call without a name is left out, with its result, and a message that was only that",
			[]Event{prompt("a"), said("", "c  "), ToolResult{CallID: "c", Content: "r"}, said("hm", "d ", "e x"), ToolResult{CallID: "d"}, ToolResult{CallID: "e", Content: "s"}},
			[]string{"user: a", "assistant: hm [e x]", "e tool: s"},
		},
		{
			"an empty message is left out, an empty result says so",
			[]Event{prompt("a"), prompt(" \n"), said(" "), said("", "c x"), ToolResult{CallID: "c", Content: " "}},
			[]string{"user: a", "assistant:  [c x]", "c tool: (no output)"},
		},
		{
			"step 3: results that nothing waits for, and second ones, are left out",
			[]Event{prompt("a"), ToolResult{CallID: "c", Content: "orphan"}, said("", "c x"), ToolResult{CallID: "c", Content: "r"}, ToolResult{CallID: "c", Content: "twice"}, ToolResult{Content: "no id"}},
			[]string{"user: a", "assistant:  [c x]", "c tool: r"},
		},
		{
			"step 4: a call without a result gets one behind the others",
			[]Event{prompt("a"), said("", "c x", "d y"), ToolResult{CallID: "c", Content: "r"}, prompt("b")},
			[]string{"user: a", "assistant:  [c x] [d y]", "c tool: r", "d " + lost, "user: b"},
		},
		{
			"results stand behind their message, in its order",
			[]Event{prompt("a"), said("", "c x", "d y"), ToolResult{CallID: "d", Content: "s"}, prompt("b"), ToolResult{CallID: "c", Content: "r"}},
			[]string{"user: a", "assistant:  [c x] [d y]", "c tool: r", "d tool: s", "user: b"},
		},
		{
			"a re-used id: call and result are renamed together, and no result is lost",
			[]Event{prompt("a"), said("", "c x"), ToolResult{CallID: "c", Content: "r"}, said("", "c y"), ToolResult{CallID: "c", Content: "s"}},
			[]string{"user: a", "assistant:  [c x]", "c tool: r", "assistant:  [wharf_e4_1 y]", "wharf_e4_1 tool: s"},
		},
		{
			"a re-used id while the first waits: the result is the nearest call's, unless it cites another",
			[]Event{prompt("a"), said("", "c x"), ToolCall{CallID: "c"}, said("", "c y"), ToolCall{CallID: "c"}, ToolResult{CallID: "c", CallSeq: 3, Content: "of x"}, ToolResult{CallID: "c", CallSeq: 99, Content: "of y"}},
			[]string{"user: a", "assistant:  [c x]", "c tool: of x", "assistant:  [wharf_e4_1 y]", "wharf_e4_1 tool: of y"},
		},
		{
			"two calls of one id in one message are paired in order",
			[]Event{prompt("a"), said("", "c x", "c y"), ToolResult{CallID: "c", Content: "r"}, ToolResult{CallID: "c", Content: "s"}},
			[]string{"user: a", "assistant:  [c x] [wharf_e2_2 y]", "c tool: r", "wharf_e2_2 tool: s"},
		},
		{
			"a missing id is minted, and not one that is taken",
			[]Event{prompt("a"), said("", "wharf_e3_1 x"), said("", " y")},
			[]string{"user: a", "assistant:  [wharf_e3_1 x]", "wharf_e3_1 " + lost, "assistant:  [wharf_e3_1_1 y]", "wharf_e3_1_1 " + lost},
		},
		{
			"what comes before the user's first message is left out",
			[]Event{said("hello", "c x"), prompt("a"), said("b")},
			[]string{"user: a", "assistant: b"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(append([]Event{nil}, tt.events...))
			if diff := cmp.Diff(tt.want, sketch(h.Messages())); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// pairs is a session of a prompt and calls with their results: seq 1, and then
// for each n the message 3n-1, the call 3n and the result 3n+1.
func pairs(n int) []Event {
	events := []Event{nil, prompt("go")}
	for i := 1; i <= n; i++ {
		id := CallID(fmt.Sprintf("c%d", i))
		events = append(events, said("", string(id)+" x"), ToolCall{CallID: id, Name: "x"}, ToolResult{CallID: id, CallSeq: int64(len(events)) + 1, Content: fmt.Sprintf("result %d", i)})
	}
	return events
}

func TestReplacements(t *testing.T) {
	replaced := func(content string, targets ...int64) ContextReplaced {
		return ContextReplaced{Targets: targets, By: "test", Content: content}
	}
	tests := []struct {
		name   string
		events []Event
		want   []string
	}{
		{
			"of results: their content, the pair stays",
			[]Event{replaced("gone", 4, 7)},
			[]string{"user: go", "assistant:  [c1 x]", "c1 tool: gone", "assistant:  [c2 x]", "c2 tool: gone", "assistant:  [c3 x]", "c3 tool: result 3"},
		},
		{
			"of messages: one stands in the place of the first",
			[]Event{replaced("sum", 2, 4, 5, 7)},
			[]string{"user: go", "user: sum", "assistant:  [c3 x]", "c3 tool: result 3"},
		},
		{
			"of messages that do not follow each other, by nothing",
			[]Event{replaced("", 2, 4, 8, 10)},
			[]string{"user: go", "assistant:  [c2 x]", "c2 tool: result 2"},
		},
		{
			"of what stands for others, together with what followed",
			[]Event{replaced("sum", 1, 2, 4), replaced("more", 5, 7, 11)},
			[]string{"user: more", "assistant:  [c3 x]", "c3 tool: result 3"},
		},
		{
			"of all, and a call that comes after",
			[]Event{replaced("sum", 1, 2, 4, 5, 7, 8, 10), said("", "c1 y"), ToolResult{CallID: "c1", Content: "r"}},
			[]string{"user: sum", "assistant:  [wharf_e12_1 y]", "wharf_e12_1 tool: r"},
		},
		{
			"of a call that runs: its result is not shown any more",
			[]Event{said("", "d x"), replaced("sum", 11), ToolResult{CallID: "d", Content: "late"}, replaced("", 2, 4, 5, 7, 8, 10)},
			[]string{"user: go", "user: sum"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(append(pairs(3), tt.events...))
			if diff := cmp.Diff(tt.want, sketch(h.Messages())); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if got, want := h.Digest(), Digest(h.Header(), h.Messages()); got != want {
				t.Errorf("the running digest is %s, the computed one %s", got, want)
			}
		})
	}
}

func TestReplacementsThatAreRefused(t *testing.T) {
	tests := []struct {
		name string
		e    ContextReplaced
		want string
	}{
		{"without a cause", ContextReplaced{Targets: []int64{1}}, "a replacement that does not say by what"},
		{"of nothing", ContextReplaced{By: "x"}, "a replacement of nothing"},
		{"twice the same", ContextReplaced{By: "x", Targets: []int64{1, 1}}, "a replacement whose targets are not in order: 1 after 1"},
		{"of what is yet to come", ContextReplaced{By: "x", Targets: []int64{99}}, "a replacement of event 99, which the model is not shown"},
		{"of what shows nothing", ContextReplaced{By: "x", Targets: []int64{3}}, "a replacement of event 3, which the model is not shown"},
		{"of half a pair", ContextReplaced{By: "x", Targets: []int64{1, 2}}, "a replacement that parts the calls of event 2 from their results"},
		{"of a message and another's result", ContextReplaced{By: "x", Targets: []int64{1, 4}}, "a replacement that parts the calls of event 2 from their results"},
		{"of a result by nothing", ContextReplaced{By: "x", Targets: []int64{4}, Content: " "}, "a replacement of results by nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(append(pairs(1), said("", "c x")))
			before := h.Digest()
			if err := h.Check(tt.e); err == nil || err.Error() != tt.want {
				t.Errorf("Check = %v; want %s", err, tt.want)
			}
			h.Add(Record{Seq: 6, Event: tt.e})
			if h.Digest() != before {
				t.Error("Add applied what Check refuses")
			}
		})
	}
}

// randomEvents draws events as no Wharf would write them.
func randomEvents(t *rapid.T) []Event {
	events := []Event{nil}
	id := rapid.SampledFrom([]CallID{"a", "b", "", "wharf_e2_1"})
	text := rapid.SampledFrom([]string{"", " ", "text", "[previous assistant message omitted]", strings.Repeat("long ", 20)})
	for range rapid.IntRange(0, 40).Draw(t, "events") {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			events = append(events, UserMessage{Content: text.Draw(t, "text"), Delivery: rapid.SampledFrom([]string{"turn", "step"}).Draw(t, "delivery")})
		case 1:
			e := AssistantMessage{Text: text.Draw(t, "text"), Usage: Usage{InputTokens: rapid.Int64Range(0, 9).Draw(t, "tokens")}}
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				e.Calls = append(e.Calls, Call{ID: id.Draw(t, "id"), Name: rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "name"), Arguments: "{"})
			}
			events = append(events, e)
		case 2:
			events = append(events, ToolCall{CallID: id.Draw(t, "id")})
		case 3, 4:
			events = append(events, ToolResult{CallID: id.Draw(t, "id"), CallSeq: int64(rapid.IntRange(0, len(events)).Draw(t, "cited")), Content: text.Draw(t, "content")})
		case 5:
			targets := rapid.SliceOfNDistinct(rapid.Int64Range(0, int64(len(events))), 1, 6, func(n int64) int64 { return n }).Draw(t, "targets")
			slices.Sort(targets)
			events = append(events, ContextReplaced{Targets: targets, By: "x", Content: text.Draw(t, "content")})
		}
	}
	return events
}

// However events come, what is kept running is what is computed anew, and what a
// caller was given stays as it was.
func TestHistoryKeepsItsBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h History
		weigh := func(b Block) int { return 1 + int((&b).Size()) }
		var given [][]Message
		var copies []string
		for i, e := range randomEvents(t) {
			h.Add(Record{Seq: int64(i), Event: e})
			if rapid.Bool().Draw(t, "look") {
				m := h.Messages()
				given, copies = append(given, m), append(copies, fmt.Sprint(m))
				if got, want := h.Digest(), Digest(h.Header(), m); got != want {
					t.Fatalf("after event %d the running digest differs from the computed one", i)
				}
			}
			size, weight := int64(0), 0
			for j, b := range h.Blocks() {
				size, weight = size+b.Size(), weight+weigh(b)
				if j > 0 && h.Blocks()[j-1].place >= b.place {
					t.Fatalf("after event %d block %d is out of place", i, j)
				}
			}
			if h.Size() != size || i%3 == 0 && h.Weigh(0, weigh) != weight {
				t.Fatalf("after event %d: size %d, weight %d; want %d and %d", i, h.Size(), h.Weigh(0, weigh), size, weight)
			}
		}
		for i, m := range given {
			if fmt.Sprint(m) != copies[i] {
				t.Fatalf("the messages that were given changed:\n%s\n%v", copies[i], m)
			}
		}
	})
}

// A change near the tail costs what lies behind the last mark before it.
func TestDigestGoesBackToAMark(t *testing.T) {
	h := historyOf(pairs(200))
	h.Digest()
	last := h.Blocks()[150].Results[0].Seq
	h.Add(Record{Seq: 9999, Event: ContextReplaced{Targets: []int64{last}, By: "x", Content: "gone"}})
	if changed := 1 + 2*149; h.flat.hashed > changed || h.flat.hashed < changed-markEvery {
		t.Errorf("the digest went back to message %d, a change of %d", h.flat.hashed, changed)
	}
	if got, want := h.Digest(), Digest(h.Header(), h.Messages()); got != want {
		t.Errorf("the running digest is %s, the computed one %s", got, want)
	}
}

// What a server counted holds as long as what it counted stays.
func TestCounted(t *testing.T) {
	events := pairs(2)
	said := events[5].(AssistantMessage)
	said.Usage.InputTokens = 70
	events[5] = said
	h := historyOf(events)
	if tokens, blocks := h.Counted(); tokens != 70 || blocks != 2 {
		t.Errorf("Counted = %d, %d; want 70 tokens in 2 blocks", tokens, blocks)
	}
	h.Add(Record{Seq: 8, Event: ContextReplaced{Targets: []int64{7}, By: "x", Content: "short"}})
	if tokens, _ := h.Counted(); tokens != 70 {
		t.Errorf("after a later result was replaced: %d tokens; want 70", tokens)
	}
	h.Add(Record{Seq: 9, Event: ContextReplaced{Targets: []int64{4}, By: "x", Content: "short"}})
	if tokens, blocks := h.Counted(); tokens != 0 || blocks != 0 {
		t.Errorf("after one of the counted was replaced: %d, %d; want nothing", tokens, blocks)
	}
}

// What a server attached to a reply goes back only beside the calls as it knows them.
func TestExtrasNameTheCallsAsTheyAre(t *testing.T) {
	reply := func(calls ...string) AssistantMessage {
		e := said("", calls...)
		e.Extra = json.RawMessage(`{"anthropic":{}}`)
		return e
	}
	h := historyOf([]Event{nil, prompt("a"), reply("c x"), reply("c x"), reply("d x", "e ")})
	var with []int64
	for _, b := range h.Blocks() {
		if b.Message.Extra != nil {
			with = append(with, b.Seq)
		}
	}
	if !slices.Equal(with, []int64{2}) {
		t.Errorf("the extras of %v go back; want that of 2, whose calls are as they were", with)
	}
}

// A prompt in other words is still what opens the turn; a summary of more is not.
func TestAReplacedPromptOpensItsTurn(t *testing.T) {
	for _, tt := range []struct {
		targets []int64
		want    bool
	}{{[]int64{1}, true}, {[]int64{1, 2, 4}, false}} {
		h := historyOf(append(pairs(2), ContextReplaced{Targets: tt.targets, By: "x", Content: "other words"}))
		if got := h.Blocks()[0].Opens; got != tt.want {
			t.Errorf("what replaces %v opens a turn: %t; want %t", tt.targets, got, tt.want)
		}
	}
}
