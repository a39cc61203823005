package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

const testKey = "sk-secret-key"

// replyCase is one answer of a server, and what is to be made of it.
type replyCase struct {
	Name   string       `json:"name"`
	Raw    string       `json:"raw"`    // the body's bytes
	Chunks []replyChunk `json:"chunks"` // or its events, in the usual envelope
	End    string       `json:"end"`    // cut: break the connection; eof: no end mark
	Want   outcome      `json:"want"`
}

type replyChunk struct {
	Delta  json.RawMessage `json:"delta"`
	Finish string          `json:"finish"`
	JSON   json.RawMessage `json:"json"`
}

// outcome is a reply put together again.
type outcome struct {
	Text      string         `json:"text"`
	Reasoning string         `json:"reasoning"`
	Calls     []session.Call `json:"calls"`
	Usage     session.Usage  `json:"usage"`
	Finish    string         `json:"finish"`
	Class     provider.Class `json:"class"`
	Error     string         `json:"error"`
}

func (c replyCase) body() string {
	if c.Chunks == nil {
		return c.Raw
	}
	var b strings.Builder
	for _, chunk := range c.Chunks {
		data := string(chunk.JSON)
		if chunk.Delta != nil {
			data = fmt.Sprintf(`{"choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, chunk.Delta)
		} else if chunk.Finish != "" {
			data = fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, chunk.Finish)
		}
		fmt.Fprintf(&b, "data: %s\n\n", data)
	}
	if c.End == "" {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

// serve answers every request with body, in writes of step bytes.
func serve(t *testing.T, body, end string, step int) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for i := 0; i < len(body); i += step {
			_, _ = io.WriteString(w, body[i:min(i+step, len(body))])
			w.(http.Flusher).Flush()
		}
		if end == "cut" {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func newProvider(t *testing.T, url string) *Provider {
	t.Helper()
	p, err := New(Config{BaseURL: url, APIKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func collect(t *testing.T, p *Provider, req provider.Request) outcome {
	t.Helper()
	var got outcome
	for d, err := range p.Stream(t.Context(), req) {
		if got.Error != "" || got.Finish != "" && d.Finish == "" && err == nil {
			t.Errorf("Stream went on after its end with %+v, %v", d, err)
		}
		got.Text += d.Text
		got.Reasoning += d.Reasoning
		got.Finish += d.Finish
		if d.Call != nil {
			got.Calls = append(got.Calls, *d.Call)
		}
		if d.Usage != nil {
			got.Usage = *d.Usage
		}
		if err != nil {
			got.Error = err.Error()
			var known *provider.Error
			if !errors.As(err, &known) {
				t.Fatalf("Stream error %v is no *provider.Error", err)
			}
			got.Class = known.Class
		}
	}
	return got
}

var question = provider.Request{
	Header:   session.Header{Model: "mock"},
	Messages: []session.Message{{Role: session.User, Content: "hello"}},
}

func loadReplies(t testing.TB) []replyCase {
	b, err := os.ReadFile("testdata/replies.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []replyCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestReplies(t *testing.T) {
	for _, tt := range loadReplies(t) {
		for _, step := range []int{1, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes a write", tt.Name, step), func(t *testing.T) {
				server := serve(t, tt.body(), tt.End, step)
				got := collect(t, newProvider(t, server.URL), question)
				if diff := cmp.Diff(tt.Want, got, cmp.Transformer("raw", func(r json.RawMessage) (v any) {
					_ = json.Unmarshal(r, &v)
					return v
				})); diff != "" {
					t.Errorf("Stream of %q (-want +got):\n%s", tt.body(), diff)
				}
			})
		}
	}
}
