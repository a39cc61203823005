package guestsdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

// Off Wasm the Rust SDK builds without a warning, does what its tests say, and
// the examples in its documentation compile.
func TestRustSDKWithoutAHost(t *testing.T) {
	rustc := compiler(t, "rust")
	rustdoc := filepath.Join(filepath.Dir(rustc), "rustdoc")
	if _, err := os.Stat(rustdoc); err != nil {
		missing(t, rustdoc, "apt install rustc")
	}
	dir := t.TempDir()
	library, tests := filepath.Join(dir, "libwharf.rlib"), filepath.Join(dir, "tests")
	for _, argv := range [][]string{
		{rustc, "--edition=2021", "-Dwarnings", "--crate-type=rlib", "--crate-name=wharf", "-o", library, "rust/src/lib.rs"},
		{rustc, "--edition=2021", "-Dwarnings", "--test", "-o", tests, "--extern=wharf=" + library, "testdata/sdk_test.rs"},
		{tests},
		{rustdoc, "--edition=2021", "--test", "--crate-name=wharf", "--extern=wharf=" + library, "rust/src/lib.rs"},
	} {
		if text, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", argv[0], err, text)
		}
	}
}

// buildText builds an extension of these files.
func buildText(t *testing.T, files map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := build.Extension(t.Context(), build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Wasm
}

// polite checks an extension that is the example on an SDK's page.
func polite(t *testing.T, wasm []byte) {
	t.Helper()
	s, events := join(t, wasm)
	for command, want := range map[string]string{
		"git push --force": `{"decision":"deny","reason":"force pushes are not allowed here: use --force-with-lease"}`,
		"git push":         "",
	} {
		payload := `{"session_id":"s","turn":1,"step":1,"call_id":"c","tool":"exec","arguments":{"command":"` + command + `"}}`
		answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(payload))
		if err != nil || string(answer) != want {
			t.Errorf("%s: %s, %v; want %s", command, answer, err, want)
		}
	}
	for range 2 {
		got, err := s.Tools()[0].Run(t.Context(), tool.Call{Name: "shout", Arguments: []byte(`{"text":"loud"}`)})
		if err != nil || got.IsError || got.Content != "LOUD" {
			t.Errorf("shout: %+v, %v", got, err)
		}
	}
	if got := logged(*events); got != "info: call 1,info: call 2" {
		t.Errorf("logged %q", got)
	}
}

// logged returns what was logged, with the levels.
func logged(events []session.Event) string {
	var all []string
	for _, e := range events {
		if l, ok := e.(session.ExtensionLogged); ok {
			all = append(all, l.Level+": "+l.Text)
		}
	}
	return strings.Join(all, ",")
}

// The example in the Rust SDK's README builds and does what it says.
func TestRustREADME(t *testing.T) {
	needLanguage(t, "rust")
	polite(t, buildText(t, map[string]string{
		build.ManifestFile: blocks(t, "rust/README.md", "toml")[0],
		"src/lib.rs":       blocks(t, "rust/README.md", "rust")[0],
	}))
}

const hookManifest = "name = \"x\"\nversion = \"1\"\nabi = 1\n\n[hooks.before_execute_tool]\n"

// A panic of a Rust guest fails the call, and the log says what and where.
func TestRustPanic(t *testing.T) {
	needLanguage(t, "rust")
	s, events := join(t, buildText(t, map[string]string{
		build.ManifestFile: hookManifest,
		"lib.rs": "wharf::hooks!(before_execute_tool);\n\nfn before_execute_tool(call: wharf::ToolCall) -> wharf::Verdict {\n" +
			"    let numbers: [i64; 2] = [1, 2];\n    wharf::Verdict::deny(numbers[call.tool.len()].to_string())\n}\n",
	}))
	_, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(`{"tool":"exec","arguments":{}}`))
	if err == nil || !strings.Contains(err.Error(), "the guest trapped: unreachable") {
		t.Errorf("the call fails with %v", err)
	}
	if got := logged(*events); !strings.HasPrefix(got, "error: panicked at ") || !strings.Contains(got, "lib.rs:5:26") ||
		!strings.Contains(got, "index out of bounds: the len is 2 but the index is 4") {
		t.Errorf("logged %q", got)
	}
	answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(`{"tool":"x","arguments":{}}`))
	if err != nil || string(answer) != `{"decision":"deny","reason":"2"}` {
		t.Errorf("the next call: %s, %v", answer, err)
	}
}

const echoRust = `wharf::hooks!(before_execute_tool);

fn before_execute_tool(call: wharf::ToolCall) -> wharf::Verdict {
    wharf::Verdict::replace_arguments(call.arguments)
}
`

// What a payload holds comes back as it was, however deep it is; what is too
// deep for the SDK, or no payload, is a failure that says so.
func TestRustPayloads(t *testing.T) {
	needLanguage(t, "rust")
	s, _ := join(t, buildText(t, map[string]string{build.ManifestFile: hookManifest, "lib.rs": echoRust}))
	echo(t, s, "byte")
}

// echo checks a guest that answers with a call's arguments, and counts a payload's
// bytes or characters.
func echo(t *testing.T, s *host.Session, unit string) {
	t.Helper()
	nested := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for name, tt := range map[string]struct{ payload, want string }{
		"a deep payload":       {`{"arguments":{"a":` + nested(900) + `}}`, `{"replace":{"arguments":{"a":` + nested(900) + `}}}`},
		"numbers and letters":  {`{"arguments":{"n":[9007199254740993,1.50,-0],"t":"ä\u0000🙂\\"}}`, `{"replace":{"arguments":{"n":[9007199254740993,1.50,-0],"t":"ä\u0000🙂\\"}}}`},
		"a payload too deep":   {`{"arguments":{"a":` + nested(5000) + `}}`, `{"error":"payload: it has more than 1000 values within each other"}`},
		"a text that is none":  {`{"tool":7}`, `{"error":"payload: \"tool\" is not what it should be"}`},
		"half a payload":       {`{"tool":"x"`, `{"error":"payload: no JSON: ` + unit + ` 11: it wants a comma or }"}`},
		"a payload of nothing": {``, `{"error":"payload: no JSON: ` + unit + ` 0: it wants a value"}`},
	} {
		answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(tt.payload))
		if err != nil || string(answer) != tt.want {
			t.Errorf("%s: %.300s, %v\nwant %.300s", name, answer, err, tt.want)
		}
	}
}
