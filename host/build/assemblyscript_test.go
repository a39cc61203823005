package build

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
)

const asText = `import { ToolCall, Verdict } from "wharf/assembly";

export function before_execute_tool(call: ToolCall): Verdict | null {
  assert(call.turn < 9000, "too late");
  return Verdict.deny(call.tool);
}
`

// An AssemblyScript extension comes out the same wherever it is, with the SDK in its
// folder or without; and nothing is left in the folder.
func TestAssemblyScript(t *testing.T) {
	needAll(t, assemblyscript)
	dir := folder(t, ManifestFile, manifestText, "index.ts", asText)
	first, err := build(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 {
		t.Errorf("the folder holds %v", files)
	}
	dir = folder(t, ManifestFile, manifestText, "index.ts", asText)
	unpack(t, "assemblyscript", filepath.Join(dir, "wharf"))
	second, err := build(t, dir)
	if err != nil || !bytes.Equal(first.Wasm, second.Wasm) {
		t.Errorf("with its own SDK in another folder it has other bytes: %v", err)
	}
	dir = folder(t, ManifestFile, manifestText)
	write(t, filepath.Join(dir, "assembly", "index.ts"), strings.Replace(asText, "call.tool)", "word())", 1)+"import { word } from \"words\";\n")
	write(t, filepath.Join(dir, "node_modules", "words", "index.ts"), "export function word(): string { return \"word\"; }\n")
	if _, err := build(t, dir); err != nil {
		t.Errorf("with a package of npm's: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// A mistake of the author's is told with its place in the author's file, and so is
// what only one of code and manifest has.
func TestAssemblyScriptComplaints(t *testing.T) {
	needAll(t, assemblyscript)
	for name, tt := range map[string]struct{ text, want string }{
		"an unknown name":             {strings.Replace(asText, "call.tool)", "tool)", 1), "in DIR/index.ts:5:23"},
		"a hook only in the code":     {asText + "export function on_stream(text: string): void {}\n", "index.ts exports on_stream, and extension.toml has no [hooks.on_stream]"},
		"a hook only in the manifest": {strings.Replace(asText, "before_execute_tool", "before_tool", 1), "extension.toml declares before_execute_tool, and index.ts exports no function of that name"},
		"another payload":             {strings.Replace(asText, "call: ToolCall", "call: bool", 1), "is not assignable to type '(~lib/wharf/assembly/payload/ToolCall)"},
	} {
		dir := folder(t, ManifestFile, manifestText, "index.ts", tt.text)
		_, err := build(t, dir)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), tt.want) || strings.Contains(err.Error(), dir+"/~") {
			t.Errorf("%s: got %v\nwant …%s…", name, err, tt.want)
		}
	}
}

// The asc in the folder's node_modules goes before that of the PATH.
func TestAssemblyScriptOfTheFolder(t *testing.T) {
	needAll(t, assemblyscript)
	dir := folder(t, ManifestFile, manifestText, "index.ts", asText)
	write(t, filepath.Join(dir, "node_modules", ".bin", "asc"), "#!/bin/sh\necho this is the one of the folder >&2\nexit 1\n")
	_, err := build(t, dir)
	want := "build extension \"x\": asc:\nthis is the one of the folder"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	dir = folder(t, ManifestFile, manifestText, "index.ts", asText)
	_, err = Extension(t.Context(), Config{Dir: dir, SDK: guestsdk.SDK, Env: []string{"PATH=" + t.TempDir()}})
	if want := `build extension "x": node is not installed: apt install nodejs npm, or get Node.js 20 or later from https://nodejs.org`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A tool's name that is no name of a function stands for the nearest.
func TestAsFunction(t *testing.T) {
	for name, want := range map[string]string{"shout": "shout", "count-words": "count_words", "do": "_do", "7zip": "_7zip"} {
		if got := asFunction(name); got != want {
			t.Errorf("asFunction(%q) = %q, want %q", name, got, want)
		}
	}
}
