package host_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
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
	r, err := build.Extension(context.Background(), build.Config{Dir: dir, SDK: guestsdk.Go(), Env: os.Environ()})
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

// payload makes a payload of 260 bytes with a command in it.
func payload(command, end string) []byte {
	const form = `{"session_id":"20261130-090000-abcdef","turn":3,"step":7,"call_id":"call_0123456789abcdef","tool":"exec","arguments":{"command":%q,"timeout_ms":60000,"description":%q}}`
	text := fmt.Sprintf(form, command, "")
	return []byte(fmt.Sprintf(form, command, strings.Repeat("x", 260-len(text)-len(end))) + end)
}

// BenchmarkHook is one call of a hook with a payload of 260 bytes: what the
// engine pays for each tool call. The spawned shell hook reads the same JSON.
func BenchmarkHook(b *testing.B) {
	none := map[string][]byte{"C": payload("go test ./...", ""), "Go": payload("go test ./...", "")}
	deny := map[string][]byte{"C": payload("rm -rf build", "!"), "Go": payload("rm -rf build", "")}
	for _, language := range []string{"C", "Go"} {
		wasm := guest(b, language)
		s, err := load(b, open(b, ""), wasm).Session(b.Context(), host.SessionConfig{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.Close)
		for _, c := range []struct {
			name    string
			payload []byte
			answers bool
		}{{"no-opinion", none[language], false}, {"verdict", deny[language], true}} {
			b.Run("guest="+language+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					answer, err := s.Call(b.Context(), hook.BeforeExecuteTool, c.payload)
					if err != nil || (len(answer) > 0) != c.answers {
						b.Fatalf("%s, %v", answer, err)
					}
				}
			})
		}
	}
	b.Run("guest=sh/verdict", func(b *testing.B) {
		b.ReportAllocs()
		script := `read -r line; case $line in *"rm -rf"*) echo '{"decision":"deny","reason":"this command is not allowed here"}';; esac`
		for b.Loop() {
			cmd := exec.CommandContext(b.Context(), "sh", "-c", script)
			cmd.Stdin = strings.NewReader(string(deny["Go"]) + "\n")
			if answer, err := cmd.Output(); err != nil || len(answer) == 0 {
				b.Fatalf("%s, %v", answer, err)
			}
		}
	})
}

// BenchmarkInstance is what joining a session costs.
func BenchmarkInstance(b *testing.B) {
	for _, language := range []string{"C", "Go"} {
		e := load(b, open(b, ""), guest(b, language))
		b.Run("guest="+language, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := e.Session(b.Context(), host.SessionConfig{})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
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
