package guestsdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/hosttest"
)

func TestMain(m *testing.M) { os.Exit(hosttest.Main(m)) }

func missing(t *testing.T, what, install string) {
	t.Helper()
	if os.Getenv("WHARF_TEST_STRICT") == "1" {
		t.Fatalf("%s is missing: %s", what, install)
	}
	t.Skipf("%s is missing: %s", what, install)
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// blocks returns the code blocks of a language in a Markdown file.
func blocks(t *testing.T, path, language string) []string {
	t.Helper()
	var all []string
	for _, part := range strings.Split(read(t, path), "\n```"+language+"\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```")
		if !ok {
			t.Fatalf("%s: a block that does not end", path)
		}
		all = append(all, block+"\n")
	}
	return all
}

// join loads a module, with all that it asks for, and joins a session.
func join(t *testing.T, wasm []byte) (*host.Session, *[]session.Event) {
	t.Helper()
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Config{KVDir: t.TempDir(), Compiler: compiler})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	e, err := h.LoadBytes(t.Context(), "x.wasm", wasm, host.Options{Grant: capability.All()})
	if err != nil {
		t.Fatal(err)
	}
	var events []session.Event
	s, err := e.Session(t.Context(), host.SessionConfig{Record: func(e session.Event) error { events = append(events, e); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, &events
}

// The worked example in ABI.md is the module in testdata, and does what the
// page says.
func TestABIExample(t *testing.T) {
	wat, tomls, jsons := blocks(t, "ABI.md", "wat"), blocks(t, "ABI.md", "toml"), blocks(t, "ABI.md", "json")
	if len(wat) != 1 || wat[0] != read(t, "testdata/example.wat") {
		t.Error("ABI.md shows another source than testdata/example.wat")
	}
	manifest := tomls[len(tomls)-1]
	if manifest != read(t, "testdata/example.toml") {
		t.Error("ABI.md shows another manifest than testdata/example.toml")
	}
	wasm, err := host.EmbedManifest([]byte(read(t, "testdata/example.wasm")), manifest)
	if err != nil {
		t.Fatal(err)
	}
	s, events := join(t, wasm)
	payload, want := strings.TrimSpace(jsons[len(jsons)-2]), strings.TrimSpace(jsons[len(jsons)-1])
	answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(payload))
	if err != nil || string(answer) != want {
		t.Errorf("the answer is %s, %v; ABI.md says %s", answer, err, want)
	}
	if len(*events) != 1 || (*events)[0] != (session.ExtensionLogged{Extension: "no-sudo", Level: "info", Text: "denied a call of sudo"}) {
		t.Errorf("logged %+v", *events)
	}
	answer, err = s.Call(t.Context(), hook.BeforeExecuteTool, []byte(strings.Replace(payload, "sudo ", "", 1)))
	if err != nil || len(answer) != 0 {
		t.Errorf("without sudo it answers %s, %v", answer, err)
	}
	if _, err := s.Call(t.Context(), hook.BeforeExecuteTool, make([]byte, 200_000)); err == nil {
		t.Error("a payload that does not fit is judged")
	}
}

func TestABIExampleIsBuiltFromItsSource(t *testing.T) {
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		missing(t, "wat2wasm", "apt install wabt")
	}
	out := filepath.Join(t.TempDir(), "x.wasm")
	if text, err := exec.CommandContext(t.Context(), "wat2wasm", "testdata/example.wat", "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if read(t, out) != read(t, "testdata/example.wasm") {
		t.Error("testdata/example.wasm is not what testdata/example.wat makes")
	}
}

// The page names what the code has: manifest, hook points, imports, exports,
// statuses, operations.
func TestABIPage(t *testing.T) {
	page := read(t, "ABI.md")
	if _, err := host.ParseManifest(blocks(t, "ABI.md", "toml")[0]); err != nil {
		t.Errorf("the manifest on the page: %v", err)
	}
	rows := []string{
		"| `" + abi.Memory + "` |", "| `" + abi.Alloc + "` |", "| `" + abi.Initialize + "` |", "| `" + abi.CallTool + "` |",
		"| `" + abi.ImportCall + "` |", "| `" + abi.ImportRead + "` |", "| `" + abi.ImportLog + "` |",
		"| 1 | `" + abi.NotGranted.Code() + "` |", "| 2 | `" + abi.BadRequest.Code() + "` |", "| 3 | `" + abi.Failed.Code() + "` |",
		"| 4 | `" + abi.OverLimit.Code() + "` |", "| 5 | `" + abi.UnknownOperation.Code() + "` |",
	}
	for _, info := range hook.Points {
		row := "| `" + string(info.Point) + "` | "
		if info.Later {
			row = "| `" + string(info.Point) + "` (1) | "
		}
		for i, key := range info.Keys {
			if i > 0 {
				row += ", "
			}
			row += "`" + key.Name + "`"
		}
		rows = append(rows, strings.TrimSuffix(row, " ")+" |", "`"+string(info.Point)+"`")
		for _, decision := range info.Decisions {
			rows = append(rows, "`"+string(decision)+"`")
		}
	}
	page = strings.ReplaceAll(page, "|  |", "| |")
	for _, row := range rows {
		if !strings.Contains(page, strings.ReplaceAll(row, "|  |", "| |")) {
			t.Errorf("ABI.md does not say %s", row)
		}
	}
	for _, op := range host.Operations() {
		if !strings.Contains(page, "| `"+op+"` |") {
			t.Errorf("ABI.md does not tell of the operation %s", op)
		}
	}
}

// The example in each SDK's README builds and does what it says.
func TestREADMEs(t *testing.T) {
	for _, sdk := range []struct{ language, file, block string }{
		{"go", "main.go", "go"},
		{"c", "main.c", "c"},
		{"zig", "main.zig", "zig"},
	} {
		t.Run(sdk.language, func(t *testing.T) {
			needLanguage(t, sdk.language)
			dir, page := t.TempDir(), filepath.Join(sdk.language, "README.md")
			for name, language := range map[string]string{build.ManifestFile: "toml", sdk.file: sdk.block} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(blocks(t, page, language)[0]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := build.Extension(t.Context(), build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
			if err != nil {
				t.Fatal(err)
			}
			polite(t, r.Wasm)
		})
	}
}
