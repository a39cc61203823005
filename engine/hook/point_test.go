package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
)

// noting is a hook that handles every point, and keeps what it is shown.
type noting map[hook.Point][]byte

func (noting) Name() string { return "noting" }

func (noting) Handles(hook.Point) (hook.Handling, bool) {
	return hook.Handling{Timeout: 1, OnFailure: hook.AbortTurn}, true
}

func (n noting) Call(_ context.Context, p hook.Point, payload []byte) ([]byte, error) {
	n[p] = payload
	return nil, nil
}

// askEverywhere asks at every point that the engine has.
func askEverywhere(ctx context.Context, c *hook.Chain) error {
	result := hook.Result{Content: "ok", Code: "DENIED"}
	asks := []func() error{
		func() error { _, err := c.SessionStart(ctx, at, "new"); return err },
		func() error { _, err := c.UserPromptSubmit(ctx, at, "go"); return err },
		func() error { _, err := c.BeforeRun(ctx, at, "go"); return err },
		func() error { _, err := c.BeforeIteration(ctx, at, hook.Counts{}); return err },
		func() error { _, err := c.BeforeRequest(ctx, at, hook.Plan{Tools: []string{"exec"}}); return err },
		func() error { _, err := c.OnRequestError(ctx, at, hook.Failure{}); return err },
		func() error { return c.EmitReasoning(ctx, "hm") },
		func() error { return c.OnStream(ctx, "ha") },
		func() error { return c.StreamEnd(ctx, at, true, true) },
		func() error { return c.OnProviderToolEvent(ctx, at, []byte(`{"type":"search"}`)) },
		func() error { _, err := c.BeforeExecuteTools(ctx, at, []hook.Call{call}); return err },
		func() error { _, err := c.BeforeExecuteTool(ctx, at, call); return err },
		func() error { _, _, err := c.PermissionRequest(ctx, at, call, "the table"); return err },
		func() error { _, err := c.AfterExecuteTool(ctx, at, call, result); return err },
		func() error { _, err := c.OnExecuteToolError(ctx, at, call, result); return err },
		func() error { return c.AfterIteration(ctx, at, []hook.Done{{Call: call, Result: result}}) },
		func() error { _, err := c.BeforeCompact(ctx, at, hook.Compaction{}); return err },
		func() error { return c.AfterCompact(ctx, at, "in short") },
		func() error { return c.Notification(ctx, at, hook.Question, "may I?") },
		func() error { _, err := c.TurnStopping(ctx, at, "done"); return err },
		func() error { _, err := c.FinalizeContent(ctx, at, "done"); return err },
		func() error { return c.AfterRun(ctx, at, "done", session.Usage{}) },
		func() error { return c.OnError(ctx, at, "broken") },
		func() error { return c.OnFinally(ctx, at, session.Completed, "done") },
		func() error { return c.SessionEnd(ctx, at, "exit") },
	}
	for _, ask := range asks {
		if err := ask(); err != nil {
			return err
		}
	}
	return nil
}

// What hooks are shown is what the table says, key by key: SDKs and documentation
// come from it.
func TestPayloadsAreWhatTheTableSays(t *testing.T) {
	seen := noting{}
	if err := askEverywhere(t.Context(), hook.NewChain([]hook.Hook{seen}, func(session.Event) error { return nil })); err != nil {
		t.Fatal(err)
	}
	for _, info := range hook.Points {
		payload, asked := seen[info.Point]
		switch {
		case asked == info.Later:
			t.Errorf("%s is asked: %t, and for later: %t", info.Point, asked, info.Later)
		case asked && info.Raw:
		case asked:
			checkKeys(t, info, payload)
		}
	}
}

func checkKeys(t *testing.T, info hook.Info, payload []byte) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(payload, &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range info.Keys {
		value, there := fields[key.Name]
		if got := typeOf(value); !there || got != key.Type && (key.Type != hook.Integer || got != hook.Number) && key.Type != hook.Any {
			t.Errorf("%s: %s is %v (%s); want %s", info.Point, key.Name, value, got, key.Type)
		}
		delete(fields, key.Name)
	}
	for _, name := range []string{"session_id", "turn", "step"} {
		delete(fields, name)
	}
	if len(fields) > 0 {
		t.Errorf("%s has %v, which the table does not name", info.Point, fields)
	}
}

func typeOf(value any) hook.Type {
	switch value.(type) {
	case string:
		return hook.Text
	case float64:
		return hook.Number
	case bool:
		return hook.Boolean
	case map[string]any:
		return hook.Object
	case []any:
		return hook.List
	}
	return hook.Type(fmt.Sprintf("%T", value))
}
