package openai

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// frame is what stands around one call, or several.
type frame struct {
	open, close string
	many        bool // frames of calls stand within
	optional    bool // the text may end without the closing mark
}

// The frames of the templates of Qwen and Hermes, GLM, Mistral, Llama, Phi and
// Granite, DeepSeek, Kimi, MiniMax, and those that learned from Claude.
var frames = []frame{
	{"<tool_call>", "</tool_call>", false, false},
	{"<function=", "</function>", false, false},
	{"[TOOL_CALLS]", "[TOOL_CALLS_END]", false, true},
	{"<|python_tag|>", "<|eom_id|>", false, true},
	{"<|tool_call|>", "<|/tool_call|>", false, true},
	{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", true, true},
	{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", false, false},
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", true, false},
	{"<|tool_call_begin|>", "<|tool_call_end|>", false, false},
	{"<function_calls>", "</function_calls>", true, false},
	{"<minimax:tool_call>", "</minimax:tool_call>", true, false},
	{"<｜DSML｜function_calls>", "</｜DSML｜function_calls>", true, false},
	{"<invoke name=", "</invoke>", false, false},
	{"<｜DSML｜invoke name=", "</｜DSML｜invoke>", false, false},
}

// openings are the marks with which markup begins.
var openings = func() (marks []string) {
	for _, f := range frames {
		marks = append(marks, f.open)
	}
	return marks
}()

// markup is a text that is read for calls.
type markup struct {
	tools []session.Tool // that are on offer
	text  string         // that is left to read
	calls []session.Call
	said  string // the text around the calls
}

// read reports whether there are calls in the text and all of its markup is in
// order.
func (m *markup) read() bool {
	if start := strings.TrimSpace(m.text); start != "" && (start[0] == '{' || start[0] == '[') && json.Valid([]byte(start)) {
		m.said = ""
		return m.objects(start)
	}
	for m.text != "" {
		f, at := m.next()
		if at < 0 {
			m.said += m.text
			break
		}
		m.said += m.text[:at]
		m.text = m.text[at+len(f.open):]
		if !m.frame(f) {
			return false
		}
	}
	m.said = strings.TrimRight(m.said, " \t\r\n")
	return len(m.calls) > 0
}

// next returns the frame that begins first, and where; -1 if none does.
func (m *markup) next() (first frame, at int) {
	at = -1
	for _, f := range frames {
		if i := strings.Index(m.text, f.open); i >= 0 && (at < 0 || i < at) {
			first, at = f, i
		}
	}
	return first, at
}

// frame reads what stands between a frame's marks.
func (m *markup) frame(f frame) bool {
	inner, rest, closed := strings.Cut(m.text, f.close)
	if !closed && !f.optional {
		return false
	}
	m.text = rest
	if f.many {
		within := markup{tools: m.tools, text: inner}
		if !within.read() || strings.TrimSpace(within.said) != "" {
			return false
		}
		m.calls = append(m.calls, within.calls...)
		return true
	}
	return m.one(f.open, inner)
}

// one reads what a frame holds: one call in the manner of its template, or JSON.
func (m *markup) one(open, inner string) bool {
	inner = strings.TrimSpace(inner)
	switch {
	case open == "<function=":
		name, body, ok := strings.Cut(inner, ">")
		return ok && m.named(name, body)
	case strings.HasSuffix(open, "invoke name="):
		name, body, ok := strings.Cut(inner, ">")
		return ok && m.named(strings.Trim(name, `"'`), body)
	case strings.HasPrefix(inner, "<function="):
		inner = strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(inner, "<function=")), "</function>")
		return m.one("<function=", inner)
	case strings.HasPrefix(inner, "{"), strings.HasPrefix(inner, "["):
		return m.objects(inner)
	}
	if form := callForms().FindStringSubmatch(inner); form != nil {
		return m.named(form[1], form[2])
	}
	name, body, ok := strings.Cut(inner, "<arg_key>")
	return ok && m.named(name, "<arg_key>"+body)
}

// callForms are a name and then arguments in JSON: NAME[ARGS]{…}, NAME<｜tool▁sep｜>{…},
// function<｜tool▁sep｜>NAME and a code block, functions.NAME:0<|tool_call_argument_begin|>{…}.
var callForms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)^(?:function<｜tool▁sep｜>|functions\\.)?([A-Za-z0-9_.-]+)(?::\\d+)?\\s*" +
		"(?:\\[ARGS\\]|<｜tool▁sep｜>|<\\|tool_call_argument_begin\\|>)?\\s*(?:```json)?\\s*(\\{.*\\})\\s*(?:```)?$")
})

// parameters are a call's arguments one by one, in three manners.
var parameters = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^\s*(?:<parameter=([^>]+)>(.*?)</parameter>|<(?:｜DSML｜)?parameter name="([^"]+)"[^>]*>(.*?)</(?:｜DSML｜)?parameter>|` +
		`<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>)`)
})

// named takes a call whose arguments are JSON, or parameters one by one.
func (m *markup) named(name, body string) bool {
	name, body = strings.TrimSpace(name), strings.TrimSpace(body)
	if wire.IsObject([]byte(body)) {
		return m.call(name, []byte(body))
	}
	arguments := map[string]json.RawMessage{}
	for body != "" {
		found := parameters().FindStringSubmatch(body)
		if found == nil {
			return false
		}
		body = strings.TrimSpace(body[len(found[0]):])
		for i := 1; i < len(found); i += 2 {
			if key := strings.TrimSpace(found[i]); key != "" {
				arguments[key] = m.value(name, key, strings.TrimSuffix(strings.TrimPrefix(found[i+1], "\n"), "\n"))
			}
		}
	}
	return m.call(name, wire.Marshal(arguments))
}

// value returns a parameter as JSON: a text, unless the tool's schema wants
// something else there.
func (m *markup) value(name, key, text string) json.RawMessage {
	for _, t := range m.tools {
		var schema struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		}
		if t.Name != name || json.Unmarshal(t.InputSchema, &schema) != nil {
			continue
		}
		if kind := schema.Properties[key].Type; kind != "string" && kind != nil && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return wire.Marshal(text)
}

// objects takes calls that are JSON: one object or a list, with name and arguments.
func (m *markup) objects(text string) bool {
	var list []json.RawMessage
	if json.Unmarshal([]byte(text), &list) != nil {
		list = []json.RawMessage{json.RawMessage(text)}
	}
	for _, item := range list {
		var call struct {
			Name       string          `json:"name"`
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal(item, &call) != nil {
			return false
		}
		arguments := call.Arguments
		if arguments == nil {
			arguments = call.Parameters
		}
		var spelled string
		if json.Unmarshal(arguments, &spelled) == nil {
			arguments = json.RawMessage(spelled)
		}
		if !m.call(call.Name, arguments) {
			return false
		}
	}
	return len(list) > 0
}

// call takes a call of a tool that is on offer.
func (m *markup) call(name string, arguments []byte) bool {
	known := slices.ContainsFunc(m.tools, func(t session.Tool) bool { return t.Name == name })
	if !known || !wire.IsObject(arguments) || len(m.calls) == maxCalls {
		return false
	}
	m.calls = append(m.calls, session.Call{Name: name, Arguments: string(arguments)})
	return true
}
