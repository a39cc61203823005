package build

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/hosttest"
)

const manifestText = `name = "x"
version = "0.1.0"
abi = 1

[hooks.before_execute_tool]
`

const watText = `(module (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param i32 i32) (result i64) (i64.const 0)))`

const cText = `typedef unsigned int u32; typedef unsigned long long u64;
static unsigned char buffer[4096];
__attribute__((export_name("wharf_v1_alloc"))) u32 alloc(u32 n) { return n <= sizeof buffer ? (u32)buffer : 0; }
__attribute__((export_name("before_execute_tool"))) u64 hook(u32 p, u32 n) { return (void)p, (void)n, 0; }
`

const zigText = `const wharf = @import("wharf");

comptime {
    wharf.hooks(.{ .before_execute_tool = judge });
}

fn judge(call: wharf.BeforeExecuteTool) wharf.Verdict {
    return .deny(call.tool);
}
`

const goText = `package main

import wharf "github.com/wharf-agent/wharf/guest-sdk/go"

func init() {
	wharf.BeforeExecuteTool(func(c wharf.ToolCall) wharf.Verdict { return wharf.Deny("no " + c.Tool) })
}

func main() {}
`

// folder makes an extension's folder; files alternate name and content.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a [b]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMain(m *testing.M) { os.Exit(hosttest.Main(m)) }

// need skips a test where the compiler of a language is missing.
func need(t *testing.T, id string) {
	t.Helper()
	i := slices.IndexFunc(languages, func(l language) bool { return l.ID == id })
	for _, p := range languages[i].Missing(t.Context(), os.Environ()) {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatalf("%s is missing: %s", p.Name, p.Install)
		}
		t.Skipf("%s is missing: %s", p.Name, p.Install)
	}
}

func build(t *testing.T, dir string) (*Result, error) {
	t.Helper()
	return Extension(t.Context(), Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
}

// Each language gives a module that the host takes, the same each time, and
// nothing else in the folder.
func TestLanguages(t *testing.T) {
	tests := []struct{ id, file, text string }{
		{"wat", "x.wat", watText},
		{"c", "x.c", cText},
		{"go", "x.go", goText},
		{"zig", "x.zig", zigText},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			need(t, tt.id)
			t.Setenv("GOFLAGS", "-race") // must not reach the guest's build
			t.Setenv("CGO_ENABLED", "1")
			dir := folder(t, ManifestFile, manifestText, tt.file, tt.text)
			first, err := build(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			if first.Path != filepath.Join(dir, "x.wasm") || first.Manifest.Name != "x" {
				t.Errorf("Result %q, %+v", first.Path, first.Manifest)
			}
			onDisk, err := os.ReadFile(first.Path)
			if err != nil || !bytes.Equal(onDisk, first.Wasm) {
				t.Errorf("the file differs from the result: %v", err)
			}
			if files, _ := os.ReadDir(dir); len(files) != 3 {
				t.Errorf("the folder holds %v", files)
			}
			second, err := build(t, folder(t, ManifestFile, manifestText, tt.file, tt.text))
			if err != nil || !bytes.Equal(first.Wasm, second.Wasm) {
				t.Errorf("the same source in another folder gives other bytes: %v", err)
			}
		})
	}
}

// A folder with a go.mod of its own keeps what it says.
func TestGoModule(t *testing.T) {
	need(t, "go")
	dir := folder(t, ManifestFile, manifestText, "x.go", strings.Replace(goText, "no \"", "\" + inner.Word", 1),
		"go.mod", "module example.com/mine\n\ngo 1.24\n")
	text := strings.Replace(goText, `"no " + c.Tool`, "inner.Word", 1)
	text = strings.Replace(text, "import ", "import \"example.com/mine/inner\"\nimport ", 1)
	inner := filepath.Join(dir, "inner")
	if err := errors.Join(os.Mkdir(inner, 0o700),
		os.WriteFile(filepath.Join(dir, "x.go"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(inner, "inner.go"), []byte("package inner\n\nconst Word = \"word\"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := build(t, dir); err != nil {
		t.Error(err)
	}
	if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil || strings.Contains(string(mod), "wharf") {
		t.Errorf("the folder's own go.mod was changed: %s, %v", mod, err)
	}
}

func TestRefused(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"no manifest", []string{"x.wat", watText}, "build extension: DIR: it is no folder of an extension: it has no extension.toml: name the folder that has it, or begin one: wharf ext new NAME"},
		{"a bad manifest", []string{ManifestFile, manifestText + "x = 1\n", "x.wat", watText}, `build extension: DIR/extension.toml: manifest line 6: unknown key "x": there are tools, timeout, on_failure`},
		{"no sources", []string{ManifestFile, manifestText}, `build extension "x": DIR has no sources: put those of one language beside extension.toml: *.go for Go, src/lib.rs for Rust, assembly/index.ts for AssemblyScript, *.c for C, *.zig for Zig, *.wat for WebAssembly text`},
		{"two languages", []string{ManifestFile, manifestText, "x.c", cText, "x.wat", watText}, `build extension "x": DIR has sources in C and in WebAssembly text: keep one`},
		{"Zig without a main file", []string{ManifestFile, manifestText, "x.zig", "", "y.zig", ""}, `build extension "x": DIR has 2 .zig files, and none is main.zig: name the one that registers hooks and tools so`},
		{"two modules", []string{ManifestFile, manifestText, "x.wat", watText, "y.wat", watText}, `build extension "x": DIR has 2 .wat files, and a module is one: keep one`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, tt.files...)
			_, err := build(t, dir)
			if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// What can be read without end is not read.
func TestRefusesPipes(t *testing.T) {
	for name, files := range map[string][]string{
		ManifestFile: {"x.c", cText},
		"x.c":        {ManifestFile, manifestText},
	} {
		dir := folder(t, files...)
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := build(t, dir)
		if want := filepath.Join(dir, name) + " is no regular file"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got  %v\nwant …%s", err, want)
		}
	}
}

// A compiler that is stopped leaves nothing of its own behind, and one that writes
// nothing is told from one that complains.
func TestCompilerLeavesNothing(t *testing.T) {
	programs, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	write(t, filepath.Join(programs, "wasm-ld"), "")
	write(t, filepath.Join(programs, "clang"), "#!/bin/sh\necho half > \"${TMPDIR:?}/x.o\"\n")
	_, err := Extension(t.Context(), Config{
		Dir: folder(t, ManifestFile, manifestText, "x.c", cText), SDK: guestsdk.SDK, Env: []string{"PATH=" + programs, "TMPDIR=" + temp},
	})
	if want := `build extension "x": clang found nothing wrong, and wrote no module`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// What the host would refuse is not written.
func TestRefusesWhatCannotBeLoaded(t *testing.T) {
	need(t, "wat")
	dir := folder(t, ManifestFile, manifestText+"\n[hooks.on_stream]\n", "x.wat", watText)
	want := `build extension "x": what was built cannot be loaded: manifest line 7: the module has no export on_stream for this hook: export it, or take the hook out`
	if _, err := build(t, dir); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("the folder holds %v", files)
	}
}

func TestCompilerTrouble(t *testing.T) {
	for file, want := range map[string]string{
		"x.go":  `build extension "x": go is not installed: get Go from https://go.dev/dl`,
		"x.c":   `build extension "x": clang is not installed: apt install clang lld`,
		"x.wat": `build extension "x": wat2wasm is not installed: apt install wabt`,
		"x.zig": `build extension "x": zig is not installed: pip install ziglang`,
	} {
		dir := folder(t, ManifestFile, manifestText, file, "")
		_, err := Extension(t.Context(), Config{Dir: dir, SDK: guestsdk.SDK, Env: []string{"PATH=" + t.TempDir()}})
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	need(t, "wat")
	if _, err := build(t, folder(t, ManifestFile, manifestText, "x.wat", "(modul)")); err == nil || !strings.Contains(err.Error(), "x.wat:1:2: error") {
		t.Errorf("the compiler's own words are lost: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("changed my mind"))
	_, err := Extension(ctx, Config{Dir: folder(t, ManifestFile, manifestText, "x.wat", watText), Env: os.Environ()})
	if err == nil || !strings.HasSuffix(err.Error(), "changed my mind") {
		t.Errorf("under a cancelled context: %v", err)
	}
}

// What is in the folder goes before what this program brings.
func TestSDKInTheFolder(t *testing.T) {
	for id, files := range map[string][]string{
		"c":   {"x.c", "#include \"wharf.h\"\n", "wharf.h", cText},
		"zig": {"x.zig", "comptime {\n    _ = @import(\"wharf\");\n}\n", "wharf.zig", zigOwnSDK},
	} {
		t.Run(id, func(t *testing.T) {
			need(t, id)
			if _, err := build(t, folder(t, append(files, ManifestFile, manifestText)...)); err != nil {
				t.Error(err)
			}
		})
	}
}

// zigOwnSDK is all that an extension needs of one.
const zigOwnSDK = `pub const panic = @import("std").debug.no_panic;
var room: [4096]u8 = undefined;
export fn wharf_v1_alloc(length: usize) usize {
    return if (length <= room.len) @intFromPtr(&room) else 0;
}
export fn before_execute_tool(_: usize, _: usize) u64 {
    return 0;
}
`

// What an SDK is made of is what wharf carries.
func TestSDKsAreWhole(t *testing.T) {
	for _, l := range Languages() {
		sdk := guestsdk.SDK(l.ID)
		if sdk == nil {
			continue
		}
		err := filepath.WalkDir(filepath.Join("../../guest-sdk", l.ID), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || entry.Name() == "README.md" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(filepath.Join("../../guest-sdk", l.ID), path)
			if err != nil {
				return err
			}
			want, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if got, err := fs.ReadFile(sdk, name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: wharf does not carry %s: %v", l.Name, name, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A compiler's complaint names the author's file, from where wharf was started.
func TestComplaintsNameTheFile(t *testing.T) {
	tests := []struct{ id, file, text, want string }{
		{"c", "x.c", "int x = y;\n", "DIR/x.c:1:9: error: use of undeclared identifier 'y'"},
		{"go", "x.go", "package main\n\nvar x = y\n", "DIR/x.go:3:9: undefined: y"},
		{"wat", "x.wat", "(modul)", "DIR/x.wat:1:2: error: unexpected token"},
		{"zig", "x.zig", "comptime {\n    _ = y;\n}\n", "DIR/x.zig:2:9: error: use of undeclared identifier 'y'"},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			need(t, tt.id)
			dir := folder(t, ManifestFile, manifestText, tt.file, tt.text)
			_, err := build(t, dir)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Code and manifest that do not fit stop the extension from starting.
func TestGoHandlerThatIsNotDeclared(t *testing.T) {
	need(t, "go")
	text := strings.Replace(goText, "func main", "func init() { wharf.OnStream(func([]byte) {}) }\n\nfunc main", 1)
	r, err := build(t, folder(t, ManifestFile, manifestText, "x.go", text))
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Config{Compiler: compiler})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	e, err := h.LoadBytes(t.Context(), "x.wasm", r.Wasm, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Session(t.Context(), host.SessionConfig{})
	want := ": panic: wharf: the code handles on_stream, and extension.toml has no [hooks.on_stream]"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got  %v\nwant …%s", err, want)
	}
}
