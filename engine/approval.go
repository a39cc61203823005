package engine

import (
	"context"
	"fmt"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
)

// answer has a question about a call answered: by the policy, or by a person if
// there is one to be asked. A refusal is the text for the model.
func (t *turn) answer(ctx context.Context, id session.CallID, call permission.Call, why string) (refusal string, err error) {
	allowed, because := t.cfg.Policy.Answer(call)
	switch {
	case allowed:
		return "", nil
	case t.cfg.Approver == nil:
		return fmt.Sprintf("denied: %s: %s", why, because), nil
	}
	q := permission.Question{Call: call, Why: why, Rule: t.cfg.Policy.Suggest(call)}
	asked := session.ApprovalAsked{CallID: id, Tool: call.Tool, Arguments: string(call.Arguments), Reason: why}
	if err := t.record(asked); err != nil {
		return "", err
	}
	answer, err := t.cfg.Approver.Approve(ctx, q)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return fmt.Sprintf("denied: %s: nobody could be asked: %v", why, err), nil
	}
	return t.decide(id, q, answer)
}

// decide takes a person's answer.
func (t *turn) decide(id session.CallID, q permission.Question, answer permission.Answer) (refusal string, err error) {
	decided := session.ApprovalDecided{CallID: id, Allowed: answer.Allowed, Message: answer.Message}
	if err := t.record(decided); err != nil {
		return "", err
	}
	switch {
	case !answer.Allowed && answer.Message != "":
		return "denied by the user: " + answer.Message, nil
	case !answer.Allowed:
		return "denied by the user: do not try it another way, and say what you would do instead", nil
	case answer.Scope == permission.Once || q.Rule == "":
		return "", nil
	}
	if err := t.cfg.Policy.Grant(q.Rule); err != nil {
		return "", err
	}
	return "", t.record(session.PermissionGranted{Rule: q.Rule, Scope: string(answer.Scope)})
}
