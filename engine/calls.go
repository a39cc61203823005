package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// runCalls takes a reply with calls into the log and runs them, one after the
// other. Each call gets exactly one result, whatever happens; only a log that
// cannot be written, a hook that ends the turn or the end of ctx stops it.
func (t *turn) runCalls(ctx context.Context, reply session.AssistantMessage) error {
	t.empty, t.objections = 0, 0
	if err := t.keep(ctx, reply); err != nil {
		return err
	}
	blocked, stop := t.hooks.BeforeExecuteTools(ctx, t.at(), asCalls(reply.Calls))
	for _, call := range reply.Calls {
		if stop == nil && ctx.Err() != nil {
			stop = context.Cause(ctx)
		}
		if err := t.runCall(ctx, call, blocked, stop != nil); err != nil {
			stop = errors.Join(stop, err)
		}
	}
	return stop
}

// asCalls returns calls as hooks see them; arguments that are no JSON are null.
func asCalls(calls []session.Call) []hook.Call {
	all := []hook.Call{}
	for _, c := range calls {
		asked := hook.Call{ID: string(c.ID), Tool: c.Name, Arguments: json.RawMessage("null")}
		if json.Valid([]byte(c.Arguments)) {
			asked.Arguments = json.RawMessage(c.Arguments)
		}
		all = append(all, asked)
	}
	return all
}

// runCall writes down a call, runs it unless it is blocked or the turn is over
// already, and writes down its result.
func (t *turn) runCall(ctx context.Context, call session.Call, blocked string, over bool) error {
	begun, err := t.cfg.Log.Append(session.ToolCall{
		CallID: call.ID, Name: call.Name, Arguments: call.Arguments, Step: t.step,
	})
	if err != nil {
		return err
	}
	result := tool.Result{Content: "the turn ended before the call was started", IsError: true, Code: tool.AbortedBeforeDispatch}
	start := time.Now()
	var stop error
	switch {
	case over:
	case blocked != "":
		result = t.deny("", call, blocked)
	default:
		result, stop = t.dispatch(ctx, "", call)
	}
	result = t.redact(result)
	t.done = append(t.done, hook.Done{Call: asCalls([]session.Call{call})[0], Result: seen(result)})
	err = t.record(session.ToolResult{
		CallID: call.ID, CallSeq: begun.Seq, Content: strings.ToValidUTF8(result.Content, "�"),
		IsError: result.IsError, Code: string(result.Code), DurationMS: time.Since(start).Milliseconds(),
	})
	return errors.Join(stop, err)
}

// dispatch judges a call, runs it and has its result reviewed. by is the
// extension that made it, or empty for the model's; its own hooks are not asked.
// The error is what ends the turn; there is a result all the same.
func (t *turn) dispatch(ctx context.Context, by string, call session.Call) (tool.Result, error) {
	target, bad := t.cfg.Tools.Lookup(call.Name)
	if bad != nil {
		return *bad, nil
	}
	args, bad := t.cfg.Tools.Check(call.Name, call.Arguments)
	if bad != nil {
		return *bad, nil
	}
	ctx, refusal := within(ctx, by, target.Spec())
	if refusal != "" {
		return t.deny(by, call, refusal), nil
	}
	hooks := t.hooks.Except(by)
	asked := hook.Call{ID: string(call.ID), Tool: call.Name, Arguments: args}
	judged, err := hooks.BeforeExecuteTool(ctx, t.at(), asked)
	if err != nil {
		return unstarted(ctx, err), err
	}
	t.contexts = append(t.contexts, judged.Contexts...)
	refusal, err = t.permit(ctx, hooks, target.Spec(), asked, judged)
	if err != nil {
		return unstarted(ctx, err), err
	}
	if refusal != "" {
		return t.deny(by, call, refusal), nil
	}
	if asked.Arguments, bad = t.cfg.Tools.Check(call.Name, string(judged.Arguments)); bad != nil {
		bad.Content = "an extension replaced the arguments, and the call was not run: " + bad.Content
		return *bad, nil
	}
	result, failed, err := t.body(ctx, target, asked, judged.Result, by != "")
	if err != nil {
		return result, err
	}
	return t.review(ctx, hooks, asked, result, failed)
}

// permit combines what hooks and the policy say of a call; a refusal is the
// text for the model. Hooks narrow: the most they can do for a call is to
// answer a question in the user's name, and the chain lets an allow through only
// where the user granted that.
func (t *turn) permit(ctx context.Context, hooks *hook.Chain, spec tool.Spec, asked hook.Call, judged hook.Judged) (refusal string, err error) {
	if judged.Decision == hook.Deny {
		return judged.Reason, nil
	}
	if t.cfg.Policy == nil {
		return "denied: this engine has no policy, so no call is allowed", nil
	}
	call := permission.Call{Tool: spec.Name, Effect: spec.Effect}
	verdict, by := t.cfg.Policy.Decide(call)
	if verdict == permission.Deny {
		return fmt.Sprintf("denied by %s: %s is not allowed under it", by, spec.Name), nil
	}
	question := by + " asks"
	if judged.Decision == hook.Ask {
		verdict, question = permission.Ask, judged.Reason
	}
	if verdict == permission.Allow || judged.Decision == hook.Allow {
		return "", nil
	}
	asked.Arguments = judged.Arguments
	decision, reason, err := hooks.PermissionRequest(ctx, t.at(), asked, question)
	if err != nil || decision == hook.Deny {
		return reason, err
	}
	if decision == hook.Allow {
		return "", nil
	}
	if allowed, why := t.cfg.Policy.Answer(call); !allowed {
		return fmt.Sprintf("denied: %s: %s", question, why), nil
	}
	return "", nil
}

func (t *turn) deny(by string, call session.Call, reason string) tool.Result {
	if by == "" {
		t.denials = append(t.denials, Denial{Tool: call.Name, CallID: call.ID, Arguments: call.Arguments, Reason: reason})
	}
	return tool.Result{Content: reason, IsError: true, Code: tool.Denied}
}

// body runs the tool itself, or takes the answer that a hook gave in its place.
// failed is whether there is only the reason for which there is no result.
func (t *turn) body(ctx context.Context, target tool.Tool, call hook.Call, instead *hook.Result, program bool) (result tool.Result, failed bool, err error) {
	if instead != nil {
		return tool.Result{Content: instead.Content, IsError: instead.IsError}, false, nil
	}
	if err := t.cfg.Log.Flush(); err != nil { // the intent is on record before the effect
		return unstarted(ctx, err), true, err
	}
	limit := target.Spec().Timeout
	if limit == 0 {
		limit = t.cfg.ToolTimeout
	}
	callCtx, cancel := context.WithTimeoutCause(ctx, limit, errToolTimeout)
	defer cancel()
	result, err = target.Run(callCtx, tool.Call{ID: session.CallID(call.ID), Name: call.Tool, Arguments: call.Arguments, Program: program})
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
		return result, true, t.record(session.SandboxRefused{CallID: session.CallID(call.ID), Reason: result.Content})
	}
	return result, false, nil
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
func (t *turn) review(ctx context.Context, hooks *hook.Chain, call hook.Call, result tool.Result, failed bool) (tool.Result, error) {
	ask := hooks.AfterExecuteTool
	if failed {
		ask = hooks.OnExecuteToolError
	}
	reviewed, err := ask(ctx, t.at(), call, seen(result))
	if err != nil {
		text := "the result was withheld: " + err.Error()
		return tool.Result{Content: text, IsError: true, Code: tool.Aborted}, err
	}
	t.contexts = append(t.contexts, reviewed.Contexts...)
	if reviewed.Blocked != "" {
		return tool.Result{Content: reviewed.Blocked, IsError: true, Code: tool.Denied}, nil
	}
	if reviewed.Result.Content != result.Content {
		result.Content, result.Structured = reviewed.Result.Content, "" // what was replaced is not to be had another way
	}
	return result, nil
}

// seen returns a result as hooks see it.
func seen(r tool.Result) hook.Result {
	return hook.Result{Content: strings.ToValidUTF8(r.Content, "�"), IsError: r.IsError, Code: string(r.Code)}
}
