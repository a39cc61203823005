package host

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host/capability"
)

const fullManifest = `name = "no-rm"                       # a comment
version = "0.1.0"
description = "Refuses recursive deletes"
license = "Apache-2.0"
abi = 1
role = "guard"

[hooks.before_execute_tool]
tools = ["exec", "write_*"]
timeout = "20ms"
on_failure = "deny"

[hooks.on_stream]

[hooks.finalize_content]
on_failure = "isolate"

[[tools]]
name = "count_words"
description = "Counts the words of a text"
input_schema = '''
{"type":"object",
 "name = "properties":{"text":{"type":"string"}},"required":["text"]}'''
parallel = true
timeout = "5s"
instance = "session"

[capabilities]
kv = "1MiB"
approve = true

[limits]
memory = "16MiB"
`

// manifest is fullManifest with a change.
func manifest(t *testing.T, old, new string) string {
	t.Helper()
	text := strings.Replace(fullManifest, `"name = "properties"`, `"properties"`, 1)
	if old == "" {
		return text + new
	}
	if !strings.Contains(text, old) {
		t.Fatalf("the manifest has no %q", old)
	}
	return strings.Replace(text, old, new, 1)
}

func TestParseManifest(t *testing.T) {
	got, err := ParseManifest(manifest(t, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{
		Name: "no-rm", Version: "0.1.0", Description: "Refuses recursive deletes", License: "Apache-2.0", ABI: 1, Guard: true,
		Hooks: map[hook.Point]hook.Handling{
			hook.BeforeExecuteTool: {Tools: []string{"exec", "write_*"}, Timeout: 20 * time.Millisecond, OnFailure: hook.DenyIt},
			hook.OnStream:          {Timeout: 50 * time.Millisecond, OnFailure: hook.Isolate},
			hook.FinalizeContent:   {Timeout: time.Second, OnFailure: hook.Isolate},
		},
		Tools: []ManifestTool{{
			Name: "count_words", Description: "Counts the words of a text",
			InputSchema: []byte("{\"type\":\"object\",\n \"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}"),
			Parallel:    true, Timeout: 5 * time.Second, PerSession: true, export: "call_tool",
		}},
		Capabilities: capability.Set{KV: 1 << 20, Approve: true},
		Memory:       16 << 20,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(ManifestTool{})); diff != "" {
		t.Error(diff)
	}
	if points := got.Points(); len(points) != 3 || points[0] != hook.OnStream {
		t.Errorf("Points() = %v", points)
	}
}

// Each capability of the grammar can be asked for, and what is unknown in one is
// an error of that.
func TestManifestCapabilities(t *testing.T) {
	head := "name = \"a\"\nversion = \"1\"\nabi = 1\n[capabilities]\n"
	asked := `http = ["GET https://api.example.com/v1/*"]
secrets = [{ name = "EXAMPLE_TOKEN", host = "api.example.com", header = "Authorization", format = "Bearer {}" }]
fs = [{ path = "notes", mode = "read" }, { path = "out", mode = "write" }]
kv = "1MiB"
exec = ["gofmt *"]
tools = ["read_file", "grep"]
session = "read"
llm = { tokens = 20000 }
env = ["LANG"]
events = true
approve = true`
	m, err := ParseManifest(head + asked)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Capabilities.String(); got != asked {
		t.Errorf("it asks for\n%s\nwant\n%s", got, asked)
	}
	_, err = ParseManifest(head + `fs = [{ path = "notes", mode = "read", deep = "yes" }]`)
	if want := `manifest line 5: capability fs: an item has the unknown key "deep", or no string in it: write fs = [{ path = "notes", mode = "read" }]`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestManifestDefaults(t *testing.T) {
	m, err := ParseManifest("name = \"a\"\nversion = \"1\"\nabi = 1\n[hooks.before_execute_tool]\n[hooks.on_stream]\non_failure = \"deny\"\n" +
		"[limits]\nmemory = \"1GiB\"\n[[tools]]\nname = \"t\"\ndescription = \"d\"\ninput_schema = '{\"type\":\"object\"}'\n")
	if err != nil {
		t.Fatal(err)
	}
	if h := m.Hooks[hook.BeforeExecuteTool]; h.OnFailure != hook.Isolate || h.Timeout != time.Second {
		t.Errorf("an observer's hook: %+v", h)
	}
	if h := m.Hooks[hook.OnStream]; h.OnFailure != hook.Isolate {
		t.Errorf("deny where nothing can be denied: %+v", h)
	}
	if m.Memory != DefaultMemory {
		t.Errorf("memory %s; want no more than %s", m.Memory, DefaultMemory)
	}
	if tool := m.Tools[0]; tool.Timeout != 30*time.Second || tool.Parallel || tool.PerSession {
		t.Errorf("a tool: %+v", tool)
	}
}

func TestManifestRefused(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"an unknown key", "license", "licence", `manifest line 4: unknown key "licence": there are name, version, description, license, abi, role, hooks, tools, capabilities, limits`},
		{"an unknown key of a hook", `on_failure = "deny"`, `onfailure = "deny"`, `manifest line 11: unknown key "onfailure": there are tools, timeout, on_failure`},
		{"an unknown key of a tool", "parallel", "parallell", `manifest line 24: unknown key "parallell": there are name, description, input_schema, parallel, timeout, instance, export`},
		{"an unknown key behind a string of several lines", "memory =", "memroy =", `manifest line 33: unknown key "memroy": there are memory`},
		{"an unknown table", "[limits]", "[limit]", `manifest line 32: unknown key "limit": there are name, version, description, license, abi, role, hooks, tools, capabilities, limits`},
		{"a key of an unknown table", "[hooks.on_stream]", "[hook.on_stream]\ntimeout = \"1s\"", `manifest line 13: unknown key "hook": there are name, version, description, license, abi, role, hooks, tools, capabilities, limits`},
		{"control characters in the description", "Refuses recursive deletes", `Refuses\u001b[2J deletes`, `manifest line 3: the description has control characters: take them out`},
		{"letters that turn the text around", "Apache-2.0", `\u202eApache`, `manifest line 4: the license has control characters: take them out`},
		{"control characters in a tool's description", "Counts the words of a text", `Counts\u0007`, `manifest line 18: the description of tool "count_words" has control characters: take them out`},
		{"a long one", "", "#" + strings.Repeat("x", 128<<10), `the manifest has 131689 bytes: that is over the limit manifest, 128 KiB`},
		{"deep brackets", "", "x = " + strings.Repeat("[", 65), `manifest line 34: it is nested deeper than 64 levels`},
		{"a long schema", `"properties":`, `"title":"` + strings.Repeat("x", 64<<10) + `","properties":`, `manifest line 21: input_schema of tool "count_words" has 65626 bytes, and 65536 is the most: make it shorter`},
		{"many commands", `kv = "1MiB"`, "exec = [" + strings.Repeat(`"ls", `, 201) + "]", `manifest line 29: capability exec has 201 entries, and 200 is the most: ask for wider ones`},
		{"deep tables", "", "x = " + strings.Repeat("{a=", 65), `manifest line 34: it is nested deeper than 64 levels`},
		{"a long dotted key", "", strings.Repeat(`a."b".`, 40), `manifest line 34: it is nested deeper than 64 levels`},
		{"a deep schema", `"properties":`, `"x":` + strings.Repeat("[", 64), `manifest line 21: input_schema of tool "count_words" is no JSON Schema: it is nested deeper than 64 levels`},
		{"no TOML", "[limits]", "[limits", `manifest line 33: expected '.' or ']' to end table name, but got '\n' instead`},
		{"a value of another type", `name = "no-rm"`, "name = 1", `manifest line 1: incompatible types: TOML value has type int64; destination has type string`},
		{"an ABI of another type", "abi = 1", `abi = "1"`, `manifest line 5: abi = "1": this host speaks ABI 1 and "extism": rebuild it with the guest SDK of this release`},
		{"another ABI", "abi = 1", "abi = 2", `manifest line 5: abi = 2: this host speaks ABI 1 and "extism": rebuild it with the guest SDK of this release`},
		{"an export of a tool of ours", "parallel = true", `export = "count"`, `manifest line 24: export of tool "count_words": only a module with abi = "extism" has it: handle the tool in call_tool`},
		{"no ABI", "abi = 1\n", "", `manifest: abi is missing: add abi = 1`},
		{"no version", "version = \"0.1.0\"\n", "", `manifest: version is missing: add version = "0.1.0"`},
		{"a bad name", `"no-rm"  `, `"No rm"  `, `manifest line 1: name "No rm": give it one of up to 64 characters a-z, 0-9 and -`},
		{"a name that is a path", `"no-rm"  `, `"../x"  `, `manifest line 1: name "../x": give it one of up to 64 characters a-z, 0-9 and -`},
		{"a bad role", `"guard"`, `"gaurd"`, `manifest line 6: role "gaurd": it is guard or observer`},
		{"an unknown point", "[hooks.on_stream]", "[hooks.on_steam]", `manifest line 13: unknown hook point "on_steam": did you mean on_stream?`},
		{"a bad timeout", `"20ms"`, `"20"`, `manifest line 10: timeout "20": write a time such as "20ms", of at most 10m0s`},
		{"a timeout of nothing", `"20ms"`, `"0s"`, `manifest line 10: timeout "0s": write a time such as "20ms", of at most 10m0s`},
		{"a timeout without end", `"20ms"`, `"9000h"`, `manifest line 10: timeout "9000h": write a time such as "20ms", of at most 10m0s`},
		{"a bad failure policy", `"isolate"`, `"ignore"`, `manifest line 16: on_failure "ignore": it is isolate, deny or abort`},
		{"tools where there are none", "[hooks.on_stream]", "[hooks.on_stream]\ntools = [\"exec\"]", `manifest line 14: tools at on_stream: that point is not about one tool: leave it out`},
		{"a pattern that could never match", `"write_*"`, `"write_["`, `manifest line 9: tool pattern "write_[": write a tool's name, in which * stands for anything`},
		{"an empty pattern", `"write_*"`, `""`, `manifest line 9: tool pattern "": write a tool's name, in which * stands for anything`},
		{"a version that is none", `"0.1.0"`, `"0.1\n0"`, `manifest line 2: version "0.1\n0": give it one of up to 64 letters, digits, dots, + and -`},
		{"a bad tool name", `"count_words"`, `"count words"`, `manifest line 19: tool name "count words": give it one of up to 64 letters, digits, _ and -`},
		{"two tools of one name", "", "[[tools]]\nname = \"count_words\"\n", `manifest line 35: there are two tools of the name "count_words": rename one`},
		{"no description", `description = "Counts the words of a text"`, ``, `manifest line 18: tool "count_words" has no description: the model needs one to know when to call it`},
		{"a schema that is no JSON", `{"type":"object",`, `{"type:"object",`, `manifest line 21: input_schema of tool "count_words" is no JSON Schema: invalid character 'o' after object key`},
		{"a schema of no object", `{"type":"object",`, `{"type":"array",`, `manifest line 21: input_schema of tool "count_words" is no JSON Schema: it must be a JSON object with "type":"object"`},
		{"a bad instance", `instance = "session"`, `instance = "turn"`, `manifest line 26: instance "turn": it is call or session`},
		{"a bad capability", `kv = "1MiB"`, `kv = true`, `manifest line 29: capability kv: it is no size: write kv = "1MiB"`},
		{"an unknown capability", `kv = "1MiB"`, `disk = true`, `manifest line 29: capability disk: unknown capability: there are http, secrets, fs, kv, exec, tools, session, llm, env, events, approve`},
		{"a bad size", `"16MiB"`, `"16MB"`, `manifest line 33: memory "16MB" is no size: write a number with B, KiB, MiB or GiB, such as "16MiB"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseManifest(manifest(t, tt.old, tt.new))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Dots and brackets in strings and comments nest nothing, however a string is
// written, and hide nothing behind it.
func TestNesting(t *testing.T) {
	deep := strings.Repeat("[", 65)
	tests := []struct {
		name, text string
		line       int
	}{
		{"in a comment", "# " + deep + "\n", 0},
		{"behind a comment", "# x\n" + deep, 2},
		{"in a string", `a = "` + deep + `"`, 0},
		{"behind an escaped quote", `a = "\"` + deep + `"`, 0},
		{"behind an escaped backslash", `a = "\\"` + deep, 1},
		{"in a literal string", `a = '\` + deep + `'`, 0},
		{"behind a literal string", `a = '\'` + deep, 1},
		{"behind a string without end", "a = \"x\n" + deep, 2},
		{"in a string of several lines", "a = \"\"\"\n\"" + deep + "\"\"\"\"\"", 0},
		{"behind one", "a = \"\"\"\n\"\"\"\"\"\n" + deep, 3},
		{"in a literal of several lines", "a = '''\n\\" + deep + "'''", 0},
		{"behind one of those", "a = '''\n\\'''" + deep, 2},
		{"behind an empty string", `a = ""` + deep, 1},
		{"many keys", strings.Repeat("a.b.c = 1.5\n", 100), 0},
		{"many lists", strings.Repeat("a = [[1, 2], [3]]\n", 100), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if line, err := checkNesting(tt.text); line != tt.line || (err != nil) != (tt.line > 0) {
				t.Errorf("checkNesting(%.40q) = line %d, %v; want line %d", tt.text, line, err, tt.line)
			}
		})
	}
}

// Whatever stands in a manifest, reading it ends without a panic, and what is
// accepted fits the limits.
func FuzzParseManifest(f *testing.F) {
	f.Add(strings.Replace(fullManifest, `"name = "properties"`, `"properties"`, 1))
	f.Add(leastManifest)
	f.Fuzz(func(t *testing.T, text string) {
		salvage(text)
		m, err := ParseManifest(text)
		if err != nil {
			return
		}
		if m.Memory <= 0 || m.Memory > DefaultMemory || !extensionName.MatchString(m.Name) {
			t.Errorf("accepted: %+v", m)
		}
		for p, h := range m.Hooks {
			if h.Timeout <= 0 || h.Timeout > maxTimeout || h.OnFailure == "" {
				t.Errorf("accepted at %s: %+v", p, h)
			}
		}
		if got := salvage(text); m.Guard && !got.Guard {
			t.Errorf("a guard is not recognised as one")
		}
	})
}

// What is no table where one belongs is told, and not passed over.
func TestManifestTables(t *testing.T) {
	for _, key := range []string{"hooks", "capabilities"} {
		for _, value := range []string{"3", `"all"`, "[]", "[1]"} {
			_, err := ParseManifest("name = \"x\"\nversion = \"1\"\nabi = 1\n" + key + " = " + value + "\n")
			want := "manifest line 4: " + key + " must be a table: write [" + key + "] and what is in it below"
			if err == nil || err.Error() != want {
				t.Errorf("%s = %s: got  %v\nwant %s", key, value, err, want)
			}
		}
	}
	if _, err := ParseManifest("name = \"x\"\nversion = \"1\"\nabi = 1\nhooks = {}\ncapabilities = {}\n"); err != nil {
		t.Errorf("empty tables: %v", err)
	}
}
