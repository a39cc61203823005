package build

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
)

const rustText = `wharf::hooks!(before_execute_tool);

fn before_execute_tool(call: wharf::ToolCall) -> wharf::Verdict {
    assert!(call.turn < 9000, "too late");
    wharf::Verdict::deny(call.tool)
}
`

// needAll skips a test where something is missing that a language needs.
func needAll(t *testing.T, l language) {
	t.Helper()
	for _, p := range l.Missing(t.Context(), os.Environ()) {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatalf("%s is missing: %s", p.Name, p.Install)
		}
		t.Skipf("%s is missing: %s", p.Name, p.Install)
	}
}

// unpack puts an SDK into a folder.
func unpack(t *testing.T, language, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, guestsdk.SDK(language)); err != nil {
		t.Fatal(err)
	}
}

// A Rust extension comes out the same wherever it is, as a file beside the
// manifest or in src, with the SDK in its folder or without.
func TestRust(t *testing.T) {
	needAll(t, rust)
	first, err := build(t, folder(t, ManifestFile, manifestText, "lib.rs", rustText))
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, ManifestFile, manifestText, "lib.rs", rustText)
	unpack(t, "rust", filepath.Join(dir, "wharf"))
	second, err := build(t, dir)
	if err != nil || !bytes.Equal(first.Wasm, second.Wasm) {
		t.Errorf("with its own SDK in another folder it has other bytes: %v", err)
	}
	for _, path := range []string{dir, os.TempDir(), "/wharf-build-"} {
		if bytes.Contains(first.Wasm, []byte(path)) {
			t.Errorf("the module names %s", path)
		}
	}
	dir = folder(t, ManifestFile, manifestText)
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "lib.rs"), []byte(rustText), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := build(t, dir); err != nil {
		t.Error(err)
	}
}

// The SDK in the folder is the one that is used, and its mistakes are its own.
func TestRustUsesTheSDKInTheFolder(t *testing.T) {
	needAll(t, rust)
	dir := folder(t, ManifestFile, manifestText, "lib.rs", rustText)
	unpack(t, "rust", filepath.Join(dir, "wharf"))
	if err := os.WriteFile(filepath.Join(dir, "wharf", "src", "json.rs"), []byte("fn broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := build(t, dir)
	if err == nil || !strings.Contains(err.Error(), "src/json.rs:1") {
		t.Errorf("got %v", err)
	}
}

// A mistake of the author's is told with its place in the author's file.
func TestRustComplaints(t *testing.T) {
	needAll(t, rust)
	for name, tt := range map[string]struct{ text, want string }{
		"a type that does not fit": {strings.Replace(rustText, "ToolCall", "Text", 1), "DIR/lib.rs:1:"},
		"a misspelt point":         {strings.ReplaceAll(rustText, "before_execute_tool", "before_tool"), "DIR/lib.rs:1:15"},
		"a verdict from a watcher": {strings.NewReplacer("before_execute_tool", "on_finally", "ToolCall", "End").Replace(rustText), "the trait bound `Verdict: Silence` is not satisfied"},
	} {
		dir := folder(t, ManifestFile, manifestText, "lib.rs", tt.text)
		_, err := build(t, dir)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), tt.want) {
			t.Errorf("%s: got %v\nwant …%s…", name, err, tt.want)
		}
	}
}

// Of several compilers in the PATH the first is taken that can make Wasm; none is
// told with what would help.
func TestFindRustc(t *testing.T) {
	library := t.TempDir()
	write(t, filepath.Join(library, "libstd-1.rlib"), "")
	without, with, other := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, says := range map[string]string{without: "/nowhere", with: library, other: library} {
		write(t, filepath.Join(dir, "rustc"), "#!/bin/sh\necho "+says+"\n")
	}
	path := strings.Join([]string{without, with, other, os.Getenv("PATH")}, ":")
	found, err := findRustc(t.Context(), []string{"PATH=" + path})
	if err != nil || len(found) != 1 || found[0] != filepath.Join(with, "rustc") {
		t.Errorf("found %v, %v; want the one in %s", found, err, with)
	}
	source := folder(t, ManifestFile, manifestText, "lib.rs", rustText)
	_, err = Extension(t.Context(), Config{Dir: source, SDK: guestsdk.SDK, Env: []string{"PATH=" + without}})
	want := `build extension "x": rustc for wasm32-unknown-unknown is not installed: apt install rustc libstd-rust-dev-wasm32, or rustup target add wasm32-unknown-unknown`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
