package host_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/openai"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host"
)

const deltas = 20_000

// BenchmarkStream is the CPU time of a turn whose answer comes in 20,000 pieces,
// each shown to three hooks in Wasm, beside the same turn without hooks. The model
// is a script, which costs next to nothing; a server's answer that is there at
// once, without a network; or a server on this machine.
func BenchmarkStream(b *testing.B) {
	for _, model := range []struct {
		name string
		open func(b *testing.B) engine.Provider
	}{{"script", scripted}, {"read", read}, {"server", served}} {
		b.Run("model="+model.name, func(b *testing.B) {
			hooks, m := streamHooks(b), model.open(b)
			var without, calls, ratios []float64
			for b.Loop() {
				none := cpuOf(streamTurn(b, m, nil)).Seconds() / deltas
				three := cpuOf(streamTurn(b, m, hooks)).Seconds() / deltas
				without, calls, ratios = append(without, none), append(calls, (three-none)/float64(len(hooks))), append(ratios, three/none)
			}
			b.ReportMetric(median(without)*1e9, "cpu-ns/delta-without")
			b.ReportMetric(median(calls)*1e9, "cpu-ns/call")
			b.ReportMetric(median(ratios), "x-without")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// streamHooks returns three hooks that look at the pieces of an answer.
func streamHooks(b *testing.B) []hook.Hook {
	var hooks []hook.Hook
	e := load(b, open(b, ""), guest(b, "C"))
	for range 3 {
		s, err := e.Session(b.Context(), host.SessionConfig{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.Close)
		hooks = append(hooks, s)
	}
	return hooks
}

// streamTurn returns a turn of a new engine.
func streamTurn(b *testing.B, model engine.Provider, hooks []hook.Hook) func() {
	store, err := session.NewStore(b.TempDir(), "bench", session.SyncBatch)
	if err != nil {
		b.Fatal(err)
	}
	log, err := store.Create("/workspace", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { log.Close() })
	e, err := engine.New(engine.Config{Provider: model, Log: log, Hooks: hooks, Model: "bench", System: "You are an agent."})
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		if r := e.Turn(b.Context(), engine.Input{Text: "count"}); r.Reason != session.Completed || len(r.Text) != deltas*len("word ") {
			b.Fatalf("the turn ended with %s and %d bytes: %v", r.Reason, len(r.Text), r.Err)
		}
	}
}

func scripted(*testing.B) engine.Provider {
	return anew(func() engine.Provider { return script.New([]script.Reply{{Text: strings.Repeat("word ", deltas)}}) })
}

// anew makes a provider for each request.
type anew func() engine.Provider

func (a anew) Stream(ctx context.Context, r provider.Request) iter.Seq2[provider.Delta, error] {
	return a().Stream(ctx, r)
}

// A server's answer is as many chunks as pieces.
const (
	piece = `data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1796000000,"model":"bench","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
	last  = `data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1796000000,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// read is a server whose answer is there at once, without a network.
func read(b *testing.B) engine.Provider {
	return ask(b, "http://127.0.0.1/v1", canned(strings.Repeat(piece, deltas)+last))
}

func ask(b *testing.B, url string, transport http.RoundTripper) engine.Provider {
	b.Helper()
	p, err := openai.New(openai.Config{BaseURL: url, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// canned is a server's answer to everything.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(string(c))), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// served is a server in a process of its own, which sends a chunk each 50 µs: some
// hundred times as fast as models are.
func served(b *testing.B) engine.Provider {
	server := exec.Command(os.Args[0], "-test.run=^TestStreamServer$")
	server.Env = append(os.Environ(), streamServer+"=1")
	stop, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	said, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stop.Close()
		_ = server.Wait()
	})
	url, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	return ask(b, strings.TrimSpace(url)+"/v1", transport)
}

const streamServer = "WHARF_TEST_STREAM_SERVER"

// TestStreamServer is that server, and no test.
func TestStreamServer(t *testing.T) {
	if os.Getenv(streamServer) == "" {
		return
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		next := time.Now()
		for range deltas {
			for next = next.Add(50 * time.Microsecond); time.Now().Before(next); {
			}
			_, _ = io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, last)
	}))
	defer server.Close()
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until nobody asks any more
}
