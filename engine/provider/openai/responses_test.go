package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// readResponse returns what the adapter makes of a body, a delta a line.
func readResponse(t testing.TB, body string) string {
	var b strings.Builder
	err := wire.ReadAll(t.Context(), strings.NewReader(body), &composer{model: "m"}, func(d provider.Delta) bool {
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
	var e *provider.Error
	if errors.As(err, &e) {
		fmt.Fprintf(&b, "%s: %v\n", e.Class, e)
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

func TestResponses(t *testing.T) {
	const (
		added = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}}`
		done  = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}}`
		ended = `{"type":"response.completed","response":{"status":"completed","output":[]}}`
	)
	tests := []struct{ name, body, want string }{
		{
			"a whole answer in place of a stream",
			`{"object":"response","status":"completed","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"}],"usage":{"input_tokens":1,"output_tokens":2}}`,
			"hi\nusage 1 2\ncall c f {\"a\":1}\nfinish tool_calls\n",
		},
		{
			"nothing but the end brings the text",
			events(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}]},{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}}`),
			"a\n\nb\nno\nfinish stop\n",
		},
		{"a refusal", events(`{"type":"response.refusal.delta","output_index":0,"delta":"I will not."}`, ended), "I will not.\nfinish stop\n"},
		{
			"reasoning that only the server's memory could read does not go back, open reasoning does",
			events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
				`{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","id":"rs_2","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}}`,
				`{"type":"response.output_text.delta","output_index":2,"delta":"ok"}`, ended),
			"hm\nok\nextra {\"responses\":{\"model\":\"m\",\"parts\":[{\"item\":{\"content\":[{\"type\":\"reasoning_text\",\"text\":\"hm\"}],\"id\":\"rs_2\",\"summary\":[],\"type\":\"reasoning\"}},{\"text\":2}]}}\nfinish stop\n",
		},
		{
			"the output limit, within a call", events(added, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"}`,
				`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`),
			"call c f {\"a\":\nextra {\"responses\":{\"model\":\"m\",\"parts\":[{\"call\":\"c\",\"with\":{\"id\":\"fc\"}}]}}\nfinish length\n",
		},
		{"a filter", events(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), "finish content_filter\n"},
		{"a failure", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}`), "server: the server reports an error: boom\n"},
		{"a limit", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Please try again in 1.5s."}}}`), "rate_limit: the server reports an error: Please try again in 1.5s.\n"},
		{"an error event", events(`{"type":"error","code":"invalid_request_error","message":"bad","param":null}`), "invalid: the server reports an error: bad\n"},
		{"a call that was complete before the end broke off", events(added, done), "call c f {}\nunreachable: the stream ended before the answer was complete: try again\n"},
		{"a call that was not", events(added, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`), "unreachable: the stream ended before the answer was complete: try again\n"},
		{
			"a search of the server's own",
			events(`{"type":"response.web_search_call.searching","output_index":0}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws"}}`, `{"type":"response.output_text.delta","output_index":1,"delta":"ok"}`, ended),
			"tool {\"type\":\"response.web_search_call.searching\",\"output_index\":0}\ntool {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"web_search_call\",\"id\":\"ws\"}}\nok\nextra {\"responses\":{\"model\":\"m\",\"parts\":[{\"item\":{\"id\":\"ws\",\"type\":\"web_search_call\"}},{\"text\":2}]}}\nfinish stop\n",
		},
		{
			"pieces without an index",
			events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}`, `{"type":"response.reasoning_text.delta","delta":"hm"}`,
				`{"type":"response.output_text.delta","delta":"ok"}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`),
			"hm\nok\nfinish stop\n",
		},
		{"unknown events are skipped", events(`{"type":"response.new.thing"}`, `{"type":"keepalive"}`, ended), "finish stop\n"},
		{"an answer of Chat Completions", events(`{"choices":[{"delta":{"content":"hi"}}]}`, `[DONE]`), "unreachable: the stream ended before the answer was complete: try again\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readResponse(t, tt.body)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

func TestEncodeResponses(t *testing.T) {
	tool := []session.Tool{{Name: "f"}}
	const sentTool = `"tools":[{"type":"function","name":"f","strict":false,"parameters":{"type":"object","properties":{}}}]`
	tests := []struct {
		name, model string
		own         bool
		header      session.Header
		want        string // the fields besides model, store, stream and input
	}{
		{"a model that reasons", "gpt-5", false, session.Header{}, `{"include":["reasoning.encrypted_content"]}`},
		{"one that does not", "openai/gpt-4.1", false, session.Header{}, `{}`},
		{"the user's own include", "gpt-5", false, session.Header{Parameters: json.RawMessage(`{"include":[]}`)}, `{"include":[]}`},
		{"the limit by another API's name", "gpt-4o", false, session.Header{Parameters: json.RawMessage(`{"max_tokens":5}`)}, `{"max_output_tokens":5}`},
		{"OpenAI's server gets a key for its cache", "gpt-4o", true, session.Header{}, `{"prompt_cache_key":"s1"}`},
		{"any tool, one call a reply", "gpt-4o", false, session.Header{Tools: tool, Options: session.Options{ToolChoice: "required", SingleCalls: true}}, `{"tool_choice":"required","parallel_tool_calls":false,` + sentTool + `}`},
		{"one tool", "gpt-4o", false, session.Header{Tools: tool, Options: session.Options{ToolChoice: "f"}}, `{"tool_choice":{"type":"function","name":"f"},` + sentTool + `}`},
		{
			"a schema beside the user's verbosity", "gpt-4o", false,
			session.Header{Parameters: json.RawMessage(`{"text":{"verbosity":"low"}}`), Options: session.Options{OutputSchema: json.RawMessage(`{"type":"object"}`)}},
			`{"text":{"verbosity":"low","format":{"type":"json_schema","name":"answer","strict":false,"schema":{"type":"object"}}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.header.Model = tt.model
			params, err := encodeResponses(provider.Request{Header: tt.header, Session: "s1", Messages: []session.Message{{Role: session.User, Content: "hi"}}}, tt.own)
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
			if got["store"] != false || got["stream"] != true {
				t.Errorf("store is %v, stream %v; want false, true", got["store"], got["stream"])
			}
			for _, name := range []string{"model", "store", "stream", "input"} {
				delete(got, name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("encodeResponses (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzResponse: whatever a server sends, deltas are well-formed, and what goes
// back is JSON.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":{"a":1}}}`, `{"type":"response.completed"}`)))
	f.Add([]byte(events(`{"type":"response.output_text.delta","output_index":3,"delta":"\ud83d"}`, `{"type":"response.output_item.done","output_index":3,"item":{"type":"message","content":[{"text":"\udc00"}]}}`)))
	f.Add([]byte(events(`{"type":"response.reasoning_summary_part.added"}`, `{"type":"response.incomplete","response":{"status":"incomplete","usage":{}}}`)))
	f.Add([]byte(`{"object":"response","output":[{"type":5},{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		finished := false
		err := wire.ReadAll(t.Context(), bytes.NewReader(body), &composer{model: "m"}, func(d provider.Delta) bool {
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
