package cli

import (
	"context"
	"strings"

	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
)

func extCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "ext: ", []command{
		{name: "new", args: "NAME", run: extNew},
		{name: "build", args: "[DIR]", run: extBuild},
		{name: "check", args: "FILE.wasm|DIR", run: extCheck},
		{name: "test", args: "[DIR|FILE.wasm]", run: extTest},
		{name: "inspect", args: "FILE.wasm", run: extInspect},
		{name: "run", args: "FILE.wasm POINT|--tool TOOL", run: extRun},
		{name: "bench", args: "FILE.wasm", run: extBench},
	}, args)
}

// readModule reads a module from a file, or the shipped extension of that name.
func readModule(path string) ([]byte, error) {
	if !strings.ContainsAny(path, "/.") {
		return extensions.Read(path)
	}
	return host.ReadExtension(path)
}
