package guestsdk_test

import (
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
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
