package openai

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
)

// Compat says what a server of Chat Completions wants otherwise than most. The
// zero value is what the strictest server takes.
type Compat struct {
	SystemRole         string // of the system text: system (the default), developer, or user, as a part of the first message
	ToolRole           string // of the results of calls: tool (the default), or user, as text, and the calls then too
	AssistantAfterTool bool   // a short message of the assistant stands between results and a message of the user
	TextCalls          bool   // calls that the server leaves in the text, in the markup of the model's template, are calls
	NoStreamUsage      bool   // the server refuses stream_options, and sends no token counts then

	// Reasoning says which of the model's messages go back with their reasoning:
	// never, calls (those that make calls), always; "" is what the server's host is
	// known to want, else never.
	Reasoning string
}

// complete checks c and fills in what host is known to want.
func (c Compat) complete(host string) (Compat, error) {
	for _, field := range []struct {
		name    string
		value   *string
		allowed []string // the first is the default
	}{
		{"compat.system_role", &c.SystemRole, []string{"system", "developer", "user"}},
		{"compat.tool_role", &c.ToolRole, []string{"tool", "user"}},
		{"compat.reasoning", &c.Reasoning, []string{reasoningOf(host), "never", "calls", "always"}},
	} {
		if *field.value == "" {
			*field.value = field.allowed[0]
		}
		if !slices.Contains(field.allowed, *field.value) {
			return c, fmt.Errorf("openai: %s %q: not one of %s", field.name, *field.value, strings.Join(field.allowed[len(field.allowed)-min(len(field.allowed), 3):], ", "))
		}
	}
	return c, nil
}

// assembler returns what makes a reply out of the server's chunks.
func (c Compat) assembler(req provider.Request) wire.Assembler {
	if c.TextCalls && len(req.Tools) > 0 {
		return &leakReader{assembler: assembler{model: req.Model}, tools: req.Tools}
	}
	return &assembler{model: req.Model}
}

// reasoningOf returns which reasoning a known server wants back.
func reasoningOf(host string) string {
	for domain, wants := range map[string]string{
		"deepseek.com": "always", "moonshot.ai": "calls", "moonshot.cn": "calls", "z.ai": "calls", "bigmodel.cn": "calls",
		"xiaomimimo.com": "calls", "openrouter.ai": "always", "minimax.io": "always", "minimaxi.com": "always",
	} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return wants
		}
	}
	return "never"
}

// advise names the setting that a refusal asks for.
func advise(e *provider.Error) string {
	if e.Class != provider.Invalid && e.Status != http.StatusInternalServerError {
		return ""
	}
	said := strings.ToLower(e.Message)
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(said, w) })
	}
	switch {
	case has("reasoning_content", "missing"), has("reasoning_content", "must be"), has("reasoning_content", "pass"):
		return `if this server wants reasoning back, set compat.reasoning = "calls"`
	case has("reasoning"):
		return `if this server does not take reasoning back, set compat.reasoning = "never"`
	case has("max_tokens", "max_completion_tokens", "instead"):
		return "call the limit max_completion_tokens in [parameters]"
	case has("max_completion_tokens"):
		return "call the limit max_tokens in [parameters]"
	case has("encrypted content"):
		return "set parameters.include = [] for a model that does not reason"
	case has("stream_options"):
		return "set compat.stream_usage = false"
	case has("after", "tool", "user"), has("after tool"), has("following tool"), has("unexpected role 'user' after role 'tool'"):
		return "set compat.assistant_after_tool = true"
	case has("developer") && has("role"):
		return `set compat.system_role = "system"`
	case has("system", "role", "not supported"), has("system", "message", "not supported"):
		return `set compat.system_role = "user"`
	case has("role") && (has("tool") || has("supported") || has("alternate")):
		return `if the server's template does not know the role tool, set compat.tool_role = "user"; for the role system, compat.system_role = "user"`
	}
	return ""
}
