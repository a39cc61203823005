package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
)

// Hooks hear of tools that the provider runs, between the pieces of the answer.
func TestToolsThatTheProviderRuns(t *testing.T) {
	searched := json.RawMessage(`{"type":"response.web_search_call.completed"}`)
	var heard []string
	ears := hook.Funcs{ID: "ears", On: map[hook.Point]hook.Func{
		hook.OnProviderToolEvent: func(_ context.Context, payload []byte) (hook.Verdict, error) {
			var p struct{ Event json.RawMessage }
			err := json.Unmarshal(payload, &p)
			heard = append(heard, string(p.Event))
			return hook.Verdict{}, err
		},
		hook.OnStream: func(_ context.Context, payload []byte) (hook.Verdict, error) {
			heard = append(heard, string(payload))
			return hook.Verdict{}, nil
		},
	}}
	replies := model{says(provider.Delta{Text: "a"}, provider.Delta{ProviderTool: searched}, provider.Delta{Text: "b"})}
	e, _ := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider, c.Hooks = &replies, []hook.Hook{ears} })
	if r := e.Turn(t.Context(), engine.Input{Text: "go"}); r.Text != "ab" {
		t.Errorf("Turn = %+v; want ab", r)
	}
	if len(heard) != 3 || heard[0] != "a" || heard[1] != string(searched) || heard[2] != "b" {
		t.Errorf("heard %q; want a, the event, b", heard)
	}
}
