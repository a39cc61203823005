package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/extensions"
	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

func extCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "ext: ", []command{
		{name: "new", args: "NAME", run: extNew},
		{name: "build", args: "DIR", run: extBuild},
		{name: "check", args: "FILE.wasm|DIR", run: extCheck},
		{name: "test", args: "[DIR|FILE.wasm]", run: extTest},
		{name: "inspect", args: "FILE.wasm", run: extInspect},
		{name: "run", args: "FILE.wasm POINT|--tool TOOL", run: extRun},
		{name: "bench", args: "FILE.wasm", run: extBench},
	}, args)
}

func extBuild(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext build", pflag.ContinueOnError)
	if err := parse(io, flags, "ext build DIR", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext build: it takes one folder, with an extension.toml and the source beside it")
	}
	built, err := build.Extension(ctx, build.Config{Dir: flags.Arg(0), SDK: guestsdk.Go(), Env: os.Environ()})
	if err != nil {
		return err
	}
	if err := tryOut(ctx, built); err != nil {
		return errors.Join(err, os.Remove(built.Path))
	}
	fmt.Fprintf(io.out, "%s: %d bytes, sha256:%x\n", built.Path, len(built.Wasm), sha256.Sum256(built.Wasm))
	return nil
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

// readModule reads a module from a file, or the shipped extension of that name.
func readModule(path string) ([]byte, error) {
	if !strings.ContainsAny(path, "/.") {
		return extensions.Read(path)
	}
	return host.ReadExtension(path)
}
