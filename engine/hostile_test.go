package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// asStream is a provider made of a function.
type asStream func(ctx context.Context, yield func(provider.Delta, error) bool)

func (f asStream) Stream(ctx context.Context, _ provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) { f(ctx, yield) }
}

// A provider of somebody's own may do what it likes: the turn ends, and says why.
func TestProvidersThatMisbehave(t *testing.T) {
	tests := []struct {
		name   string
		model  asStream
		reason session.Reason
		err    string
	}{
		{"it panics", func(context.Context, func(provider.Delta, error) bool) { panic("oh") }, session.ModelError, "the provider broke down: oh"},
		{"it goes on after it was left", func(_ context.Context, yield func(provider.Delta, error) bool) {
			yield(provider.Delta{}, errors.New("no"))
			yield(provider.Delta{Text: "more"}, nil)
		}, session.ModelError, "the provider broke down: runtime error: range function continued iteration after function for loop body returned false"},
		{"its error has no class", func(_ context.Context, yield func(provider.Delta, error) bool) {
			yield(provider.Delta{Text: "Half"}, errors.New("no such model"))
		}, session.ModelError, "no such model"},
		{"it never ends", func(_ context.Context, yield func(provider.Delta, error) bool) {
			for yield(provider.Delta{Text: "more "}, nil) {
				time.Sleep(time.Second)
			}
		}, session.Cancelled, "the user pressed Ctrl-C"},
		{"it ends early and says nothing of it", func(ctx context.Context, yield func(provider.Delta, error) bool) {
			yield(provider.Delta{Text: "Half"}, nil)
			<-ctx.Done()
		}, session.Cancelled, "the user pressed Ctrl-C"},
		{"it says only that it was cancelled", func(ctx context.Context, yield func(provider.Delta, error) bool) {
			<-ctx.Done()
			yield(provider.Delta{}, ctx.Err())
		}, session.Cancelled, "the user pressed Ctrl-C"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := newUncheckedEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider = tt.model })
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(3*time.Second, func() { cancel(errors.New("the user pressed Ctrl-C")) })
				r := e.Turn(ctx, engine.Input{Text: "go"})
				if r.Reason != tt.reason || r.Err == nil || r.Err.Error() != tt.err {
					t.Errorf("Turn = %s %v; want %s %s", r.Reason, r.Err, tt.reason, tt.err)
				}
			})
		})
	}
}

// The time of a turn is over, whatever a provider makes of the end of its context.
func TestProvidersAndTheBudgetOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newUncheckedEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
			c.Budget.Time = time.Second
			c.Provider = asStream(func(ctx context.Context, yield func(provider.Delta, error) bool) {
				<-ctx.Done()
				yield(provider.Delta{}, ctx.Err())
			})
		})
		if r := e.Turn(t.Context(), engine.Input{Text: "go"}); r.Reason != session.Budget {
			t.Errorf("Turn = %s %v; want budget", r.Reason, r.Err)
		}
	})
}

// What a server says that it counted is neither believed nor added up to nonsense.
func TestUsageThatCannotBe(t *testing.T) {
	e, log := newUncheckedEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
		c.Budget.Tokens = 1_000
		c.Provider = asStream(func(_ context.Context, yield func(provider.Delta, error) bool) {
			_ = yield(provider.Delta{Call: &session.Call{Name: "echo", Arguments: `{"text":"x"}`}}, nil) &&
				yield(provider.Delta{Usage: &session.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CacheReadTokens: math.MinInt64}}, nil)
		})
	})
	r := e.Turn(t.Context(), engine.Input{Text: "go"})
	if want := (session.Usage{InputTokens: 1 << 40, OutputTokens: 1 << 40}); r.Reason != session.Budget || r.Usage != want || log.Turns() != 1 {
		t.Errorf("Turn = %s %+v; want budget %+v", r.Reason, r.Usage, want)
	}
}

// oddTool is a tool that breaks down where it is asked something.
type oddTool struct {
	specs int // times that it says what it is
	run   func()
}

func (o *oddTool) Spec() tool.Spec {
	if o.specs--; o.specs < 0 {
		panic("no more")
	}
	return tool.Spec{Tool: session.Tool{Name: "odd", InputSchema: json.RawMessage(`{"type":"object"}`)}, Effect: permission.Reads}
}

func (o *oddTool) Run(context.Context, tool.Call) (tool.Result, error) {
	o.run()
	return tool.Result{Content: "done"}, nil
}

// A tool that breaks down has a result like any other, and the turn goes on.
func TestToolsThatBreakDown(t *testing.T) {
	tests := []struct {
		name string
		tool *oddTool
		want string
	}{
		{"it panics when it runs", &oddTool{100, func() { panic("oh") }}, "the tool odd broke down: oh"},
		{"it panics when it is asked what it is", &oddTool{2, func() {}}, "the tool odd broke down: no more"},
		{"it ends its goroutine", &oddTool{100, runtime.Goexit}, "the tool odd ended its goroutine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, log := newEngine(t, `{"calls":[{"name":"odd","arguments":{}}]}`+"\n"+`{"text":"Done."}`, func(c *engine.Config) {
				c.Tools = &tool.Registry{}
				if err := c.Tools.Add(tt.tool); err != nil {
					t.Fatal(err)
				}
			})
			r := e.Turn(t.Context(), engine.Input{Text: "go"})
			if got := log.Messages()[2].Content; r.Reason != session.Completed || got != tt.want {
				t.Errorf("Turn = %s %v, the result is %q; want %q", r.Reason, r.Err, got, tt.want)
			}
		})
	}
}

// panics is a hook that is not made of functions, and breaks down.
type panics struct{}

func (panics) Name() string { return "panics" }

func (panics) Handles(p hook.Point) (hook.Handling, bool) {
	return hook.Handling{OnFailure: hook.DefaultOnFailure(true, p)}, p == hook.UserPromptSubmit
}

func (panics) Call(context.Context, hook.Point, []byte) ([]byte, error) { panic("oh") }

func TestHooksThatPanic(t *testing.T) {
	e, _ := newEngine(t, `{"text":"Done."}`, func(c *engine.Config) { c.Hooks = []hook.Hook{panics{}} })
	r := e.Turn(t.Context(), engine.Input{Text: "go"})
	if want := `the guard "panics" could not be asked: it broke down: oh`; r.Reason != session.Blocked || r.Err.Error() != want {
		t.Errorf("Turn = %s %v; want blocked: %s", r.Reason, r.Err, want)
	}
}

// An engine does one thing at a time, and says so.
func TestOneTurnAtATime(t *testing.T) {
	var e *engine.Engine
	var inner engine.Result
	var compact error
	called := false
	e, _ = newEngine(t, `{"calls":[{"name":"echo","arguments":{"text":"x"}}]}`+"\n"+`{"text":"Done."}`, func(c *engine.Config) {
		c.Hooks = []hook.Hook{hook.Funcs{ID: "inside", On: map[hook.Point]hook.Func{
			hook.BeforeExecuteTool: func(ctx context.Context, _ []byte) (hook.Verdict, error) {
				inner = e.Turn(ctx, engine.Input{Text: "inside"})
				_, compact = e.Compact(ctx, false)
				_, err := e.CallTool(ctx, "inside", tool.Call{ID: "n", Name: "echo", Arguments: json.RawMessage(`{"text":"y"}`)})
				called = err == nil
				return hook.Verdict{}, nil
			},
		}}}
	})
	const want = "a turn of this session is running: wait for its end, or use Add"
	r := e.Turn(t.Context(), engine.Input{Text: "go"})
	if r.Reason != session.Completed || !called || inner.Reason != session.ToolError || inner.Err.Error() != want || compact == nil || compact.Error() != want {
		t.Errorf("Turn = %s %v, within it Turn = %s %v, Compact = %v, CallTool works: %t", r.Reason, r.Err, inner.Reason, inner.Err, compact, called)
	}
}

// A strict server takes no request that ends with the model's own words.
func TestTheModelAlwaysHasSomethingToAnswer(t *testing.T) {
	block := hook.Funcs{ID: "judge", On: map[hook.Point]hook.Func{
		hook.UserPromptSubmit: func(_ context.Context, payload []byte) (hook.Verdict, error) {
			if strings.Contains(string(payload), "bad") {
				return hook.Verdict{Decision: hook.Block}, nil
			}
			return hook.Verdict{}, nil
		},
	}}
	var e *engine.Engine
	e, log := newEngine(t, `{"text":"One."}`+"\n"+`{"text":"Two."}`, func(c *engine.Config) { c.Hooks = []hook.Hook{block} })
	if err := e.Add(engine.Input{Text: "bad"}, engine.NextStep); err != nil {
		t.Fatal(err)
	}
	say := hook.Funcs{ID: "late", On: map[hook.Point]hook.Func{
		hook.OnStream: func(_ context.Context, payload []byte) (hook.Verdict, error) {
			if string(payload) == "One." {
				return hook.Verdict{}, e.Add(engine.Input{Text: "bad"}, engine.NextStep)
			}
			return hook.Verdict{}, nil
		},
	}}
	r := e.Turn(t.Context(), engine.Input{Text: "go", Hooks: []hook.Hook{say}})
	var said []string
	for _, m := range log.Messages() {
		said = append(said, m.Content)
	}
	want := "go|One.|Another message came in, and was withheld. Go on without it, or give your answer again.|Two."
	if got := strings.Join(said, "|"); r.Reason != session.Completed || got != want {
		t.Errorf("Turn = %s %v with\n%s\nwant\n%s", r.Reason, r.Err, got, want)
	}
	r = e.Turn(t.Context(), engine.Input{Text: " "})
	if want := "the prompt is empty, and there is nothing to go on with: say something"; r.Reason != session.Blocked || r.Err.Error() != want {
		t.Errorf("an empty prompt: Turn = %s %v; want blocked: %s", r.Reason, r.Err, want)
	}
}

// What somebody said is not lost when the turn is cancelled while hooks look at it.
func TestInputsOutliveACancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	e, _ := newEngine(t, `{"text":"Done."}`, func(c *engine.Config) {
		c.Hooks = []hook.Hook{hook.Funcs{ID: "judge", On: map[hook.Point]hook.Func{
			hook.UserPromptSubmit: func(context.Context, []byte) (hook.Verdict, error) {
				if asked++; asked == 2 {
					cancel(errors.New("the user pressed Ctrl-C"))
				}
				return hook.Verdict{}, nil
			},
		}}}
	})
	for _, text := range []string{"first", "second"} {
		if err := e.Add(engine.Input{Text: text}, engine.NextStep); err != nil {
			t.Fatal(err)
		}
	}
	if r := e.Turn(ctx, engine.Input{Text: "go"}); r.Reason != session.Cancelled {
		t.Errorf("Turn = %s %v; want cancelled", r.Reason, r.Err)
	}
	for _, want := range []string{"first", "second"} {
		if in, ok := e.Next(); !ok || in.Text != want {
			t.Errorf("Next = %q, %t; want %q", in.Text, ok, want)
		}
	}
}

// What there was of an answer is not lost when the turn ends before the whole.
func TestPartsOfAnAnswerThatIsNeverWhole(t *testing.T) {
	const cut = `{"text":"Half of it","finish_reason":"length"}`
	for name, model := range map[string]string{
		"no more steps": cut + "\n" + `{"error":{"status":401,"message":"no"}}`,
		"only silence":  cut + strings.Repeat("\n"+`{"text":""}`, 4),
	} {
		e, _ := newEngine(t, model, func(c *engine.Config) {
			if name == "no more steps" {
				c.MaxSteps = 1
			}
		})
		if r := e.Turn(t.Context(), engine.Input{Text: "go"}); r.Err == nil || r.Text != "Half of it" {
			t.Errorf("%s: Turn = %s %q %v; want what there was", name, r.Reason, r.Text, r.Err)
		}
	}
}

// Configurations that would limit nothing, or make no sense, are refused.
func TestConfigThatMakesNoSense(t *testing.T) {
	prices := func(p engine.Price) map[string]engine.Price { return map[string]engine.Price{"m": p} }
	for want, cfg := range map[string]engine.Config{
		"engine: a limit in Config is negative: use 0 for its default":                                             {MaxSteps: -1},
		"engine: Parameters are no JSON object":                                                                    {Parameters: json.RawMessage("null")},
		"engine: a budget is negative, or no number: use 0 for no limit":                                           {Budget: engine.Budget{Cost: math.NaN()}},
		`engine: a price of the model "m" is negative, or no number`:                                               {Prices: prices(engine.Price{Output: math.Inf(1)})},
		`engine: the cost of a turn is limited, and there is no price for the model "n": add one, or limit tokens`: {Model: "n", Budget: engine.Budget{Cost: 1}},
	} {
		_, log := createLog(t, nil)
		cfg.Provider, cfg.Log = asStream(nil), log
		if _, err := engine.New(cfg); err == nil || err.Error() != want {
			t.Errorf("New = %v; want %s", err, want)
		}
	}
}

// The same call is the same, however it is written.
func TestRepeatsInOtherWords(t *testing.T) {
	const text = `{"text":"aß","n":1000,"list":[-0.5,{"x":0}]}`
	ways := []string{
		text, `{ "list" : [ -0.50, {"x":-0} ], "n":1000.0, "text":"aß" }`, `{"n":1e3,"text":"\u0061\u00df","list":[-5e-1,{"x":0e9}]}`,
		`{"n":7,"text":"aß","list":[-0.05e1,{"x":0.0}],"n":10E2}`, `{"text":"aß","n":1000e0,"list":[-50e-2,{"x":0}]}`,
	}
	others := []string{
		text, `{"text":"aß","n":1001,"list":[-0.5,{"x":0}]}`, `{"text":"aß","n":1000,"list":[0.5,{"x":0}]}`, `{"text":"aß","n":"1000","list":[-0.5,{"x":0}]}`,
		`{"text":"aß","n":10000,"list":[-0.5,{"x":0}]}`, `{"text":"aß","n":12345678901234567890,"list":[]}`, `{"text":"aß","n":12345678901234567891,"list":[]}`,
	}
	for name, calls := range map[string][]string{"ways": ways, "others": others} {
		var made []provider.Delta
		for _, arguments := range calls {
			made = append(made, provider.Delta{Call: &session.Call{Name: "echo", Arguments: arguments}})
		}
		e, log := newUncheckedEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
			c.Provider = &model{says(made...), says(provider.Delta{Text: "Done."})}
		})
		if r := e.Turn(t.Context(), engine.Input{Text: "go"}); r.Reason != session.Completed {
			t.Fatalf("Turn = %s %v", r.Reason, r.Err)
		}
		last := log.Messages()[1+len(calls)].Content
		if refused := strings.HasPrefix(last, "refused: this is call number 5 in a row"); refused != (name == "ways") {
			t.Errorf("%s: the last result is %q", name, last)
		}
	}
}

// Text that is no UTF-8 is the same to the engine, to the log and to whoever reads it.
func TestRepliesThatAreNoText(t *testing.T) {
	e, log := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
		c.Provider = &model{
			says(provider.Delta{Call: &session.Call{ID: "\xff", Name: "echo", Arguments: `{"text":"\xff"}`}}, provider.Delta{Call: &session.Call{ID: "\xfe", Name: "ec\xfeho"}}),
			says(provider.Delta{Text: "a\xff\x00"}),
		}
	})
	r := e.Turn(t.Context(), engine.Input{Text: "go"})
	m := log.Messages()
	if r.Text != "a\ufffd\x00" || m[1].Calls[0].ID != "\ufffd" || m[1].Calls[1].ID != "wharf_1_1_2" || m[3].Content != "there is no tool \"ec\ufffdho\"" {
		t.Errorf("Turn = %q, with %+v", r.Text, m)
	}
}

// An answer in the last step is the answer, whatever somebody says meanwhile: that is
// for the next turn.
func TestAnInputInTheLastStep(t *testing.T) {
	e, _ := newEngine(t, `{"text":"Done."}`, func(c *engine.Config) { c.MaxSteps = 1 })
	say := hook.Funcs{ID: "late", On: map[hook.Point]hook.Func{
		hook.OnStream: func(context.Context, []byte) (hook.Verdict, error) {
			return hook.Verdict{}, e.Add(engine.Input{Text: "more"}, engine.NextStep)
		},
	}}
	r := e.Turn(t.Context(), engine.Input{Text: "go", Hooks: []hook.Hook{say}})
	if in, ok := e.Next(); r.Reason != session.Completed || r.Text != "Done." || !ok || in.Text != "more" {
		t.Errorf("Turn = %s %q %v; then %q waits, %t", r.Reason, r.Text, r.Err, in.Text, ok)
	}
}

// Whoever says something, whenever and however many do, it reaches the model once; and
// what is not for several goroutines says so.
func TestHammerInputs(t *testing.T) {
	const turns, talkers = 20, 100
	e, log := newUncheckedEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
		c.Provider = asStream(func(_ context.Context, yield func(provider.Delta, error) bool) {
			runtime.Gosched()
			yield(provider.Delta{Text: "Yes."}, nil)
		})
	})
	var talking sync.WaitGroup
	for n := range talkers {
		talking.Go(func() {
			d := []engine.Delivery{engine.NextStep, engine.NextTurn, engine.Quietly}[n%3]
			for e.Add(engine.Input{Text: fmt.Sprintf("input %d.", n)}, d) != nil {
				runtime.Gosched()
			}
			_, _ = e.Messages(), e.Info()
			if n%10 == 0 {
				if r := e.Turn(t.Context(), engine.Input{Text: "me too"}); r.Reason != session.Completed && r.Err.Error() != "a turn of this session is running: wait for its end, or use Add" {
					t.Errorf("a turn beside another ends as %s %v", r.Reason, r.Err)
				}
				_, _ = e.Compact(t.Context(), true)
			}
		})
	}
	said := make(chan struct{})
	go func() { talking.Wait(); close(said) }()
	for done, idle := false, 0; idle < turns; {
		select {
		case <-said:
			done = true
		default:
		}
		in, ok := e.Next()
		if !ok {
			in.Text = "anything else?"
			if done {
				idle++
			}
		}
		if r := e.Turn(t.Context(), in); ok && r.Err != nil && r.Reason == session.ToolError { // another one runs
			if err := e.Add(in, engine.NextTurn); err != nil {
				talking.Go(func() {
					for e.Add(in, engine.NextTurn) != nil {
						runtime.Gosched()
					}
				})
			}
		}
	}
	content, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	records := decodeLog(t, content)
	if problems := session.Verify(records).Problems; len(problems) > 0 {
		t.Errorf("the log does not hold: %v", problems)
	}
	for n := range talkers {
		if got := bytes.Count(content, fmt.Appendf(nil, `"content":"input %d."`, n)); got != 1 {
			t.Errorf("input %d is in the log %d times", n, got)
		}
	}
}
