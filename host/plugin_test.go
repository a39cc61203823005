package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/capability"
)

// pluginManifest fits extism.wasm, with a tool for each of these exports.
func pluginManifest(exports ...string) string {
	text := "name = \"plugin\"\nversion = \"1\"\nabi = \"extism\"\n[hooks.before_execute_tool]\n[capabilities]\nkv = \"1KiB\"\n[limits]\nmemory = \"8MiB\"\n"
	for _, export := range exports {
		text += fmt.Sprintf("[[tools]]\nname = %q\nexport = %q\ndescription = \"x\"\ninput_schema = '{\"type\":\"object\"}'\ntimeout = \"500ms\"\ninstance = \"session\"\n", export, export)
	}
	return text
}

// run calls a tool and shows its result, or the error.
func run(t testing.TB, s *Session, name, arguments string) string {
	t.Helper()
	for _, tl := range s.Tools() {
		if tl.Spec().Name != name {
			continue
		}
		r, err := tl.Run(t.Context(), tool.Call{ID: "c1", Name: name, Arguments: []byte(arguments)})
		switch {
		case err != nil:
			return "error: " + err.Error()
		case r.IsError:
			return strings.TrimSpace("failed " + string(r.Code) + ": " + r.Content)
		}
		return r.Content
	}
	t.Fatalf("there is no tool %s", name)
	return ""
}

func joinPlugin(t testing.TB, manifest string, o Options) (*Session, *journal) {
	t.Helper()
	j := &journal{}
	return joinExtension(t, load(t, shared, "extism", manifest, o), j), j
}

func TestPlugin(t *testing.T) {
	tests := []struct{ export, input, want string }{
		{"echo", `{"a":"ü"}`, `{"a":"ü"}`},
		{"count", `{"a":"banana"}`, "4"},
		{"nothing", `{}`, ""},
		{"fail", `{}`, "failed : it broke"},
		{"code", `{}`, "failed : the plugin returned 7, and did not say why"},
		{"trap", `{}`, "failed : tool trap of extension plugin: the guest trapped: unreachable in .$27() i32"},
		{"spin", `{}`, "failed TOOL_TIMEOUT: tool spin of extension plugin: no answer in time: it ran for 500ms: make it faster, or raise its timeout in the manifest"},
		{"web", `{}`, "failed : tool web of extension plugin: http_request: Extism's own HTTP is off: call wharf_call of extism:host/user with http.fetch, and ask for http in the manifest"},
		{"message", `{}`, `{"error":"create_message is not supported by this host"}`},
		{"operate", `{}`, `{"status":0,"response":{"value":null}}`},
		{"greet", `{}`, "hello"},
		{"hog", `{}`, "failed : tool hog of extension plugin: 1 bytes at 0xffffffffffffffff are in no block of Extism's memory"},
		{"scribble", `{}`, "it broke"},
	}
	var exports []string
	for _, tt := range tests {
		exports = append(exports, tt.export)
	}
	s, j := joinPlugin(t, pluginManifest(exports...), all(t, map[string]any{"greeting": "hello"}))
	for range 2 { // the second time in an instance that saw it all, or a fresh one
		for _, tt := range tests {
			if got := run(t, s, tt.export, tt.input); got != tt.want {
				t.Errorf("%s(%s)\n got %s\nwant %s", tt.export, tt.input, got, tt.want)
			}
		}
	}
	if got, want := ask(t, s, "{}"), `{"decision":"deny","reason":"by a plugin"}`; got != want {
		t.Errorf("the hook answers %s; want %s", got, want)
	}
	if !strings.Contains(fmt.Sprintf("%+v", j.events), "Level:warning Text:greeting") {
		t.Errorf("what it logs is not recorded: %+v", j.events)
	}
}

// Many small blocks are no way around the limit memory, nor around the time.
func TestPluginManyBlocks(t *testing.T) {
	s, _ := joinPlugin(t, pluginManifest("many"), Options{})
	want := "failed TOOL_TIMEOUT: tool many of extension plugin: no answer in time: it ran for 500ms: make it faster, or raise its timeout in the manifest"
	if got := run(t, s, "many", "{}"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPluginKeepsVariablesInItsInstance(t *testing.T) {
	s, _ := joinPlugin(t, pluginManifest("again"), Options{})
	for _, want := range []string{"x", "xx", "xxx"} {
		if got := run(t, s, "again", "{}"); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
	other, _ := joinPlugin(t, pluginManifest("again"), Options{})
	if got := run(t, other, "again", "{}"); got != "x" {
		t.Errorf("another session begins with %s", got)
	}
}

func TestPluginWithoutGrant(t *testing.T) {
	s, _ := joinPlugin(t, pluginManifest("operate"), Options{Grant: capability.Grant{}})
	got := run(t, s, "operate", "{}")
	if !strings.HasPrefix(got, `{"status":1,"response":{"code":"NOT_GRANTED","message":"kv.get: capability not granted: `) {
		t.Errorf("got %s", got)
	}
}

// Plugins that list their tools need no manifest, and are called like their file.
func TestPluginsThatListTheirTools(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		fixture, tool string
		want          []string
	}{
		{"extism-listed", "next", []string{"1", "2", "3"}},
		{"extism-described", "look", []string{"[image image/png]", "[image image/png]"}},
	}
	for _, tt := range tests {
		t.Run(tt.fixture, func(t *testing.T) {
			path := filepath.Join(dir, "My "+tt.fixture+".wasm")
			if err := os.WriteFile(path, fixture(t, tt.fixture), 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := shared.Load(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := "my-" + tt.fixture; e.Manifest.Name != want {
				t.Errorf("it is called %q; want %q", e.Manifest.Name, want)
			}
			s := joinExtension(t, e, &journal{})
			for _, want := range tt.want {
				if got := run(t, s, tt.tool, `{"a":1}`); got != want {
					t.Errorf("got %s; want %s", got, want)
				}
			}
		})
	}
}

func TestManifestBesidePlugin(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.wasm")
	if err := os.WriteFile(path, fixture(t, "extism"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := shared.Load(t.Context(), path, Options{})
	if want := `load extension "x.wasm": it is a plugin with Extism's ABI, and has no manifest: write x.toml beside it, with abi = "extism"`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	beside := filepath.Join(dir, "x.toml")
	if err := os.WriteFile(beside, []byte(pluginManifest("echo")), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := shared.Load(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, joinExtension(t, e, &journal{}), "echo", `{}`); got != "{}" {
		t.Errorf("got %s", got)
	}
	if err := os.WriteFile(beside, []byte(pluginManifest("echo", "count")), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := shared.Load(t.Context(), path, Options{})
	if err != nil || again.Digest == e.Digest {
		t.Errorf("another manifest has the same digest: %v", err)
	}
}

func TestPluginRefused(t *testing.T) {
	tests := []struct{ name, manifest, want string }{
		{"a tool without its export", pluginManifest("absent"), `manifest line 9: tool "absent": the module has no export absent: export it, or take this out of the manifest`},
		{"an export of another type", pluginManifest("with_parameters"), `manifest line 9: tool "with_parameters": the export with_parameters is of another type: a plugin's has no parameters, and the result i32 or none`},
		{"an export that is no function", pluginManifest("memory"), `manifest line 9: tool "memory": the export memory is of another type: a plugin's has no parameters, and the result i32 or none`},
		{"a hook that is not declared", strings.Replace(pluginManifest(), "[hooks.before_execute_tool]", "", 1), `manifest: the module exports before_execute_tool, and the manifest has no [hooks.before_execute_tool]: add it, or take the export out`},
		{"a hook that is not there", strings.Replace(pluginManifest(), "before_execute_tool", "on_stream", 1), `manifest line 4: the module has no export on_stream: export it, or take this out of the manifest`},
		{"too little memory", strings.Replace(pluginManifest(), "8MiB", "1KiB", 1), `manifest line 8: the module needs 64KiB of memory to begin with: that is over the limit memory, 1KiB`},
		{"a module of Wharf's ABI", strings.Replace(pluginManifest(), `"extism"`, "1", 1), `it imports "extism:host/env.alloc", which this host does not have: a guest may import wharf_v1.call, wharf_v1.read, wharf_v1.log and the functions of wasi_snapshot_preview1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := shared.LoadBytes(t.Context(), "x.wasm", embed(t, fixture(t, "extism"), tt.manifest), Options{})
			var failed *LoadError
			if !errors.As(err, &failed) || failed.Err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// What modules list is the model's to read: it is checked like a manifest.
func TestParseList(t *testing.T) {
	tests := []struct{ name, answer, want string }{
		{"no JSON", `tools`, "its list of tools: invalid character 'o' in literal true (expecting 'r')"},
		{"a bad name", `{"tools":[{"name":"a b","description":"x","inputSchema":{"type":"object"}}]}`, `tool name "a b": give it one of up to 64 letters, digits, _ and -`},
		{"one name twice", `{"tools":[{"name":"a","description":"x","inputSchema":{"type":"object"}},{"name":"a","description":"x","inputSchema":{"type":"object"}}]}`, `there are two tools of the name "a": rename one`},
		{"no schema", `{"tools":[{"name":"a","description":"x"}]}`, `input_schema of tool "a" is no JSON Schema: EOF`},
		{"too many", `{"tools":[` + strings.Repeat(`{},`, 128) + `{}]}`, "it lists 129 tools, and 128 is the most"},
		{"none", `{}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := listed.parseList([]byte(tt.answer))
			if diff := cmp.Diff(tt.want, errorText(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A plugin whose memory takes all of the limit to begin with has none left for
// its input, and is told so.
func TestPluginThatTakesAllMemory(t *testing.T) {
	s, _ := joinPlugin(t, strings.Replace(pluginManifest("nothing", "echo"), "8MiB", "64KiB", 1), Options{})
	want := "failed : tool echo of extension plugin: there is no memory for the 2 bytes of its input: the limit memory is 64KiB"
	if got := run(t, s, "echo", "{}"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
