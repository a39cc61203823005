package engine_test

import (
	"context"
	"testing"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// A server that refuses images is asked again without them, once; the log says so,
// and they stay away.
func TestImagesThatAreRefused(t *testing.T) {
	var asked []provider.Request
	blind := model{func(_ context.Context, req provider.Request) ([]provider.Delta, error) {
		asked = append(asked, req)
		if req.HasImages() {
			return nil, &provider.Error{Class: provider.Images, Status: 400, Message: "no images here"}
		}
		return []provider.Delta{{Text: "I see nothing."}, {Finish: "stop"}}, nil
	}}
	e, log := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider = &blind })
	image := session.Image{MediaType: "image/png", Data: []byte("png")}
	result := e.Turn(t.Context(), engine.Input{Text: "What is this?", Images: []session.Image{image}})
	if result.Text != "I see nothing." || len(asked) != 2 || !asked[0].HasImages() || asked[1].HasImages() {
		t.Errorf("Turn = %+v after %d requests; want a second one without the image", result, len(asked))
	}
	if e.Turn(t.Context(), engine.Input{Text: "And now?"}); len(asked) != 3 || asked[2].HasImages() {
		t.Errorf("%d requests; want 3, the last without the image", len(asked))
	}
	want := "What is this?\n[1 image(s) left out: this model cannot see them]"
	if got := log.Messages()[0]; got.Content != want || got.Images != nil {
		t.Errorf("the first message is %+v; want %q", got, want)
	}
}

func TestARefusalOfImagesThatAreNotThere(t *testing.T) {
	asked := 0
	wrong := model{func(context.Context, provider.Request) ([]provider.Delta, error) {
		asked++
		return nil, &provider.Error{Class: provider.Images, Message: "no images here"}
	}}
	e, _ := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { c.Provider = &wrong })
	if r := e.Turn(t.Context(), engine.Input{Text: "hi"}); r.Reason != session.ModelError || asked != 1 {
		t.Errorf("Turn = %s after %d requests; want model_error after 1", r.Reason, asked)
	}
}
