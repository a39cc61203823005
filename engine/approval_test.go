package engine_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
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
