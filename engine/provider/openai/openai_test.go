package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
)

// streamError returns the error that ends a request, or nil.
func streamError(ctx context.Context, p *Provider) (err error) {
	for _, err = range p.Stream(ctx, question) {
	}
	return err
}

func TestStatuses(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	tests := []struct {
		name   string
		status int
		header string // "Name: value"
		body   string
		class  provider.Class
		min    time.Duration // of RetryAfter
		max    time.Duration
		want   string
	}{
		{
			"an error object", 401, "", `{"error":{"message":"Incorrect API key: sk-secret-key","code":null}}`, provider.Auth, 0, 0,
			"status 401: Incorrect API key: [redacted]: check the key in OPENAI_API_KEY: is it one of this server?",
		},
		{
			"HTML without a title", 401, "", "<html><body><h1>401</h1>\n<script>var a</script>Log in</body></html>", provider.Auth, 0, 0,
			"status 401: 401 Log in: check the key in OPENAI_API_KEY: is it one of this server?",
		},
		{
			"an empty body", 403, "", "", provider.Auth, 0, 0,
			"status 403: Forbidden: check what the key in OPENAI_API_KEY may do",
		},
		{
			"the error as a text", 404, "", `{"error":"no such model"}`, provider.Invalid, 0, 0,
			`status 404: no such model: check base_url (URL) and the model's name ("mock")`,
		},
		{
			"a message at the top", 400, "", `{"object":"error","message":"bad \u001b[31mrole","code":400}`, provider.Invalid, 0, 0,
			`status 400: bad [31mrole: check the model's name ("mock") and the parameters`,
		},
		{
			"a list of details", 422, "", `{"detail":[{"loc":["body"],"msg":"field required"}]}`, provider.Invalid, 0, 0,
			`status 422: field required: check the model's name ("mock") and the parameters`,
		},
		{
			"plain text", 500, "", "boom\n", provider.Server, 0, 0,
			"status 500: boom: the fault is the server's: try again later",
		},
		{
			"a page from a gateway", 502, "", "<html><head><title>502 Bad Gateway</title></head></html>", provider.Server, 0, 0,
			"status 502: 502 Bad Gateway: the fault is the server's: try again later",
		},
		{
			"null in every field", 429, "Retry-After: 3", `{"error":{"message":"slow down","type":null,"param":null,"code":null}}`, provider.RateLimit, 3 * time.Second, 3 * time.Second,
			"status 429: slow down: try again in 3s",
		},
		{
			"a numeric code", 429, "retry-after-ms: 250", `{"error":{"message":"slow down","code":429}}`, provider.RateLimit, 250 * time.Millisecond, 250 * time.Millisecond,
			"status 429: slow down: try again in 250ms",
		},
		{"a date to wait for", 429, "Retry-After: " + soon, `slow down`, provider.RateLimit, 80 * time.Second, 90 * time.Second, ""},
		{
			"a date that has passed", 429, "Retry-After: Mon, 02 Jan 2006 15:04:05 GMT", `slow down`, provider.RateLimit, 0, 0,
			"status 429: slow down: wait and try again, or check the account's quota",
		},
		{
			"a wait beyond all numbers", 429, "Retry-After: 1e300", `slow down`, provider.RateLimit, 24000 * time.Hour, 24000 * time.Hour,
			"status 429: slow down: try again in 24000h0m0s",
		},
		{
			"a wait that is none", 429, "Retry-After: NaN", `slow down`, provider.RateLimit, 0, 0,
			"status 429: slow down: wait and try again, or check the account's quota",
		},
		{
			"a wait in the details", 429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"2.601s"}]}}`, provider.RateLimit, 2601 * time.Millisecond, 2601 * time.Millisecond,
			"status 429: RESOURCE_EXHAUSTED: try again in 2.601s",
		},
		{
			"a wait in the words", 429, "", `{"error":{"message":"Your quota resets in 9h05m."}}`, provider.Quota, 9*time.Hour + 5*time.Minute, 9*time.Hour + 5*time.Minute,
			"status 429: Your quota resets in 9h05m.: the quota is used up: try again in 9h5m0s",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				if name, value, ok := strings.Cut(tt.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			err := streamError(t.Context(), newProvider(t, server.URL))
			var e *provider.Error
			if !errors.As(err, &e) || e.Class != tt.class || e.Status != tt.status {
				t.Fatalf("Stream error = %#v; want class %s, status %d", err, tt.class, tt.status)
			}
			if want := strings.ReplaceAll(tt.want, "URL", server.URL); tt.want != "" && e.Error() != want {
				t.Errorf("Stream error = %s\nwant %s", e, want)
			}
			if e.RetryAfter < tt.min || e.RetryAfter > tt.max {
				t.Errorf("RetryAfter = %s; want %s to %s", e.RetryAfter, tt.min, tt.max)
			}
			if requests != 1 {
				t.Errorf("%d requests; want 1, since retries are the engine's", requests)
			}
		})
	}
}

func TestTheKeyIsMissing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Values("Authorization"); len(got) != 0 {
			t.Errorf("Authorization = %q without a key; want none", got)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "from-the-environment") // the SDK would read it; we are told by our caller
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	p, err := New(Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	want := "status 401: Unauthorized: set OPENAI_API_KEY to a key of this server"
	if err := streamError(t.Context(), p); err == nil || err.Error() != want {
		t.Errorf("Stream error = %v; want %s", err, want)
	}
}

func TestTheKeyAndThePathOfARequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got := fmt.Sprintf("%s %s, %s, %s", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Content-Type"))
		if want := "POST /v1/chat/completions, Bearer " + testKey + ", application/json"; got != want {
			t.Errorf("request = %s; want %s", got, want)
		}
	}))
	defer server.Close()
	p, err := New(Config{BaseURL: server.URL + "/v1", APIKey: testKey + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	_ = streamError(t.Context(), p)
}

// Neither to another host nor to the same one: a redirected POST would carry
// the conversation too.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("redirect was followed, with the key %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/v1", http.StatusTemporaryRedirect))
	defer server.Close()
	want := fmt.Sprintf("status 307: the server redirects to %q, and redirects are not followed: "+
		"if you trust that address, set base_url to it", elsewhere.URL+"/v1")
	if err := streamError(t.Context(), newProvider(t, server.URL)); err == nil || err.Error() != want {
		t.Errorf("Stream error = %v; want %s", err, want)
	}
}

func TestConnectionsThatFail(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + listener.Addr().String()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secret := httptest.NewUnstartedServer(http.NotFoundHandler())
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	secret.StartTLS()
	defer secret.Close()
	reset := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer reset.Close()
	listener.Close() // last, so that no other server gets its port
	tests := []struct{ name, url, cause, advice string }{
		{"nobody listens", gone, "connection refused", "is the server running there? start it, or set base_url"},
		{"the host has no address", "http://host.invalid", "lookup host.invalid", "check the host in base_url, and the network"},
		{"a certificate that nobody knows", secret.URL, "certificate", "check base_url, and that this machine trusts the server's certificate"},
		{"plain HTTP behind https", strings.Replace(plain.URL, "http:", "https:", 1), "HTTP response to HTTPS client", "the server speaks plain HTTP: write http:// in base_url"},
		{"the connection breaks", reset.URL, "EOF", "check base_url and the network, and try again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := streamError(t.Context(), newProvider(t, tt.url))
			var e *provider.Error
			if !errors.As(err, &e) || e.Class != provider.Unreachable || e.Advice != tt.advice {
				t.Fatalf("Stream error = %#v; want class unreachable, advice %q", err, tt.advice)
			}
			if !strings.HasPrefix(e.Message, "ask "+tt.url+": ") || !strings.Contains(e.Message, tt.cause) {
				t.Errorf("Stream error = %q; want it to name %s and %q", e.Message, tt.url, tt.cause)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{
			"a base URL without scheme",
			Config{BaseURL: "localhost:8080/v1"},
			`openai: base_url "localhost:8080/v1" is not the address of a server: write one such as "https://api.openai.com/v1"`,
		},
		{
			"a base URL that is none",
			Config{BaseURL: "http://[::1"},
			`openai: base_url is not a URL: write one such as "https://api.openai.com/v1"`,
		},
		{
			"a password in the base URL",
			Config{BaseURL: "https://me:secret@host/v1"},
			`openai: base_url "https://me:xxxxx@host/v1" has more than scheme, host and path: leave out user, query and fragment`,
		},
		{
			"a key with a line break",
			Config{APIKey: "sk-1\nsk-2"},
			`openai: the API key has characters that no header may carry: copy it again, without quotes or line breaks`,
		},
		{
			"a negative time-out",
			Config{IdleTimeout: -1},
			`openai: the idle time-out -1ns is negative: use 0 for the default of 2m0s`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.cfg); err == nil || err.Error() != tt.want {
				t.Errorf("New error = %v; want %s", err, tt.want)
			}
		})
	}
}

// transport is a connection in memory, so that a test can own the clock.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// scripted returns a provider whose server writes the answer by write, which
// gets the request's context.
func scripted(t *testing.T, write func(context.Context, io.Writer)) *Provider {
	t.Helper()
	p, err := New(Config{BaseURL: "http://server.test", HTTPClient: &http.Client{
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			body, w := io.Pipe()
			go func() {
				defer w.Close()
				write(r.Context(), w)
			}()
			go func() {
				<-r.Context().Done()
				w.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, Request: r}, nil
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	word   = "data: {\"choices\":[{\"delta\":{\"content\":\"w \"}}]}\n\n"
	finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
)

func TestSilenceEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		p := scripted(t, func(ctx context.Context, w io.Writer) {
			_, _ = io.WriteString(w, word)
			<-ctx.Done()
		})
		got := collect(t, p, question)
		want := "the server sent nothing for 2m0s: is the server overloaded? for a slow model, raise the idle time-out"
		if got.Error != want || got.Class != provider.Timeout || got.Text != "w " {
			t.Errorf("Stream = %+v; want the text, then class timeout, %q", got, want)
		}
		if took := time.Since(begun); took != 2*time.Minute {
			t.Errorf("Stream took %s; want 2m0s", took)
		}
	})
}

func TestASlowServerIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := scripted(t, func(_ context.Context, w io.Writer) {
			for range 10 {
				time.Sleep(119 * time.Second)
				_, _ = io.WriteString(w, word)
			}
			_, _ = io.WriteString(w, finish+"data: [DONE]\n\n")
		})
		if got := collect(t, p, question); got.Error != "" || got.Text != strings.Repeat("w ", 10) {
			t.Errorf("Stream = %+v; want ten words and no error", got)
		}
	})
}

func TestAfterTheFinishSilenceIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		p := scripted(t, func(ctx context.Context, w io.Writer) {
			_, _ = io.WriteString(w, word+finish)
			<-ctx.Done()
		})
		if got := collect(t, p, question); got.Error != "" || got.Finish != "stop" {
			t.Errorf("Stream = %+v; want a complete answer", got)
		}
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("Stream took %s; want 5s", took)
		}
	})
}

func TestACancelIsTheCause(t *testing.T) {
	tests := []struct{ name, sent string }{
		{"before the answer", ""},
		{"in the middle of it", word},
		{"after the model has finished", word + finish},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				why := errors.New("the user pressed Ctrl-C")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(why) })
				p := scripted(t, func(ctx context.Context, w io.Writer) {
					_, _ = io.WriteString(w, tt.sent)
					<-ctx.Done()
				})
				if err := streamError(ctx, p); err != why {
					t.Errorf("Stream error = %v; want the cause itself", err)
				}
			})
		})
	}
}

func TestACallerMayStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := scripted(t, func(ctx context.Context, w io.Writer) {
			_, _ = io.WriteString(w, word+word)
			<-ctx.Done() // synctest fails if the request is not given up
		})
		for d, err := range p.Stream(t.Context(), question) {
			if d.Text != "w " || err != nil {
				t.Errorf("Stream = %+v, %v; want a word", d, err)
			}
			break
		}
	})
}

func TestRepliesHaveAnEnd(t *testing.T) {
	endless := strings.Repeat("x", 1<<20)
	tests := []struct{ name, start, repeat string }{
		{"an endless line", "data: ", endless},
		{"endless comments", word, ": " + endless + "\n"},
		{"endless calls", "", `data: {"choices":[{"delta":{"tool_calls":[` + strings.Repeat(`{"id":"a","function":{"name":"n","arguments":"{}"}},{"id":"b","function":{"name":"m"}},`, 600) + "{}]}}]}\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := scripted(t, func(_ context.Context, w io.Writer) {
				_, err := io.WriteString(w, tt.start)
				for err == nil {
					_, err = io.WriteString(w, tt.repeat)
				}
			})
			var e *provider.Error
			if err := streamError(t.Context(), p); !errors.As(err, &e) || e.Class != provider.Malformed {
				t.Errorf("Stream error = %v; want class malformed", err)
			}
		})
	}
}

func TestErrorBodiesHaveAnEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, strings.Repeat("boom ", 10_000))
		}
	}))
	defer server.Close()
	want := "status 500: " + strings.TrimSpace(strings.Repeat("boom ", 100)) + "…: the fault is the server's: try again later"
	if err := streamError(t.Context(), newProvider(t, server.URL)); err == nil || err.Error() != want {
		t.Errorf("Stream error = %v\nwant %s", err, want)
	}
}

// Whatever names the key, the error that a caller gets does not.
func TestNoErrorHoldsTheKey(t *testing.T) {
	p, err := New(Config{BaseURL: "http://server.test", APIKey: testKey, HTTPClient: &http.Client{
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("cannot send %v", r.Header)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for err := streamError(t.Context(), p); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), testKey) {
			t.Errorf("error %v holds the key", err)
		}
	}
}

// One connection serves one request after the other.
func TestConnectionsAreUsedAgain(t *testing.T) {
	var opened atomic.Int64
	finished := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, word+finish+"data: [DONE]\n\n")
		w.(http.Flusher).Flush()
		<-finished // the body's end comes later, by itself
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p := newProvider(t, server.URL)
	for range 5 {
		for d, err := range p.Stream(t.Context(), question) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Finish != "" {
				finished <- struct{}{}
			}
		}
	}
	if n := opened.Load(); n > 2 { // 1, but for a machine that sleeps too long
		t.Errorf("%d connections for 5 requests; want 1", n)
	}
}
