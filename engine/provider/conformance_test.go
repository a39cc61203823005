package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/anthropic"
	"github.com/wharf-agent/wharf/engine/provider/openai"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
)

var update = flag.Bool("update", false, "rewrite the expected requests")

const key = "key-that-nobody-may-see"

type streamer interface {
	Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error]
}

// roundTrip is a server in memory.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// adapter is one of the three under test, and the same reply as its server sends
// it.
type adapter struct {
	name  string
	reply string // a stream: thoughts, a text, two calls, token counts
	open  func(*http.Client) (streamer, error)
	path  string
}

var adapters = []adapter{
	{
		"chat", read("testdata/replies/chat.txt"), func(c *http.Client) (streamer, error) {
			return openai.New(openai.Config{BaseURL: "http://server.test/v1", APIKey: key, HTTPClient: c, Compat: openai.Compat{Reasoning: "calls"}})
		}, "/v1/chat/completions",
	},
	{
		"responses", read("testdata/replies/responses.txt"), func(c *http.Client) (streamer, error) {
			return openai.New(openai.Config{API: "responses", BaseURL: "http://server.test/v1", APIKey: key, HTTPClient: c})
		}, "/v1/responses",
	},
	{
		"anthropic", read("testdata/replies/anthropic.txt"), func(c *http.Client) (streamer, error) {
			return anthropic.New(anthropic.Config{BaseURL: "http://server.test", APIKey: key, HTTPClient: c})
		}, "/v1/messages",
	},
}

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err) // a test cannot begin without its data
	}
	return string(b)
}

// outcome is a reply put together again.
type outcome struct {
	Text, Reasoning string
	Calls           []session.Call
	Usage           session.Usage
	Finish          string
	Extra           json.RawMessage
	Err             error
}

func (o outcome) message() session.Message {
	return session.Message{Role: session.Assistant, Content: o.Text, Reasoning: o.Reasoning, Calls: o.Calls, Extra: o.Extra}
}

// ask sends req to a server that answers with body, and returns the request's
// body too.
func (a adapter) ask(t testing.TB, req provider.Request, body io.Reader) (outcome, []byte) {
	t.Helper()
	var sent []byte
	p, err := a.open(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "server.test" || r.URL.Path != a.path {
			t.Errorf("the request goes to %s; want %s", r.URL, a.path)
		}
		sent, _ = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body), Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, p, req), sent
}

func collect(t testing.TB, p streamer, req provider.Request) (got outcome) {
	t.Helper()
	for d, err := range p.Stream(t.Context(), req) {
		got.Text += d.Text
		got.Reasoning += d.Reasoning
		got.Finish += d.Finish
		if d.Call != nil {
			got.Calls = append(got.Calls, *d.Call)
		}
		if d.Usage != nil {
			got.Usage = *d.Usage
		}
		if d.Extra != nil {
			got.Extra = d.Extra
		}
		got.Err = err
	}
	return got
}

var question = provider.Request{
	Header: session.Header{
		Model: "some-model", System: "You are an agent.",
		Tools: []session.Tool{
			{Name: "read_file", Description: "Reads a file.", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"from":{"type":"integer"}},"required":["path"]}`)},
			{Name: "exec", InputSchema: json.RawMessage(`{"type":"object"}`)},
		},
	},
	Messages: []session.Message{{Role: session.User, Content: "Was steht in größe.txt?"}},
}

var want = outcome{
	Text: "Ich sehe nach: 🚀 größe.", Reasoning: "Erst lesen.",
	Calls: []session.Call{
		{ID: "call_1", Name: "read_file", Arguments: `{"path": "größe.txt"}`},
		{ID: "call_2", Name: "exec", Arguments: `{"command": "echo \"🚀\""}`},
	},
	Usage:  session.Usage{InputTokens: 30, OutputTokens: 12, CacheReadTokens: 20, ReasoningTokens: 4},
	Finish: "tool_calls",
}

// The same reply is the same to all who read it, however the bytes come.
func TestTheSameReply(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			for name, body := range map[string]io.Reader{
				"at once": strings.NewReader(a.reply), "byte by byte": iotest.OneByteReader(strings.NewReader(a.reply)),
				"with the error at the end": iotest.DataErrReader(strings.NewReader(a.reply)),
				"with CRLF":                 strings.NewReader(strings.ReplaceAll(a.reply, "\n", "\r\n")),
				"with comments":             strings.NewReader(": ping\n\n" + strings.ReplaceAll(a.reply, "\n\n", "\n\n: ping\n\n")),
			} {
				got, _ := a.ask(t, question, body)
				got.Extra = nil
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// A reply that is cut off anywhere gives an error or all of it, and never a call
// that was not complete.
func TestCutAtEveryByte(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			whole := 0
			for n := range len(a.reply) {
				got, _ := a.ask(t, question, io.MultiReader(strings.NewReader(a.reply[:n]), iotest.ErrReader(io.ErrUnexpectedEOF)))
				var known *provider.Error
				switch {
				case got.Err == nil:
					whole++
					got.Extra, got.Usage = nil, want.Usage
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("cut at byte %d, without an error (-want +got):\n%s", n, diff)
					}
				case !errors.As(got.Err, &known) || known.Class != provider.Unreachable:
					t.Errorf("cut at byte %d: error %v; want class unreachable", n, got.Err)
				case !strings.HasPrefix(want.Text, got.Text) || !strings.HasPrefix(want.Reasoning, got.Reasoning):
					t.Errorf("cut at byte %d: %q, %q is no part of the reply", n, got.Text, got.Reasoning)
				}
				for i, call := range got.Calls {
					if !cmp.Equal(call, want.Calls[i]) {
						t.Errorf("cut at byte %d: the call %+v; want %+v", n, call, want.Calls[i])
					}
				}
			}
			if whole == len(a.reply) {
				t.Error("no cut is noticed")
			}
		})
	}
}

// conversation is one that shows all that a request can hold. The reply is what
// the adapter made of its own server's.
func conversation(reply session.Message) provider.Request {
	req := question
	image := session.Image{MediaType: "image/png", Data: []byte("png")}
	req.Messages = []session.Message{
		{Role: session.User, Content: "Was steht in größe.txt?", Images: []session.Image{image}},
		reply,
		{Role: session.ToolRole, CallID: "call_1", Content: "9 <Meter>"},
		{Role: session.ToolRole, CallID: "call_2", IsError: true, Images: []session.Image{image}},
		{Role: session.User, Content: "Ein Hinweis."},
		{Role: session.Assistant, Content: "9 Meter."},
		{Role: session.User, Content: "Und jetzt?"},
		{Role: session.Assistant, Calls: []session.Call{{ID: "call_3", Name: "no such\x1btool", Arguments: `{"broken": `}}},
		{Role: session.ToolRole, CallID: "call_3", Content: "unknown tool", IsError: true},
	}
	req.Options = session.Options{ToolChoice: "read_file", SingleCalls: true, OutputSchema: json.RawMessage(
		`{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"],"additionalProperties":false}`,
	)}
	req.Parameters = json.RawMessage(`{"temperature":0.20,"a":1,"z":{"b":2,"a":1},"top_p":1}`)
	return req
}

// What goes out is as the strictest server of the API wants it, byte for byte the
// same each time, and holds what belongs to the reply as it came.
func TestRequests(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			reply, _ := a.ask(t, question, strings.NewReader(a.reply))
			req := conversation(reply.message())
			_, sent := a.ask(t, req, strings.NewReader(a.reply))
			for _, p := range problems(a.name, sent) {
				t.Error(p)
			}
			for range 20 {
				if _, again := a.ask(t, req, strings.NewReader(a.reply)); !bytes.Equal(sent, again) {
					t.Fatalf("the same request is once\n%s\nand once\n%s", sent, again)
				}
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, sent, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			path := fmt.Sprintf("testdata/requests/%s.json", a.name)
			if *update {
				if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(path), pretty.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// What is recorded plays back as it was: replies, failures and what came before
// them, with each API.
func TestRecordings(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			bodies := []io.Reader{
				strings.NewReader(a.reply),
				io.MultiReader(strings.NewReader(a.reply[:len(a.reply)*7/10]), iotest.ErrReader(io.ErrUnexpectedEOF)),
				strings.NewReader("<html><title>Sign in</title></html>"),
			}
			source, err := a.open(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				body := bodies[0]
				bodies = bodies[1:]
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			var live, played []outcome
			recorder := script.Record(source, &file)
			for range len(bodies) {
				live = append(live, collect(t, recorder, question))
			}
			replies, err := script.Parse("recording", &file)
			if err != nil {
				t.Fatal(err)
			}
			player := script.New(replies)
			for range live {
				played = append(played, collect(t, player, question))
			}
			if diff := cmp.Diff(live, played, cmp.Comparer(sameError)); diff != "" {
				t.Errorf("a recording (-live +played):\n%s", diff)
			}
			if live[0].Extra == nil || live[1].Err == nil || live[2].Err == nil {
				t.Errorf("the replies %+v are no good example", live)
			}
		})
	}
}

func sameError(a, b error) bool {
	var x, y *provider.Error
	return errors.As(a, &x) == errors.As(b, &y) && (x == nil || x.Error() == y.Error() && x.Class == y.Class)
}

// What one API attached to a reply does not go to another, nor to another model.
func TestAttachmentsStayWithTheirAPI(t *testing.T) {
	for _, from := range adapters {
		reply, _ := from.ask(t, question, strings.NewReader(from.reply))
		if from.name != "chat" && reply.Extra == nil {
			t.Errorf("%s keeps nothing of the reply; want its reasoning", from.name)
		}
		for _, to := range adapters {
			req := conversation(reply.message())
			if from.name == to.name {
				req.Model = "another-model"
			}
			_, sent := to.ask(t, req, strings.NewReader(to.reply))
			for _, secret := range []string{"OPAQUE", "fc_1", "rs_1", "msg_1"} {
				if bytes.Contains(sent, []byte(secret)) {
					t.Errorf("%s sends %s of %s: %s", to.name, secret, from.name, sent)
				}
			}
			for _, p := range problems(to.name, sent) {
				t.Errorf("from %s to %s: %s", from.name, to.name, p)
			}
		}
	}
}
