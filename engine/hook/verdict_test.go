package hook

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name   string
		point  Point
		answer string
		want   string // the error, or "" for none
	}{
		{"a denial", BeforeExecuteTool, `{"decision":"deny","reason":"no"}`, ""},
		{"no opinion at all", BeforeExecuteTool, ` {} `, ""},
		{"replaced arguments", BeforeExecuteTool, `{"replace":{"arguments":{"a":1}}}`, ""},
		{"an answer in the tool's place", BeforeExecuteTool, `{"replace":{"result":{"content":"x","is_error":true}}}`, ""},
		{"a misspelt key", BeforeExecuteTool, `{"decison":"deny"}`, `bad answer: json: unknown field "decison"`},
		{"a decision of another point", BeforeExecuteTool, `{"decision":"block"}`, `bad answer: before_execute_tool does not take the decision "block"`},
		{"a decision that is none", BeforeExecuteTool, `{"decision":"maybe"}`, `bad answer: before_execute_tool does not take the decision "maybe"`},
		{
			"arguments that are no object", BeforeExecuteTool, `{"replace":{"arguments":[1]}}`,
			`bad answer: the replacement of "arguments": json: cannot unmarshal array into Go value of type map[string]json.RawMessage`,
		},
		{"arguments that are null", BeforeExecuteTool, `{"replace":{"arguments":null}}`, `bad answer: the replacement of "arguments": it is null`},
		{
			"arguments that the log could not be read with", BeforeExecuteTool,
			`{"replace":{"arguments":{"a":` + strings.Repeat("[", 9_997) + strings.Repeat("]", 9_997) + `}}}`,
			`bad answer: the replacement of "arguments": it is nested too deeply`,
		},
		{"a replacement that the point does not take", FinalizeContent, `{"replace":{"content":"x"}}`, `bad answer: finalize_content does not take a replacement of "content"`},
		{"a text that is none", FinalizeContent, `{"replace":{"text":7}}`, `bad answer: the replacement of "text": json: cannot unmarshal number into Go value of type string`},
		{"a context where none is taken", FinalizeContent, `{"context":"x"}`, `bad answer: finalize_content does not take a context`},
		{"a message where none is taken", BeforeExecuteTool, `{"message":"x"}`, `bad answer: before_execute_tool does not take a message`},
		{"an opinion of an observer's point", OnFinally, `{"decision":"deny"}`, `bad answer: on_finally does not take the decision "deny"`},
		{"a turn that goes on", TurnStopping, `{"decision":"continue","message":"run the tests first"}`, ""},
		{"a turn that goes on without a word", TurnStopping, `{"decision":"continue"}`, `bad answer: turn_stopping takes a message with the decision "continue", and that only with one`},
		{"a word without a decision", SubagentStop, `{"message":"x"}`, `bad answer: subagent_stop takes a message with the decision "continue", and that only with one`},
		{"an answer in the model's place", BeforeRequest, `{"replace":{"response":{"text":"from the cache"},"parameters":{"temperature":0},"hide_tools":["exec"]}}`, ""},
		{"tools to hide that are no list", BeforeRequest, `{"replace":{"hide_tools":"exec"}}`, `bad answer: the replacement of "hide_tools": json: cannot unmarshal string into Go value of type []string`},
		{"parameters that are null", BeforeRequest, `{"replace":{"parameters":null}}`, `bad answer: the replacement of "parameters": it is null`},
		{"another try", OnRequestError, `{"decision":"retry"}`, ""},
		{"the hook's own error", BeforeExecuteTool, `{"error":"no rules loaded"}`, "no rules loaded"},
		{"no JSON", BeforeExecuteTool, `deny`, "bad answer: invalid character 'd' looking for beginning of value"},
		{"more than one value", BeforeExecuteTool, `{} {}`, "bad answer: more than one JSON value"},
		{"null", BeforeExecuteTool, ` null `, "bad answer: null is no verdict"},
		{"nothing", BeforeExecuteTool, ` `, "bad answer: EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			info, _ := Lookup(tt.point)
			_, err := parse(info, []byte(tt.answer))
			if got := errorText(err); got != tt.want {
				t.Errorf("parse(%s) error: %q; want %q", tt.answer, got, tt.want)
			}
		})
	}
}

// Decoders are used again: none is less strict the second time, and none brings
// anything of one answer into another.
func TestParseKeepsNothing(t *testing.T) {
	long := `{"decision":"deny","reason":"` + strings.Repeat("x", 2*maxReused) + `"}`
	tests := []struct{ answer, decision, reason, err string }{
		{`{"decision":"deny","reason":"no"}`, "deny", "no", ""},
		{`{}`, "", "", ""},
		{`{"decison":"deny"}`, "", "", `bad answer: json: unknown field "decison"`},
		{`{"reason":"a"} {"decision":"allow"}`, "", "", "bad answer: more than one JSON value"},
		{`{"decision":"deny"`, "", "", "bad answer: unexpected EOF"},
		{" {\"decision\":\"allow\"}\n ", "allow", "", ""},
		{long, "deny", strings.Repeat("x", 2*maxReused), ""},
	}
	info, _ := Lookup(BeforeExecuteTool)
	for range 3 {
		for _, tt := range tests {
			v, err := parse(info, []byte(tt.answer))
			if string(v.Decision) != tt.decision || v.Reason != tt.reason || errorText(err) != tt.err {
				t.Errorf("parse(%.60s) = %q, %.20q, %v", tt.answer, v.Decision, v.Reason, err)
			}
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Whatever a guest answers, what is accepted is what the point takes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"decision":"deny"}`, `{"replace":{"text":"x","arguments":{}}}`, `null`, `[]`, `{"replace":{"result":{}}}`} {
		f.Add(seed, 0)
	}
	f.Fuzz(func(t *testing.T, answer string, n int) {
		info := Points[uint(n)%uint(len(Points))]
		v, err := parse(info, []byte(answer))
		if err != nil {
			return
		}
		if v.opinion() && !info.Deciding() {
			t.Errorf("%s took the opinion %s", info.Point, answer)
		}
		for key, raw := range v.Replace {
			if !json.Valid(raw) {
				t.Errorf("%s took a replacement of %s that is no JSON: %q", info.Point, key, raw)
			}
		}
	})
}

func TestDefaultOnFailure(t *testing.T) {
	tests := []struct {
		point           Point
		observer, guard OnFailure
	}{
		{SessionStart, Isolate, AbortTurn},
		{UserPromptSubmit, Isolate, DenyIt},
		{BeforeRun, Isolate, DenyIt},
		{BeforeIteration, Isolate, DenyIt},
		{BeforeRequest, Isolate, AbortTurn},
		{OnRequestError, Isolate, AbortTurn},
		{EmitReasoning, Isolate, Isolate},
		{EmitReasoningEnd, Isolate, Isolate},
		{OnStream, Isolate, Isolate},
		{OnStreamEnd, Isolate, Isolate},
		{OnProviderToolEvent, Isolate, Isolate},
		{BeforeExecuteTools, Isolate, DenyIt},
		{BeforeExecuteTool, Isolate, DenyIt},
		{PermissionRequest, Isolate, DenyIt},
		{AfterExecuteTool, Isolate, DenyIt},
		{OnExecuteToolError, Isolate, DenyIt},
		{AfterIteration, Isolate, Isolate},
		{SubagentStart, Isolate, DenyIt},
		{SubagentStop, Isolate, AbortTurn},
		{BeforeCompact, Isolate, DenyIt},
		{AfterCompact, Isolate, Isolate},
		{Notification, Isolate, Isolate},
		{TurnStopping, Isolate, AbortTurn},
		{FinalizeContent, AbortTurn, AbortTurn},
		{AfterRun, Isolate, Isolate},
		{OnError, Isolate, Isolate},
		{OnFinally, Isolate, Isolate},
		{SessionEnd, Isolate, Isolate},
	}
	if len(tests) != len(Points) {
		t.Errorf("%d points have a policy here, %d exist", len(tests), len(Points))
	}
	for _, tt := range tests {
		if o, g := DefaultOnFailure(false, tt.point), DefaultOnFailure(true, tt.point); o != tt.observer || g != tt.guard {
			t.Errorf("%s: observer %s, guard %s; want %s, %s", tt.point, o, g, tt.observer, tt.guard)
		}
	}
}
