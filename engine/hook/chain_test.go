package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
)

// answering is a hook that takes its time and gives one answer; "!" is a failure.
// Its name says how it is configured: guard, approve, or neither.
type answering struct {
	name, answer string
	saw          *[]string
}

func (h answering) Name() string { return h.name }

func (h answering) Handles(p hook.Point) (hook.Handling, bool) {
	return hook.Handling{
		Timeout: time.Hour, Approve: strings.Contains(h.name, "approve"),
		OnFailure: hook.DefaultOnFailure(strings.Contains(h.name, "guard"), p),
	}, true
}

func (h answering) Call(_ context.Context, _ hook.Point, payload []byte) ([]byte, error) {
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // of the bubble
	*h.saw = append(*h.saw, h.name+": "+string(payload))
	if h.answer == "!" {
		return nil, errors.New("it broke")
	}
	return []byte(h.answer), nil
}

// merges are the rules by which answers are put together: hooks in their order,
// what is asked, and what comes of it.
var merges = []struct {
	name  string
	hooks []string // name=answer
	ask   func(context.Context, *hook.Chain) (any, error)
	want  string
	saw   string // what the last hook is shown, where that matters
}{
	{"a deny beats an ask and an allow", []string{`approve=allow`, `a=ask:sure?`, `b=deny:no`, `approve2=allow`, `c=deny:never`}, judge, `deny "denied by extension \"b\": no\ndenied by extension \"c\": never" {"n":1} contexts [] result <nil>`, ""},
	{"an ask beats an allow", []string{`approve=allow`, `a=ask:sure?`, `b=ask:really?`}, judge, `ask "extension \"a\" asks for approval: sure?" {"n":1} contexts [] result <nil>`, ""},
	{"an allow counts where it was granted", []string{`approve=allow:fine`, `a=`}, judge, `allow "fine" {"n":1} contexts [] result <nil>`, ""},
	{"and nowhere else", []string{`a=allow:fine`}, judge, ` "" {"n":1} contexts [] result <nil>`, ""},
	{"no opinion is none", []string{`a=`, `b={}`}, judge, ` "" {"n":1} contexts [] result <nil>`, ""},
	{"all contexts are kept", []string{`a={"context":"one"}`, `b=deny:no`, `c={"context":"two"}`}, judge, `deny "denied by extension \"b\": no" {"n":1} contexts [one two] result <nil>`, ""},
	{"later hooks see replaced arguments", []string{`a={"replace":{"arguments":{"n":2}}}`, `b={"replace":{"arguments":{"n":3}}}`, `c=`}, judge, ` "" {"n":3} contexts [] result <nil>`, `c: {"session_id":"s","turn":1,"step":2,"call_id":"c1","tool":"exec","arguments":{"n":3}}`},
	{"the first answer in the tool's place stands", []string{`a={"replace":{"result":{"content":"one"}}}`, `b={"replace":{"result":{"content":"two"}}}`}, judge, ` "" {"n":1} contexts [] result &{one false }`, ""},
	{"a guard that fails denies", []string{`a=`, `guard=!`}, judge, `deny "the guard \"guard\" could not be asked: it broke" {"n":1} contexts [] result <nil>`, ""},
	{"a deny beats what a failing guard leaves open", []string{`guard=!`, `a=deny:no`, `approve=allow`}, judge, `deny "the guard \"guard\" could not be asked: it broke\ndenied by extension \"a\": no" {"n":1} contexts [] result <nil>`, ""},
	{"an observer that fails is left out", []string{`a=!`, `b=`}, judge, ` "" {"n":1} contexts [] result <nil>`, ""},
	{"a bad answer is a failure", []string{`guard={"decision":"retry"}`}, judge, `deny "the guard \"guard\" could not be asked: bad answer: before_execute_tool does not take the decision \"retry\"" {"n":1} contexts [] result <nil>`, ""},

	{"a block of a prompt", []string{`a={"replace":{"text":"two"},"context":"c"}`, `b=block:no`, `c=block:never`}, submit, `{two [c] blocked by extension "b": no
blocked by extension "c": never}`, `c: {"session_id":"s","turn":1,"step":2,"text":"two"}`},
	{"a block of a run", []string{`a={"context":"c"}`, `b=block:no`}, beforeRun, `{[c] blocked by extension "b": no}`, ""},
	{"fail beats retry", []string{`a=retry`, `b=fail`, `c=retry`}, requestError, `fail`, ""},
	{"a retry", []string{`a=`, `b=retry`}, requestError, `retry`, ""},
	{"nothing of an error", []string{`a=`}, requestError, ``, ""},
	{"what hooks go on with", []string{`a={"decision":"continue","message":"one"}`, `b=`, `c={"decision":"continue","message":"two"}`}, stopping, "one\ntwo", ""},
	{"a final text passes one after the other", []string{`a={"replace":{"text":"b"}}`, `b=`, `c={"replace":{"text":"c"}}`, `d=`}, finalize, "c", `d: {"session_id":"s","turn":1,"step":2,"text":"c"}`},
	{"and a bug in that shows", []string{`a={"replace":{"text":"b"}}`, `b=!`}, finalize, `b, a hook failed: extension "b" at finalize_content: it broke`, ""},
	{"a request", []string{`a={"replace":{"parameters":{"t":1},"hide_tools":["exec"]}}`, `b={"replace":{"hide_tools":["grep"],"response":{"text":"one"}}}`, `c={"replace":{"response":{"text":"two"}}}`}, request, `{m {"t":1} [list_dir] one}`, `c: {"session_id":"s","turn":1,"step":2,"model":"m","parameters":{"t":1},"tools":["list_dir"]}`},
	{"a request without tools has a list of none", []string{`a=`}, bareRequest, `{[]}`, `a: {"session_id":"s","turn":1,"step":2,"model":"","parameters":null,"tools":[]}`},
	{"a result", []string{`a={"replace":{"content":"two"},"context":"c"}`, `b={"replace":{"content":"three"}}`, `c=`}, review, `{{three false } [c] }`, `c: {"session_id":"s","turn":1,"step":2,"call_id":"c1","tool":"exec","arguments":{"n":1},"result":{"content":"three","is_error":false}}`},
	{"a result that is blocked", []string{`a=block:no`, `b={"replace":{"content":"three"}}`}, review, `{{three false } [] the result was withheld by extension "a": no}`, ""},
	{"a question that hooks answer", []string{`approve=allow`, `a=allow`}, permission, `allow ""`, ""},
	{"a question that a hook denies", []string{`approve=allow`, `a=deny:no`, `approve2=allow`}, permission, `deny "denied by extension \"a\": no"`, ""},
	{"a question about which a guard fails", []string{`approve=allow`, `guard=!`}, permission, `deny "the guard \"guard\" could not be asked: it broke"`, ""},
}

var (
	at   = hook.At{Session: "s", Turn: 1, Step: 2}
	call = hook.Call{ID: "c1", Tool: "exec", Arguments: json.RawMessage(`{"n":1}`)}
)

func judge(ctx context.Context, c *hook.Chain) (any, error) {
	j, err := c.BeforeExecuteTool(ctx, at, call)
	return fmt.Sprintf("%s %q %s contexts %v result %v", j.Decision, j.Reason, j.Arguments, j.Contexts, j.Result), err
}

func submit(ctx context.Context, c *hook.Chain) (any, error) {
	return c.UserPromptSubmit(ctx, at, "one")
}

func beforeRun(ctx context.Context, c *hook.Chain) (any, error) { return c.BeforeRun(ctx, at, "one") }

func requestError(ctx context.Context, c *hook.Chain) (any, error) {
	return c.OnRequestError(ctx, at, hook.Failure{Class: "server"})
}

func stopping(ctx context.Context, c *hook.Chain) (any, error) {
	return c.TurnStopping(ctx, at, "final")
}

func finalize(ctx context.Context, c *hook.Chain) (any, error) {
	return c.FinalizeContent(ctx, at, "a")
}

func request(ctx context.Context, c *hook.Chain) (any, error) {
	p, err := c.BeforeRequest(ctx, at, hook.Plan{Model: "m", Tools: []string{"exec", "list_dir", "grep"}})
	return fmt.Sprintf("{%s %s %v %s}", p.Model, p.Parameters, p.Tools, p.Response.Text), err
}

func bareRequest(ctx context.Context, c *hook.Chain) (any, error) {
	p, err := c.BeforeRequest(ctx, at, hook.Plan{})
	return fmt.Sprintf("{%v}", p.Tools), err
}

func review(ctx context.Context, c *hook.Chain) (any, error) {
	return c.AfterExecuteTool(ctx, at, call, hook.Result{Content: "one"})
}

func permission(ctx context.Context, c *hook.Chain) (any, error) {
	d, reason, err := c.PermissionRequest(ctx, at, call, "the table")
	return fmt.Sprintf("%s %q", d, reason), err
}

// parseHook makes a hook of name=answer, where an answer may be DECISION:REASON.
func parseHook(text string, saw *[]string) hook.Hook {
	name, answer, _ := strings.Cut(text, "=")
	if answer != "" && answer != "!" && answer[0] != '{' {
		decision, reason, _ := strings.Cut(answer, ":")
		answer = fmt.Sprintf(`{"decision":%q,"reason":%q}`, decision, reason)
	}
	return answering{name, answer, saw}
}

// Answers are merged in the order of configuration, however long each takes: 200
// times the same, in what comes of it and in the log.
func TestMerging(t *testing.T) {
	for _, tt := range merges {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var first string
				for range 200 {
					var log strings.Builder
					var saw []string
					var hooks []hook.Hook
					for _, text := range tt.hooks {
						hooks = append(hooks, parseHook(text, &saw))
					}
					chain := hook.NewChain(hooks, func(e session.Event) error {
						_, err := fmt.Fprintf(&log, "%+v\n", e)
						return err
					})
					value, err := tt.ask(t.Context(), chain)
					got := fmt.Sprint(value)
					if err != nil {
						got += ", " + err.Error()
					}
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Fatalf("what comes of it (-want +got):\n%s", diff)
					}
					if last := saw[len(saw)-1]; tt.saw != "" && last != tt.saw {
						t.Fatalf("the last hook saw\n%s\nwant\n%s", last, tt.saw)
					}
					if first == "" {
						first = log.String()
					}
					if diff := cmp.Diff(first, log.String()); diff != "" {
						t.Fatalf("the log differs from the first time:\n%s", diff)
					}
				}
			})
		})
	}
}
