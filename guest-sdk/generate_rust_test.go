package guestsdk_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
)

// rustPoints generates the payloads of the Rust SDK, and the functions that call a
// point's handler.
func rustPoints() ([]byte, error) {
	var payloads, handle strings.Builder
	for _, info := range hook.Points {
		payload, declaration := rustPayload(info)
		payloads.WriteString(declaration)
		answer, call, parameter := "Answer", "judge", payload
		switch {
		case info.Raw:
			answer, call, parameter = "Silence", "hear", "&str"
		case !info.Deciding():
			answer, call = "Silence", "watch"
		}
		fmt.Fprintf(&handle, "\n    /// Asks the handler of %s: %s.\n", info.Point, info.When)
		fmt.Fprintf(&handle, "    pub fn %s<A: %s>(payload: &[u8], handler: impl FnOnce(%s) -> A) -> Vec<u8> {\n        guest::%s(payload, handler)\n    }\n",
			info.Point, answer, parameter, call)
	}
	return []byte("// Code generated from the table of hook points (engine/hook); DO NOT EDIT.\n\n" +
		"use crate::payload::payload;\nuse crate::{Budget, DoneCall, Json, ToolCall, Usage};\n" + payloads.String() +
		"\n/// What [`hooks!`](crate::hooks) calls: a function for each hook point, by whose type\n" +
		"/// the compiler knows what the point's handler is given and may return.\npub mod handle {\n" +
		"    use crate::*;\n" + handle.String() + "}\n"), nil
}

// rustPayload returns the type of a payload, and its declaration if it is not one
// that the SDK has for several points.
func rustPayload(info hook.Info) (name, declaration string) {
	if shared, _ := goPayload(info); !strings.HasSuffix(shared, "Payload") {
		return shared, ""
	}
	name = camel(string(info.Point))
	var b strings.Builder
	fmt.Fprintf(&b, "\npayload!(\n    /// The payload of %s.\n    %s {\n", info.Point, name)
	for _, key := range slices.Concat(atKeys, info.Keys) {
		if key.Doc != "" {
			fmt.Fprintf(&b, "        /// %s.\n", strings.ToUpper(key.Doc[:1])+key.Doc[1:])
		}
		fmt.Fprintf(&b, "        %s: %s,\n", key.Name, rustType(info.Point, key))
	}
	b.WriteString("    }\n);\n")
	return name, b.String()
}

// atKeys are the keys that every payload has.
var atKeys = []hook.Key{{Name: "session_id", Type: hook.Text}, {Name: "turn", Type: hook.Integer}, {Name: "step", Type: hook.Integer}}

// rustType returns the type of a key.
func rustType(p hook.Point, key hook.Key) string {
	switch kind := goType(p, key); kind {
	case "Usage", "Budget":
		return kind
	case "[]ToolCall", "[]DoneCall":
		return "Vec<" + kind[2:] + ">"
	case "[]string":
		return "Vec<String>"
	}
	return map[hook.Type]string{
		hook.Text: "String", hook.Integer: "i64", hook.Number: "f64", hook.Boolean: "bool",
		hook.Object: "Json", hook.List: "Json", hook.Any: "Json",
	}[key.Type]
}

// rustAnswers are the functions of the Rust SDK's Verdict by what they answer.
var rustAnswers = map[string]string{
	"allow": "allow", "deny": "deny", "ask": "ask", "block": "block", "continue": "go_on", "retry": "retry", "fail": "give_up",
	"text": "replace_text", "arguments": "replace_arguments", "result": "answer_in_place", "content": "replace_content",
	"parameters": "replace_parameters", "hide_tools": "hide_tools", "response": "answer_for_model",
}

// rustReadme brings the table of the Rust SDK's page up to date.
func rustReadme() ([]byte, error) {
	lines := []string{"| point | is given | may answer |", "| --- | --- | --- |"}
	for _, info := range hook.Points {
		payload, _ := rustPayload(info)
		if info.Raw {
			payload = "&str"
		}
		lines = append(lines, pointRow(info, payload, rustAnswers, "add_context"))
	}
	return section("rust/README.md", lines)
}

// pointRow is the row of a point in the table of a page.
func pointRow(info hook.Info, payload string, functions map[string]string, context string) string {
	var answers []string
	for _, d := range info.Decisions {
		answers = append(answers, "`"+functions[string(d)]+"`")
	}
	for _, key := range info.Replace {
		answers = append(answers, "`"+functions[key]+"`")
	}
	if info.Context {
		answers = append(answers, "`"+context+"`")
	}
	return strings.Replace(fmt.Sprintf("| `%s` | `%s` | %s |", info.Point, payload, strings.Join(answers, ", ")), "|  |", "| |", 1)
}
