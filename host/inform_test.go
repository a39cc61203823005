package host

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
)

var unixEpoch = time.Unix(0, 0)

func TestWhatAGuestMayKnowAndSay(t *testing.T) {
	env := func(name string) (string, bool) { return "de_DE\xff", name == "LANG" || name == "HOME" }
	gate := &fakeGate{messages: []session.Message{
		{Role: session.User, Content: "hello"},
		{Role: session.Assistant, Reasoning: "hm", Calls: []session.Call{{ID: "c1", Name: "grep", Arguments: "{bad", Extra: json.RawMessage(`{}`)}}},
		{Role: session.ToolRole, CallID: "c1", Content: "<no>", IsError: true},
	}}
	s, j := joinGate(t, SessionConfig{Gate: gate, Env: env})
	tests := []struct{ name, op, request, want string }{
		{"a variable", "env.get", `{"name":"LANG"}`, "0{\"value\":\"de_DE\uFFFD\"}"},
		{"one that is not set", "env.get", `{"name":"UNSET"}`, `0{"value":null}`},
		{"one that was not granted", "env.get", `{"name":"HOME"}`, `1{"code":"NOT_GRANTED","message":"env.get: capability not granted: env: the manifest does not ask for it: add \"HOME\" to env under [capabilities], and grant it"}`},
		{"no name of one", "env.get", `{"name":"A*"}`, `2{"code":"BAD_REQUEST","message":"env.get: bad request: \"A*\" is no name of a variable"}`},
		{"the session", "session.info", `{}`, `0{"id":"s1","cwd":"/w","model":"m","turn":3}`},
		{"all messages", "session.messages", `{}`, `0{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"","calls":[{"call_id":"c1","name":"grep","arguments":"{bad"}]},{"role":"tool","content":"<no>","call_id":"c1","is_error":true}]}`},
		{"the last one", "session.messages", `{"last":1}`, `0{"messages":[{"role":"tool","content":"<no>","call_id":"c1","is_error":true}]}`},
		{"less than none", "session.messages", `{"last":-1}`, `2{"code":"BAD_REQUEST","message":"session.messages: bad request: \"last\" must be 0, for all, or more"}`},
		{"an event", "event.emit", `{"name":"looked.at","data":{ "files": [1] }}`, `0{}`},
		{"one without data", "event.emit", `{"name":"done"}`, `0{}`},
		{"one without a name", "event.emit", `{"name":"","data":1}`, `2{"code":"BAD_REQUEST","message":"event.emit: bad request: \"name\" \"\": give it up to 64 letters, digits, dots, _ and -"}`},
		{"one that the log could not be read with", "event.emit", `{"name":"x","data":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `}`, `2{"code":"BAD_REQUEST","message":"event.emit: bad request: \"data\" is nested too deeply"}`},
		{"one that is too large", "event.emit", `{"name":"x","data":"` + strings.Repeat("x", limitEmitted) + `"}`, `4{"code":"OVER_LIMIT","message":"event.emit: over a limit: the data has 65538 bytes, and the limit emitted is 65536"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := operate(t, s, tt.op, tt.request); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	var emitted []string
	for _, e := range j.events {
		if e, ok := e.(session.ExtensionEmitted); ok {
			emitted = append(emitted, e.Extension+" "+e.Name+" "+string(e.Data))
		}
	}
	if got, want := strings.Join(emitted, "; "), `guest looked.at { "files": [1] }; guest done null`; got != want {
		t.Errorf("emitted %s; want %s", got, want)
	}
}

// Where there is no room for all messages, the oldest are left out, and how
// many is said.
func TestMessagesAreBounded(t *testing.T) {
	gate := &fakeGate{}
	for range 5 {
		gate.messages = append(gate.messages, session.Message{Role: session.User, Content: strings.Repeat("x", 300<<10)})
	}
	s, _ := joinGate(t, SessionConfig{Gate: gate})
	got := operate(t, s, "session.messages", `{"last":4}`)
	if len(got) > limitOutput || strings.Count(got, `"role"`) != 3 || !strings.HasSuffix(got, `],"dropped":1}`) {
		t.Errorf("%d bytes, %d messages, ends %q", len(got), strings.Count(got, `"role"`), got[len(got)-20:])
	}
}

// A model is asked within what is left of the grant, over the whole session.
func TestAskingAModel(t *testing.T) {
	gate := &fakeGate{}
	s, j := joinGate(t, SessionConfig{Gate: gate})
	const yes = `0{"text":"yes","usage":{"input_tokens":5,"output_tokens":1}}`
	steps := []struct {
		name, request, want string
		tokens, spent       int64 // that were asked for, and then count
	}{
		{"as many as it asks for", `{"prompt":"123456","max_tokens":50}`, yes, 50, 53},
		{"no more than are left", `{"prompt":"123","max_tokens":50}`, yes, 45, 100},
		{"none are left", `{"prompt":"1","max_tokens":1}`, `4{"code":"OVER_LIMIT","message":"llm.complete: over a limit: the prompt takes about 1 tokens, and of the grant llm = { tokens = 100 } 100 are spent in this session"}`, 0, 100},
		{"nothing to ask", `{"prompt":" "}`, `2{"code":"BAD_REQUEST","message":"llm.complete: bad request: \"prompt\" is empty"}`, 0, 100},
		{"less than nothing", `{"prompt":"x","max_tokens":-1}`, `2{"code":"BAD_REQUEST","message":"llm.complete: bad request: \"max_tokens\" must be 0 or more"}`, 0, 100},
	}
	for _, step := range steps {
		gate.asked = nil
		if got := operate(t, s, "llm.complete", step.request); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.name, got, step.want)
		}
		if asked := len(gate.asked) > 0; asked != (step.tokens > 0) || asked && gate.asked[0].MaxTokens != step.tokens || gate.spent != step.spent {
			t.Errorf("%s: asked %+v, spent %d; want %d and %d", step.name, gate.asked, gate.spent, step.tokens, step.spent)
		}
	}
	if got, want := j.lines(), "guest used llm.complete 6 bytes: allowed"; !strings.HasPrefix(got, want) {
		t.Errorf("recorded %s", got)
	}
}

// beside is a gate that another call comes to while a first one is asking.
type beside struct {
	fakeGate
	other func()
}

func (g *beside) Complete(ctx context.Context, by string, id session.CallID, q abi.CompleteRequest, reserved int64) (abi.CompleteResponse, error) {
	if other := g.other; other != nil {
		g.other = nil
		other()
	}
	return g.fakeGate.Complete(ctx, by, id, q, reserved)
}

// Calls that run side by side cannot spend the same tokens twice.
func TestAskingSideBySide(t *testing.T) {
	gate := &beside{}
	s, _ := joinGate(t, SessionConfig{Gate: gate})
	ask := func() {
		if _, err := completeText(t.Context(), s.instance, abi.CompleteRequest{Prompt: "x", MaxTokens: 60}); err != nil {
			t.Error(err)
		}
	}
	gate.other = ask
	ask()
	if gate.spent != 100 || s.cfg.pending != 0 {
		t.Errorf("%d tokens were spent of 100, and %d are pending", gate.spent, s.cfg.pending)
	}
}
