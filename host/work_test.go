package host

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// work is what guests do, with how often for about a millisecond.
var work = []struct {
	language, name string
	rounds         uint64
}{
	{"C", "sha256", 20},
	{"C", "fnv", 10},
	{"C", "sum", 10},
	{"C", "quicksort", 3},
	{"C", "matmul", 15},
	{"C", "fib", 30},
	{"C", "calls", 30},
	{"C", "scan", 60},
	{"C", "indirect", 30},
	{"C", "copies", 10},
	{"Go", "sha256", 30},
	{"Go", "json", 40},
	{"Go", "sort", 3},
	{"Go", "bytes", 30},
	{"Go", "regexp", 20},
	{"Go", "fib", 10},
}

// workGuests builds the guests once.
var workGuests = map[string]func() ([]byte, error){
	"C": sync.OnceValues(func() ([]byte, error) {
		return built("clang", "--target=wasm32", "-O2", "-mbulk-memory", "-ffreestanding", "-nostdlib", "-Wl,--no-entry", "testdata/work-c/work.c", "-o")
	}),
	"Go": sync.OnceValues(func() ([]byte, error) {
		return built("go", "build", "-buildmode=c-shared", "-o")
	}),
}

// built runs a compiler, to which the name of its output is added.
func built(command string, args ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "wharf-work-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "work.wasm")
	args = append(args, out)
	if command == "go" {
		args = append(args, "testdata/work-go/main.go")
	}
	cmd := exec.Command(command, args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// worker is a guest as it is compiled: rewritten or not.
type worker struct {
	module api.Module
	ctx    context.Context
}

func newWorker(t testing.TB, wasm []byte, protected bool) *worker {
	t.Helper()
	if protected {
		m, err := parseModule(wasm)
		if err != nil {
			t.Fatal(err)
		}
		if wasm, err = m.rewrite(); err != nil {
			t.Fatal(err)
		}
	}
	x := &instance{}
	x.running = callContext{context.Background(), x, math.MaxInt64}
	ctx := &x.running
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	compiled, err := r.CompileModule(watched(ctx), wasm)
	if err != nil {
		t.Fatal(err)
	}
	module, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions("_initialize").WithSysNanotime())
	if err != nil {
		t.Fatal(err)
	}
	return &worker{module, ctx}
}

func (w *worker) do(t testing.TB, name string, rounds uint64) uint64 {
	t.Helper()
	result, err := w.module.ExportedFunction(name).Call(w.ctx, rounds)
	if err != nil {
		t.Fatal(err)
	}
	return result[0]
}

func workers(t testing.TB, language string) (bare, protected *worker) {
	t.Helper()
	wasm, err := workGuests[language]()
	if err != nil {
		missing(t, "a compiler for "+language, "apt install clang lld")
	}
	return newWorker(t, wasm, false), newWorker(t, wasm, true)
}

// A guest computes the same, rewritten or not.
func TestRewrittenGuestsComputeTheSame(t *testing.T) {
	for _, language := range []string{"C", "Go"} {
		if language == "Go" && slowdown > 1 {
			continue // it takes minutes to compile, and a race detector sees nothing of a guest
		}
		bare, protected := workers(t, language)
		for _, w := range work {
			if w.language != language {
				continue
			}
			for _, rounds := range []uint64{0, 1, 3} {
				if got, want := protected.do(t, w.name, rounds), bare.do(t, w.name, rounds); got != want {
					t.Errorf("%s %s(%d) = %d; want %d", language, w.name, rounds, got, want)
				}
			}
		}
	}
}
