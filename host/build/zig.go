package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// zig is Zig for wasm32-freestanding. Its safety checks stay: a guard that would
// read past the end of something traps, and so denies. An SDK beside the sources
// is used; else that of this program.
var zig = language{
	Language: Language{ID: "zig", Name: "Zig", Needs: []Program{zigTool}},
	sources:  []string{"*.zig"},
	compile:  (*builder).compileZig,
}

var zigTool = Program{Name: "zig", Install: "pip install ziglang", look: lookZig}

const (
	zigSDK   = "wharf.zig"
	zigStack = 256 << 10 // bytes; the default is 16 MiB for each instance
)

// zigRoot is the program's root: the author's file comes with what the SDK says
// of traps.
const zigRoot = `pub const panic = @import("wharf").panic;

comptime {
    _ = @import("extension");
}
`

// lookZig finds zig, which Python's package ziglang brings too.
func lookZig(ctx context.Context, env []string) ([]string, error) {
	if file, err := find(env, "zig"); err == nil {
		return []string{file}, nil
	}
	python, err := find(env, "python3")
	if err != nil {
		return nil, err
	}
	argv := []string{python, "-m", "ziglang"}
	_, err = sandbox.Trusted(ctx, sandbox.TrustedCommand{Argv: append(slices.Clip(argv), "version"), Env: ofCaller(env)})
	return argv, err
}

// compileZig compiles main.zig, or the only file there is.
func (b *builder) compileZig(ctx context.Context, sources []string) error {
	own := slices.DeleteFunc(names(sources), func(name string) bool { return name == "./"+zigSDK })
	root := "./main.zig"
	switch {
	case len(own) == 1:
		root = own[0]
	case !slices.Contains(own, root):
		return fmt.Errorf("%s has %d .zig files, and none is main.zig: name the one that registers hooks and tools so", b.Dir, len(own))
	}
	sdk := "./" + zigSDK
	if len(own) == len(sources) {
		unpacked, err := b.unpackSDK()
		if err != nil {
			return err
		}
		sdk = filepath.Join(unpacked, zigSDK)
	}
	program := filepath.Join(b.temp, "root.zig")
	if err := os.WriteFile(program, []byte(zigRoot), 0o600); err != nil {
		return err
	}
	args := []string{
		"build-exe", "-target", "wasm32-freestanding", "-O", "ReleaseSafe", "-fstrip", "-fno-entry", "-rdynamic",
		"--stack", fmt.Sprint(zigStack), "--name", "extension", "-femit-bin=" + b.out, "--cache-dir", filepath.Join(b.temp, "cache"),
	}
	if !hasHome(b.Env) {
		args = append(args, "--global-cache-dir", filepath.Join(b.temp, "global"))
	}
	return b.run(ctx, zigTool, b.Dir, nil, append(args,
		"--dep", "extension", "--dep", "wharf", "-Mroot="+program, "--dep", "wharf", "-Mextension="+root, "-Mwharf="+sdk)...)
}

// hasHome reports whether there is a place for caches in an environment.
func hasHome(env []string) bool {
	return slices.ContainsFunc(env, func(v string) bool {
		key, value, _ := strings.Cut(v, "=")
		return value != "" && (key == "HOME" || key == "XDG_CACHE_HOME" || key == "ZIG_GLOBAL_CACHE_DIR")
	})
}
