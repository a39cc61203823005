package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

func TestCompatOfAHost(t *testing.T) {
	tests := []struct {
		host string
		cfg  Compat
		want string // the messages that go back with their reasoning
		err  string
	}{
		{"server.test", Compat{}, "never", ""},
		{"api.deepseek.com", Compat{}, "always", ""},
		{"notdeepseek.com", Compat{}, "never", ""},
		{"api.moonshot.ai", Compat{}, "calls", ""},
		{"api.moonshot.ai", Compat{Reasoning: "never"}, "never", ""},
		{"server.test", Compat{Reasoning: "sometimes"}, "", `openai: compat.reasoning "sometimes": not one of never, calls, always`},
		{"server.test", Compat{ToolRole: "function"}, "", `openai: compat.tool_role "function": not one of tool, user`},
		{"server.test", Compat{SystemRole: "boss"}, "", `openai: compat.system_role "boss": not one of system, developer, user`},
	}
	for _, tt := range tests {
		got, err := tt.cfg.complete(tt.host)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != tt.err || err == nil && got.Reasoning != tt.want {
			t.Errorf("%+v at %s: reasoning %q, error %q; want %q, %q", tt.cfg, tt.host, got.Reasoning, text, tt.want, tt.err)
		}
	}
}

// A refusal names the setting that answers it, and nothing else does.
func TestAdvice(t *testing.T) {
	tests := []struct{ message, want string }{
		{"The `reasoning_content` in the thinking mode must be passed back to the API.", `compat.reasoning = "calls"`},
		{"Missing `reasoning_content` field in the assistant message", `compat.reasoning = "calls"`},
		{"Unknown field: reasoning_content", `compat.reasoning = "never"`},
		{"Encrypted content is not supported with this model.", "parameters.include = []"},
		{"stream_options: Extra inputs are not permitted", "compat.stream_usage = false"},
		{"Unexpected role 'user' after role 'tool'", "compat.assistant_after_tool = true"},
		{"System role not supported", `compat.system_role = "user"`},
		{"'developer' is not one of ['system', 'assistant', 'user'] - role", `compat.system_role = "system"`},
		{"Only user and assistant roles are supported!", `compat.tool_role = "user"`},
		{"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_completion_tokens in [parameters]"},
		{"no such model", ""},
	}
	for _, tt := range tests {
		got := advise(&provider.Error{Class: provider.Invalid, Status: 400, Message: tt.message})
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("advise(%q) = %q; want %q in it", tt.message, got, tt.want)
		}
	}
}

// How reasoning goes back, and to whom.
func TestReasoningGoesBack(t *testing.T) {
	call := []session.Call{{ID: "1", Name: "f", Arguments: "{}"}}
	details := json.RawMessage(`{"chat":{"model":"m","field":"reasoning","details":[{"type":"reasoning.encrypted","data":"D"}]}}`)
	tests := []struct {
		name, setting string
		message       session.Message
		want          string // the fields, sorted
	}{
		{"never", "never", session.Message{Calls: call, Reasoning: "hm", Extra: details}, `{}`},
		{"with its call, under the usual name", "calls", session.Message{Calls: call, Reasoning: "hm"}, `{"reasoning_content":"hm"}`},
		{"not with a text", "calls", session.Message{Content: "x", Reasoning: "hm"}, `{}`},
		{"with a text", "always", session.Message{Content: "x", Reasoning: "hm"}, `{"reasoning_content":"hm"}`},
		{"a call without any", "calls", session.Message{Calls: call}, `{"reasoning_content":" "}`},
		{"details in place of the text", "always", session.Message{Calls: call, Reasoning: "hm", Extra: details}, `{"reasoning_details":[{"type":"reasoning.encrypted","data":"D"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := conversation{Compat: Compat{Reasoning: tt.setting}, model: "m"}
			got, err := json.Marshal(c.reasoning(tt.message))
			if err != nil || string(got) != tt.want {
				t.Errorf("reasoning(%+v) = %s, %v; want %s", tt.message, got, err, tt.want)
			}
		})
	}
	other := conversation{Compat: Compat{Reasoning: "always"}, model: "another"}
	if got := other.reasoning(session.Message{Reasoning: "hm", Extra: details}); len(got) != 1 || got["reasoning"] != "hm" {
		t.Errorf("reasoning for another model = %v; want its text alone", got)
	}
}
