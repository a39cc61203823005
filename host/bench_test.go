package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

// guests builds the benchmarks' guests once.
var guests = map[string]func() ([]byte, error){
	"C":  sync.OnceValues(func() ([]byte, error) { return buildGuest("testdata/bench-c") }),
	"Go": sync.OnceValues(func() ([]byte, error) { return buildGuest("testdata/bench-go") }),
}

func buildGuest(source string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "wharf-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		return nil, err
	}
	r, err := build.Extension(context.Background(), build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	return r.Wasm, nil
}

func guest(b *testing.B, language string) []byte {
	b.Helper()
	wasm, err := guests[language]()
	if err != nil {
		b.Skipf("no guest in %s: %v", language, err)
	}
	return wasm
}

func open(b *testing.B, dir string) *host.Host {
	b.Helper()
	h, err := host.Open(host.Config{CacheDir: dir, Compiler: os.Args[0]})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	return h
}

func load(b *testing.B, h *host.Host, wasm []byte) *host.Extension {
	b.Helper()
	e, err := h.LoadBytes(b.Context(), "bench.wasm", wasm, host.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkInstance is what joining a session costs, beside an instance of the
// same guest in wazero alone.
func BenchmarkInstance(b *testing.B) {
	for _, language := range []string{"C", "Go"} {
		e := load(b, open(b, ""), guest(b, language))
		b.Run("guest="+language+"/way=wharf", func(b *testing.B) {
			loop(b, func() {
				s, err := e.Session(b.Context(), host.SessionConfig{})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			})
		})
		instantiate := bare(b, wazero.NewRuntimeConfigCompiler(), guest(b, language))
		b.Run("guest="+language+"/way=wazero-bare", func(b *testing.B) {
			loop(b, func() {
				m, err := instantiate(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				_ = m.Close(b.Context())
			})
		})
	}
}

// BenchmarkLoad is loading an extension, compiled or out of the cache.
func BenchmarkLoad(b *testing.B) {
	for _, language := range []string{"C", "Go"} {
		wasm := guest(b, language)
		b.Run("guest="+language+"/cold", func(b *testing.B) {
			for b.Loop() {
				benchLoad(b, "", wasm)
			}
		})
		b.Run("guest="+language+"/warm", func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "cache")
			benchLoad(b, dir, wasm)
			for b.Loop() {
				benchLoad(b, dir, wasm)
			}
		})
	}
}

func benchLoad(b *testing.B, dir string, wasm []byte) {
	h, err := host.Open(host.Config{CacheDir: dir, Compiler: os.Args[0]})
	if err != nil {
		b.Fatal(err)
	}
	load(b, h, wasm)
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
}

// cpuOf returns the CPU time that do takes: of this process, and of those that
// it waited for. On a busy machine it says more than the time that passed.
func cpuOf(do func()) time.Duration {
	before := cpu()
	do()
	return cpu() - before
}

func cpu() time.Duration {
	var self, children syscall.Rusage
	if err := errors.Join(syscall.Getrusage(syscall.RUSAGE_SELF, &self), syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)); err != nil {
		panic(err) // it cannot be, of these two
	}
	return time.Duration(self.Utime.Nano() + self.Stime.Nano() + children.Utime.Nano() + children.Stime.Nano())
}

// loop runs do until the benchmark is over, and reports the CPU time of one.
func loop(b *testing.B, do func()) {
	b.Helper()
	b.ReportAllocs()
	took := cpuOf(func() {
		for b.Loop() {
			do()
		}
	})
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "cpu-ns/op")
}
