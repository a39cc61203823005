package guestsdk_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
)

// asPoints generates the payloads of the AssemblyScript SDK, and the functions that
// call a point's handler.
func asPoints() ([]byte, error) {
	var payloads, handle strings.Builder
	for _, info := range hook.Points {
		payload, declaration := asPayload(info)
		payloads.WriteString(declaration)
		answer, call := "Verdict | null", "judge<"+payload+">"
		switch {
		case info.Raw:
			answer, call = "void", "hear"
		case !info.Deciding():
			answer, call = "void", "watch<"+payload+">"
		}
		parameter := "payload: " + payload
		if info.Raw {
			parameter = "text: string"
		}
		fmt.Fprintf(&handle, "\n  /** Asks the handler of %s: %s. */\n", info.Point, info.When)
		fmt.Fprintf(&handle, "  export function %s(at: usize, length: i32, handler: (%s) => %s): u64 {\n    return %s(at, length, handler);\n  }\n",
			info.Point, parameter, answer, call)
	}
	return []byte("// Code generated from the table of hook points (engine/hook); DO NOT EDIT.\n\n" +
		"import { hear, judge, watch } from \"./guest\";\nimport { Json } from \"./json\";\n" +
		"import { At, Budget, DoneCall, End, Keys, Text, ToolCall, Usage } from \"./payload\";\nimport { Verdict } from \"./verdict\";\n" +
		payloads.String() +
		"\n/** What the exports call that `wharf ext build` writes: by the types the compiler knows what a handler is given and may return. */\n" +
		"export namespace handle {" + strings.TrimPrefix(handle.String(), "\n") + "}\n"), nil
}

// asPayload returns the class of a payload, and its declaration if it is not one
// that the SDK has for several points.
func asPayload(info hook.Info) (name, declaration string) {
	if shared, _ := goPayload(info); !strings.HasSuffix(shared, "Payload") {
		return shared, ""
	}
	name, parent := camel(string(info.Point)), "At"
	keys := slices.Clone(info.Keys)
	if has(info, "call_id", "tool", "arguments") {
		parent = "ToolCall"
		keys = slices.DeleteFunc(keys, func(k hook.Key) bool { return k.Name == "call_id" || k.Name == "tool" || k.Name == "arguments" })
	}
	var fields, fill strings.Builder
	for _, key := range keys {
		t := asTypes[goType(info.Point, key)]
		fmt.Fprintf(&fields, "  /** %s. */\n  %s: %s = %s;\n", strings.ToUpper(key.Doc[:1])+key.Doc[1:], asName(key.Name), t.name, t.empty)
		fmt.Fprintf(&fill, "    this.%s = keys.%s(%q);\n", asName(key.Name), t.take, key.Name)
	}
	return name, fmt.Sprintf("\n/** The payload of %s. */\nexport class %s extends %s {\n%s\n  fill(keys: Keys): void {\n    super.fill(keys);\n%s  }\n}\n",
		info.Point, name, parent, fields.String(), fill.String())
}

// asTypes are the types of AssemblyScript by those of Go, with a value of nothing and
// the method that takes one out of a payload.
var asTypes = map[string]struct{ name, empty, take string }{
	"string":          {"string", `""`, "text"},
	"int64":           {"i64", "0", "int"},
	"float64":         {"f64", "0", "number"},
	"bool":            {"bool", "false", "bool"},
	"json.RawMessage": {"Json", "Json.nothing()", "any"},
	"Usage":           {"Usage", "new Usage()", "object<Usage>"},
	"Budget":          {"Budget", "new Budget()", "object<Budget>"},
	"[]string":        {"string[]", "[]", "texts"},
	"[]ToolCall":      {"ToolCall[]", "[]", "objects<ToolCall>"},
	"[]DoneCall":      {"DoneCall[]", "[]", "objects<DoneCall>"},
}

// asName returns a key such as call_id as callId.
func asName(key string) string {
	first, rest, _ := strings.Cut(key, "_")
	for word := range strings.SplitSeq(rest, "_") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}

// asAnswers are the functions of the AssemblyScript SDK's Verdict by what they
// answer.
var asAnswers = map[string]string{
	"allow": "allow", "deny": "deny", "ask": "ask", "block": "block", "continue": "goOn", "retry": "retry", "fail": "giveUp",
	"text": "replaceText", "arguments": "replaceArguments", "result": "answerInPlace", "content": "replaceContent",
	"parameters": "replaceParameters", "hide_tools": "hideTools", "response": "answerForModel",
}

// asReadme brings the table of the AssemblyScript SDK's page up to date.
func asReadme() ([]byte, error) {
	lines := []string{"| point | is given | may answer |", "| --- | --- | --- |"}
	for _, info := range hook.Points {
		payload, _ := asPayload(info)
		if info.Raw {
			payload = "string"
		}
		lines = append(lines, pointRow(info, payload, asAnswers, "addContext"))
	}
	return section("assemblyscript/README.md", lines)
}
