package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
)

func extCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "ext: ", []command{
		{"new", "NAME", "begin one: a folder that builds as it is", extNew},
		{"build", "[DIR]", "make NAME.wasm of a folder", extBuild},
		{"check", "FILE.wasm|DIR", "can it be loaded, and what is doubtful in it?", extCheck},
		{"test", "[DIR|FILE.wasm]", "run its cases (testdata/*.toml)", extTest},
		{"inspect", "FILE.wasm|DIR", "what it is, and what it asks for", extInspect},
		{"run", "FILE.wasm|DIR POINT|--tool TOOL", "call it once, with a payload of yours", extRun},
		{"bench", "FILE.wasm|DIR", "how long a call takes", extBench},
		{"install", "FILE|DIR|URL|--shipped NAME", "see what it may reach, and have it in every run", extInstall},
		{"update", "[NAME…]", "look at where installed ones came from again", extUpdate},
		{"list", "[--shipped]", "what is installed, or what comes with wharf", extList},
		{"remove", "NAME…", "take installed ones out", extRemove},
		{"grant", "NAME all|KEY…", "let an installed one have what it asks for", extGrant},
		{"revoke", "NAME all|KEY…", "take that back", extRevoke},
		{"sign", "FILE.wasm --key SECRETKEY", "sign one, for others to check", extSign},
		{"verify", "[NAME…] | FILE.wasm --pubkey KEY", "is it what was installed, or signed?", extVerify},
	}, args)
}

// builtIn returns the file of a module that is named by its folder: what was built
// there. Any other name stays as it is; a shipped extension's goes before a folder's.
func builtIn(path string, view *progress) (string, error) {
	if slices.Contains(extensions.Names(), path) {
		return path, nil
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path, nil // who reads it says what is wrong with it
	}
	file, doubts, err := moduleOf(path)
	if err != nil {
		return "", fmt.Errorf("%s: that is a folder: %w", path, err)
	}
	for _, doubt := range doubts {
		view.notice("%s", doubt)
	}
	return file, nil
}

// readModule reads a module from a file, or the shipped or installed extension of that
// name.
func readModule(path string) ([]byte, error) {
	if !isFile(path) {
		wasm, err := extensions.Read(path)
		if own, found := installedModule(path); err != nil && found {
			return own.Wasm, own.Err
		}
		return wasm, err
	}
	return host.ReadExtension(path)
}
