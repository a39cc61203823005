package guestsdk_test

import (
	"os"
	"path/filepath"
	"testing"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/exttest"
	"github.com/wharf-agent/wharf/host/hosttest"
)

// The functions of each SDK ask for what they are named after, and read what
// comes: the same in all languages.
func TestOperations(t *testing.T) {
	for _, language := range []string{"rust", "assemblyscript", "c", "zig"} {
		t.Run(language, func(t *testing.T) {
			needLanguage(t, language)
			dir := t.TempDir()
			for _, from := range []string{filepath.Join("testdata/operations", language), "testdata/operations"} {
				if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
			}
			r, err := build.Extension(t.Context(), build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
			if err != nil {
				t.Fatal(err)
			}
			compiler, err := hosttest.Compiler()
			if err != nil {
				t.Fatal(err)
			}
			runner, err := exttest.Open(t.Context(), exttest.Config{Wasm: r.Wasm, Compiler: compiler})
			if err != nil {
				t.Fatal(err)
			}
			defer runner.Close()
			f, err := exttest.ParseFile("cases.toml", read(t, "testdata/operations/cases.toml"), runner.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range f.Cases {
				result, err := runner.Run(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				for _, failure := range result.Failures {
					t.Errorf("%s: %d: %s\n%s", c.Name, failure.Line, failure.What, failure.Diff)
				}
			}
		})
	}
}

// needLanguage skips a test where the compiler of a language is missing.
func needLanguage(t *testing.T, id string) {
	t.Helper()
	for _, l := range build.Languages() {
		if l.ID != id {
			continue
		}
		for _, p := range l.Missing(t.Context(), os.Environ()) {
			missing(t, p.Name, p.Install)
		}
	}
}

// compiler returns the file of a language's compiler that builds go by: the first in
// the PATH need not work, as where rustup has no toolchain.
func compiler(t *testing.T, id string) string {
	t.Helper()
	for _, l := range build.Languages() {
		if l.ID != id {
			continue
		}
		argv, err := l.Needs[0].Command(t.Context(), os.Environ())
		if err != nil {
			missing(t, l.Needs[0].Name, l.Needs[0].Install)
		}
		return argv[0]
	}
	t.Fatalf("there is no language %q", id)
	return ""
}
