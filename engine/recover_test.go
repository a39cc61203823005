package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// model answers with one function a request, the last of them for ever.
type model []func(ctx context.Context, req provider.Request) ([]provider.Delta, error)

func (m *model) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	reply := (*m)[0]
	if len(*m) > 1 {
		*m = (*m)[1:]
	}
	return func(yield func(provider.Delta, error) bool) {
		deltas, err := reply(ctx, req)
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(provider.Delta{}, err)
		}
	}
}

// says returns a reply of these deltas.
func says(deltas ...provider.Delta) func(context.Context, provider.Request) ([]provider.Delta, error) {
	return func(context.Context, provider.Request) ([]provider.Delta, error) { return deltas, nil }
}

func nameless(finish string) []provider.Delta {
	return []provider.Delta{{Call: &session.Call{ID: "x", Arguments: "{}"}}, {Call: &session.Call{Name: " ", Arguments: "{}"}}, {Finish: finish}}
}

// A call without a name is neither run nor kept. The model is told once, and then
// asked for a text without tools.
func TestNamelessCalls(t *testing.T) {
	tests := []struct {
		name    string
		replies model
		reason  session.Reason
		text    string
		asked   int // requests
	}{
		{"it is told", model{says(nameless("tool_calls")...), says(provider.Delta{Text: "Yes."})}, session.Completed, "Yes.", 2},
		{"then it is asked without tools", model{says(nameless("tool_calls")...), says(nameless("stop")...), says(provider.Delta{Text: "Yes."})}, session.Completed, "Yes.", 3},
		{"and then no more", model{says(nameless("tool_calls")...)}, session.EmptyResponse, "", 4},
		{"beside a text it does not matter", model{says(append(nameless("tool_calls"), provider.Delta{Text: "Yes."})...)}, session.Completed, "Yes.", 1},
		{"beside a call that has a name it does not matter", model{
			says(append(nameless("tool_calls"), provider.Delta{Call: &session.Call{Name: "echo", Arguments: `{"text":"a"}`}})...),
			says(provider.Delta{Text: "Yes."}),
		}, session.Completed, "Yes.", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []provider.Request
			for i, reply := range tt.replies {
				tt.replies[i] = func(ctx context.Context, req provider.Request) ([]provider.Delta, error) {
					asked = append(asked, req)
					return reply(ctx, req)
				}
			}
			e, log := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider = &tt.replies })
			result := e.Turn(t.Context(), engine.Input{Text: "go"})
			if result.Reason != tt.reason || result.Text != tt.text || len(asked) != tt.asked {
				t.Errorf("Turn = %s %q after %d requests, %v; want %s %q after %d", result.Reason, result.Text, len(asked), result.Err, tt.reason, tt.text, tt.asked)
			}
			for _, m := range log.Messages() {
				for _, c := range m.Calls {
					if c.Name != "echo" {
						t.Errorf("a call without a name was kept: %+v", m)
					}
				}
			}
			if len(asked) == 3 && asked[2].Tools != nil {
				t.Errorf("the last request offers %d tools, want none", len(asked[2].Tools))
			}
		})
	}
}

// A reply that is not whole in time is given up, and asked for again if nothing of
// it was seen.
func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context, _ provider.Request) ([]provider.Delta, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		replies := model{hangs, says(provider.Delta{Text: "Now."})}
		e, _ := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider, c.RequestTimeout = &replies, time.Minute })
		began := time.Now()
		if r := e.Turn(t.Context(), engine.Input{Text: "go"}); r.Text != "Now." {
			t.Errorf("Turn = %+v", r)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("it took %v, want a minute and a second", took)
		}
		replies = model{hangs}
		r := e.Turn(t.Context(), engine.Input{Text: "go"})
		if want := "the reply was not whole after 1m0s: raise request_timeout, or ask for less"; r.Reason != session.ModelError || r.Err == nil || r.Err.Error() != want {
			t.Errorf("Turn = %s %v, want %s %s", r.Reason, r.Err, session.ModelError, want)
		}
	})
}

// How long the engine waits is the server's word, within bounds, or grows by itself.
func TestWaits(t *testing.T) {
	limited := func(wait time.Duration) *provider.Error {
		return &provider.Error{Class: provider.RateLimit, Status: 429, Message: "slow down", RetryAfter: wait}
	}
	tests := []struct {
		name     string
		failures []*provider.Error
		least    time.Duration
		err      string
	}{
		{"it grows", []*provider.Error{limited(0), limited(0), limited(0)}, 7 * time.Second, ""},
		{"the server says how long", []*provider.Error{limited(20 * time.Second)}, 20 * time.Second, ""},
		{"a shorter wait than our own is not ours", []*provider.Error{limited(time.Millisecond)}, time.Second, ""},
		{
			"too long",
			[]*provider.Error{limited(9 * time.Hour)},
			0,
			"status 429: slow down: the server can be asked again in 9h0m0s, at 09:00 on 1 January: resume the session then, or name another model",
		},
		{"what cannot pass", []*provider.Error{{Class: provider.Unreachable, Message: "no such host", Permanent: true}}, 0, "no such host"},
		{"a key that is refused", []*provider.Error{{Class: provider.Auth, Message: "no"}}, 0, "no"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var replies model
				for _, failure := range tt.failures {
					replies = append(replies, func(context.Context, provider.Request) ([]provider.Delta, error) { return nil, failure })
				}
				replies = append(replies, says(provider.Delta{Text: "Now."}))
				e, _ := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider = &replies })
				began := time.Now()
				r := e.Turn(t.Context(), engine.Input{Text: "go"})
				if got := fmt.Sprint(r.Err); r.Err != nil && got != tt.err || r.Err == nil && tt.err != "" {
					t.Errorf("error %q, want %q", got, tt.err)
				}
				if took := time.Since(began); took < tt.least || took > tt.least+tt.least/10 {
					t.Errorf("it took %v, want %v and at most a tenth more", took, tt.least)
				}
			})
		})
	}
}

// A cancel ends a wait at once.
func TestCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, `{"error":{"status":503,"message":"overloaded"}}`, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(fmt.Errorf("the user pressed Ctrl-C")) })
		began := time.Now()
		r := e.Turn(ctx, engine.Input{Text: "go"})
		if r.Reason != session.Cancelled || r.Err.Error() != "the user pressed Ctrl-C" || time.Since(began) != 500*time.Millisecond {
			t.Errorf("Turn = %s %v after %v", r.Reason, r.Err, time.Since(began))
		}
	})
}

// However a text is cut into parts, the answer is that text.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringN(1, 400, -1).Filter(func(s string) bool { return strings.TrimSpace(s) != "" }).Draw(rt, "text")
		runes := []rune(text)
		var replies model
		rest := runes
		for range rapid.IntRange(0, 3).Draw(rt, "cuts") {
			n := rapid.IntRange(0, len(rest)).Draw(rt, "n")
			if strings.TrimSpace(string(rest[:n])) == "" || strings.TrimSpace(string(rest[n:])) == "" {
				break
			}
			replies = append(replies, says(provider.Delta{Text: string(rest[:n])}, provider.Delta{Finish: "length"}))
			rest = rest[n:]
		}
		replies = append(replies, says(provider.Delta{Text: string(rest)}, provider.Delta{Finish: "stop"}))
		e, _ := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider = &replies })
		r := e.Turn(t.Context(), engine.Input{Text: "go"})
		if diff := cmp.Diff(text, r.Text); diff != "" {
			rt.Errorf("the answer (-want +got):\n%s", diff)
		}
	})
}

// Where a summary took the first part of an answer, later turns see no part twice.
func TestPartsOfWhichOneIsGone(t *testing.T) {
	long := func(word string) string { return strings.Repeat(word+" ", 150) }
	replies := model{
		says(provider.Delta{Text: long("one")}, provider.Delta{Finish: "length"}),
		says(provider.Delta{Text: long("two")}, provider.Delta{Finish: "length", Usage: &session.Usage{InputTokens: 900}}),
		says(provider.Delta{Text: "A summary."}),
		says(provider.Delta{Text: "three"}),
	}
	e, log := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
		c.Provider, c.Context.Window, c.Context.BlockLimit = &replies, 1_000, 1_000
	})
	r := e.Turn(t.Context(), engine.Input{Text: "go"})
	if want := long("one") + long("two") + "three"; r.Reason != session.Completed || r.Text != want {
		t.Fatalf("Turn = %s %q %v", r.Reason, r.Text, r.Err)
	}
	var shown []string
	for _, m := range log.Messages() {
		shown = append(shown, m.Content)
	}
	if all := strings.Join(shown, "\n"); !strings.Contains(all, "A summary.") || strings.Count(all, "two") != 150 || strings.Count(all, "Go on exactly where it ended") > 0 {
		t.Errorf("later turns see\n%s", all)
	}
}
