package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/wharf-agent/wharf/"

// mayImport says which packages of Wharf a package may import: a name ending
// in /… stands for all below it. What a package imports and does not find here
// is a change of the design, and needs its line here and its reason in
// RATIONALE.md.
var mayImport = map[string][]string{
	"cmd/wharf":                      {"cmd/wharf/internal/cli"},
	"cmd/wharf/internal/cli":         {"engine/…", "host/…", "guest-sdk", "extensions", "cmd/wharf/internal/quirks"},
	"cmd/wharf/internal/quirks":      {"engine/session"},
	"engine":                         {"engine/governance", "engine/hook", "engine/permission", "engine/provider", "engine/session", "engine/tool"},
	"engine/session":                 {},
	"engine/session/export":          {"engine/session"},
	"engine/governance":              {"engine/session"},
	"engine/egress":                  {},
	"engine/secret":                  {},
	"engine/sandbox":                 {"engine/egress"},
	"engine/sandbox/sandboxtest":     {},
	"engine/patch":                   {},
	"engine/permission":              {"engine/session", "engine/patch", "engine/egress"},
	"engine/hook":                    {"engine/session"},
	"engine/provider":                {"engine/session"},
	"engine/provider/internal/wire":  {"engine/provider", "engine/session"},
	"engine/provider/openai":         {"engine/provider", "engine/provider/internal/wire", "engine/session"},
	"engine/provider/anthropic":      {"engine/provider", "engine/provider/internal/wire", "engine/session"},
	"engine/provider/script":         {"engine/provider", "engine/session"},
	"engine/tool":                    {"engine/session", "engine/permission"},
	"engine/tool/builtin":            {"engine/tool", "engine/patch", "engine/session", "engine/sandbox", "engine/egress", "engine/secret", "engine/permission"},
	"host":                           {"host/abi", "host/capability", "host/extism", "engine/egress", "engine/secret", "engine/session", "engine/hook", "engine/tool", "engine/permission", "engine/sandbox"},
	"host/abi":                       {},
	"host/capability":                {"engine/egress"},
	"host/extism":                    {},
	"host/hosttest":                  {"engine/sandbox"},
	"host/exttest":                   {"host", "host/abi", "host/capability", "engine/egress", "engine/hook", "engine/sandbox", "engine/secret", "engine/session", "engine/tool"},
	"host/hosttest/compiler":         {"host"},
	"host/build":                     {"host", "host/abi", "engine/hook", "engine/sandbox"},
	"host/store":                     {"host", "host/capability", "engine/egress", "engine/hook"},
	"guest-sdk":                      {},
	"guest-sdk/conformance":          {},
	"guest-sdk/conformance/guest-go": {"guest-sdk/go"},
	"guest-sdk/go":                   {},
	"extensions":                     {},
	"extensions/keep-generated":      {"guest-sdk/go"},
	"extensions/json-query":          {"guest-sdk/go"},
}

// fences are the foreign packages that belong to some of ours alone.
var fences = []struct {
	prefix string
	within []string
	why    string
}{
	{"text/template", nil, "a program that links it keeps every exported method of every type: 13 MB more, 3 MB of them in memory"},
	{"html/template", nil, "it is text/template"},
	{"os/exec", []string{"engine/sandbox"}, "one door for child processes: what is not started there is not confined"},
	{"github.com/openai/openai-go", []string{"engine/provider/openai"}, "an SDK stays behind its adapter"},
	{"github.com/anthropics/anthropic-sdk-go", []string{"engine/provider/anthropic"}, "an SDK stays behind its adapter"},
	{"github.com/tetratelabs/wazero", []string{"host", "host/extism"}, "the Wasm runtime stays behind the host"},
	{"github.com/spf13/pflag", []string{"cmd/wharf/internal/cli"}, "only the command line has flags"},
	{"github.com/BurntSushi/toml", []string{"cmd/wharf/internal/cli", "host", "host/exttest", "host/store"}, "configuration, manifests, wharf.lock and test cases are the only TOML"},
	{"aead.dev/minisign", []string{"host/store"}, "signatures are the store's"},
	{"github.com/go-git/gcfg", []string{"engine/sandbox"}, "what git's configuration has run is the sandbox's to know"},
	{"github.com/elastic/go-seccomp-bpf", []string{"engine/sandbox"}, "confinement is the sandbox's"},
}

// The import table of the design holds, and each package says what it is for.
func TestImports(t *testing.T) {
	root := "../.."
	docs := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" || strings.HasPrefix(d.Name(), ".") && name != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		checkFile(t, filepath.ToSlash(rel), name, file)
		docs[rel] = docs[rel] || file.Doc != nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, documented := range docs {
		if !documented {
			t.Errorf("package %s has no doc comment: say what it decides, and what it leaves to whom", pkg)
		}
	}
	for pkg := range mayImport {
		if _, exists := docs[filepath.FromSlash(pkg)]; !exists {
			t.Errorf("the table names %s, which is not there", pkg)
		}
	}
}

func checkFile(t *testing.T, pkg, name string, file *ast.File) {
	t.Helper()
	allowed, known := mayImport[pkg]
	if !known {
		t.Errorf("%s: package %s is not in the table of imports", name, pkg)
		return
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if ours, ok := strings.CutPrefix(imported, module); ok && !slices.ContainsFunc(allowed, func(a string) bool {
			below, deep := strings.CutSuffix(a, "/…")
			return a == ours || deep && (ours == below || strings.HasPrefix(ours, below+"/"))
		}) {
			t.Errorf("%s imports %s: %s may import only %s of ours", name, ours, pkg, strings.Join(allowed, ", "))
		}
		for _, f := range fences {
			if (imported == f.prefix || strings.HasPrefix(imported, f.prefix+"/")) && !slices.Contains(f.within, pkg) {
				t.Errorf("%s imports %s, which only %s may: %s", name, imported, strings.Join(f.within, ", "), f.why)
			}
		}
	}
}
