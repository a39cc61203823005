package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

func TestEncode(t *testing.T) {
	call := func(id, args, extra string) session.Message {
		c := session.Call{ID: session.CallID(id), Name: "read", Arguments: args}
		if extra != "" {
			c.Extra = json.RawMessage(extra)
		}
		return session.Message{Role: session.Assistant, Calls: []session.Call{c}, Reasoning: "not sent back"}
	}
	answer := func(id, content string) session.Message {
		return session.Message{Role: session.ToolRole, CallID: session.CallID(id), Content: content, IsError: true}
	}
	sentCall := func(args string) string {
		return `{"tool_calls":[{"id":"1","function":{"arguments":` + args + `,"name":"read"},"type":"function"}],"role":"assistant","content":null}`
	}
	tests := []struct {
		name string
		in   provider.Request
		want string // the fields besides model, stream and stream_options
	}{
		{
			"the system text comes first, in the role system",
			provider.Request{Header: session.Header{System: "be kind"}, Messages: []session.Message{{Role: session.User, Content: "hi"}}},
			`"messages":[{"content":"be kind","role":"system"},{"content":"hi","role":"user"}]`,
		},
		{
			"empty messages are left out",
			provider.Request{Messages: []session.Message{
				{Role: session.User}, {Role: session.Assistant, Reasoning: "hm"}, {Role: session.Assistant, Content: "a"},
			}},
			`"messages":[{"content":"a","role":"assistant"}]`,
		},
		{
			"a call without text has content null, its answer names it",
			provider.Request{Messages: []session.Message{call("1", `{"a": 1}`, ""), answer("1", "x")}},
			`"messages":[` + sentCall(`"{\"a\": 1}"`) + `,{"content":"x","tool_call_id":"1","role":"tool"}]`,
		},
		{
			"a tool that said nothing has an answer all the same",
			provider.Request{Messages: []session.Message{call("1", "", ""), answer("1", "")}},
			`"messages":[` + sentCall(`"{}"`) + `,{"content":"(no output)","tool_call_id":"1","role":"tool"}]`,
		},
		{
			"broken arguments are wrapped",
			provider.Request{Messages: []session.Message{call("1", `{"a<b": "`, "")}},
			`"messages":[` + sentCall(`"{\"_invalid_arguments\":\"{\\\"a<b\\\": \\\"\"}"`) + `]`,
		},
		{
			"arguments that are no object are wrapped",
			provider.Request{Messages: []session.Message{call("1", `[1,2]`, "")}},
			`"messages":[` + sentCall(`"{\"_invalid_arguments\":\"[1,2]\"}"`) + `]`,
		},
		{
			"what a server attached to a call goes back, but never in the place of the call's own fields",
			provider.Request{Messages: []session.Message{call("1", `{}`, `{"extra_content":{"g":"S"},"id":"9","function":1}`)}},
			`"messages":[{"tool_calls":[{"id":"1","function":{"arguments":"{}","name":"read"},"type":"function","extra_content":{"g":"S"}}],"role":"assistant","content":null}]`,
		},
		{
			"tools keep their order, and schemas the order of their keys",
			provider.Request{Header: session.Header{Tools: []session.Tool{
				{Name: "z", Description: "last letter", InputSchema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)}, {Name: "a"},
			}}},
			`"tools":[{"function":{"name":"z","description":"last letter","parameters":{"type":"object","properties":{"b":{},"a":{}}}},"type":"function"},{"function":{"name":"a"},"type":"function"}]`,
		},
		{
			"parameters go out as they are",
			provider.Request{Header: session.Header{Parameters: json.RawMessage(`{"temperature":0.10,"x.y":[1],"max_completion_tokens":5}`)}},
			`"temperature":0.10,"x.y":[1],"max_completion_tokens":5`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Model = "vendor/model-1:free"
			params, err := mostServers.encode(tt.in, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			want := `{"model":"vendor/model-1:free","stream":true,"stream_options":{"include_usage":true},` + tt.want + `}`
			if diff := cmp.Diff(canonical(t, want), canonical(t, string(got))); diff != "" {
				t.Errorf("encode (-want +got):\n%s\ngot %s", diff, got)
			}
		})
	}
}

// mostServers is what a server gets about which nothing is known.
var mostServers, _ = Compat{}.complete("server.test")

// canonical indents and sorts, and keeps numbers as they are written.
func canonical(t *testing.T, text string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out, err := json.MarshalIndent(fields, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestEncodeRefuses(t *testing.T) {
	tests := []struct {
		name string
		in   provider.Request
		want string
	}{
		{
			"parameters that are no object",
			provider.Request{Header: session.Header{Parameters: json.RawMessage(`[1]`)}},
			"the model's parameters are no JSON object: write them as a table of names and values",
		},
		{
			"parameters that take over the conversation",
			provider.Request{Header: session.Header{Parameters: json.RawMessage(`{"messages":[]}`)}},
			`the model's parameters hold "messages", which is not for them to set: take it out`,
		},
		{
			"a schema that is no JSON",
			provider.Request{Header: session.Header{Tools: []session.Tool{{Name: "t", InputSchema: json.RawMessage(`{`)}}}},
			`the input schema of the tool "t" is no JSON: correct it, or take the tool out`,
		},
		{
			"a role that nobody knows",
			provider.Request{Messages: []session.Message{{Role: "developer", Content: "x"}}},
			`the history has a message of the unknown role "developer": report this as a bug`,
		},
		{
			"extra fields that are no object",
			provider.Request{Messages: []session.Message{{Role: session.Assistant, Calls: []session.Call{{ID: "1", Name: "x", Extra: json.RawMessage(`1`)}}}}},
			`the extra fields of the call "1" are no JSON object: report this as a bug`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := mostServers.encode(tt.in, false); err == nil || err.Error() != tt.want {
				t.Errorf("encode error = %v; want %s", err, tt.want)
			}
		})
	}
}
