package guestsdk_test

import (
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
)

// goPoints generates the functions and payloads of the Go SDK.
func goPoints() ([]byte, error) {
	var b strings.Builder
	b.WriteString("// Code generated from the table of hook points (engine/hook); DO NOT EDIT.\n\npackage wharf\n\nimport \"encoding/json\"\n")
	for _, info := range hook.Points {
		b.WriteString(goPoint(info))
	}
	return format.Source([]byte(b.String()))
}

// goPoint generates the function by which a point is handled, and its payload's
// type if it is one of its own.
func goPoint(info hook.Info) string {
	name, answer, register := camel(string(info.Point)), " Verdict", "judge"
	if !info.Deciding() {
		answer, register = "", "watch"
	}
	doc := fmt.Sprintf("\n// %s handles %s: %s.", name, info.Point, info.When)
	payload, declaration := goPayload(info)
	switch {
	case info.Raw:
		doc += " The text is valid\n// during the call."
		payload, register = "text []byte", "hear"
	case payload == "DoneCall": // shown in two parts, as it has always been
		return fmt.Sprintf("%s\nfunc %s(h func(ToolCall, ToolResult)%s) {\nregister(%q, %s(func(d DoneCall)%s { return h(d.ToolCall, d.Result) }))\n}\n",
			doc, name, answer, info.Point, register, answer)
	}
	return declaration + fmt.Sprintf("%s\nfunc %s(h func(%s)%s) { register(%q, %s(h)) }\n", doc, name, payload, answer, info.Point, register)
}

// goPayload returns the type of a payload, and its declaration if it is not one that
// the SDK has for several points.
func goPayload(info hook.Info) (name, declaration string) {
	keys := slices.Clone(info.Keys)
	switch {
	case info.Raw:
		return "", ""
	case len(keys) == 4 && has(info, "call_id", "tool", "arguments", "result"):
		return "DoneCall", ""
	case len(keys) == 1 && has(info, "text"):
		return "Text", ""
	case len(keys) == 2 && has(info, "reason", "text"):
		return "End", ""
	case len(keys) == 3 && has(info, "call_id", "tool", "arguments"):
		return "ToolCall", ""
	}
	name, embedded := camel(string(info.Point))+"Payload", "At"
	if has(info, "call_id", "tool", "arguments") {
		embedded = "ToolCall"
		keys = slices.DeleteFunc(keys, func(k hook.Key) bool { return k.Name == "call_id" || k.Name == "tool" || k.Name == "arguments" })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n// %s is the payload of %s.\ntype %s struct {\n%s\n", name, info.Point, name, embedded)
	for _, key := range keys {
		fmt.Fprintf(&b, "%s %s `json:%q` // %s\n", camel(key.Name), goType(info.Point, key), key.Name, key.Doc)
	}
	b.WriteString("}\n")
	return name, b.String()
}

// goType returns the type of a key.
func goType(p hook.Point, key hook.Key) string {
	switch {
	case key.Name == "usage":
		return "Usage"
	case key.Name == "budget":
		return "Budget"
	case p == hook.BeforeExecuteTools && key.Name == "calls":
		return "[]ToolCall"
	case p == hook.AfterIteration && key.Name == "calls":
		return "[]DoneCall"
	case p == hook.BeforeRequest && key.Name == "tools":
		return "[]string"
	}
	return map[hook.Type]string{
		hook.Text: "string", hook.Integer: "int64", hook.Number: "float64", hook.Boolean: "bool",
		hook.Object: "json.RawMessage", hook.List: "json.RawMessage", hook.Any: "json.RawMessage",
	}[key.Type]
}

// goAnswers are the functions of the Go SDK by what they answer.
var goAnswers = map[string]string{
	"allow": "Allow", "deny": "Deny", "ask": "Ask", "block": "Block", "continue": "Continue", "retry": "Retry", "fail": "GiveUp",
	"text": "ReplaceText", "arguments": "ReplaceArguments", "result": "AnswerInPlace", "content": "ReplaceContent",
	"parameters": "ReplaceParameters", "hide_tools": "HideTools", "response": "AnswerForModel", "context": "AddContext",
}

// goReadme brings the table of the Go SDK's page up to date.
func goReadme() ([]byte, error) {
	return readme("go/README.md", "register with", func(info hook.Info) string {
		payload, _ := goPayload(info)
		switch {
		case info.Raw:
			payload = "text []byte"
		case payload == "DoneCall":
			payload = "ToolCall, ToolResult"
		}
		if payload = "func(" + payload + ")"; info.Deciding() {
			payload += " Verdict"
		}
		return camel(string(info.Point)) + "(" + payload + ")"
	}, goAnswers)
}
