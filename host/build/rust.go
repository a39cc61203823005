package build

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// rust is Rust, by its compiler alone: cargo is not needed, and Debian has it
// in another package. An SDK in the folder is used; else that of this program.
var rust = language{
	Language: Language{ID: "rust", Name: "Rust", Needs: []Program{rustc}},
	sources:  []string{"src/lib.rs", "lib.rs"},
	compile:  (*builder).compileRust,
}

var rustc = Program{
	Name:    "rustc for " + rustTarget,
	Install: "apt install rustc libstd-rust-dev-wasm32, or rustup target add " + rustTarget,
	look:    findRustc,
}

const rustTarget = "wasm32-unknown-unknown"

// compileRust compiles the SDK, and then the extension with it. Names of files
// are relative to the extension's folder or begin with wharf, so that the same
// sources give the same bytes anywhere.
func (b *builder) compileRust(ctx context.Context, sources []string) error {
	sdk := filepath.Join(b.Dir, "wharf")
	if _, err := os.Stat(filepath.Join(sdk, "src", "lib.rs")); err != nil {
		if sdk, err = b.unpackSDK(); err != nil {
			return err
		}
	}
	root, err := filepath.Rel(b.Dir, sources[0])
	if err != nil {
		return err
	}
	library := filepath.Join(b.temp, "libwharf.rlib")
	common := []string{"--edition=2021", "--target=" + rustTarget, "-Copt-level=s", "-Ccodegen-units=1", "-Cpanic=abort", "--cap-lints=warn"}
	if sdk, err = realPath(sdk); err != nil {
		return err
	}
	err = b.run(ctx, rustc, sdk, rustEnv, append(common, "--crate-type=rlib", "--crate-name=wharf", "--remap-path-prefix="+sdk+"=wharf",
		"-o", library, "src/lib.rs")...)
	if err != nil {
		return err
	}
	return b.run(ctx, rustc, b.Dir, rustEnv, append(common, "--crate-type=cdylib", "--crate-name=extension", "-Clto=fat", "-Cstrip=symbols", "-Clink-arg=-zstack-size=262144",
		"--extern=wharf="+library, "-o", b.out, "./"+root)...)
}

// realPath is what a compiler calls a folder that it works in.
func realPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// rustEnv keeps rustup from fetching a toolchain that a folder asks for.
var rustEnv = []string{"RUSTUP_AUTO_INSTALL=0"}

// findRustc finds the first compiler in the PATH that has the standard library
// for Wasm: beside one of Debian's, which has it, there is often one of rustup's,
// which does not.
func findRustc(ctx context.Context, env []string) ([]string, error) {
	for _, file := range findAll(env, "rustc") {
		out, err := sandbox.Trusted(ctx, sandbox.TrustedCommand{
			Argv: []string{file, "--print=target-libdir", "--target=" + rustTarget}, Env: append(rustEnv, ofCaller(env)...),
		})
		if err != nil {
			continue
		}
		if parts, _ := filepath.Glob(filepath.Join(escapeGlob(strings.TrimSpace(string(out.Stdout))), "libstd-*.rlib")); len(parts) > 0 {
			return []string{file}, nil
		}
	}
	return nil, fs.ErrNotExist
}
