package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

const testKey = "sk-ant-secret"

// read returns what the adapter makes of a body, a delta a line.
func read(t testing.TB, body string) string {
	var b strings.Builder
	err := wire.ReadAll(t.Context(), strings.NewReader(body), &assembler{model: "m"}, func(d provider.Delta) bool {
		switch {
		case d.Call != nil:
			fmt.Fprintf(&b, "call %s %s %s\n", d.Call.ID, d.Call.Name, d.Call.Arguments)
		case d.Usage != nil:
			fmt.Fprintf(&b, "usage %d %d\n", d.Usage.InputTokens, d.Usage.OutputTokens)
		case d.Extra != nil:
			fmt.Fprintf(&b, "extra %s\n", d.Extra)
		case d.ProviderTool != nil:
			fmt.Fprintf(&b, "tool %s\n", d.ProviderTool)
		case d.Finish != "":
			fmt.Fprintf(&b, "finish %s\n", d.Finish)
		default:
			fmt.Fprintf(&b, "%s%s\n", d.Text, d.Reasoning)
		}
		return true
	})
	if err != nil {
		fmt.Fprintf(&b, "error %v\n", err)
	}
	return b.String()
}

func events(all ...string) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

const (
	begun = `{"type":"message_start","message":{"usage":{"input_tokens":3}}}`
	ended = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
	over  = `{"type":"message_stop"}`
)

func TestReplies(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{
			"a whole answer in place of a stream",
			`{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":3}}`,
			"hm\nhi\nusage 3 3\ncall t f {\"a\":1}\nextra {\"anthropic\":{\"model\":\"m\",\"parts\":[{\"item\":{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"S\"}},{\"text\":2},{\"call\":\"t\"}]}}\nfinish tool_calls\n",
		},
		{
			"a call without input, and one whose input came at once",
			events(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"g","input":{"x":[1]}}}`, ended, over),
			"usage 3 0\nusage 3 0\ncall a f {}\ncall b g {\"x\":[1]}\nfinish stop\n",
		},
		{
			"an error in the middle",
			events(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ha"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
			"usage 3 0\nha\nerror the server reports an error: Overloaded\n",
		},
		{
			"a token limit within a call: the half call is shown, and the finish reason says that it may be one",
			events(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}`, over),
			"usage 3 0\nusage 3 9\ncall a f {\"a\":\nfinish length\n",
		},
		{
			"a refusal", events(begun, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`, over), "usage 3 0\nusage 3 0\nfinish content_filter\n",
		},
		{
			"what nobody knows yet is skipped, and a piece of nothing too",
			events(begun, `{"type":"new_event"}`, `{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"lost"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","text":"x"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}`, ended, over),
			"usage 3 0\nok\nusage 3 0\nfinish stop\n",
		},
		{
			"a search of the server's own",
			events(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"found"}}`, ended, over),
			"usage 3 0\ntool {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}}}\nfound\nusage 3 0\n" +
				"extra {\"anthropic\":{\"model\":\"m\",\"parts\":[{\"item\":{\"id\":\"s\",\"input\":{\"query\":\"x\"},\"name\":\"web_search\",\"type\":\"server_tool_use\"}},{\"text\":5}]}}\nfinish stop\n",
		},
		{"an end mark without an end", events(begun, `[DONE]`), "usage 3 0\nerror the stream ended before the answer was complete: try again\n"},
		{"the end, after the model had finished", events(begun, ended), "usage 3 0\nusage 3 0\nfinish stop\n"},
		{"an answer of another API", `{"choices":[]}`, "error the server sent JSON that is no answer: {\"choices\":[]}: check base_url\n"},
		{"a web page", "<html><title>Sign in</title></html>", "error the server sent a web page instead of an answer: Sign in: check base_url\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, read(t, tt.body)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

// The headers are the API's, and the key stays with the server that was named,
// whatever the environment holds.
func TestTheKeyAndTheVersion(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	for _, key := range []string{testKey, ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := fmt.Sprintf("%s %s, %q, %q, %s", r.Method, r.URL, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"), r.Header.Get("Anthropic-Version"))
			if want := fmt.Sprintf(`POST /v1/messages, %q, "", 2023-06-01`, key); got != want {
				t.Errorf("request = %s; want %s", got, want)
			}
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+testKey+`"}}`)
		}))
		defer server.Close()
		p, err := New(Config{BaseURL: server.URL, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{
			true:  "status 401: invalid x-api-key [redacted]: check the key in ANTHROPIC_API_KEY: is it one of this server?",
			false: "status 401: invalid x-api-key " + testKey + ": set ANTHROPIC_API_KEY to a key of this server",
		}[key != ""]
		for _, err = range p.Stream(t.Context(), provider.Request{Header: session.Header{Model: "m"}}) {
			if err == nil || err.Error() != want {
				t.Errorf("Stream error = %v; want %s", err, want)
			}
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	p, err := New(Config{BaseURL: server.URL, APIKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range p.Stream(t.Context(), provider.Request{Header: session.Header{Model: "m"}}) {
		if err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
			t.Errorf("Stream error = %v; want that redirects are not followed", err)
		}
	}
}

func TestOptions(t *testing.T) {
	tool := []session.Tool{{Name: "f"}}
	loose := json.RawMessage(`{"type":"object"}`)
	tests := []struct {
		name   string
		header session.Header
		want   string // the fields besides model, messages and max_tokens
	}{
		{"nothing", session.Header{}, `{}`},
		{"a choice without tools is none", session.Header{Options: session.Options{ToolChoice: "required", SingleCalls: true}}, `{}`},
		{"any tool", session.Header{Tools: tool, Options: session.Options{ToolChoice: "required"}}, `{"tool_choice":{"type":"any"},"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]}`},
		{"no tool", session.Header{Tools: tool, Options: session.Options{ToolChoice: "none"}}, `{"tool_choice":{"type":"none"},"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]}`},
		{"one call a reply", session.Header{Tools: tool, Options: session.Options{SingleCalls: true}}, `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]}`},
		{"the limit by another API's name", session.Header{Parameters: json.RawMessage(`{"max_completion_tokens":5}`)}, `{}`},
		{"max_tokens of the user's", session.Header{Parameters: json.RawMessage(`{"max_tokens":5}`)}, `{}`},
		{"a schema that the API does not take is asked for in words", session.Header{System: "S", Options: session.Options{OutputSchema: loose}}, `{"system":[{"type":"text","cache_control":{"type":"ephemeral"},"text":"S\n\nAnswer with one JSON value that meets this JSON Schema, and with nothing else:\n{\"type\":\"object\"}"}]}`},
		{"the user's effort beside a schema", session.Header{Parameters: json.RawMessage(`{"output_config":{"effort":"low"}}`), Options: session.Options{OutputSchema: json.RawMessage(`{"type":"string"}`)}}, `{"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"string"}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.header.Model = "m"
			params, err := encode(provider.Request{Header: tt.header, Messages: []session.Message{{Role: session.User, Content: "hi"}}})
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			var got, want map[string]any
			if err := errors.Join(json.Unmarshal(body, &got), json.Unmarshal([]byte(tt.want), &want)); err != nil {
				t.Fatal(err)
			}
			limit := float64(DefaultMaxTokens)
			if tt.header.Parameters != nil && strings.Contains(string(tt.header.Parameters), "_tokens") {
				limit = 5
			}
			if got["max_tokens"] != limit || got["model"] != "m" {
				t.Errorf("max_tokens %v, model %v; want %v, m", got["max_tokens"], got["model"], limit)
			}
			for _, name := range []string{"model", "messages", "max_tokens", "stream"} {
				delete(got, name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("encode (-want +got):\n%s", diff)
			}
		})
	}
}

// Thinking is not asked for in a turn that another model began: the API refuses
// that.
func TestThinkingInATurnOfAnotherModel(t *testing.T) {
	thought := json.RawMessage(`{"anthropic":{"model":"m","parts":[{"item":{"type":"thinking","thinking":"hm","signature":"S"}},{"call":"1"}]}}`)
	turn := func(extra json.RawMessage, more ...session.Message) []session.Message {
		return append([]session.Message{
			{Role: session.User, Content: "hi"},
			{Role: session.Assistant, Calls: []session.Call{{ID: "1", Name: "f", Arguments: "{}"}}, Extra: extra},
			{Role: session.ToolRole, CallID: "1", Content: "x"},
		}, more...)
	}
	tests := []struct {
		name     string
		messages []session.Message
		want     bool
	}{
		{"the first request of a turn", turn(nil)[:1], true},
		{"the model's own turn", turn(thought), true},
		{"another model's turn", turn(nil), false},
		{"another model's turn that is over", turn(nil, session.Message{Role: session.Assistant, Content: "done"}, session.Message{Role: session.User, Content: "more"}), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := session.Header{Model: "m", Parameters: json.RawMessage(`{"thinking":{"type":"enabled","budget_tokens":1024}}`)}
			params, err := encode(provider.Request{Header: header, Messages: tt.messages})
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Contains(body, []byte("budget_tokens")); got != tt.want {
				t.Errorf("thinking is asked for: %t; want %t, in %s", got, tt.want, body)
			}
		})
	}
}

// FuzzReply: whatever a server sends, deltas are well-formed, and what goes back
// is JSON.
func FuzzReply(f *testing.F) {
	f.Add([]byte(events(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f"}}`, ended, over)))
	f.Add([]byte(events(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"\ud83d"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`, ended)))
	f.Add([]byte(events(`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":5}}`, over)))
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":3},{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		finished := false
		err := wire.ReadAll(t.Context(), bytes.NewReader(body), &assembler{model: "m"}, func(d provider.Delta) bool {
			if finished {
				t.Errorf("%+v came after the finish reason", d)
			}
			finished = d.Finish != ""
			if !utf8.ValidString(d.Text + d.Reasoning + d.Finish + string(d.Extra)) {
				t.Errorf("%+v is no UTF-8", d)
			}
			if d.Extra != nil && !wire.IsObject(d.Extra) {
				t.Errorf("extra %s is no object", d.Extra)
			}
			if c := d.Call; c != nil && (c.Name == "" || !utf8.ValidString(c.Name+string(c.ID)+c.Arguments)) {
				t.Errorf("call %+v is not well-formed", *c)
			}
			return true
		})
		var known *provider.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("ReadAll error %v is no *provider.Error", err)
		}
	})
}
