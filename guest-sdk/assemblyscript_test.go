package guestsdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

// The example in the AssemblyScript SDK's README builds and does what it says.
func TestAssemblyScriptREADME(t *testing.T) {
	needLanguage(t, "assemblyscript")
	polite(t, buildText(t, map[string]string{
		build.ManifestFile:  blocks(t, "assemblyscript/README.md", "toml")[0],
		"assembly/index.ts": blocks(t, "assemblyscript/README.md", "ts")[0],
	}))
}

const echoAssemblyScript = `import { ToolCall, Verdict } from "wharf/assembly";

export function before_execute_tool(call: ToolCall): Verdict | null {
  const numbers: i32[] = [1, 2];
  if (call.turn > 0) return Verdict.deny(numbers[<i32>call.turn].toString());
  assert(call.step == 0, "too late");
  return Verdict.replaceArguments(call.arguments);
}
`

// What a payload holds comes back as it was; what is too deep, or none, is a
// failure that says so; and what is thrown fails the call, with its place in
// the log.
func TestAssemblyScriptPayloads(t *testing.T) {
	needLanguage(t, "assemblyscript")
	s, events := join(t, buildText(t, map[string]string{build.ManifestFile: hookManifest, "index.ts": echoAssemblyScript}))
	echo(t, s, "character")
	for payload, want := range map[string]string{
		`{"turn":5}`: "error: ~lib/array.ts:114:42: Index out of range",
		`{"step":5}`: "error: index.ts:6:3: too late",
	} {
		*events = nil
		_, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(payload))
		if err == nil || !strings.Contains(err.Error(), "the guest trapped: unreachable") {
			t.Errorf("%s fails with %v", payload, err)
		}
		if got := logged(*events); got != want {
			t.Errorf("%s: logged %q, want %q", payload, got, want)
		}
	}
}

const growing = `import { Json, ToolCall, Verdict } from "wharf/assembly";

export function before_execute_tool(call: ToolCall): Verdict | null {
  const pages = memory.size();
  return Verdict.replaceArguments(Json.object().with("pages", Json.int(pages)).with("was", call.arguments));
}
`

// An instance lasts for a session: 10,000 calls take no more memory than the
// first two thousand.
func TestAssemblyScriptMemoryStaysFlat(t *testing.T) {
	needLanguage(t, "assemblyscript")
	s, _ := join(t, buildText(t, map[string]string{build.ManifestFile: hookManifest, "index.ts": growing}))
	payload := []byte(`{"tool":"exec","arguments":{"command":"` + strings.Repeat("x", 10_000) + `","list":[1,2,3,{"a":"b"}]}}`)
	pages := func() string {
		answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, payload)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(answer), `"pages":`)
		count, _, _ := strings.Cut(rest, ",")
		return count
	}
	for range 2000 { // until the collector has found its pace
		pages()
	}
	before := pages()
	for range 10_000 {
		pages()
	}
	if after := pages(); after != before || before == "" {
		t.Errorf("the memory grew from %s to %s pages", before, after)
	}
}

const readsJSON = `import { JsonReader, ToolInput, ToolOutput } from "wharf/assembly";

export function json(input: ToolInput): ToolOutput {
  const reader = new JsonReader(input.arguments.str("text"));
  const value = reader.whole();
  if (value === null) return ToolOutput.error(reader.error);
  return ToolOutput.text(value.toString() + " " + value.str("a") + " " + value.asInt(-7).toString() + " " + value.asNumber(-7).toString());
}
`

// The SDK's own JSON is read and written as others do, and what is none is refused.
func TestAssemblyScriptJSON(t *testing.T) {
	needLanguage(t, "assemblyscript")
	s, _ := join(t, buildText(t, map[string]string{
		build.ManifestFile: jsonManifest,
		"index.ts":         readsJSON,
	}))
	for text, want := range map[string]string{
		"null": "null  -7 -7.0", "true": "true  -7 -7.0", " [ ] ": "[]  -7 -7.0", "{}": "{}  -7 -7.0", "[1,[2,{}],\"x\"]": "[1,[2,{}],\"x\"]  -7 -7.0",
		`{"a":"ls","b":null,"a":"rm"}`:         `{"a":"ls","b":null,"a":"rm"} rm -7 -7.0`,
		"9223372036854775807":                  "9223372036854775807  9223372036854775807 9223372036854776000.0",
		"-9223372036854775808":                 "-9223372036854775808  -9223372036854775808 -9223372036854776000.0",
		"9223372036854775808":                  "9223372036854775808  -7 9223372036854776000.0",
		"-1.5e+3":                              "-1.5e+3  -7 -1500.0",
		`"\u0041\u00e4\/\b\f\n\t\r\"\\\u0001"`: "\"Aä/\\u0008\\u000c\\n\\t\\r\\\"\\\\\\u0001\"  -7 -7.0",
		`"\ud83d\ude42"`:                       "\"🙂\"  -7 -7.0",
		`"\ud83dx"`:                            "\"\ufffdx\"  -7 -7.0",
	} {
		if got := toolSays(t, s, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                        "no JSON: character 0: it wants a value",
		" nul":                    "no JSON: character 1: it wants a value",
		"1 2":                     "no JSON: character 2: it wants nothing more",
		"01":                      "no JSON: character 1: it wants nothing more",
		"-":                       "no JSON: character 1: it wants a digit",
		"1.":                      "no JSON: character 2: it wants a digit",
		"[1":                      "no JSON: character 2: it wants a comma or ]",
		"[1,]":                    "no JSON: character 3: it wants a value",
		`{"a" 1}`:                 "no JSON: character 5: it wants a colon",
		`{"a":1,}`:                "no JSON: character 7: it wants a key",
		`{"a":1`:                  "no JSON: character 6: it wants a comma or }",
		`"a`:                      "no JSON: character 2: it wants the end of a string",
		"\"a\nb\"":                "no JSON: character 2: it wants the end of a string",
		`"\x"`:                    "no JSON: character 3: it wants an escape",
		`"\`:                      "no JSON: character 2: it wants an escape",
		`"\u00g0"`:                "no JSON: character 5: it wants four hexadecimal digits",
		`"\u00`:                   "no JSON: character 5: it wants four hexadecimal digits",
		strings.Repeat("[", 1001): "it has more than 1000 values within each other",
	} {
		if got := toolSays(t, s, text); got != "error: "+want {
			t.Errorf("%.100s: %q, want %q", text, got, want)
		}
	}
}

// toolSays calls a guest's tool with a text.
func toolSays(t *testing.T, s *host.Session, text string) string {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Tools()[0].Run(t.Context(), tool.Call{Name: "json", Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	if got.IsError {
		return "error: " + got.Content
	}
	return got.Content
}
