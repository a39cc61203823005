package exttest_test

import (
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host/exttest"
)

// A payload is what the engine would send: all keys, in the table's order.
func TestParsePayload(t *testing.T) {
	tests := []struct {
		name       string
		point      hook.Point
		text, want string // or the error
	}{
		{"what may be left out is filled in", hook.BeforeExecuteTool, `{"arguments":{"b":1,"a":"<&>"},"tool":"exec"}`, `{"session_id":"trial","turn":1,"step":1,"call_id":"call_1","tool":"exec","arguments":{"a":"<&>","b":1}}`},
		{"what is there stays", hook.AfterRun, `{"usage":{},"text":"x","turn":7,"step":12345678901234567,"session_id":"s"}`, `{"session_id":"s","turn":7,"step":12345678901234567,"text":"x","usage":{}}`},
		{"any JSON may be null", hook.BeforeRequest, `{"model":"m","parameters":null,"tools":[]}`, `{"session_id":"trial","turn":1,"step":1,"model":"m","parameters":null,"tools":[]}`},
		{"plain text is sent as it is", hook.OnStream, `{"a"`, `{"a"`},
		{"plain text is text", hook.OnStream, "\xff", "it is no UTF-8"},
		{"no object", hook.OnError, `[]`, "it is no JSON object: on_error gets one with error"},
		{"null", hook.OnError, `null`, "it is no JSON object: on_error gets one with error"},
		{"nothing", hook.OnError, ``, "it is no JSON object: on_error gets one with error"},
		{"two objects", hook.OnError, `{"error":"x"} {}`, "there is more behind the JSON object"},
		{"an integer with a fraction", hook.OnError, `{"error":"x","turn":1.5}`, `"turn" must be an integer`},
		{"null for a text", hook.OnError, `{"error":null}`, `"error" must be a string`},
		{"a list that is none", hook.BeforeExecuteTools, `{"calls":{}}`, `"calls" must be a list`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			info, _ := hook.Lookup(tt.point)
			got, err := exttest.ParsePayload(info, []byte(tt.text))
			if err != nil {
				got = []byte(err.Error())
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What a session would never ask about is told.
func TestAsked(t *testing.T) {
	h := hook.Handling{Tools: []string{"exec", "write_*"}}
	const want = `at before_execute_tool the extension is asked only about exec, write_*, and so never about "grep"`
	info, _ := hook.Lookup(hook.BeforeExecuteTool)
	if err := exttest.Asked(info, h, []byte(`{"tool":"grep"}`)); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, payload := range []string{`{"tool":"write_file"}`, `{"tool":"exec"}`, `no JSON`} {
		if err := exttest.Asked(info, h, []byte(payload)); err != nil {
			t.Errorf("%s: %v", payload, err)
		}
	}
	info, _ = hook.Lookup(hook.OnError)
	if err := exttest.Asked(info, hook.Handling{}, []byte(`{"tool":"grep"}`)); err != nil {
		t.Errorf("at a point about no tool: %v", err)
	}
}
