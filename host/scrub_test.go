package host

import (
	"context"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// knowing returns a store that knows these values: the first is TOKEN.
func knowing(t testing.TB, values ...string) *secret.Store {
	t.Helper()
	s, err := secret.NewStore(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		s.Know([]string{"TOKEN", "NUMBER"}[i], v)
	}
	return s
}

// Whatever an operation brings up is scrubbed, whichever it is; what would leave
// does not.
func TestOperationsGiveNoValues(t *testing.T) {
	gate := &fakeGate{
		run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Content: "found " + token}, nil
		},
		messages: []session.Message{{Role: session.User, Content: "it is " + token}},
	}
	s, j := joinGate(t, SessionConfig{
		Gate: gate, Secrets: knowing(t, token, "1234567890123"), Env: func(string) (string, bool) { return token, true },
	})
	tests := []struct{ name, op, request, want string }{
		{"a result", "tool.call", `{"name":"grep","arguments":{"pattern":"x"}}`, `0{"content":"found [redacted:TOKEN]","is_error":false}`},
		{"messages", "session.messages", `{}`, `0{"messages":[{"role":"user","content":"it is [redacted:TOKEN]"}]`},
		{"a variable", "env.get", `{"name":"LANG"}`, `0{"value":"[redacted:TOKEN]"}`},
		{"an error", "no.such." + token, `{}`, `5{"code":"UNKNOWN_OPERATION","message":"unknown operation \"no.such.[redacted:TOKEN]\"`},
		{"where no mark can stand", "kv.get", `{"key":"n"}`, `3{"code":"FAILED","message":"kv.get: the response holds the value of a secret where no mark can stand for it"}`},
		{"a question to the model", "llm.complete", `{"prompt":"what is ` + token + `?"}`, `1{"code":"NOT_GRANTED","message":"llm.complete: not allowed: the request carries the value of the secret TOKEN, which goes nowhere but where the host puts it"}`},
		{"an event", "event.emit", `{"name":"x","data":{"a":"` + token + `"}}`, `0{}`},
	}
	if got := operate(t, s, "kv.set", `{"key":"n","value":1234567890123}`); got != "0{}" {
		t.Fatal(got)
	}
	defer operate(t, s, "kv.delete", `{"key":"n"}`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := operate(t, s, tt.op, tt.request); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if len(gate.asked) != 0 {
		t.Errorf("the model was asked %v", gate.asked)
	}
	if want := "guest used llm.complete 26 bytes: refused"; !strings.Contains(j.lines(), want) {
		t.Errorf("recorded:\n%s\nwant %s", j.lines(), want)
	}
	noValue(t, "the log", j.dump(t))
}

// A failure of a guest is told without values.
func TestFailuresHoldNoValues(t *testing.T) {
	s, err := load(t, shared, "wasi", leastManifest, Options{}).Session(t.Context(), SessionConfig{Secrets: knowing(t, token)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x := s.instance
	cause := &guestError{"it was " + token}
	if got := x.scrubError(cause); got.Error() != "it was [redacted:TOKEN]" {
		t.Errorf("scrubError = %v", got)
	}
	if fine := (&guestError{"fine"}); x.scrubError(fine) != error(fine) {
		t.Error("an error without a value is another one")
	}
}

// What is known costs a hook that has nothing to say nothing.
func TestScrubbingNeedsNoMemory(t *testing.T) {
	for _, store := range []*secret.Store{nil, knowing(t), knowing(t, token)} {
		s, err := load(t, shared, "guest", guestManifest, Options{}).Session(t.Context(), SessionConfig{Secrets: store})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		text := []byte(`{"decision":"deny"}`)
		if n := testing.AllocsPerRun(100, func() { s.instance.scrub(text) }); n > 1 || store == nil && n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
