package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

// built is the output of ext build --json.
type built struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Size   int    `json:"size"` // bytes
	Digest string `json:"digest"`
}

func extBuild(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext build", pflag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON object; with --watch, one for each build")
	watch := flags.Bool("watch", false, "build again whenever something in the folder changes, until interrupted")
	if err := parse(io, flags, "ext build [--json] [--watch] [DIR]", args); err != nil {
		return err
	}
	dir := "."
	switch flags.NArg() {
	case 0:
	case 1:
		dir = flags.Arg(0)
	default:
		return usagef("ext build: it takes one folder, with an extension.toml and the source beside it")
	}
	once := func() error { return buildAndTell(ctx, io, dir, *asJSON) }
	if *watch {
		return watchFolder(ctx, io, dir, once)
	}
	return once()
}

// buildAndTell builds a folder's extension and says what came of it.
func buildAndTell(ctx context.Context, io stdio, dir string, asJSON bool) error {
	r, err := build.Extension(ctx, build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
	if err != nil {
		return err
	}
	if err := tryOut(ctx, r); err != nil {
		return errors.Join(err, os.Remove(r.Path))
	}
	sum := sha256.Sum256(r.Wasm)
	out := built{Path: r.Path, Name: r.Manifest.Name, Size: len(r.Wasm), Digest: hex.EncodeToString(sum[:])}
	if asJSON {
		return printJSON(io, out)
	}
	_, err = fmt.Fprintf(io.out, "%s: %d bytes, sha256:%s\n", out.Path, out.Size, out.Digest)
	return err
}

// tryOut starts what was built, once: a handler that the manifest does not
// declare shows only then. It also fills the compile cache, ahead of the first
// run.
func tryOut(ctx context.Context, built *build.Result) error {
	h, closeHost, err := ownHost()
	if err != nil {
		return err
	}
	defer closeHost()
	ext, err := h.LoadBytes(ctx, built.Manifest.Name, built.Wasm, host.Options{})
	if err != nil {
		return err
	}
	session, err := ext.Session(ctx, host.SessionConfig{})
	if err != nil {
		return err
	}
	session.Close()
	return nil
}

// lookEvery is how often a watched folder is looked at. Asking the system to tell
// would not reach every file system.
const lookEvery = 300 * time.Millisecond

// watchFolder builds whenever the sources are not as they were. What does not
// build is told, and waited for.
func watchFolder(ctx context.Context, io stdio, dir string, once func() error) error {
	last := ""
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		state, err := build.State(dir)
		if err != nil {
			return err
		}
		if state != last {
			last = state
			if err := once(); err != nil && ctx.Err() == nil {
				fmt.Fprintf(io.err, "wharf: %s\n", printable(err.Error()))
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if s, ok := context.Cause(ctx).(signalled); ok {
				return exitError{code: signalStatus(s.Signal)} // it was meant to end so
			}
			return context.Cause(ctx)
		}
	}
}
