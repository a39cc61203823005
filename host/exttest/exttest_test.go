package exttest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/exttest"
	"github.com/wharf-agent/wharf/host/hosttest"
)

func TestMain(m *testing.M) { os.Exit(hosttest.Main(m)) }

// relay is the module of testdata/relay.
var relay = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "wharf-relay-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS("testdata/relay")); err != nil {
		return nil, err
	}
	r, err := build.Extension(context.Background(), build.Config{Dir: dir, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	return r.Wasm, nil
})

// open makes a runner for the relay.
func open(t testing.TB) *exttest.Runner {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatal("wat2wasm is missing: apt install wabt")
		}
		t.Skip("wat2wasm is missing: apt install wabt")
	}
	wasm, err := relay()
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	r, err := exttest.Open(t.Context(), exttest.Config{Wasm: wasm, Compiler: compiler})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// The cases of the relay pass: each operation is answered from the case.
func TestWorld(t *testing.T) {
	r := open(t)
	files, err := exttest.ReadDir("testdata/relay/testdata", r.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, c := range f.Cases {
			t.Run(filepath.Base(f.Name)+"/"+c.Name, func(t *testing.T) {
				result, err := r.Run(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				for _, failure := range result.Failures {
					t.Errorf("line %d: %s\n%s", failure.Line, failure.What, failure.Diff)
				}
			})
		}
	}
}

// run runs the cases of a text and returns what fails.
func run(t *testing.T, r *exttest.Runner, text string) (*exttest.File, []exttest.Result) {
	t.Helper()
	f, err := exttest.ParseFile("x.toml", text, r.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	var all []exttest.Result
	for _, c := range f.Cases {
		result, err := r.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, result)
	}
	return f, all
}

// failures lists what failed, without the differences.
func failures(results []exttest.Result) string {
	var all []string
	for _, r := range results {
		for _, f := range r.Failures {
			all = append(all, f.What)
		}
	}
	return strings.Join(all, "\n")
}
