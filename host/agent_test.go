package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// fakeGate is an engine that answers each call with run.
type fakeGate struct {
	run      func(context.Context, tool.Call) (tool.Result, error)
	messages []session.Message
	spent    int64
	asked    []abi.CompleteRequest
}

func (g *fakeGate) Call(ctx context.Context, by string, call tool.Call) (tool.Result, error) {
	if by != "guest" {
		return tool.Result{}, errors.New("the call is made by " + by)
	}
	call.Program = true // as the engine has it
	return g.run(ctx, call)
}

func (g *fakeGate) Info() abi.SessionInfo {
	return abi.SessionInfo{ID: "s1", Cwd: "/w", Model: "m", Turn: 3}
}
func (g *fakeGate) Messages() []session.Message { return g.messages }
func (g *fakeGate) Tokens(string) int64         { return g.spent }

func (g *fakeGate) Complete(_ context.Context, _ string, _ session.CallID, q abi.CompleteRequest, reserved int64) (abi.CompleteResponse, error) {
	g.asked = append(g.asked, q)
	g.spent += reserved
	return abi.CompleteResponse{Text: "yes", Usage: abi.Usage{InputTokens: 5, OutputTokens: 1}}, nil
}

// agentManifest asks for what the operations of this file need.
var agentManifest = strings.ReplaceAll(guestManifest, "200ms", "5s") + `
tools = ["grep", "exec", "do", "on"]
exec = ["gofmt *", "sleep 9"]
fs = [{ path = "notes", mode = "read" }, { path = "out", mode = "write" }]
session = "read"
llm = { tokens = 100 }
env = ["LANG", "UNSET"]
events = true
`

// joinGate joins a session of the guest with all that it asks for.
func joinGate(t testing.TB, cfg SessionConfig) (*Session, *journal) {
	t.Helper()
	j := &journal{}
	cfg.Record = j.record
	s, err := load(t, shared, "guest", agentManifest, Options{Grant: capability.All()}).Session(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, j
}

// What a guest has the agent do goes through the gate as a call of a tool, and
// what the gate says comes back.
func TestOperationsOfTheAgent(t *testing.T) {
	ended := tool.Result{Content: "[Ended after the 1s time limit]", IsError: true, Code: tool.TimedOut}
	denied := tool.Result{Content: `denied by extension "other": no`, IsError: true, Code: tool.Denied}
	tests := []struct {
		name, op, request string
		result            tool.Result
		call              string // what the gate gets
		want              string
	}{
		{
			"a tool", "tool.call", `{"name":"grep","arguments":{"pattern":"x"}}`,
			tool.Result{Content: "a.go"},
			`guest/1 grep {"pattern":"x"}`, `0{"content":"a.go","is_error":false}`,
		},
		{
			"a tool without arguments that fails", "tool.call", `{"name":"grep"}`,
			tool.Result{Content: "missing", IsError: true, Code: tool.InvalidArgs},
			`guest/1 grep {}`, `0{"content":"missing","is_error":true,"code":"INVALID_ARGS"}`,
		},
		{
			"a tool that a gate refuses", "tool.call", `{"name":"grep"}`, denied,
			`guest/1 grep {}`, `1{"code":"DENIED","message":"tool.call: denied by extension \"other\": no"}`,
		},
		{
			"a tool that was not granted", "tool.call", `{"name":"write_file","arguments":{}}`,
			tool.Result{},
			``, `1{"code":"NOT_GRANTED","message":"tool.call: capability not granted: tools: the manifest does not ask for it: add \"write_file\" to tools under [capabilities], and grant it"}`,
		},
		{
			"no name of a tool", "tool.call", `{"name":"a b"}`,
			tool.Result{},
			``, `2{"code":"BAD_REQUEST","message":"tool.call: bad request: \"a b\" is no name of a tool"}`,
		},
		{
			"a command", "exec.run", `{"command":"gofmt -l 'a b'","timeout_ms":1500}`,
			tool.Result{Content: "out", Structured: `{"exit":2,"stdout":"o","stderr":"e"}`, IsError: true},
			`guest/1 exec {"command":"gofmt -l 'a b'","timeout_seconds":2}`, `0{"exit":2,"stdout":"o","stderr":"e"}`,
		},
		{
			"a command whose output a hook replaced", "exec.run", `{"command":"gofmt -l"}`,
			tool.Result{Content: "masked", IsError: true},
			`guest/1 exec {"command":"gofmt -l"}`, `0{"exit":1,"stdout":"masked","stderr":""}`,
		},
		{
			"a command that takes too long", "exec.run", `{"command":"gofmt -l"}`, ended,
			`guest/1 exec {"command":"gofmt -l"}`, `3{"code":"FAILED","message":"exec.run: [Ended after the 1s time limit]"}`,
		},
		{
			"a command that a gate refuses", "exec.run", `{"command":"gofmt -l"}`, denied,
			`guest/1 exec {"command":"gofmt -l"}`, `1{"code":"DENIED","message":"exec.run: denied by extension \"other\": no"}`,
		},
		{
			"a command that was not granted", "exec.run", `{"command":"rm -r x"}`,
			tool.Result{},
			``, `1{"code":"NOT_GRANTED","message":"exec.run: capability not granted: exec: the manifest does not ask for it: add \"rm -r x\" to exec under [capabilities], and grant it"}`,
		},
		{
			"two commands", "exec.run", `{"command":"gofmt -l; rm -r x"}`,
			tool.Result{},
			``, `2{"code":"BAD_REQUEST","message":"exec.run: bad request: the command has ';', so it may be more than one simple command: call programs one by one, or quote it"}`,
		},
		{
			"a time limit that is none", "exec.run", `{"command":"gofmt -l","timeout_ms":-1}`,
			tool.Result{},
			``, `2{"code":"BAD_REQUEST","message":"exec.run: bad request: \"timeout_ms\" must be 0 to 600000"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			called := ""
			s, _ := joinGate(t, SessionConfig{Gate: &fakeGate{run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				called = string(c.ID) + " " + c.Name + " " + string(c.Arguments)
				return tt.result, nil
			}}})
			if got := operate(t, s, tt.op, tt.request); got != tt.want || called != tt.call {
				t.Errorf("got  %s\nwant %s\nthe gate got %s; want %s", got, tt.want, called, tt.call)
			}
		})
	}
}

// Each use is in the log before it happens, each refusal with its reason.
func TestAudit(t *testing.T) {
	var before string
	s, j := joinGate(t, SessionConfig{})
	s.instance.session.Gate = &fakeGate{run: func(context.Context, tool.Call) (tool.Result, error) {
		before = j.lines()
		return tool.Result{Content: "no: policy", IsError: true, Code: tool.Denied}, nil
	}}
	const hidden = `"path":"what it is about"}`
	operate(t, s, "tool.call", `{"name":"grep","arguments":{"pattern":"`+strings.Repeat("ä", 50_000)+`",`+hidden+`}`)
	operate(t, s, "exec.run", `{"command":"rm x"}`)
	if used := j.events[0].(session.ExtensionUsed); !strings.HasSuffix(used.Target, hidden) {
		t.Errorf("the target has %d bytes and ends %q", len(used.Target), used.Target[len(used.Target)-10:])
	}
	for i := range j.events[:2] {
		used := j.events[i].(session.ExtensionUsed)
		used.Target = used.Target[:4]
		j.events[i] = used
	}
	digest := s.extension.Digest
	want := []session.Event{
		session.ExtensionUsed{Extension: "guest", Digest: digest, Operation: "tool.call", Target: "grep", CallID: "guest/1", Allowed: true},
		session.ExtensionUsed{Extension: "guest", Digest: digest, Operation: "tool.call", Target: "grep", CallID: "guest/1", Reason: "no: policy"},
		session.ExtensionUsed{
			Extension: "guest", Digest: digest, Operation: "exec.run", Target: "rm x", CallID: "guest/2",
			Reason: `capability not granted: exec: the manifest does not ask for it: add "rm x" to exec under [capabilities], and grant it`,
		},
	}
	for i, e := range want {
		if i >= len(j.events) || j.events[i] != e {
			t.Errorf("event %d: %+v\nwant %+v", i, j.events, e)
		}
	}
	if !strings.Contains(before, "guest used tool.call grep") {
		t.Errorf("when the gate was asked, the log had %q", before)
	}
}

// A command that is over its own time is ended, and that is no outcome.
func TestCommandTimeLimit(t *testing.T) {
	s, _ := joinGate(t, SessionConfig{Gate: &fakeGate{run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, context.Cause(ctx)
	}}})
	want := `3{"code":"FAILED","message":"exec.run: the command was ended after its time limit of 20ms"}`
	if got := operate(t, s, "exec.run", `{"command":"sleep 9","timeout_ms":20}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What the agent does for a guest ends with the guest's own time.
func TestTheAgentStopsWithTheGuest(t *testing.T) {
	j := &journal{}
	ended := make(chan error, 1)
	gate := &fakeGate{run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return tool.Result{}, context.Cause(ctx)
	}}
	e := load(t, shared, "guest", strings.Replace(agentManifest, `timeout = "5s"`, `timeout = "50ms"`, 1), Options{Grant: capability.All()})
	s, err := e.Session(t.Context(), SessionConfig{Record: j.record, Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for asked := false; !asked; { // on a busy machine a call may be over before it asks for anything
		if got, want := operate(t, s, "exec.run", `{"command":"sleep 9"}`), "error: no answer in time: it ran for 50ms"; !strings.HasPrefix(got, want) {
			t.Fatalf("got %s; want %s", got, want)
		}
		select {
		case cause := <-ended:
			if asked = true; cause == nil {
				t.Error("the call had no end")
			}
		default:
		}
	}
	if got := ask(t, s, "echo"); got != "echo" {
		t.Errorf("afterwards it answers %q", got)
	}
}

// What comes round to a guest that is at work further out finds it busy, and
// waits for nothing; its tools with instances of their own work.
func TestBusyInstance(t *testing.T) {
	var s *Session
	seen := map[string]string{}
	gate := &fakeGate{}
	gate.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if _, err := s.Call(ctx, hook.BeforeExecuteTool, []byte("echo")); err != nil {
			seen["hook"] = err.Error()
		}
		for _, guest := range s.Tools() {
			r, err := guest.Run(ctx, tool.Call{Name: guest.Spec().Name, Arguments: json.RawMessage(`{"do":"m"}`)})
			seen[guest.Spec().Name] = r.Content
			if err != nil {
				seen[guest.Spec().Name] = err.Error()
			}
		}
		return tool.Result{Content: "done"}, nil
	}
	s, _ = joinGate(t, SessionConfig{Gate: gate})
	if got, want := operate(t, s, "tool.call", `{"name":"do"}`), `0{"content":"done","is_error":false}`; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	busy := "it is busy: this happens in the course of a call of its own"
	for what, want := range map[string]string{"hook": busy, "on": "tool on of extension guest: " + busy, "do": "1"} {
		if seen[what] != want {
			t.Errorf("%s: %q; want %q", what, seen[what], want)
		}
	}
	if got := ask(t, s, "echo"); got != "echo" {
		t.Errorf("afterwards it answers %q", got)
	}
}

func TestOperationsWithoutAnEngine(t *testing.T) {
	s, _ := joinGate(t, SessionConfig{})
	for op, request := range map[string]string{
		"tool.call": `{"name":"grep"}`, "exec.run": `{"command":"gofmt -l"}`, "session.info": `{}`, "session.messages": `{}`, "llm.complete": `{"prompt":"x"}`,
	} {
		want := `3{"code":"FAILED","message":"` + op + `: this host has no engine behind it"}`
		if got := operate(t, s, op, request); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	want := `3{"code":"FAILED","message":"fs.read: this host has no workspace"}`
	if got := operate(t, s, "fs.read", `{"path":"notes/a"}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An extension cannot fill the disk with its audit.
func TestAuditHasALimit(t *testing.T) {
	s, j := joinGate(t, SessionConfig{Gate: &fakeGate{run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }}})
	large := `{"name":"grep","arguments":{"pattern":"` + strings.Repeat("ä", 50_000) + `"}}`
	s.instance.session.audited.Store(limitAudited - int64(len(large)))
	if got := operate(t, s, "tool.call", large); !strings.HasPrefix(got, "0{") {
		t.Errorf("within the limit: %s", got)
	}
	const want = `4{"code":"OVER_LIMIT","message":"tool.call: over a limit: the limit audited is 67108864 bytes of arguments in a session"}`
	if got := operate(t, s, "tool.call", large); got != want {
		t.Errorf("over the limit:\n got %s\nwant %s", got, want)
	}
	if used := j.events[1].(session.ExtensionUsed); len(used.Target) > limitTarget+20 || !strings.HasSuffix(used.Target, "ä…") || used.Allowed {
		t.Errorf("recorded %+v", used)
	}
	recorded := len(j.events)
	if got := operate(t, s, "event.emit", `{"name":"x","data":"x"}`); !strings.HasPrefix(got, `4{"code":"OVER_LIMIT","message":"event.emit: over a limit: the limit audited`) || len(j.events) != recorded+1 {
		t.Errorf("an event over the limit: %s, recorded:\n%s", got, j.lines())
	}
	s.instance.session.audited.Store(limitAudited - 2)
	if got := operate(t, s, "event.emit", `{"name":"x","data":"x"}`); got != `4{"code":"OVER_LIMIT","message":"event.emit: over a limit: the limit audited is 67108864 bytes of data in a session"}` {
		t.Errorf("an event whose data is over the limit: %s", got)
	}
}

// An instance may be made ahead, beside whatever the turn does by then: while
// it starts, a guest has nothing done, and no call is judged at a wrong time.
func TestNothingIsDoneOnTheAgentsBehalfAtTheStart(t *testing.T) {
	const manifest = `name = "guest"
version = "0.1.0"
abi = 1
[[tools]]
name = "do"
description = "Does"
input_schema = '{"type":"object"}'
[capabilities]
tools = ["grep"]
`
	calls := atomic.Int64{}
	gate := &fakeGate{run: func(context.Context, tool.Call) (tool.Result, error) {
		calls.Add(1)
		return tool.Result{}, nil
	}}
	j := &journal{}
	s, err := load(t, shared, "init-calls", manifest, Options{Grant: capability.All()}).Session(t.Context(), SessionConfig{Record: j.record, Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tools()[0].Run(t.Context(), tool.Call{ID: "c", Name: "do", Arguments: []byte("{}")}); got.Content != "done" || err != nil {
		t.Errorf("the tool: %+v, %v", got, err)
	}
	s.Close() // waits for the instance that is made for the next call
	const refusal = `guest info: {"code":"FAILED","message":"tool.call: not while an instance starts: call it from a hook or a tool"}`
	if got := j.lines(); calls.Load() != 0 || !strings.HasPrefix(got+"\n", refusal+"\n") {
		t.Errorf("%d calls were made; recorded:\n%s", calls.Load(), got)
	}
}
