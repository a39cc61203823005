package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// noModel is a provider that nobody is going to ask.
type noModel struct{}

func (noModel) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		yield(provider.Delta{}, errors.New("no model is to be asked"))
	}
}

// sessionCompact puts a summary in the place of a session's older messages.
func sessionCompact(ctx context.Context, io stdio, args []string) (err error) {
	var o runOptions
	flags := o.flags()
	flags.Init("session compact", 0)
	flags.BoolVar(&o.withoutModel, "without-model", false, "make an extract, and ask no model")
	for _, name := range []string{"continue", "resume", "fork", "max-steps", "output-format", "verbose"} {
		_ = flags.MarkHidden(name) // they are about a turn, or about the session, which is named
	}
	if err := parse(io, flags, "session compact [--without-model] [flags of run] ID", args); err != nil {
		return err
	}
	if flags.NArg() != 1 || o.cont || o.fork || o.resume != "" {
		return usagef("session compact: it takes one session, by its name: see \"wharf session list\"")
	}
	o.resume = flags.Arg(0)
	view := newProgress(io.err, o.verbose)
	plan, err := o.plan(view)
	if err != nil {
		return err
	}
	var ended session.CompactionEnded
	parts, err := o.build(ctx, plan, view, func(r session.Record) {
		if e, ok := r.Event.(session.CompactionEnded); ok {
			ended = e
		}
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.close()) }()
	summary, err := parts.engine.Compact(ctx, !o.withoutModel)
	if err != nil {
		return fmt.Errorf("compact session %s: %w", plan.resume, err)
	}
	if summary == "" {
		fmt.Fprintf(io.out, "session %s has nothing to summarize\n", plan.resume)
		return nil
	}
	if ended.Error != "" {
		view.notice("the model gave no summary, so this is an extract: %s", ended.Error)
	}
	fmt.Fprintf(io.out, "%s\n\nsession %s now has about %d tokens\n", printable(summary), plan.resume, ended.Tokens)
	return nil
}
