package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// plannedSession is a session in which much goes wrong, as chance has it.
type plannedSession struct {
	Replies  []string // of the model, in turn; then a text
	Hooks    []map[hook.Point][]string
	Failures []hook.OnFailure // what comes of theirs
	Turns    []plannedTurn
	Steps    int
	Window   int // of the model; 0 is large
	Tokens   int64
	Time     time.Duration
	Fallback bool
}

// plannedTurn is a turn, and at which of its events somebody cancels or says something.
type plannedTurn struct {
	Prompt string
	Cancel int // 0: never
	Add    map[int]engine.Delivery
	Run    bool // it is followed, and left at the event of Cancel
	Resume bool // the session is opened anew before
	Torn   int  // bytes that its log lost then, as in a crash
	Window int  // of the model from then on
	Goal   bool
}

var plannedReplies = []string{
	"text", "text", "length", "empty", "calls", "calls", "calls", "same call", "nameless", "cut call", "filtered", "busy", "overflow", "images",
	"no class", "panic", "text, panic", "text, busy", "thought, busy", "deaf", "hang", "usage", "after the end", "binary", "goal",
}

var plannedAnswers = []string{
	"", "", "", "fail", "panic", "context", "block", "deny", "text", "content", "instead", "result", "parameters", "hide", "continue", "retry",
	"cancel", "add", "call", "ask", "compact", "turn", "slow",
}

// drawSession draws a session.
func drawSession(t *rapid.T) plannedSession {
	var points []hook.Point
	for _, info := range hook.Points {
		points = append(points, info.Point)
	}
	s := plannedSession{
		Replies:  rapid.SliceOfN(rapid.SampledFrom(plannedReplies), 0, 24).Draw(t, "replies"),
		Steps:    rapid.IntRange(1, 6).Draw(t, "steps"),
		Window:   rapid.SampledFrom([]int{0, 0, 100, 600, 2_000}).Draw(t, "window"),
		Tokens:   rapid.SampledFrom([]int64{0, 0, 50}).Draw(t, "tokens"),
		Time:     rapid.SampledFrom([]time.Duration{0, 0, 1500 * time.Millisecond}).Draw(t, "time"),
		Fallback: rapid.Bool().Draw(t, "fallback"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "hooks") {
		s.Hooks = append(s.Hooks, rapid.MapOfN(rapid.SampledFrom(points), rapid.SliceOfN(rapid.SampledFrom(plannedAnswers), 1, 4), 1, 6).Draw(t, "hook"))
		s.Failures = append(s.Failures, rapid.SampledFrom([]hook.OnFailure{hook.Isolate, hook.DenyIt, hook.AbortTurn}).Draw(t, "failure"))
	}
	s.Turns = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) plannedTurn {
		return plannedTurn{
			Prompt: rapid.SampledFrom([]string{"go", "go", "", strings.Repeat("much to read ", 60)}).Draw(t, "prompt"),
			Cancel: rapid.SampledFrom([]int{0, 0, 1, 2, 3, 5, 8, 13, 21}).Draw(t, "cancel"),
			Add:    rapid.MapOfN(rapid.IntRange(1, 20), rapid.SampledFrom([]engine.Delivery{engine.NextStep, engine.NextTurn, engine.Quietly}), 0, 6).Draw(t, "add"),
			Run:    rapid.Bool().Draw(t, "run"),
			Resume: rapid.Bool().Draw(t, "resume"),
			Torn:   rapid.SampledFrom([]int{0, 0, 1, 300, 3_000}).Draw(t, "torn"),
			Window: rapid.SampledFrom([]int{0, 100, 600}).Draw(t, "another window"),
			Goal:   rapid.Bool().Draw(t, "goal"),
		}
	}), 1, 4).Draw(t, "turns")
	return s
}

// played is a planned session under way.
type played struct {
	plannedSession
	engine   *engine.Engine
	store    *session.Store
	log      *session.Log
	events   int
	at       plannedTurn
	cancel   context.CancelCauseFunc
	history  session.History // of what was written
	problems []string
}

func (p *played) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

var errEnough = errors.New("enough")

// observe does what is planned for an event.
func (p *played) observe(r session.Record) {
	p.history.Add(r)
	p.events++
	if d, ok := p.at.Add[p.events]; ok && p.engine != nil {
		_ = p.engine.Add(engine.Input{Text: "and this"}, d)
	}
	if p.events == p.at.Cancel && p.cancel != nil && !p.at.Run {
		p.cancel(errEnough)
	}
}

// Stream is the model. It holds each request to the laws.
func (p *played) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	if len(req.Messages) != 1 || !strings.Contains(req.Messages[0].Content, "ask a model") && req.System == "house" {
		want, _ := json.Marshal(p.history.Messages())
		if got, _ := json.Marshal(req.Messages); !bytes.Equal(got, want) {
			p.problem("the model is shown\n%s\nand the log says\n%s", got, want)
		}
	}
	if why := unlawful(req.Messages); why != "" {
		p.problem("a request that a strict server refuses: %s", why)
	}
	kind := "text"
	if len(p.Replies) > 0 {
		kind, p.Replies = p.Replies[0], p.Replies[1:]
	}
	if kind == "panic" {
		panic("the provider broke down")
	}
	return func(yield func(provider.Delta, error) bool) {
		for _, d := range plannedDeltas(kind) {
			if !yield(d, nil) {
				return
			}
		}
		switch kind {
		case "text, panic":
			panic("the provider broke down")
		case "hang":
			<-ctx.Done()
			yield(provider.Delta{}, ctx.Err()) // and not its cause
		case "deaf":
			for ctx.Err() == nil {
				if time.Sleep(time.Second); !yield(provider.Delta{Text: "more "}, nil) {
					return
				}
			}
			yield(provider.Delta{Text: "late"}, nil)
		default:
			if err := plannedFailure(kind); err != nil {
				yield(provider.Delta{}, err)
			}
		}
	}
}

func plannedDeltas(kind string) []provider.Delta {
	call := func(id, name string) provider.Delta {
		return provider.Delta{Call: &session.Call{ID: session.CallID(id), Name: name, Arguments: fmt.Sprintf(`{"text":%q}`, name)}}
	}
	switch kind {
	case "text":
		return []provider.Delta{{Text: "An answer."}, {Finish: "stop"}}
	case "length":
		return []provider.Delta{{Reasoning: "Hm."}, {Text: "A part of " + strings.Repeat("a long answer ", 20)}, {Finish: "max_tokens"}}
	case "calls":
		return []provider.Delta{
			{Text: "I try."},
			call("", "echo"),
			call("a", "boom"),
			call("wharf_1_1_1", "side"),
			call("a", "side"),
			call(strings.Repeat("x", 5000), "panic"),
			call("", "no such tool"),
			call("n", "nest"),
		}
	case "goal":
		said := `{"status":"reached","note":"seen"}`
		return []provider.Delta{{Text: "Done."}, {Call: &session.Call{Name: engine.GoalTool, Arguments: said}}, call("", "echo")}
	case "same call":
		return []provider.Delta{call("s", "side"), call("s", "side"), call("s", "side"), call("s", "side"), call("s", "side"), {Finish: "stop"}}
	case "nameless":
		return []provider.Delta{call("", " ")}
	case "cut call":
		return []provider.Delta{{Text: "Now"}, call("", "echo"), {Finish: "length"}}
	case "filtered":
		return []provider.Delta{{Text: "This"}, call("", "echo"), {Finish: "content_filter"}}
	case "text, panic", "text, busy":
		return []provider.Delta{{Text: "Half of"}}
	case "thought, busy":
		return []provider.Delta{{Reasoning: "Half of"}}
	case "usage":
		return []provider.Delta{{Text: "An answer."}, call("", "echo"), {Usage: &session.Usage{InputTokens: 1 << 62, OutputTokens: -5, CacheReadTokens: 1 << 63 >> 1}}}
	case "after the end":
		return []provider.Delta{{Finish: "stop"}, {Text: "An answer."}, {Finish: "tool_calls"}, {}, call("z", "echo")}
	case "binary":
		return []provider.Delta{{Text: "\xff\x00"}, {Call: &session.Call{ID: "\xff", Name: "ec\xffho", Arguments: "\xfe"}}, {Call: &session.Call{ID: "\xfe", Name: "echo", Arguments: "\xfe"}}}
	}
	return nil
}

func plannedFailure(kind string) error {
	class := map[string]provider.Class{"overflow": provider.Overflow, "images": provider.Images}[kind]
	switch {
	case kind == "no class":
		return errors.New("something of its own")
	case strings.HasSuffix(kind, "busy"):
		class = provider.Server
	}
	if class == "" {
		return nil
	}
	return &provider.Error{Class: class, Message: kind}
}

// answer is what a hook does.
func (p *played) answer(ctx context.Context, at hook.Point, kind string) (hook.Verdict, error) {
	put := func(key, value string) (hook.Verdict, error) {
		return hook.Verdict{Replace: map[string]json.RawMessage{key: json.RawMessage(value)}}, nil
	}
	switch kind {
	case "fail":
		return hook.Verdict{}, errors.New("broken\xff")
	case "panic":
		panic("the hook broke down")
	case "context":
		return hook.Verdict{Context: "mind this"}, nil
	case "block", "deny", "retry":
		return hook.Verdict{Decision: hook.Decision(kind), Reason: "no"}, nil
	case "continue":
		return hook.Verdict{Decision: hook.Continue, Message: "look again"}, nil
	case "text", "content":
		return put(kind, `"in other words"`)
	case "instead":
		return put("response", `{"text":"from a hook"}`)
	case "result":
		return put("result", `{"content":"from a hook"}`)
	case "parameters":
		return put("parameters", `{"max_tokens":7}`)
	case "hide":
		return put("hide_tools", `["echo"]`)
	case "cancel":
		p.cancel(errEnough)
	case "add":
		return hook.Verdict{}, p.engine.Add(engine.Input{Text: "from a hook"}, engine.NextStep)
	case "call":
		_, err := p.engine.CallTool(ctx, "planned", tool.Call{ID: "x", Name: "side", Arguments: json.RawMessage(`{"text":"x"}`)})
		return hook.Verdict{}, err
	case "ask":
		_, err := p.engine.Complete(ctx, engine.Completion{By: "planned", CallID: "x", Prompt: "ask a model", MaxTokens: 5})
		return hook.Verdict{}, err
	case "compact":
		_, err := p.engine.Compact(ctx, false)
		return hook.Verdict{}, err
	case "turn":
		return hook.Verdict{}, p.engine.Turn(ctx, engine.Input{Text: "inside"}).Err
	case "slow":
		time.Sleep(2 * time.Second)
	}
	return hook.Verdict{}, nil
}

// hook makes a planned hook.
func (p *played) hook(n int) hook.Hook {
	f := hook.Funcs{ID: fmt.Sprintf("hook%d", n), On: map[hook.Point]hook.Func{}, Approve: n == 0}
	for at, answers := range p.Hooks[n] {
		asked := 0
		f.On[at] = func(ctx context.Context, _ []byte) (hook.Verdict, error) {
			asked++
			return p.answer(ctx, at, answers[(asked-1)%len(answers)])
		}
	}
	return decidedHook{f, p.Failures[n]}
}

// decidedHook is a hook of which it is said what comes of its failures.
type decidedHook struct {
	hook.Funcs
	failure hook.OnFailure
}

func (d decidedHook) Handles(p hook.Point) (hook.Handling, bool) {
	handling, ok := d.Funcs.Handles(p)
	handling.OnFailure = d.failure
	return handling, ok
}

// sideTool may run beside others, and panics where it can.
type sideTool struct{ fakeTool }

func (s sideTool) Parallel(arguments json.RawMessage) bool {
	if bytes.Contains(arguments, []byte("panic")) {
		panic("the tool broke down")
	}
	return true
}

func (p *played) tools(t *testing.T) *tool.Registry {
	r := &tool.Registry{}
	for _, tl := range []tool.Tool{
		fake("echo", permission.Reads, echo),
		fake("boom", permission.Network, echo),
		fake("panic", permission.Reads, func(context.Context, tool.Call) (tool.Result, error) { panic("the tool broke down") }),
		fake("nest", permission.Reads, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			return p.engine.CallTool(ctx, "planned", tool.Call{ID: "y", Name: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})
		}),
		fakeTool{tool.Spec{Tool: session.Tool{Name: engine.GoalTool, InputSchema: json.RawMessage(`{"type":"object"}`)}, Effect: permission.Reads}, echo},
		sideTool{fakeTool{fake("side", permission.Reads, nil).Spec(), func(ctx context.Context, c tool.Call) (tool.Result, error) {
			time.Sleep(100 * time.Millisecond)
			return tool.Result{Content: strings.Repeat("long result \xff ", 200)}, ctx.Err()
		}}},
	} {
		if err := r.Add(tl); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// resume opens the session anew, after what may have been a crash.
func (p *played) resume(t *testing.T, planned plannedTurn) {
	p.at, p.engine = plannedTurn{}, nil
	p.log.Close()
	content, err := os.ReadFile(p.log.Path())
	if err == nil {
		first := bytes.IndexByte(content, '\n') + 1
		err = os.Truncate(p.log.Path(), int64(max(first, len(content)-planned.Torn)))
	}
	if err == nil {
		p.log, err = p.store.Resume(p.log.ID(), p.observe)
	}
	if err == nil {
		content, err = os.ReadFile(p.log.Path())
	}
	if err != nil {
		t.Fatal(err)
	}
	p.history = session.History{}
	for _, r := range decodeLog(t, content) {
		p.history.Add(r)
	}
	p.Window = planned.Window
	p.equip(t)
}

// equip makes the session's engine.
func (p *played) equip(t *testing.T) {
	policy, err := permission.New("", "")
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{
		Provider: p, Log: p.log, Tools: p.tools(t), Policy: policy, Model: "m", System: "house", MaxSteps: p.Steps, GoalRounds: 3,
		Budget: engine.Budget{Tokens: p.Tokens, Time: p.Time}, RequestTimeout: 20 * time.Second,
		Context: governance.Config{Window: p.Window, BlockLimit: p.Window * 3 / 4, MaxResult: 400},
	}
	for n := range p.Hooks {
		cfg.Hooks = append(cfg.Hooks, p.hook(n))
	}
	if p.Fallback {
		cfg.Fallbacks = []string{"other"}
	}
	if p.engine, err = engine.New(cfg); err != nil {
		t.Fatal(err)
	}
}

var reasons = []session.Reason{
	session.Completed, session.MaxSteps, session.MaxTokens, session.EmptyResponse, session.Blocked, session.Cancelled, session.ToolError,
	session.ModelError, session.HookError, session.Budget,
}

// turn plays a turn.
func (p *played) turn(t *testing.T, planned plannedTurn) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	p.cancel, p.events, p.at = cancel, 0, planned
	if planned.Run {
		seen := 0
		for range p.engine.Run(ctx, engine.Input{Text: planned.Prompt, Goal: planned.Goal}) {
			if seen++; seen == planned.Cancel {
				break
			}
		}
		return
	}
	r := p.engine.Turn(ctx, engine.Input{Text: planned.Prompt, Goal: planned.Goal})
	if !slices.Contains(reasons, r.Reason) || (r.Err == nil) != (r.Reason == session.Completed) {
		p.problem("a turn ended as %q: %v", r.Reason, r.Err)
	}
	if r.Reason == session.ToolError && !strings.Contains(r.Err.Error(), "invalidly") {
		p.problem("a fault of Wharf's own: %v", r.Err)
	}
}

// end checks the log that the session left.
func (p *played) end(t *testing.T) {
	content, err := os.ReadFile(p.log.Path())
	if err != nil {
		t.Fatal(err)
	}
	records := decodeLog(t, content)
	for _, problem := range session.Verify(records).Problems {
		p.problem("the log does not hold: %s", problem)
	}
	open, started, ended := map[session.CallID]int{}, 0, 0
	for _, r := range records {
		switch e := r.Event.(type) {
		case session.AssistantMessage:
			for _, c := range e.Calls {
				open[c.ID]++
			}
		case session.ToolResult:
			open[e.CallID]--
		case session.TurnStarted:
			started++
		case session.TurnEnded:
			ended++
		}
	}
	for id, n := range open {
		if n != 0 {
			p.problem("call %.20q misses %d results", id, n)
		}
	}
	if report, err := engine.Replay(t.Context(), records, t.TempDir()); err != nil || report.Difference != "" {
		p.problem("replayed: %v, from event %d on: %s", err, report.Seq, report.Difference)
	}
	if started != ended {
		p.problem("%d turns started, %d ended", started, ended)
	}
}

// playSession plays a session and says what does not hold.
func playSession(t *testing.T, s plannedSession) []string {
	p := &played{plannedSession: s}
	p.store, p.log = createLog(t, p.observe)
	p.equip(t)
	_ = p.engine.Start(t.Context(), "new")
	for _, planned := range s.Turns {
		if planned.Resume {
			p.resume(t, planned)
		}
		p.turn(t, planned)
	}
	_ = p.engine.End(t.Context(), "done")
	p.end(t)
	p.log.Close()
	return p.problems
}

// unlawful says why a strict server would refuse messages; empty if it would not.
func unlawful(messages []session.Message) string {
	if n := len(messages); n == 0 || messages[0].Role != session.User || messages[n-1].Role == session.Assistant {
		return fmt.Sprintf("of its %d messages the first is not the user's, or the last is the model's", n)
	}
	seen, open := map[session.CallID]bool{}, map[session.CallID]bool{}
	for i, m := range messages {
		switch {
		case m.Role != session.ToolRole && len(open) > 0, m.Role == session.ToolRole && !open[m.CallID]:
			return fmt.Sprintf("message %d does not follow its calls", i)
		case strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 && len(m.Images) == 0:
			return fmt.Sprintf("message %d is empty", i)
		}
		delete(open, m.CallID)
		for _, c := range m.Calls {
			if c.ID == "" || seen[c.ID] || strings.TrimSpace(c.Name) == "" {
				return fmt.Sprintf("message %d has a call %.20q of %q", i, c.ID, c.Name)
			}
			seen[c.ID], open[c.ID] = true, true
		}
	}
	return ""
}

// Whatever models, tools, hooks and users do, the laws hold: what the model is shown
// is what the log says, it is legal, the log holds, each call has one result, a turn
// ends for one of the reasons and leaves nothing running, the next one works, and all of
// it can be replayed.
func TestLawsHoldWhateverHappens(t *testing.T) {
	if os.Getenv("WHARF_TEST_SOAK") != "1" { // the same hundred each time; task soak looks for others
		seed := flag.Lookup("rapid.seed")
		defer func(was string) { _ = seed.Value.Set(was) }(seed.Value.String())
		_ = seed.Value.Set("1")
	}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSession(rt)
		var problems []string
		n++
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { problems = playSession(t, s) })
		})
		if len(problems) > 0 {
			rt.Fatal(strings.Join(problems, "\n"))
		}
	})
}
