package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/openai"
	"github.com/wharf-agent/wharf/engine/session"
)

// manyOf is an event that is made of very many values.
func manyOf(before, unit, after string) string {
	return "data: " + before + strings.Repeat(unit+",", 300_000) + unit + after + "\n\n"
}

// An event of very many values, each of which would take up a hundred times its bytes,
// is not read. Nor is an error of that kind taken apart.
func TestEventsOfManyValues(t *testing.T) {
	const tooMany = "the server sent an event of more than 250000 values: ask for less at a time"
	for name, bodies := range map[string][]string{
		"chat": {
			manyOf(`{"choices":[`, `{}`, `]}`), manyOf(`{"choices":[{"delta":{"tool_calls":[`, `0`, `]}}]}`),
			manyOf(`{"choices":[{"delta":{"content":[`, `{}`, `]}}]}`), manyOf(`[`, `[]`, `]`)[len("data: "):],
		},
		"responses": {manyOf(`{"type":"response.completed","response":{"output":[`, `{}`, `]}}`), manyOf(`{"type":"error","x":[`, `0`, `]}`)},
		"anthropic": {manyOf(`{"type":"message","content":[`, `{}`, `]}`), manyOf(`{"error":[`, `[]`, `]}`)},
	} {
		for i, body := range bodies {
			got, _ := adapterOf(name).ask(t, question, strings.NewReader(body))
			text := fmt.Sprint(got.Err)
			if text != tooMany && !strings.HasPrefix(text, "the server reports an error: [[],[],") {
				t.Errorf("%s, body %d: error %.200s; want %s", name, i, text, tooMany)
			}
		}
	}
	quoted := `data: {"choices":[{"delta":{"content":"\"` + strings.Repeat("[,{", 300_000) + `"},"finish_reason":"stop"}]}` + "\n\n"
	if got, _ := adapterOf("chat").ask(t, question, strings.NewReader(quoted)); got.Err != nil || len(got.Text) != 900_001 {
		t.Errorf("a text of many commas gives %d bytes, and %v", len(got.Text), got.Err)
	}
}

func adapterOf(name string) adapter {
	for _, a := range adapters {
		if a.name == name {
			return a
		}
	}
	panic("no adapter " + name)
}

// Whatever a server counts, the reply is there, and no sum of counts overflows.
func TestOddCounts(t *testing.T) {
	const most = 1 << 50
	tests := []struct {
		api, body string
		want      session.Usage
	}{
		{"chat", `{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e999,"completion_tokens":-4}}`, session.Usage{InputTokens: most}},
		{
			"responses", `{"type":"response.output_text.delta","output_index":0.0,"delta":"x"}` + "\n\n" +
				`data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":"12","output_tokens":99999999999999999999}}}`,
			session.Usage{InputTokens: 12, OutputTokens: most},
		},
		{
			"anthropic", `{"type":"message_start","message":{"usage":{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807,"output_tokens":1.0}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":"0","content_block":{"type":"text","text":"x"}}` + "\n\n" + `data: {"type":"message_stop"}`,
			session.Usage{InputTokens: 2 * most, CacheReadTokens: most, OutputTokens: 1},
		},
	}
	for _, tt := range tests {
		got, _ := adapterOf(tt.api).ask(t, question, strings.NewReader("data: "+tt.body+"\n\n"))
		if got.Err != nil || got.Text != "x" || got.Usage != tt.want {
			t.Errorf("%s: %q, %+v, %v; want x and %+v", tt.api, got.Text, got.Usage, got.Err, tt.want)
		}
	}
}

// A call whose name comes with each of very many pieces costs its length, and not
// its length times the pieces: that would be minutes here.
func TestACallInManyPieces(t *testing.T) {
	const pieces = 40_000
	piece := func(arguments string) string {
		return `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"exec","arguments":"` + arguments + `"}}]}}]}` + "\n\n"
	}
	body := piece(`{\"command\":\"`) + strings.Repeat(piece(strings.Repeat("}", 100)), pieces) + piece(`\"}`) +
		`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	got, _ := adapterOf("chat").ask(t, question, strings.NewReader(body))
	want := []session.Call{{ID: "a", Name: "exec", Arguments: `{"command":"` + strings.Repeat("}", 100*pieces) + `"}`}}
	if got.Err != nil || !cmp.Equal(got.Calls, want) {
		t.Errorf("%d calls, and %v; want the one call", len(got.Calls), got.Err)
	}
}

// A history that another server's ids are in, of tools that there are no more, is
// legal for each API.
func TestAForeignHistory(t *testing.T) {
	req := provider.Request{Header: session.Header{Model: "m"}, Messages: []session.Message{
		{Role: session.User, Content: "Go."},
		{Role: session.Assistant, Calls: []session.Call{
			{ID: "functions.exec:0", Name: "exec", Arguments: "{}"},
			{ID: "functions.exec:1", Name: "exec", Arguments: "{}"},
			{ID: session.CallID("chatcmpl-tool-" + strings.Repeat("f", 60)), Name: "fs.read", Arguments: "{}"},
		}},
		{Role: session.ToolRole, CallID: "functions.exec:0", Content: "a"},
		{Role: session.ToolRole, CallID: "functions.exec:1", Content: "b"},
		{Role: session.ToolRole, CallID: session.CallID("chatcmpl-tool-" + strings.Repeat("f", 60)), Content: "c"},
		{Role: session.User, Content: "Say what you did."},
	}}
	for _, a := range adapters {
		if a.name == "chat" { // OpenAI's own server is strict, and others want their ids back
			a.path = "/v1/chat/completions"
			a.open = func(c *http.Client) (streamer, error) {
				transport := c.Transport
				return openai.New(openai.Config{HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					r.URL.Host = "server.test"
					return transport.RoundTrip(r)
				})}})
			}
		}
		_, sent := a.ask(t, req, strings.NewReader(a.reply))
		for _, p := range problems(a.name, sent) {
			t.Errorf("%s: %s", a.name, p)
		}
		if a.name == "chat" && strings.Contains(string(sent), strings.Repeat("f", 41)) {
			t.Errorf("OpenAI gets an id that is too long: %s", sent)
		}
	}
	_, sent := adapterOf("chat").ask(t, req, io.MultiReader())
	if !strings.Contains(string(sent), `"functions.exec:1"`) {
		t.Errorf("the server does not get its id back: %s", sent)
	}
}
