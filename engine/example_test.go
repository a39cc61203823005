package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// A program of its own needs a model, a log and a policy; tools and hooks are Go
// values. What happens in a turn comes out of a loop.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := session.NewStore(dir, "example", session.SyncBatch)
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := store.Create("/workspace", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()

	replies, err := script.Parse("model", strings.NewReader(
		`{"calls":[{"name":"roll","arguments":{"sides":6}}]}`+"\n"+
			`{"calls":[{"name":"roll","arguments":{"sides":100}}]}`+"\n"+
			`{"text":"A four. The large die was not allowed."}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := permission.New(permission.WorkspaceWrite, permission.ApproveNever)
	if err != nil {
		fmt.Println(err)
		return
	}
	tools := &tool.Registry{}
	if err := tools.Add(roll{}); err != nil {
		fmt.Println(err)
		return
	}
	smallDice := hook.Funcs{ID: "small-dice", Guard: true, On: map[hook.Point]hook.Func{
		hook.BeforeExecuteTool: func(_ context.Context, payload []byte) (hook.Verdict, error) {
			var call struct{ Arguments struct{ Sides int } }
			err := json.Unmarshal(payload, &call)
			if err != nil || call.Arguments.Sides > 20 {
				return hook.Verdict{Decision: hook.Deny, Reason: "dice have at most 20 sides"}, err
			}
			return hook.Verdict{}, nil
		},
	}}
	e, err := engine.New(engine.Config{
		Provider: script.New(replies), Log: log, Tools: tools, Policy: policy, Hooks: []hook.Hook{smallDice},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range e.Run(context.Background(), engine.Input{Text: "Roll two dice."}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch what := event.Event.(type) {
		case session.ToolResult:
			fmt.Println("result:", what.Content)
		case session.TurnEnded:
			fmt.Println(what.Reason+":", what.Text)
		}
	}
	// Output:
	// result: you rolled a four
	// result: denied by extension "small-dice": dice have at most 20 sides
	// completed: A four. The large die was not allowed.
}

// roll is a tool that rolls a die.
type roll struct{}

func (roll) Spec() tool.Spec {
	return tool.Spec{
		Tool: session.Tool{
			Name: "roll", Description: "Roll a die.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"sides":{"type":"integer"}},"required":["sides"]}`),
		},
		Effect: permission.Reads,
	}
}

func (roll) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Content: "you rolled a four"}, nil
}
