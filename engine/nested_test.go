package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
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

// idle is an engine that has run nothing yet.
func idle(t *testing.T) *engine.Engine {
	store, err := session.NewStore(t.TempDir(), "test", session.SyncNever)
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Create("/workspace", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	e, err := engine.New(engine.Config{Provider: script.New(nil), Log: log, Model: "scripted"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
