package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
)

// sessionFork copies a session up to the end of a turn.
func sessionFork(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("session fork", pflag.ContinueOnError)
	at := flags.Int("at", 0, "copy up to the end of `TURN`, counted from 1 (default: all of it)")
	store, id, err := sessionArgs(io, flags, "session fork [--at TURN] ID", args)
	if err != nil {
		return err
	}
	if flags.Changed("at") && *at < 1 {
		return usagef("session fork: --at %d: turns are counted from 1", *at)
	}
	log, err := store.Fork(id, *at, "", nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.out, "session %s is a fork of %s, with %s of it\n%s\n", log.ID(), id, count(log.Turns(), "turn"), goOn(log))
	return log.Close()
}
