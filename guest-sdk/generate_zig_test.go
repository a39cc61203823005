package guestsdk_test

import (
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
)

// zigSource brings the payloads in the SDK for Zig up to date.
func zigSource() ([]byte, error) {
	var payloads, points strings.Builder
	for _, info := range hook.Points {
		payloads.WriteString(zigPayload(info))
		fmt.Fprintf(&points, "    pub const %s: Point = .{ .Payload = %s, .judges = %t };\n", info.Point, zigPayloadType(info), info.Deciding())
	}
	return between("zig/wharf.zig", "// ", "", []string{payloads.String() + "const points = struct {\n" + points.String() + "};"})
}

// zigPayloadType names what a handler of the point is given.
func zigPayloadType(info hook.Info) string {
	if info.Raw {
		return "[]const u8"
	}
	return camel(string(info.Point))
}

// zigPayload generates the payload of a point, if it has one of its own.
func zigPayload(info hook.Info) string {
	if info.Raw {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "/// %s: %s.\n", info.Point, info.When)
	if answers := answersOf(info, zigAnswers); answers != "" {
		fmt.Fprintf(&b, "/// It may answer %s.\n", answers)
	}
	fmt.Fprintf(&b, "pub const %s = struct {\n    session_id: []const u8 = \"\",\n    turn: i64 = 0,\n    step: i64 = 0,\n", camel(string(info.Point)))
	for _, key := range info.Keys {
		typ, zero := zigType(info.Point, key)
		fmt.Fprintf(&b, "    /// %s\n    %s: %s = %s,\n", key.Doc, zigName(key.Name), typ, zero)
	}
	if info.Has("arguments") {
		b.WriteString("\n    /// An argument if it is a text, or \"\".\n" +
			"    pub fn argument(call: @This(), name: []const u8) []const u8 {\n        return textOf(call.arguments, name);\n    }\n")
	}
	return b.String() + "};\n\n"
}

// zigName quotes what is a keyword of Zig.
func zigName(name string) string {
	if name == "error" {
		return `@"error"`
	}
	return name
}

// zigType returns the type of a key, and what it is if it is absent.
func zigType(p hook.Point, key hook.Key) (typ, zero string) {
	switch {
	case key.Name == "usage":
		return "Usage", ".{}"
	case key.Name == "budget":
		return "Budget", ".{}"
	case p == hook.AfterExecuteTool && key.Name == "result":
		return "ToolResult", ".{}"
	case p == hook.BeforeExecuteTools && key.Name == "calls":
		return "[]const ToolCall", "&.{}"
	case p == hook.AfterIteration && key.Name == "calls":
		return "[]const DoneCall", "&.{}"
	case p == hook.BeforeRequest && key.Name == "tools":
		return "[]const []const u8", "&.{}"
	}
	row := map[hook.Type][2]string{
		hook.Text: {"[]const u8", `""`}, hook.Integer: {"i64", "0"}, hook.Number: {"f64", "0"}, hook.Boolean: {"bool", "false"},
		hook.Object: {"Json", ".{}"}, hook.List: {"Json", ".{}"}, hook.Any: {"Json", ".{}"},
	}[key.Type]
	return row[0], row[1]
}

// zigAnswers are the functions of Verdict by what they answer.
var zigAnswers = map[string]string{
	"allow": "allow", "deny": "deny", "ask": "ask", "block": "block", "continue": "goOn", "retry": "retry", "fail": "giveUp",
	"text": "replaceText", "arguments": "replaceArguments", "result": "answerInPlace", "content": "replaceContent",
	"parameters": "replaceParameters", "hide_tools": "hideTools", "response": "answerForModel", "context": "addContext",
}

// zigReadme brings the table of the Zig SDK's page up to date.
func zigReadme() ([]byte, error) {
	return readme("zig/README.md", "handled by", func(info hook.Info) string {
		returns := "void"
		if info.Deciding() {
			returns = "wharf.Verdict"
		}
		payload := zigPayloadType(info)
		if !info.Raw {
			payload = "wharf." + payload
		}
		return fmt.Sprintf("fn (%s) %s", payload, returns)
	}, zigAnswers)
}
