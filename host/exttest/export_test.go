package exttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/secret"
)

// Retape plays a case, records it, and returns the case that comes of that.
func (r *Runner) Retape(ctx context.Context, c *Case) (string, error) {
	stage, err := openStage(c)
	if err != nil {
		return "", err
	}
	text, err := r.retape(ctx, c, stage)
	return text, errors.Join(err, stage.close())
}

func (r *Runner) retape(ctx context.Context, c *Case, stage *stage) (string, error) {
	ext, err := r.extension(ctx, c)
	if err != nil {
		return "", err
	}
	if err := stage.furnish(); err != nil {
		return "", err
	}
	var recorder Recorder
	world, err := stage.session(c, &recorder)
	if err != nil {
		return "", err
	}
	secrets, err := secret.NewStore(secret.Config{LookupEnv: lookup(c.world.Secrets)})
	if err != nil {
		return "", err
	}
	tape, err := NewTape(ctx, ext, c.world.Config, secrets)
	if err != nil {
		return "", err
	}
	tape.begun[0].value = literal(stage.time().Format(time.RFC3339))
	for _, granted := range ext.Granted.Secrets {
		_, _ = world.Secrets.Value(ctx, granted.Name)
		_, _ = secrets.Value(ctx, granted.Name)
	}
	world.Tape = tape.Take
	s, err := ext.Session(ctx, world)
	if err != nil {
		return "", err
	}
	defer s.Close()
	for _, step := range c.Steps {
		if step.form.Tool == "" {
			recorder.CallHook(ctx, s, step.hook.Point, step.payload)
		} else if _, err := recorder.CallTool(ctx, s, step.form.Tool, step.payload); err != nil {
			continue // it was not called
		}
	}
	text, _ := tape.Case(c.Name)
	for name, value := range c.world.Secrets {
		if strings.Contains(text, value) {
			return "", fmt.Errorf("the secret %s is in the case:\n%s", name, text)
		}
	}
	return text, nil
}
