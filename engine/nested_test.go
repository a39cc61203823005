package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// nested makes the calls of hooks and of the tools nest and nest_side: a text
// is the name of a tool, a blank and its argument text. The extension that
// calls is named like the tool, or is the hook.
type nested struct {
	engine *engine.Engine
	calls  int
}

func (n *nested) call(ctx context.Context, by, text string) tool.Result {
	name, text, _ := strings.Cut(text, " ")
	args, _ := json.Marshal(map[string]string{"text": text})
	n.calls++
	result, err := n.engine.CallTool(ctx, by, tool.Call{ID: session.CallID(fmt.Sprintf("%s/%d", by, n.calls)), Name: name, Arguments: args})
	if err != nil {
		return tool.Result{Content: "error: " + err.Error(), IsError: true}
	}
	return result
}

func (n *nested) addTools(t *testing.T, to *tool.Registry) {
	for _, name := range []string{"nest", "nest_side"} {
		if err := to.Add(n.tool(name, name == "nest_side")); err != nil {
			t.Fatal(err)
		}
	}
}

func (n *nested) tool(name string, parallel bool) tool.Tool {
	t := fake(name, permission.Reads, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		var args struct{ Text string }
		if err := json.Unmarshal(c.Arguments, &args); err != nil {
			return tool.Result{}, err
		}
		r := n.call(ctx, name, args.Text)
		return tool.Result{Content: fmt.Sprintf("nested: %s %v %s", r.Content, r.IsError, r.Code)}, nil
	}).(fakeTool)
	t.spec.Parallel = parallel
	return t
}

func (h *scriptedHook) onFailure(p hook.Point) hook.OnFailure {
	if h.Abort {
		return hook.AbortTurn
	}
	return hook.DefaultOnFailure(h.Guard, p)
}

func TestNestedCallOutsideATurn(t *testing.T) {
	e := idle(t)
	_, err := e.CallTool(t.Context(), "x", tool.Call{Name: "echo"})
	if want := "no turn is running: this works only in the course of one"; err == nil || err.Error() != want {
		t.Errorf("CallTool: %v; want %s", err, want)
	}
	if info := e.Info(); info.Cwd != "/workspace" || info.Model != "scripted" || info.Turn != 0 || info.ID == "" {
		t.Errorf("Info: %+v", info)
	}
}

// A call of an extension's is never wider than what it is part of: what a person may
// allow the model, an extension cannot even ask for.
func TestNestedCallIsNotWider(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"fly", "denied: an extension cannot ask for more than the sandbox allows"},
		{"refused", "denied: an extension cannot ask for more than the sandbox allows"},
		{"panic later", "denied: an extension cannot ask for more than the sandbox allows"}, // and the tool is not told of a question
		{"panic", "denied: the tool broke down: no idea"},
		{"", "ran"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			person := &approver{answers: []permission.Answer{{Allowed: true}}}
			var e *engine.Engine
			var got tool.Result
			e, _ = newEngine(t, `{"calls":[{"name":"outer","arguments":{"text":"x"}}]}`+"\n"+`{"text":"done"}`, func(c *engine.Config) {
				policy, err := permission.New(permission.WorkspaceWrite, permission.ApproveAsk)
				if err != nil {
					t.Fatal(err)
				}
				c.Policy, c.Tools, c.Approver = policy, &tool.Registry{}, person
				outer := fake("outer", permission.Executes, func(ctx context.Context, _ tool.Call) (r tool.Result, err error) {
					got, err = e.CallTool(ctx, "ext", tool.Call{Name: "wide", Arguments: fmt.Appendf(nil, `{"text":%q}`, tt.text)})
					return got, err
				})
				wide := fake("wide", permission.Executes, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Content: "ran"}, nil })
				if err := errors.Join(c.Tools.Add(outer), c.Tools.Add(wideTool{wide.(fakeTool)})); err != nil {
					t.Fatal(err)
				}
			})
			e.Turn(t.Context(), engine.Input{Text: "go"})
			if got.Content != tt.want || (got.Code == tool.Denied) != (tt.want != "ran") {
				t.Errorf("CallTool = %+v; want %q", got, tt.want)
			}
			if len(person.asked) > 0 {
				t.Errorf("a person was asked %q", person.asked)
			}
		})
	}
}

// idle is an engine that has run nothing yet.
func idle(t *testing.T) *engine.Engine {
	_, log := createLog(t, nil)
	e, err := engine.New(engine.Config{Provider: script.New(nil), Log: log, Model: "scripted"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// oneModel answers each request with text, and remembers them.
type oneModel struct {
	requests []provider.Request
	usage    *session.Usage
	fails    error
}

func (m *oneModel) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	m.requests = append(m.requests, req)
	return func(yield func(provider.Delta, error) bool) {
		if yield(provider.Delta{Text: "Yes, ", Usage: m.usage}, nil) && m.fails == nil {
			yield(provider.Delta{Text: "certainly.", Finish: "stop"}, nil)
		} else if m.fails != nil {
			yield(provider.Delta{}, m.fails)
		}
	}
}

// asking is a hook that asks the model about the prompt.
type asking struct {
	ask func(context.Context)
}

func (asking) Name() string { return "asking" }
func (asking) Handles(p hook.Point) (hook.Handling, bool) {
	return hook.Handling{Timeout: time.Second, OnFailure: hook.Isolate}, p == hook.UserPromptSubmit
}

func (a asking) Call(ctx context.Context, _ hook.Point, _ []byte) ([]byte, error) {
	a.ask(ctx)
	return nil, nil
}

// What an extension asks a model can be rebuilt from the log, and counts.
func TestComplete(t *testing.T) {
	usage := session.Usage{InputTokens: 6, OutputTokens: 2}
	tests := []struct {
		name       string
		model      oneModel
		parameters string
		asked      string // of extension.asked
		answered   string
		turnTokens int64
	}{
		{
			"an answer",
			oneModel{usage: &usage},
			`{"temperature":0}`,
			`{"extension":"asking","call_id":"asking/1","model":"scripted","parameters":{"max_tokens":50,"temperature":0},"prompt":"polite?","reserved":60}`,
			`{"extension":"asking","call_id":"asking/1","text":"Yes, certainly.","finish_reason":"stop","usage":{"input_tokens":6,"output_tokens":2,"cache_read_input_tokens":0,"reasoning_tokens":0},"tokens":8}`, 16,
		},
		{
			"a server that does not count",
			oneModel{},
			`{"max_completion_tokens":9}`,
			`{"extension":"asking","call_id":"asking/1","model":"scripted","parameters":{"max_completion_tokens":50},"prompt":"polite?","reserved":60}`,
			`{"extension":"asking","call_id":"asking/1","text":"Yes, certainly.","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"reasoning_tokens":0},"tokens":60}`, 0,
		},
		{
			"a server that would give tokens back",
			oneModel{usage: &session.Usage{InputTokens: -900}},
			`{}`,
			`{"extension":"asking","call_id":"asking/1","model":"scripted","parameters":{"max_tokens":50},"prompt":"polite?","reserved":60}`,
			`{"extension":"asking","call_id":"asking/1","text":"Yes, certainly.","finish_reason":"stop","usage":{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"reasoning_tokens":0},"tokens":60}`, 0,
		},
		{
			"a failure",
			oneModel{fails: errors.New("status 503")},
			"",
			`{"extension":"asking","call_id":"asking/1","model":"scripted","parameters":{"max_tokens":50},"prompt":"polite?","reserved":60}`,
			`{"extension":"asking","call_id":"asking/1","text":"Yes, ","usage":{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"reasoning_tokens":0},"tokens":60,"error":"status 503"}`, 0,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store, err := session.NewStore(t.TempDir(), "test", session.SyncNever)
			if err != nil {
				t.Fatal(err)
			}
			events := map[string]string{}
			log, err := store.Create("/workspace", func(r session.Record) {
				line, _ := session.Encode(r)
				_, data, _ := strings.Cut(strings.TrimSpace(string(line)), `"data":`)
				events[r.Type()] = strings.TrimSuffix(data, "}")
			})
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			var e *engine.Engine
			var failure error
			e, err = engine.New(engine.Config{
				Provider: &tt.model, Log: log, Model: "scripted", System: "system", Parameters: json.RawMessage(tt.parameters),
				Hooks: []hook.Hook{asking{func(ctx context.Context) {
					_, failure = e.Complete(ctx, engine.Completion{By: "asking", CallID: "asking/1", Prompt: "polite?", MaxTokens: 50, Reserved: 60})
				}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			result := e.Turn(t.Context(), engine.Input{Text: "hello"})
			if got := events["extension.asked"]; got != tt.asked {
				t.Errorf("asked\n%s\nwant\n%s", got, tt.asked)
			}
			if got := events["extension.answered"]; got != tt.answered {
				t.Errorf("answered\n%s\nwant\n%s", got, tt.answered)
			}
			if got := result.Usage.InputTokens + result.Usage.OutputTokens; got != tt.turnTokens || !errors.Is(failure, tt.model.fails) {
				t.Errorf("the turn took %d tokens; want %d; %v", got, tt.turnTokens, failure)
			}
			var asked session.ExtensionAsked
			if err := json.Unmarshal([]byte(events["extension.asked"]), &asked); err != nil {
				t.Fatal(err)
			}
			want := provider.Request{
				Header:   session.Header{Model: asked.Model, Parameters: asked.Parameters},
				Messages: []session.Message{{Role: session.User, Content: asked.Prompt}},
			}
			if diff := cmp.Diff(want, tt.model.requests[0]); diff != "" {
				t.Errorf("the log has another request than the model got (-log +model):\n%s", diff)
			}
			if sent := log.Messages(); len(sent) == 0 || sent[0].Content != "hello" {
				t.Errorf("the session's own messages: %+v", sent)
			}
		})
	}
	e := idle(t)
	if _, err := e.Complete(t.Context(), engine.Completion{By: "x", Prompt: "x", MaxTokens: 1}); err == nil {
		t.Error("a model is asked outside of a turn")
	}
}
