package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// approver answers questions in turn, and keeps them.
type approver struct {
	answers []permission.Answer
	err     error
	asked   []string
}

func (a *approver) Approve(_ context.Context, q permission.Question) (permission.Answer, error) {
	a.asked = append(a.asked, q.Tool+" "+string(q.Arguments)+" because "+q.Why+", or always "+q.Rule)
	if a.err != nil || len(a.answers) == 0 {
		return permission.Answer{}, a.err
	}
	answer := a.answers[0]
	a.answers = a.answers[1:]
	return answer, nil
}

// approvals are the events of a log about what a person was asked.
func approvals(t *testing.T, log *session.Log) []session.Event {
	t.Helper()
	content, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	var all []session.Event
	for _, r := range decodeLog(t, content) {
		switch r.Event.(type) {
		case session.ApprovalAsked, session.ApprovalDecided, session.PermissionGranted:
			all = append(all, r.Event)
		}
	}
	return all
}

const (
	callsTwice = `{"calls":[{"name":"echo","arguments":{"text":"a"}}]}` + "\n" + `{"calls":[{"name":"echo","arguments":{"text":"b"}}]}` + "\n" + `{"text":"done"}`
	asksEcho   = `the rule "ask echo" asks`
)

func TestApproval(t *testing.T) {
	asked := func(id session.CallID, text string) session.Event {
		return session.ApprovalAsked{CallID: id, Tool: "echo", Arguments: `{"text":"` + text + `"}`, Reason: asksEcho}
	}
	tests := []struct {
		name   string
		person *approver
		want   []session.Event
		denied []string
	}{
		{
			"yes is for one call", &approver{answers: []permission.Answer{{Allowed: true}, {}}},
			[]session.Event{
				asked("wharf_1_1_1", "a"),
				session.ApprovalDecided{CallID: "wharf_1_1_1", Allowed: true},
				asked("wharf_1_2_1", "b"),
				session.ApprovalDecided{CallID: "wharf_1_2_1"},
			},
			[]string{"denied by the user: do not try it another way, and say what you would do instead"},
		},
		{
			"yes for the session is for all that the rule is about", &approver{answers: []permission.Answer{{Allowed: true, Scope: permission.Session}}},
			[]session.Event{
				asked("wharf_1_1_1", "a"),
				session.ApprovalDecided{CallID: "wharf_1_1_1", Allowed: true},
				session.PermissionGranted{Rule: "echo", Scope: "session"},
			},
			nil,
		},
		{
			"a word goes to the model", &approver{answers: []permission.Answer{{Message: "use cat"}, {Allowed: true}}},
			[]session.Event{
				asked("wharf_1_1_1", "a"),
				session.ApprovalDecided{CallID: "wharf_1_1_1", Message: "use cat"},
				asked("wharf_1_2_1", "b"),
				session.ApprovalDecided{CallID: "wharf_1_2_1", Allowed: true},
			},
			[]string{"denied by the user: use cat"},
		},
		{
			"nobody there after all is a no", &approver{err: errors.New("the input ended")},
			[]session.Event{asked("wharf_1_1_1", "a"), asked("wharf_1_2_1", "b")},
			[]string{"denied: " + asksEcho + ": nobody could be asked: the input ended", "denied: " + asksEcho + ": nobody could be asked: the input ended"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, log := newEngine(t, callsTwice, func(c *engine.Config) {
				c.Policy, c.Approver = policyAsking(t, "echo"), tt.person
			})
			r := e.Turn(t.Context(), engine.Input{Text: "go"})
			if r.Reason != session.Completed {
				t.Errorf("Turn = %s, %v", r.Reason, r.Err)
			}
			var denied []string
			for _, d := range r.Denials {
				denied = append(denied, d.Reason)
			}
			if diff := cmp.Diff(tt.denied, denied); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.want, approvals(t, log)); diff != "" {
				t.Error(diff)
			}
			if want := `echo {"text":"a"} because ` + asksEcho + `, or always echo`; tt.person.asked[0] != want {
				t.Errorf("asked %q; want %q", tt.person.asked[0], want)
			}
		})
	}
}

// policyAsking returns a policy that asks about a tool.
func policyAsking(t *testing.T, tool string) *permission.Policy {
	t.Helper()
	policy, err := permission.New("", "")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := permission.ParseRule(permission.Ask, tool, "test")
	if err != nil {
		t.Fatal(err)
	}
	return policy.WithRules([]permission.Rule{rule}, permission.Place{Workspace: "/workspace", Home: "/home/me"})
}

// A session that is gone on with knows what was granted for it.
func TestGrantsOfASessionStay(t *testing.T) {
	_, log := createLog(t, nil)
	if _, err := log.Append(session.PermissionGranted{Rule: "echo", Scope: "session"}); err != nil {
		t.Fatal(err)
	}
	person := &approver{}
	e, _ := newEngine(t, callsTwice, func(c *engine.Config) { c.Log, c.Policy, c.Approver = log, policyAsking(t, "echo"), person })
	if r := e.Turn(t.Context(), engine.Input{Text: "go"}); len(r.Denials) > 0 || len(person.asked) > 0 {
		t.Errorf("denied %+v, asked %q", r.Denials, person.asked)
	}
}

// waiting is an approver that never answers.
type waiting struct{ asked chan struct{} }

func (w waiting) Approve(ctx context.Context, _ permission.Question) (permission.Answer, error) {
	close(w.asked)
	<-ctx.Done()
	return permission.Answer{}, ctx.Err()
}

// Who cancels the turn instead of answering, ends it.
func TestCancelWhileAsked(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	person := waiting{make(chan struct{})}
	e, log := newEngine(t, callsTwice, func(c *engine.Config) { c.Policy, c.Approver = policyAsking(t, "echo"), person })
	go func() {
		<-person.asked
		cancel(errors.New("the user went away"))
	}()
	r := e.Turn(ctx, engine.Input{Text: "go"})
	if r.Reason != session.Cancelled || !strings.Contains(r.Err.Error(), "the user went away") {
		t.Errorf("Turn = %s, %v", r.Reason, r.Err)
	}
	if got := len(approvals(t, log)); got != 1 {
		t.Errorf("%d events about it; want the question alone", got)
	}
}

// wideTool asks for more than confines it, as its text says.
type wideTool struct{ fakeTool }

func (wideTool) Widens(arguments json.RawMessage) (what string) {
	var args struct{ Text string }
	if err := json.Unmarshal(arguments, &args); err != nil {
		return err.Error()
	}
	if args.Text == "panic" {
		panic("no idea")
	}
	return args.Text
}

func (wideTool) MayAsk(arguments json.RawMessage) (refusal string) {
	switch string(arguments) {
	case `{"text":"panic later"}`:
		panic("no more idea")
	case `{"text":"refused"}`:
		return "not now"
	}
	return ""
}

// What goes beyond what confines a call is a person's alone to allow: no rule, mode or
// hook does, and it is not remembered.
func TestWidening(t *testing.T) {
	const call = `{"calls":[{"name":"wide","arguments":{"text":%q}}]}` + "\n" + `{"text":"done"}`
	rule := func(verdict permission.Verdict, text string) permission.Rule {
		r, err := permission.ParseRule(verdict, text, "test")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	approving := hook.Funcs{ID: "approver", Timeout: time.Second, Approve: true, On: map[hook.Point]hook.Func{}}
	for _, p := range []hook.Point{hook.BeforeExecuteTool, hook.PermissionRequest} {
		approving.On[p] = func(context.Context, []byte) (hook.Verdict, error) { return hook.Verdict{Decision: hook.Allow}, nil }
	}
	yes := func() *approver {
		return &approver{answers: []permission.Answer{{Allowed: true, Scope: permission.Project}}}
	}
	const nobody = "denied: it is to fly: it needs approval, and nobody can be asked"
	for _, tt := range []struct {
		name    string
		text    string
		profile permission.Profile
		approve permission.Approve
		rules   []permission.Rule
		hooks   []hook.Hook
		person  *approver
		want    string // the refusal; empty: it ran
		asked   string
	}{
		{name: "nothing besides", text: ""},
		{name: "a person says yes", text: "fly", person: yes(), asked: `wide {"text":"fly"} because it is to fly, or always `},
		{name: "a person says no", text: "fly", person: &approver{}, want: "denied by the user: do not try it another way, and say what you would do instead", asked: `wide {"text":"fly"} because it is to fly, or always `},
		{name: "nobody there", text: "fly", want: nobody},
		{name: "auto is no answer", text: "fly", approve: permission.ApproveAuto, want: nobody},
		{name: "never", text: "fly", approve: permission.ApproveNever, want: "denied: it is to fly: it needs approval, and nothing is ever approved (--approve never)"},
		{name: "a rule is no answer", text: "fly", rules: []permission.Rule{rule(permission.Allow, "wide")}, want: nobody},
		{name: "a hook is no answer", text: "fly", hooks: []hook.Hook{approving}, want: nobody},
		{name: "a rule that asks is told of too", text: "fly", rules: []permission.Rule{rule(permission.Ask, "wide")}, want: `denied: it is to fly; the rule "ask wide" asks: it needs approval, and nobody can be asked`},
		{name: "a rule that denies", text: "fly", rules: []permission.Rule{rule(permission.Deny, "wide")}, person: yes(), want: `denied by the rule "deny wide": wide is not allowed under it`},
		{name: "read-only is not left", text: "fly", profile: permission.ReadOnly, person: yes(), want: `denied by the profile "read-only", beyond which nothing goes: wide is not allowed under it`},
		{name: "the tool refuses", text: "refused", person: yes(), want: "denied: not now"},
		{name: "the tool breaks down", text: "panic", person: yes(), want: "denied: the tool broke down: no idea"},
		{name: "the tool breaks down later", text: "panic later", person: yes(), want: "denied: the tool broke down: no more idea"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran := 0
			e, log := newEngine(t, fmt.Sprintf(call, tt.text), func(c *engine.Config) {
				policy, err := permission.New(tt.profile, tt.approve)
				if err != nil {
					t.Fatal(err)
				}
				c.Policy, c.Hooks, c.Tools = policy.WithRules(tt.rules, permission.Place{}), tt.hooks, &tool.Registry{}
				if tt.person != nil {
					c.Approver = tt.person
				}
				err = c.Tools.Add(wideTool{fake("wide", permission.Executes, func(context.Context, tool.Call) (tool.Result, error) {
					ran++
					return tool.Result{Content: "ran"}, nil
				}).(fakeTool)})
				if err != nil {
					t.Fatal(err)
				}
			})
			r := e.Turn(t.Context(), engine.Input{Text: "go"})
			got := ""
			for _, d := range r.Denials {
				got += d.Reason
			}
			if got != tt.want || (ran == 1) != (tt.want == "") {
				t.Errorf("it ran %d times, refused by %q; want %q", ran, got, tt.want)
			}
			if asked := strings.Join(askedOf(tt.person), "\n"); asked != tt.asked {
				t.Errorf("asked %q; want %q", asked, tt.asked)
			}
			for _, event := range approvals(t, log) {
				if _, granted := event.(session.PermissionGranted); granted {
					t.Error("a yes was remembered")
				}
			}
		})
	}
}

func askedOf(a *approver) []string {
	if a == nil {
		return nil
	}
	return a.asked
}
