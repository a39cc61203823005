package cli

import (
	"context"
	"strings"

	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
)

func extCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "ext: ", []command{
		{"new", "NAME", "begin one: a folder that builds as it is", extNew},
		{"build", "[DIR]", "make NAME.wasm of a folder", extBuild},
		{"check", "FILE.wasm|DIR", "can it be loaded, and what is doubtful in it?", extCheck},
		{"test", "[DIR|FILE.wasm]", "run its cases (testdata/*.toml)", extTest},
		{"inspect", "FILE.wasm", "what it is, and what it asks for", extInspect},
		{"run", "FILE.wasm POINT|--tool TOOL", "call it once, with a payload of yours", extRun},
		{"bench", "FILE.wasm", "how long a call takes", extBench},
	}, args)
}

// readModule reads a module from a file, or the shipped extension of that name.
func readModule(path string) ([]byte, error) {
	if !strings.ContainsAny(path, "/.") {
		return extensions.Read(path)
	}
	return host.ReadExtension(path)
}
