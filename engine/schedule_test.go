package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// plannedCall is what a call does.
type plannedCall struct {
	ID       int
	Parallel bool
	Wavers   int // of three questions whether it may run beside others, that many are answered by chance; 3: one of them with a panic
	Alone    int // once so many bodies have ended it must run alone, whatever was said before; 0: never
	Takes    time.Duration
	How      string // works, fails, panics or is denied
}

// house runs planned calls and watches what runs beside what.
type house struct {
	mu       sync.Mutex
	calls    map[string]plannedCall // by call id
	chance   *rand.Rand
	ended    int          // bodies
	said     map[int]bool // the latest answer to whether it may run beside others
	running  map[int]bool
	most     int
	problems []string
}

func (h *house) Spec() tool.Spec {
	return tool.Spec{Tool: session.Tool{Name: "do", Description: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}, Effect: permission.Reads}
}

func (h *house) Parallel(arguments json.RawMessage) bool {
	var args struct{ ID int }
	if err := json.Unmarshal(arguments, &args); err != nil {
		panic(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.calls[callID(args.ID)]
	yes := c.Parallel
	if h.chance.IntN(3) < c.Wavers {
		yes = h.chance.IntN(2) == 0
	}
	yes = yes && (c.Alone == 0 || h.ended < c.Alone)
	h.said[args.ID] = yes
	if c.Wavers == 3 && h.chance.IntN(3) == 0 {
		h.said[args.ID] = false
		panic("it cannot say")
	}
	return yes
}

func (h *house) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	h.mu.Lock()
	c := h.calls[string(call.ID)]
	for other := range h.running {
		if !h.said[c.ID] || !h.said[other] || c.Alone > 0 && h.ended >= c.Alone {
			h.problems = append(h.problems, fmt.Sprintf("%d runs beside %d", c.ID, other))
		}
	}
	h.running[c.ID] = true
	h.most = max(h.most, len(h.running))
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, c.ID)
		h.ended++
	}()
	timer := time.NewTimer(c.Takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
	switch c.How {
	case "fails":
		return tool.Result{}, fmt.Errorf("%d failed", c.ID)
	case "panics":
		panic(fmt.Sprint(c.ID, " broke down"))
	}
	return tool.Result{Content: fmt.Sprint(c.ID)}, nil
}

// want is the result that a call must have if nothing cut it short.
func (c plannedCall) want() string {
	switch c.How {
	case "fails":
		return fmt.Sprint(c.ID, " failed")
	case "panics":
		return fmt.Sprintf("the tool do broke down: %d broke down", c.ID)
	case "denied":
		return `denied by extension "guard": no`
	}
	return fmt.Sprint(c.ID)
}

// deniesPlanned denies the calls that are to be denied, at different speeds.
type deniesPlanned struct{ *house }

func (d deniesPlanned) Name() string { return "guard" }

func (d deniesPlanned) Handles(p hook.Point) (hook.Handling, bool) {
	return hook.Handling{Timeout: time.Hour, OnFailure: hook.DenyIt}, p == hook.BeforeExecuteTool || p == hook.AfterExecuteTool
}

func (d deniesPlanned) Call(_ context.Context, p hook.Point, payload []byte) ([]byte, error) {
	var at struct {
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal(payload, &at); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(len(payload)) * time.Millisecond) // of the bubble
	if p == hook.BeforeExecuteTool && d.calls[at.CallID].How == "denied" {
		return []byte(`{"decision":"deny","reason":"no"}`), nil
	}
	return nil, nil
}

// playCalls runs one reply with these calls, and says what does not hold.
func playCalls(t *testing.T, planned []plannedCall, parallel int, cancelAfter time.Duration) (problems []string) {
	h := &house{
		calls: map[string]plannedCall{}, running: map[int]bool{}, said: map[int]bool{},
		chance: rand.New(rand.NewPCG(uint64(len(planned)), uint64(parallel))),
	}
	var calls []string
	for _, c := range planned {
		h.calls[callID(c.ID)] = c
		calls = append(calls, fmt.Sprintf(`{"name":"do","arguments":{"ID":%d}}`, c.ID))
	}
	raw := `{"calls":[` + strings.Join(calls, ",") + `]}`
	replies, err := script.Parse("x", strings.NewReader(raw+"\n{\"text\":\"Done.\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var order, results []string
	_, log := createLog(t, func(r session.Record) {
		switch e := r.Event.(type) {
		case session.ToolCall:
			order = append(order, string(e.CallID))
		case session.ToolResult:
			results = append(results, string(e.CallID))
			if got, want := e.Content, h.calls[string(e.CallID)].want(); got != want && e.Code != string(tool.Aborted) && e.Code != string(tool.AbortedBeforeDispatch) {
				problems = append(problems, fmt.Sprintf("%s: %q; want %q", e.CallID, got, want))
			}
			if cancelAfter == 0 && e.Code != "" && e.Code != string(tool.Denied) {
				problems = append(problems, fmt.Sprintf("%s: code %s", e.CallID, e.Code))
			}
		}
	})
	tools := &tool.Registry{}
	if err := tools.Add(h); err != nil {
		t.Fatal(err)
	}
	policy, err := permission.New(permission.WorkspaceWrite, permission.ApproveNever)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{
		Provider: script.New(replies), Log: log, Tools: tools, Policy: policy, Hooks: []hook.Hook{deniesPlanned{h}}, Parallel: parallel,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if cancelAfter > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cancelAfter, errors.New("enough"))
		defer cancel()
	}
	result := e.Turn(ctx, engine.Input{Text: "go"})
	if cancelAfter == 0 && result.Reason != session.Completed {
		problems = append(problems, fmt.Sprintf("it ended as %s: %v", result.Reason, result.Err))
	}
	var want []string
	for _, c := range planned {
		want = append(want, callID(c.ID))
	}
	if result.Reason == session.Completed || len(order) > 0 { // a cancel before the reply leaves none
		if fmt.Sprint(order) != fmt.Sprint(want) || fmt.Sprint(results) != fmt.Sprint(want) {
			problems = append(problems, fmt.Sprintf("calls %v, results %v; want each once, in order", order, results))
		}
	}
	if h.most > parallel {
		problems = append(problems, fmt.Sprintf("%d bodies at once; the cap is %d", h.most, parallel))
	}
	if len(h.running) > 0 {
		problems = append(problems, fmt.Sprintf("%v still run", h.running))
	}
	return append(problems, h.problems...)
}

// callID returns the id that the engine gives the call of that number.
func callID(id int) string { return fmt.Sprintf("wharf_1_1_%d", id+1) }

// Whatever calls take and do, whatever their tool says of them from one question to
// the next, and whenever the turn is cancelled: one result each, in the model's
// order; nothing runs beside what must run alone; the cap holds.
func TestSchedule(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var planned []plannedCall
		for i := range 1 + r.IntN(12) {
			planned = append(planned, plannedCall{
				ID: i, Parallel: r.IntN(3) > 0, Wavers: max(0, r.IntN(8)-4), Takes: time.Duration(r.IntN(5000)) * time.Millisecond,
				How: []string{"works", "works", "works", "fails", "panics", "denied"}[r.IntN(6)],
			})
		}
		parallel := 1 + r.IntN(8)
		cancelAfter := time.Duration([]int{0, 0, 1, 300, 1000, 3000, 9000}[r.IntN(7)]) * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			for _, problem := range playCalls(t, planned, parallel, cancelAfter) {
				t.Errorf("seed %d: %s", seed, problem)
			}
		})
	}
}

// Whether a call may run beside others is asked again before it starts, as long as
// it waits: here it waits for a slot, and by then it must run alone.
func TestCallsAreClassifiedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		planned := []plannedCall{
			{ID: 0, Parallel: true, Takes: 5 * time.Second},
			{ID: 1, Parallel: true, Takes: time.Minute},
			{ID: 2, Parallel: true, Alone: 1, Takes: time.Second},
			{ID: 3, Parallel: true, Takes: time.Second},
		}
		for _, problem := range playCalls(t, planned, 2, 0) {
			t.Error(problem)
		}
	})
}

// Calls that may run side by side do: ten seconds of them take one.
func TestCallsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var planned []plannedCall
		for i := range 10 {
			planned = append(planned, plannedCall{ID: i, Parallel: true, Takes: 10 * time.Second})
		}
		begin := time.Now()
		if problems := playCalls(t, planned, 10, 0); len(problems) > 0 {
			t.Fatal(problems)
		}
		if took := time.Since(begin); took > 25*time.Second { // the hooks take a little
			t.Errorf("they took %v", took)
		}
	})
}

// busyHook notices when it is asked twice at once.
type busyHook struct {
	inside, asked atomic.Int32
	problem       atomic.Bool
}

func (h *busyHook) Name() string { return "watch" }

func (h *busyHook) Handles(p hook.Point) (hook.Handling, bool) {
	return hook.Handling{Timeout: time.Hour, OnFailure: hook.DenyIt}, p == hook.BeforeExecuteTool || p == hook.AfterExecuteTool
}

func (h *busyHook) Call(context.Context, hook.Point, []byte) ([]byte, error) {
	if h.inside.Add(1) > 1 {
		h.problem.Store(true)
	}
	defer h.inside.Add(-1)
	h.asked.Add(1)
	time.Sleep(time.Millisecond) // of the bubble
	return nil, nil
}

// Bodies that run side by side may each have the engine judge calls: hooks are
// asked one at a time all the same, and every call comes back.
func TestHammerNestedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, each = 8, 20
		var e *engine.Engine
		tools := testTools(t, nil)
		outer := fakeTool{
			tool.Spec{
				Tool:   session.Tool{Name: "outer", Description: "x", InputSchema: json.RawMessage(`{"type":"object"}`)},
				Effect: permission.Reads, Parallel: true,
			},
			func(ctx context.Context, call tool.Call) (tool.Result, error) {
				var all sync.WaitGroup
				for i := range each {
					all.Go(func() {
						r, err := e.CallTool(ctx, "relay", tool.Call{ID: "n", Name: "inner", Arguments: []byte(fmt.Sprintf(`{"text":"%s/%d"}`, call.ID, i))})
						if want := fmt.Sprintf("%s/%d", call.ID, i); err != nil || r.Content != want {
							t.Errorf("%+v, %v; want %s", r, err, want)
						}
					})
				}
				all.Wait()
				return tool.Result{Content: "done"}, nil
			},
		}
		inner := fakeTool{outer.spec, func(_ context.Context, call tool.Call) (tool.Result, error) {
			var args struct{ Text string }
			err := json.Unmarshal(call.Arguments, &args)
			return tool.Result{Content: args.Text}, err
		}}
		inner.spec.Name = "inner"
		if err := errors.Join(tools.Add(outer), tools.Add(inner)); err != nil {
			t.Fatal(err)
		}
		var made []string
		for i := range calls {
			made = append(made, fmt.Sprintf(`{"name":"outer","arguments":{"n":%d}}`, i))
		}
		replies, err := script.Parse("x", strings.NewReader(`{"calls":[`+strings.Join(made, ",")+`]}`+"\n{\"text\":\"Done.\"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, log := createLog(t, nil)
		policy, err := permission.New(permission.WorkspaceWrite, permission.ApproveNever)
		if err != nil {
			t.Fatal(err)
		}
		watch := &busyHook{}
		e, err = engine.New(engine.Config{Provider: script.New(replies), Log: log, Tools: tools, Policy: policy, Hooks: []hook.Hook{watch}})
		if err != nil {
			t.Fatal(err)
		}
		if result := e.Turn(t.Context(), engine.Input{Text: "go"}); result.Reason != session.Completed {
			t.Errorf("%+v", result)
		}
		if watch.problem.Load() {
			t.Error("a hook was asked twice at once")
		}
		if got, want := watch.asked.Load(), int32(2*calls*(each+1)); got != want {
			t.Errorf("the hook was asked %d times; want %d", got, want)
		}
	})
}
