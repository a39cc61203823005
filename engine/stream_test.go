package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
)

// newEngine returns an engine with the tools of transcripts, and its log.
func newEngine(t *testing.T, model string, change func(*engine.Config)) (*engine.Engine, *session.Log) {
	t.Helper()
	e, log := newUncheckedEngine(t, model, change)
	t.Cleanup(func() { // whatever a test did with it, it can be replayed
		content, err := os.ReadFile(log.Path())
		if err != nil {
			t.Error(err)
		}
		checkReplay(t, decodeLog(t, content))
	})
	return e, log
}

func newUncheckedEngine(t *testing.T, model string, change func(*engine.Config)) (*engine.Engine, *session.Log) {
	t.Helper()
	replies, err := script.Parse("model.jsonl", strings.NewReader(model))
	if err != nil {
		t.Fatal(err)
	}
	_, log := createLog(t, nil)
	policy, err := permission.New("", "")
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{Provider: script.New(replies), Log: log, Policy: policy, Model: "scripted"}
	if change != nil {
		change(&cfg)
	}
	if cfg.Tools == nil {
		cfg.Tools = testTools(t, func(error) {})
	}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e, log
}

// follow runs a turn and returns what is seen of it, a line each.
func follow(ctx context.Context, e *engine.Engine, in engine.Input) []string {
	var seen []string
	for event, err := range e.Run(ctx, in) {
		switch {
		case err != nil:
			seen = append(seen, "error: "+err.Error())
		case event.Event != nil:
			seen = append(seen, event.Type())
		default:
			seen = append(seen, fmt.Sprintf("text %q reasoning %q", event.Text, event.Reasoning))
		}
	}
	return seen
}

func TestRunYieldsWhatHappens(t *testing.T) {
	hidden := hook.Funcs{ID: "final", On: map[hook.Point]hook.Func{
		hook.FinalizeContent: func(context.Context, []byte) (hook.Verdict, error) { return hook.Verdict{}, nil },
	}}
	const answered = "turn.started user.message step.started request.header request.sent assistant.message step.ended turn.ended"
	tests := []struct {
		name, model, want string
		in                engine.Input
	}{
		{
			name: "an answer", model: `{"reasoning":"Hm.","text":"Yes."}`,
			want: strings.Replace(answered, "assistant", `text "" reasoning "Hm." text "Yes." reasoning "" assistant`, 1),
		},
		{
			name: "the text that a hook has yet to see is not shown", model: `{"text":"Yes."}`,
			in: engine.Input{Hooks: []hook.Hook{hidden}}, want: answered,
		},
		{
			name: "a turn that fails", model: `{"error":{"status":401,"message":"no such key"}}`,
			want: "turn.started user.message step.started request.header request.sent step.ended turn.ended error: status 401: no such key",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := newEngine(t, tt.model, nil)
			tt.in.Text = "go"
			if got := strings.Join(follow(t.Context(), e, tt.in), " "); got != tt.want {
				t.Errorf("Run yields\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A loop that is left cancels the turn, and what the turn started has ended by then.
func TestRunThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, log := newEngine(t, `{"calls":[{"name":"hang","arguments":{"text":"x"}}]}`, nil)
		for event := range e.Run(t.Context(), engine.Input{Text: "go"}) {
			if _, called := event.Event.(session.ToolCall); called {
				break
			}
		}
		synctest.Wait()
		if log.Turns() != 1 || log.StepOpen() {
			t.Error("the turn is not over")
		}
		last := log.Messages()[len(log.Messages())-1]
		if want := "the turn was cancelled while the call ran; it may have had an effect"; last.Content != want {
			t.Errorf("the call's result is %q, want %q", last.Content, want)
		}
	})
}

// A loop that is left at any event, the last too, comes back.
func TestRunThatIsLeftAnywhere(t *testing.T) {
	for n := 1; n <= 9; n++ {
		synctest.Test(t, func(t *testing.T) {
			e, log := newEngine(t, `{"text":"Done."}`, nil)
			seen := 0
			for range e.Run(t.Context(), engine.Input{Text: "go"}) {
				synctest.Wait() // the turn is as far as it comes without its follower
				if seen++; seen == n {
					break
				}
			}
			if log.Turns() != 1 || log.StepOpen() {
				t.Errorf("left at event %d: the turn is not over", n)
			}
		})
	}
}

// A slow loop does not hold up the turn, and may ask the engine what it likes.
func TestRunFollowedSlowly(t *testing.T) {
	e, _ := newEngine(t, strings.Repeat(`{"calls":[{"name":"echo","arguments":{"text":"x"}}]}`+"\n", 3)+`{"text":"Done."}`, nil)
	n := 0
	for range e.Run(t.Context(), engine.Input{Text: "go"}) {
		_ = e.Messages()
		runtime.Gosched()
		n++
	}
	if n < 20 {
		t.Errorf("Run yields %d events, want more", n)
	}
}

// A hook of one turn has its say in that turn alone.
func TestHooksOfOneTurn(t *testing.T) {
	model := strings.Repeat(`{"calls":[{"name":"echo","arguments":{"text":"x"}}]}`+"\n"+`{"text":"Done."}`+"\n", 3)
	e, _ := newEngine(t, model, nil)
	deny := func(_ context.Context, payload []byte) (hook.Verdict, error) {
		return hook.Verdict{Decision: hook.Deny, Reason: "not this time"}, nil
	}
	broken := func(context.Context, []byte) (hook.Verdict, error) { panic("boom") }
	late := func(ctx context.Context, _ []byte) (hook.Verdict, error) {
		<-ctx.Done()
		return hook.Verdict{}, nil
	}
	only := func(f hook.Func) []hook.Hook {
		return []hook.Hook{hook.Funcs{ID: "turn", Guard: true, On: map[hook.Point]hook.Func{hook.BeforeExecuteTool: f}, Timeout: 1e6}}
	}
	for _, tt := range []struct {
		hooks []hook.Hook
		want  string
	}{
		{only(deny), `denied by extension "turn": not this time`},
		{nil, ""},
		{only(broken), `the guard "turn" could not be asked: it broke down: boom`},
	} {
		result := e.Turn(t.Context(), engine.Input{Text: "go", Hooks: tt.hooks})
		got := ""
		for _, d := range result.Denials {
			got += d.Reason
		}
		if got != tt.want || result.Err != nil {
			t.Errorf("denials %q, %v, want %q", got, result.Err, tt.want)
		}
	}
	_, err := only(late)[0].Call(t.Context(), hook.BeforeExecuteTool, nil)
	if err == nil || err.Error() != "it took longer than 1ms" {
		t.Errorf("a late hook: %v", err)
	}
}

// Sessions share nothing: a thousand of them work at once in one process.
func TestManySessions(t *testing.T) {
	const sessions = 1_000
	ended := make(chan error, sessions)
	tools := testTools(t, func(error) {}) // that all of them share
	for i := range sessions {
		e, _ := newUncheckedEngine(t, fmt.Sprintf(`{"calls":[{"name":"echo","arguments":{"text":"%d"}}],"expect":{"last_contains":"say %d"}}
{"text":"said %d","expect":{"last_contains":"%d"}}`, i, i, i, i), func(c *engine.Config) { c.Tools = tools })
		go func() {
			r := e.Turn(context.Background(), engine.Input{Text: fmt.Sprintf("say %d", i)})
			if want := fmt.Sprintf("said %d", i); r.Text != want {
				r.Err = errors.Join(r.Err, fmt.Errorf("answer %q, want %q", r.Text, want))
			}
			ended <- r.Err
		}()
	}
	for range sessions {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
