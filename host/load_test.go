package host

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
)

// What a toolchain may add does no harm: sections of its own, and a manifest
// that is not the first section.
func TestLoadTakesOddModules(t *testing.T) {
	custom := func(name, data string) []byte {
		body := append(appendU32(nil, uint32(len(name))), name+data...)
		return append(appendU32([]byte{sectionCustom}, uint32(len(body))), body...)
	}
	whole := fixture(t, "guest")
	for name, wasm := range map[string][]byte{
		"the manifest at the end": append(bytes.Clone(whole), custom("wharf.manifest", guestManifest)...),
		"other custom sections":   append(embed(t, whole, guestManifest), append(custom("producers", "\x00"), custom("", "")...)...),
	} {
		e, err := shared.LoadBytes(t.Context(), "x.wasm", wasm, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := ask(t, joinExtension(t, e, &journal{}), "echo"); got != "echo" {
			t.Errorf("%s: answer %q", name, got)
		}
	}
}

// What does not fit the ABI is refused: what, why, what to do.
func TestLoadRefusesModules(t *testing.T) {
	tests := []struct{ fixture, want string }{
		{"foreign-import", `it imports "env.system", which this host does not have: a guest may import wharf_v1.call, wharf_v1.read, wharf_v1.log and the functions of wasi_snapshot_preview1`},
		{"fourth-import", `it imports "wharf_v1.exec", which this host does not have: a guest may import wharf_v1.call, wharf_v1.read, wharf_v1.log and the functions of wasi_snapshot_preview1`},
		{"table-import", `it imports "env.table (table)", which this host does not have: a guest may import wharf_v1.call, wharf_v1.read, wharf_v1.log and the functions of wasi_snapshot_preview1`},
		{"wasi-unknown", `it imports "wasi_snapshot_preview1.fd_fork", which this host does not have: a guest may import wharf_v1.call, wharf_v1.read, wharf_v1.log and the functions of wasi_snapshot_preview1`},
		{"import-type", `it imports "wharf_v1.log" as (i32, i32): its type is (i32, i32, i32)`},
		{"no-alloc", `it does not export wharf_v1_alloc, so it is no module of ABI 1: see ABI.md of the guest SDK`},
		{"command", `it is a program (it exports _start, and no wharf_v1_alloc): build it as a reactor (Go: -buildmode=c-shared)`},
		{"no-memory", `it does not export its memory under the name "memory": see ABI.md of the guest SDK`},
		{"big-memory", `manifest: the module needs 65MiB of memory to begin with: that is over the limit memory, 64MiB`},
		{"alloc-type", `its export wharf_v1_alloc has the type (i64) -> i32: it must be (i32) -> i32`},
		{"init-param", `its export _initialize has the type (i32): it must be ()`},
		{"handler-type", `manifest line 5: its export before_execute_tool has the type (i32, i32) -> i32: it must be (i32, i32) -> i64`},
		{"handler-global", `manifest line 5: its export before_execute_tool is no function: it must be one of type (i32, i32) -> i64`},
		{"tables", `its tables have more than 100000 elements in all: that is over the limit tables`},
		{"invalid", `it is no valid module: invalid function[1] export["before_execute_tool"]: not enough results have () want (i64)`},
	}
	for _, tt := range tests {
		t.Run(tt.fixture, func(t *testing.T) {
			wasm := embed(t, fixture(t, tt.fixture), leastManifest)
			_, err := shared.LoadBytes(t.Context(), "x.wasm", wasm, Options{})
			if want := `load extension "least": ` + tt.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			i, err := Inspect(wasm)
			if err != nil {
				t.Fatalf("Inspect refuses a core module: %v", err)
			}
			if tt.fixture != "invalid" && (i.Problem == nil || i.Problem.Error() != tt.want) {
				t.Errorf("Inspect says %v\nwant %s", i.Problem, tt.want)
			}
		})
	}
}

// emptySection is a custom section with nothing in it.
var emptySection = []byte{sectionCustom, 2, 1, 'x'}

// What an error quotes of a module is short, and does nothing to a terminal.
func TestLoadErrorsQuoteWithCare(t *testing.T) {
	long := append(appendName(appendName([]byte{1}, strings.Repeat("m", 1_000_000)), "n\x1b[2J"), kindFunction, 0)
	wasm := append(bytes.Clone(preamble), sectionImport)
	wasm = append(appendU32(wasm, uint32(len(long))), long...)
	if _, err := shared.LoadBytes(t.Context(), "x.wasm", embed(t, wasm, leastManifest), Options{}); err == nil || len(err.Error()) > 2_000 {
		t.Errorf("an import with a long name: %.300v", err)
	}
	if got, want := clean("a\n b\x1b[31m\u202e"+strings.Repeat("x", 2_000)), "a b\uFFFD[31m\uFFFD"+strings.Repeat("x", 1_000-12)+"…"; got != want {
		t.Errorf("clean:\n%q\nwant\n%q", got, want)
	}
}

func TestTwoMemoriesAreRefused(t *testing.T) {
	err := checkMemory(&module{memories: make([]limits, 2), exports: []external{{name: "memory", kind: kindMemory}}}, &Manifest{})
	if err == nil || err.Error() != "it has 2 memories: a guest has one" {
		t.Errorf("checkMemory: %v", err)
	}
}

// damaged makes files that are no whole core modules.
func damaged(t *testing.T) map[string][]byte {
	whole := embed(t, fixture(t, "least"), leastManifest)
	return map[string][]byte{
		"it is a component, and this host runs core modules: build it for wasip1 (wasm32-wasip1), not wasip2":  []byte("\x00asm\x0d\x00\x01\x00rest"),
		"it is no WebAssembly module: it does not begin with \\0asm":                                           []byte("(module)"),
		"the file is truncated: it ends before the header does: get a whole one":                               whole[:6],
		"it is of version 02000000 of the binary format, and this host knows version 1":                        []byte("\x00asm\x02\x00\x00\x00"),
		"the file is truncated: its section 10 has 12 bytes, of which 11 are there: get a whole one":           whole[:len(whole)-1],
		"the file is damaged: it ends in the middle of an item, or has a number that is none: get a whole one": append(bytes.Clone(whole), 1),
		"it has no manifest (custom section wharf.manifest): build it with wharf ext build, or embed one":      fixture(t, "least"),
		"it has more than 1000 sections: that is over the limit sections":                                      append(bytes.Clone(whole), bytes.Repeat(emptySection, 1000)...),
		"it has two sections wharf.manifest: build it again":                                                   append(bytes.Clone(whole), whole[8:8+3+len("wharf.manifest")+len(leastManifest)]...),
		"the file has more than 32 MiB: that is over the limit module":                                         append(bytes.Clone(whole), make([]byte, 32<<20)...),
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	for want, wasm := range damaged(t) {
		path := filepath.Join(t.TempDir(), "x.wasm")
		if err := os.WriteFile(path, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := shared.Load(t.Context(), path, Options{})
		var failed *LoadError
		if !errors.As(err, &failed) || failed.Err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A file that is no regular one is refused without waiting for anything.
func TestLoadWaitsForNothing(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "x.wasm")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		fifo:          `load extension "x.wasm": it is no regular file: name a .wasm file`,
		t.TempDir():   `it is no regular file: name a .wasm file`,
		"/nonexist/y": `load extension "y": open /nonexist/y: no such file or directory`,
	} {
		if _, err := shared.Load(t.Context(), path, Options{}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// Manifest and module must fit; the error names the line.
func TestLoadComparesManifestAndModule(t *testing.T) {
	tests := []struct{ name, fixture, manifest, want string }{
		{"a hook without an export", "least", leastManifest + "\n[hooks.finalize_content]\n", "manifest line 8: the module has no export finalize_content for this hook: export it, or take the hook out"},
		{"an export without a hook", "least", strings.Replace(leastManifest, "[hooks.before_execute_tool]\ntimeout = \"200ms\"", "", 1), "manifest: the module exports before_execute_tool, and the manifest has no [hooks.before_execute_tool]: add it, or take the export out"},
		{"one export without a hook beside another", "guest", strings.Replace(guestManifest, "[hooks.on_stream]", "", 1), "manifest: the module exports on_stream, and the manifest has no [hooks.on_stream]: add it, or take the export out"},
		{"tools without call_tool", "least", leastManifest + "[[tools]]\nname = \"t\"\ndescription = \"d\"\ninput_schema = '{\"type\":\"object\"}'\n", "manifest line 7: the module has no export call_tool for its tools: export it, or take the tools out"},
		{"too little memory", "guest", strings.Replace(guestManifest, "[capabilities]\nkv = \"1KiB\"", "[limits]\nmemory = \"1MiB\"", 1), "manifest line 24: the module needs 1280KiB of memory to begin with: that is over the limit memory, 1MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := shared.LoadBytes(t.Context(), "x", embed(t, fixture(t, tt.fixture), tt.manifest), Options{})
			var failed *LoadError
			if !errors.As(err, &failed) || failed.Err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// A guard that cannot be loaded still denies: its manifest is the first
// section, and is read even where it is no TOML.
func TestBrokenGuardDenies(t *testing.T) {
	guard := strings.Replace(leastManifest, "abi", "role = \"guard\"\nabi", 1)
	whole := embed(t, fixture(t, "least"), guard)
	raw := func(manifest string) []byte { // a manifest that EmbedManifest would refuse
		body := append([]byte{14}, "wharf.manifest"+manifest...)
		return append(append(appendU32(append(bytes.Clone(preamble), 0), uint32(len(body))), body...), fixture(t, "least")[8:]...)
	}
	tests := []struct {
		name  string
		wasm  []byte
		guard bool
		at    []hook.Point
	}{
		{"a truncated module", whole[:len(whole)-20], true, []hook.Point{hook.BeforeExecuteTool}},
		{"a module with a foreign import", embed(t, fixture(t, "foreign-import"), guard), true, []hook.Point{hook.BeforeExecuteTool}},
		{"an unknown key", raw(guard + "time_out = 1\n"), true, []hook.Point{hook.BeforeExecuteTool}},
		{"no TOML", raw(guard + "= = =\n"), true, []hook.Point{hook.BeforeExecuteTool}},
		{"hooks that cannot be told", raw("name = \"least\"\nrole = \"guard\"\nhooks = {"), true, []hook.Point{
			hook.UserPromptSubmit, hook.BeforeRun, hook.BeforeIteration, hook.BeforeExecuteTools, hook.BeforeExecuteTool, hook.PermissionRequest,
			hook.AfterExecuteTool, hook.OnExecuteToolError, hook.SubagentStart, hook.BeforeCompact,
		}},
		{"an observer", embed(t, fixture(t, "foreign-import"), leastManifest), false, nil},
		{"nothing of it can be read", whole[:20], false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := shared.LoadBytes(t.Context(), "x.wasm", tt.wasm, Options{})
			var failed *LoadError
			if !errors.As(err, &failed) {
				t.Fatalf("got %v", err)
			}
			g := failed.Guard()
			if (g != nil) != tt.guard {
				t.Fatalf("Guard() = %v; want one: %t", g, tt.guard)
			}
			if g == nil {
				return
			}
			var at []hook.Point
			for _, info := range hook.Points {
				if h, ok := g.Handles(info.Point); ok && h.OnFailure == hook.DenyIt && h.Timeout > 0 {
					at = append(at, info.Point)
				}
			}
			if !slices.Equal(at, tt.at) {
				t.Errorf("it denies at %v; want %v", at, tt.at)
			}
			if _, err := g.Call(t.Context(), at[0], nil); err == nil || !strings.HasPrefix(err.Error(), "this guard could not be loaded: ") {
				t.Errorf("Call: %v", err)
			}
		})
	}
}

func TestEmbedManifest(t *testing.T) {
	bare := fixture(t, "guest")
	once := embed(t, bare, guestManifest)
	if text, err := ReadManifest(once); text != guestManifest || err != nil {
		t.Errorf("ReadManifest = %q, %v", text, err)
	}
	if text, err := ReadManifest(once[:len(once)/2]); text != guestManifest || err != nil {
		t.Errorf("ReadManifest of half a file = %q, %v", text, err)
	}
	other := strings.Replace(guestManifest, "0.1.0", "0.2.0", 1)
	if twice := embed(t, embed(t, once, other), guestManifest); !bytes.Equal(once, twice) {
		t.Error("embedding again leaves more than one manifest behind")
	}
	if _, err := EmbedManifest(bare, "name = 1"); err == nil || err.Error() != `embed a manifest: manifest line 1: incompatible types: TOML value has type int64; destination has type string` {
		t.Errorf("an invalid manifest: %v", err)
	}
	if _, err := ReadManifest(bare); err == nil || err.Error() != "read a manifest: it has no manifest (custom section wharf.manifest): build it with wharf ext build, or embed one" {
		t.Errorf("no manifest: %v", err)
	}
}

func TestInspect(t *testing.T) {
	i, err := Inspect(embed(t, fixture(t, "guest"), guestManifest))
	if err != nil || i.Problem != nil {
		t.Fatalf("Inspect: %v, %v", err, i.Problem)
	}
	if got, want := strings.Join(i.Imports, " "), "wharf_v1.call wharf_v1.read wharf_v1.log"; got != want {
		t.Errorf("imports %q; want %q", got, want)
	}
	if got, want := strings.Join(i.Exports, " "), "memory (memory) wharf_v1_alloc before_execute_tool on_stream call_tool"; got != want {
		t.Errorf("exports %q; want %q", got, want)
	}
	if i.Manifest.Name != "guest" || len(i.Digest) != 64 {
		t.Errorf("manifest %+v, digest %q", i.Manifest, i.Digest)
	}
	plain, err := Inspect(fixture(t, "no-alloc"))
	if err != nil || plain.Manifest != nil || plain.Problem == nil {
		t.Errorf("a module that is no extension: %+v, %v", plain, err)
	}
	for want, wasm := range damaged(t) {
		if _, err := Inspect(wasm); strings.HasPrefix(want, "it is a component") && (err == nil || err.Error() != want) {
			t.Errorf("Inspect: %v; want %s", err, want)
		}
	}
}

// Nothing that stands in a file makes the host panic, and what is accepted
// fits the limits.
func FuzzExamine(f *testing.F) {
	for _, name := range []string{"least", "guest", "wasi", "tables", "invalid"} {
		wasm, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wasm)
		f.Add(embed(f, wasm, guestManifest))
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, _, err := examine(wasm)
		if err != nil {
			return
		}
		bounded, err := m.rewrite()
		if err != nil {
			return
		}
		again, err := parseModule(bounded)
		if err != nil {
			t.Fatalf("bounding the tables broke it: %v", err)
		}
		total := int64(0)
		for _, table := range again.tables[:len(m.tables)] { // but for the one that is added
			total += max(int64(table.max), int64(table.min))
		}
		if total > limitTableElements {
			// a table whose largest size is below its smallest is refused when it is compiled
			for _, table := range again.tables[:len(m.tables)] { // but for the one that is added
				if table.max < table.min {
					return
				}
			}
			t.Errorf("tables may have %d elements", total)
		}
	})
}
