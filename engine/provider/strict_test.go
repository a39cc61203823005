package provider_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// problems lists why a strict server of an API would refuse a request.
func problems(api string, body []byte) []string {
	var r struct {
		Model     string           `json:"model"`
		Stream    bool             `json:"stream"`
		MaxTokens int              `json:"max_tokens"`
		Store     *bool            `json:"store"`
		Messages  []map[string]any `json:"messages"`
		Input     []map[string]any `json:"input"`
		System    []map[string]any `json:"system"`
		Tools     []map[string]any `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return []string{err.Error()}
	}
	s := strict{calls: map[string]bool{}, ids: map[string]string{
		"chat": `^[!-~]{1,128}$`, "responses": `^[a-zA-Z0-9_-]{1,64}$`, "anthropic": `^[a-zA-Z0-9_-]+$`,
	}[api]}
	if r.Model == "" || !r.Stream {
		s.say("no model, or no stream")
	}
	switch api {
	case "chat":
		s.chat(r.Messages)
	case "responses":
		if r.Store == nil || *r.Store {
			s.say("the server may keep the conversation")
		}
		s.items(r.Input)
	case "anthropic":
		if r.MaxTokens <= 0 {
			s.say("no max_tokens")
		}
		s.turns(r.Messages)
		if len(s.calls) > 0 && len(r.Tools) == 0 {
			s.say("the history has calls, and no tools are defined")
		}
		if n := strings.Count(string(body), `"cache_control"`); n > 4 {
			s.say("%d cache marks; want at most 4", n)
		}
	}
	for id, open := range s.calls {
		if open {
			s.say("the call %s has no answer", id)
		}
	}
	return s.found
}

type strict struct {
	calls map[string]bool // by id: it still wants an answer
	ids   string          // a pattern of what an id may be
	found []string
}

func (s *strict) say(format string, args ...any) {
	s.found = append(s.found, fmt.Sprintf(format, args...))
}

func (s *strict) call(id any, name any, arguments any) {
	text, _ := id.(string)
	if _, twice := s.calls[text]; text == "" || twice {
		s.say("the call id %q is empty or not unique", text)
	}
	if !regexp.MustCompile(s.ids).MatchString(text) {
		s.say("the call id %q does not match %s", text, s.ids)
	}
	s.calls[text] = true
	if n, _ := name.(string); n == "" || strings.ContainsAny(n, " \x1b.") {
		s.say("the call %s has the name %q", text, n)
	}
	if raw, ok := arguments.(string); ok {
		if json.Unmarshal([]byte(raw), &arguments) != nil {
			s.say("the arguments of %s are no JSON: %s", text, raw)
		}
	}
	if _, ok := arguments.(map[string]any); !ok {
		s.say("the arguments of %s are no object: %v", text, arguments)
	}
}

func (s *strict) answer(id any) {
	text, _ := id.(string)
	if !s.calls[text] {
		s.say("%q answers no open call", text)
	}
	s.calls[text] = false
}

func (s *strict) settled(where string) {
	for id, open := range s.calls {
		if open {
			s.say("%s stands before the answer to %s", where, id)
		}
	}
}

func (s *strict) chat(messages []map[string]any) {
	for i, m := range messages {
		where := fmt.Sprintf("message %d", i)
		calls, _ := m["tool_calls"].([]any)
		if (m["content"] == nil || m["content"] == "") && len(calls) == 0 {
			s.say("%s is empty", where)
		}
		switch m["role"] {
		case "tool":
			s.answer(m["tool_call_id"])
			if _, ok := m["content"].(string); !ok {
				s.say("%s is a tool message with more than text", where)
			}
			continue
		case "system", "user", "assistant":
		default:
			s.say("%s has the role %v", where, m["role"])
		}
		s.settled(where)
		for _, c := range calls {
			call, _ := c.(map[string]any)
			function, _ := call["function"].(map[string]any)
			if _, ok := function["arguments"].(string); !ok {
				s.say("%s: arguments are no string", where)
			}
			s.call(call["id"], function["name"], function["arguments"])
		}
	}
}

func (s *strict) items(items []map[string]any) {
	for i, item := range items {
		where := fmt.Sprintf("item %d", i)
		switch item["type"] {
		case "function_call":
			s.call(item["call_id"], item["name"], item["arguments"])
		case "function_call_output":
			s.answer(item["call_id"])
			if out, _ := item["output"].(string); out == "" && item["output"] == any("") {
				s.say("%s has no output", where)
			}
		case "reasoning":
			if item["encrypted_content"] == nil && item["content"] == nil {
				s.say("%s is reasoning that only a server with memory could read", where)
			}
			if i+1 == len(items) || items[i+1]["type"] != "message" && items[i+1]["type"] != "function_call" {
				s.say("%s is reasoning without what followed it", where)
			}
		case "message", nil:
			if role := item["role"]; role != "user" && role != "assistant" || item["content"] == nil || item["content"] == "" {
				s.say("%s is empty, or has the role %v", where, role)
			}
			if item["role"] == "user" {
				s.settled(where)
			}
		default:
			s.say("%s has the type %v", where, item["type"])
		}
	}
}

func (s *strict) turns(messages []map[string]any) {
	for i, m := range messages {
		where := fmt.Sprintf("message %d", i)
		if want := []any{"user", "assistant"}[i%2]; m["role"] != want {
			s.say("%s has the role %v; want %v", where, m["role"], want)
		}
		blocks, _ := m["content"].([]any)
		if len(blocks) == 0 {
			s.say("%s is empty", where)
		}
		results := true // they come first
		for n, b := range blocks {
			block, _ := b.(map[string]any)
			switch block["type"] {
			case "text":
				if text, _ := block["text"].(string); strings.TrimSpace(text) == "" {
					s.say("%s has a blank text", where)
				}
				results = false
			case "tool_use":
				s.call(block["id"], block["name"], block["input"])
			case "tool_result":
				if !results {
					s.say("%s has a result behind something else", where)
				}
				s.answer(block["tool_use_id"])
			case "image":
				results = false
			case "thinking", "redacted_thinking":
				if n == len(blocks)-1 {
					s.say("%s ends with thinking", where)
				}
			default:
				s.say("%s has a block of the type %v", where, block["type"])
			}
		}
		if m["role"] == "user" {
			s.settled(where)
		}
	}
}
