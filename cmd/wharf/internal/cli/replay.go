package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine"
)

// sessionReplay runs the engine anew over a recorded session, without any effect.
func sessionReplay(ctx context.Context, io stdio, args []string) (err error) {
	flags := pflag.NewFlagSet("session replay", pflag.ContinueOnError)
	store, id, err := sessionArgs(io, flags, "session replay ID", args)
	if err != nil {
		return err
	}
	records, torn, err := store.Read(id)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wharf-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	report, err := engine.Replay(ctx, records, dir)
	if err != nil {
		return fmt.Errorf("replay session %s: %w", id, err)
	}
	for _, cut := range report.Cut {
		fmt.Fprintf(io.out, "replayed up to its end from outside: %s\n", printable(cut))
	}
	if torn > 0 {
		fmt.Fprintf(io.out, "the last line is torn (%d bytes), and left out\n", torn)
	}
	if report.Difference != "" {
		fmt.Fprintf(io.out, "event %d: %s\n", report.Seq, printable(report.Difference))
		return fmt.Errorf("session %s does not replay: this Wharf does something else than what is recorded", id)
	}
	fmt.Fprintf(io.out, "session %s replays: %s, and the same in %s\n", id, count(report.Turns, "turn"), count(report.Requests, "request"))
	return nil
}
