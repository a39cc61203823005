package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

func asCalls(calls []session.Call) []hook.Call {
	all := []hook.Call{}
	for _, c := range calls {
		all = append(all, asCall(c))
	}
	return all
}

// asCall returns a call as hooks see it; arguments that are no JSON are null.
func asCall(c session.Call) hook.Call {
	asked := hook.Call{ID: string(c.ID), Tool: c.Name, Arguments: json.RawMessage("null")}
	if json.Valid([]byte(c.Arguments)) {
		asked.Arguments = json.RawMessage(c.Arguments)
	}
	return asked
}

// judged is a call that may run.
type judged struct {
	target  tool.Tool
	spec    tool.Spec
	call    hook.Call
	instead *hook.Result // the answer in the tool's place
	hooks   *hook.Chain  // that have a say in it
}

// judge checks a call, and asks hooks and the policy about it. by is the extension
// that made it, or empty for the model's; its own hooks are not asked. Without
// a judged call, the result is why it does not run. The error is what ends the
// turn.
func (t *turn) judge(ctx context.Context, by string, call session.Call) (*judged, tool.Result, error) {
	if refusal := t.refuseGoal(by, call); refusal != nil {
		return nil, t.deny(by, call, refusal.Error()), nil
	}
	target, bad := t.cfg.Tools.Lookup(call.Name)
	if bad != nil {
		return nil, *bad, nil
	}
	args, bad := t.cfg.Tools.Check(call.Name, call.Arguments)
	if bad != nil {
		return nil, *bad, nil
	}
	spec, bad := describe(target, call.Name)
	if bad != nil {
		return nil, *bad, nil
	}
	j := &judged{target: target, spec: spec, call: hook.Call{ID: string(call.ID), Tool: call.Name, Arguments: args}, hooks: t.hooks.Except(by)}
	said, err := j.hooks.BeforeExecuteTool(ctx, t.at(), j.call)
	if err != nil {
		return nil, unstarted(ctx, err), err
	}
	t.contexts = append(t.contexts, said.Contexts...)
	refusal, err := t.permit(ctx, by, j, said)
	if err != nil {
		return nil, unstarted(ctx, err), err
	}
	if refusal != "" {
		return nil, t.deny(by, call, refusal), nil
	}
	if j.call.Arguments, bad = t.cfg.Tools.Check(call.Name, string(said.Arguments)); bad != nil {
		bad.Content = "an extension replaced the arguments, and the call was not run: " + bad.Content
		return nil, *bad, nil
	}
	j.instead = said.Result
	return j, tool.Result{}, nil
}

// permit combines what hooks and the policy say of a call; a refusal is the
// text for the model. Hooks narrow: the most they can do for a call is to
// answer a question in the user's name, and the chain lets an allow through only
// where the user granted that.
func (t *turn) permit(ctx context.Context, by string, j *judged, said hook.Judged) (refusal string, err error) {
	if said.Decision == hook.Deny {
		return said.Reason, nil
	}
	if t.cfg.Policy == nil {
		return "denied: this engine has no policy, so no call is allowed", nil
	}
	call := permission.Call{Tool: j.spec.Name, Effect: j.spec.Effect, Arguments: said.Arguments, Asked: said.Decision == hook.Ask}
	if call.Widens, refusal = widens(j.target, by, said.Arguments); refusal != "" {
		return "denied: " + refusal, nil
	}
	verdict, rule := t.cfg.Policy.Decide(call)
	if verdict == permission.Deny {
		return fmt.Sprintf("denied by %s: %s is not allowed under it", rule, j.spec.Name), nil
	}
	question := rule + " asks"
	if call.Asked {
		question = said.Reason
	}
	switch {
	case call.Widens != "" && (call.Asked || verdict == permission.Ask):
		question = "it is to " + call.Widens + "; " + question
	case call.Widens != "":
		question = "it is to " + call.Widens
	case !call.Asked && (verdict == permission.Allow || said.Decision == hook.Allow):
		return "", nil
	}
	if refusal = mayAsk(j.target, said.Arguments); refusal != "" {
		return "denied: " + refusal, nil
	}
	return t.question(ctx, j, call, question)
}

// question has a question about a call answered, by hooks that may or else by whoever
// is there.
func (t *turn) question(ctx context.Context, j *judged, call permission.Call, why string) (refusal string, err error) {
	asked := j.call
	asked.Arguments = call.Arguments
	decision, reason, err := j.hooks.PermissionRequest(ctx, t.at(), asked, why)
	if err != nil || decision == hook.Deny {
		return reason, err
	}
	if decision == hook.Allow && call.Widens == "" { // for that a person alone is good
		return "", nil
	}
	if err := j.hooks.Notification(ctx, t.at(), hook.Question, j.spec.Name+": "+why); err != nil {
		return "", err
	}
	return t.answer(ctx, session.CallID(j.call.ID), call, why)
}

// widens asks a tool what a call is to reach beyond what confines it. An extension that
// makes a call may not ask for that.
func widens(target tool.Tool, by string, arguments json.RawMessage) (what, refusal string) {
	w, ok := target.(tool.Widener)
	if !ok {
		return "", ""
	}
	defer brokeDown(&refusal)
	if what = w.Widens(arguments); what != "" && by != "" {
		return "", "an extension cannot ask for more than the sandbox allows"
	}
	return what, ""
}

// mayAsk asks a tool whether a person may be asked about a call.
func mayAsk(target tool.Tool, arguments json.RawMessage) (refusal string) {
	w, ok := target.(tool.Widener)
	if !ok {
		return ""
	}
	defer brokeDown(&refusal)
	return w.MayAsk(arguments)
}

// brokeDown makes a refusal of a tool's panic.
func brokeDown(refusal *string) {
	if p := recover(); p != nil {
		*refusal = fmt.Sprintf("the tool broke down: %v", p)
	}
}

func (t *turn) deny(by string, call session.Call, reason string) tool.Result {
	if by == "" {
		t.denials = append(t.denials, Denial{Tool: call.Name, CallID: call.ID, Arguments: call.Arguments, Reason: reason})
	}
	return tool.Result{Content: reason, IsError: true, Code: tool.Denied}
}

// body runs the tool itself, or takes the answer that a hook gave in its place.
// failed is whether there is only the reason for which there is no result. It is the
// part of a call that may run beside others.
func (t *turn) body(ctx context.Context, j *judged, program bool) (result tool.Result, failed bool, err error) {
	if j.instead != nil {
		return tool.Result{Content: j.instead.Content, IsError: j.instead.IsError}, false, nil
	}
	if err := t.cfg.Log.Flush(); err != nil { // the intent is on record before the effect
		return unstarted(ctx, err), true, err
	}
	limit := j.spec.Timeout
	if limit == 0 {
		limit = t.cfg.ToolTimeout
	}
	callCtx, cancel := context.WithTimeoutCause(ctx, limit, errToolTimeout)
	defer cancel()
	id := session.CallID(j.call.ID)
	result, err = runTool(callCtx, j.target, tool.Call{ID: id, Name: j.call.Tool, Arguments: j.call.Arguments, Program: program})
	result = t.redact(result) // hooks see no more of it than the model
	switch {
	case ctx.Err() != nil:
		text := "the turn was cancelled while the call ran; it may have had an effect"
		return tool.Result{Content: text, IsError: true, Code: tool.Aborted}, true, context.Cause(ctx)
	case err != nil && errors.Is(context.Cause(callCtx), errToolTimeout):
		text := fmt.Sprintf("the call was ended after its time limit of %v", limit)
		return tool.Result{Content: text, IsError: true, Code: tool.TimedOut}, true, nil
	case err != nil:
		return t.redact(tool.Result{Content: err.Error(), IsError: true}), true, nil
	case result.Code == tool.SandboxUnavailable:
		return result, true, t.record(session.SandboxRefused{CallID: id, Reason: result.Content})
	}
	return result, false, nil
}

// describe asks a tool what it is; one that panics failed.
func describe(target tool.Tool, name string) (spec tool.Spec, bad *tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			bad = &tool.Result{Content: fmt.Sprintf("the tool %s broke down: %v", name, p), IsError: true}
		}
	}()
	return target.Spec(), nil
}

// runTool runs a tool; one that panics failed.
func runTool(ctx context.Context, target tool.Tool, call tool.Call) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = tool.Result{}, fmt.Errorf("the tool %s broke down: %v", call.Name, p)
		}
	}()
	return target.Run(ctx, call)
}

// redact takes out of a result what must not be in the log.
func (t *turn) redact(r tool.Result) tool.Result {
	if t.cfg.Redact != nil {
		r.Content, r.Structured = t.cfg.Redact(r.Content), t.cfg.Redact(r.Structured)
	}
	return r
}

var errToolTimeout = errors.New("tool time limit")

// unstarted is the result of a call whose turn ended before its body began.
func unstarted(ctx context.Context, err error) tool.Result {
	text := "the call was not started: " + err.Error()
	if ctx.Err() != nil {
		text = "the turn was cancelled before the call was started"
	}
	return tool.Result{Content: text, IsError: true, Code: tool.AbortedBeforeDispatch}
}

// review lets hooks see the result, or how the call failed, before the model
// does. If they cannot be asked, it is withheld.
func (t *turn) review(ctx context.Context, j *judged, result tool.Result, failed bool) (tool.Result, error) {
	ask := j.hooks.AfterExecuteTool
	if failed {
		ask = j.hooks.OnExecuteToolError
	}
	reviewed, err := ask(ctx, t.at(), j.call, seen(result))
	if err != nil {
		text := "the result was withheld: " + err.Error()
		return tool.Result{Content: text, IsError: true, Code: tool.Aborted}, err
	}
	t.contexts = append(t.contexts, reviewed.Contexts...)
	if reviewed.Blocked != "" {
		return tool.Result{Content: reviewed.Blocked, IsError: true, Code: tool.Denied}, nil
	}
	if reviewed.Result.Content != result.Content {
		// What was replaced is not to be had another way.
		result.Content, result.Structured, result.Images = reviewed.Result.Content, "", nil
	}
	return result, nil
}

// seen returns a result as hooks see it.
func seen(r tool.Result) hook.Result {
	return hook.Result{Content: strings.ToValidUTF8(r.Content, "�"), IsError: r.IsError, Code: string(r.Code)}
}
