// Package build makes an extension's .wasm file from a folder of sources.
//
// The folder holds extension.toml and the sources in one language, which its
// files tell: Go, C or the text format of WebAssembly. The compiler is the
// stock one of the language, found in PATH; nothing is fetched. The same
// sources and compiler give the same bytes.
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/host"
)

// Config says what to build, and with what.
type Config struct {
	Dir string   // the folder
	SDK fs.FS    // the sources of the Go SDK; only Go needs them
	Env []string // the caller's environment, of which compilers get what they need
}

// Result is what was built.
type Result struct {
	Path     string // DIR/NAME.wasm
	Manifest *host.Manifest
	Wasm     []byte
}

// ManifestFile is the name of the manifest in an extension's folder.
const ManifestFile = "extension.toml"

// Extension builds the folder's extension and writes DIR/NAME.wasm. What the
// host would refuse to load is an error, and then nothing is written.
func Extension(ctx context.Context, cfg Config) (*Result, error) {
	text, err := os.ReadFile(filepath.Join(cfg.Dir, ManifestFile))
	if err != nil {
		return nil, fmt.Errorf("build extension: %w", err)
	}
	manifest, err := host.ParseManifest(string(text))
	if err != nil {
		return nil, fmt.Errorf("build extension: %s: %w", filepath.Join(cfg.Dir, ManifestFile), err)
	}
	b := &builder{Config: cfg, manifest: manifest}
	wasm, err := b.build(ctx)
	if err != nil {
		return nil, fmt.Errorf("build extension %q: %w", manifest.Name, err)
	}
	if wasm, err = host.EmbedManifest(wasm, string(text)); err != nil {
		return nil, fmt.Errorf("build extension %q: %w", manifest.Name, err)
	}
	i, err := host.Inspect(wasm)
	if err == nil {
		err = i.Problem
	}
	if err != nil {
		return nil, fmt.Errorf("build extension %q: what was built cannot be loaded: %w", manifest.Name, err)
	}
	path := filepath.Join(cfg.Dir, manifest.Name+".wasm")
	if err := replaceFile(path, wasm); err != nil {
		return nil, fmt.Errorf("build extension %q: %w", manifest.Name, err)
	}
	return &Result{Path: path, Manifest: manifest, Wasm: wasm}, nil
}

// builder builds one extension.
type builder struct {
	Config
	manifest *host.Manifest
	temp     string // a folder of its own
	out      string // the file that the compiler writes
}

// language is how the sources of one language are compiled.
type language struct {
	Language
	suffix  string
	compile func(b *builder, ctx context.Context, sources []string) error
}

var languages = []language{
	{Language{"go", "Go", []Program{{"go", installGo}}}, ".go", (*builder).compileGo},
	{Language{"c", "C", []Program{{"clang", installC}, {"wasm-ld", installC}}}, ".c", (*builder).compileC},
	{Language{"wat", "WebAssembly text", []Program{{"wat2wasm", installWAT}}}, ".wat", (*builder).compileWAT},
}

// How the compilers are installed.
const (
	installGo  = "get Go from https://go.dev/dl"
	installC   = "apt install clang lld"
	installWAT = "apt install wabt"
)

// build compiles the folder in a temporary one.
func (b *builder) build(ctx context.Context) (wasm []byte, err error) {
	l, sources, err := findLanguage(b.Dir)
	if err != nil {
		return nil, err
	}
	if b.temp, err = os.MkdirTemp("", "wharf-build-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.temp)) }()
	b.out = filepath.Join(b.temp, "out.wasm")
	if err := l.compile(b, ctx, sources); err != nil {
		return nil, err
	}
	return host.ReadFile(b.out)
}

// findLanguage tells the folder's language and lists its sources.
func findLanguage(dir string) (language, []string, error) {
	var found []language
	var sources []string
	for _, l := range languages {
		files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"+l.suffix))
		if err != nil {
			return language{}, nil, err
		}
		if len(files) > 0 {
			found, sources = append(found, l), files
		}
	}
	switch len(found) {
	case 0:
		return language{}, nil, fmt.Errorf("%s has no sources: put .go, .c or .wat files beside %s", dir, ManifestFile)
	case 1:
		return found[0], sources, nil
	default:
		return language{}, nil, fmt.Errorf("%s has sources in %s and in %s: keep one", dir, found[0].Name, found[1].Name)
	}
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (b *builder) compileC(ctx context.Context, sources []string) error {
	if _, err := find(b.Env, "wasm-ld", installC); err != nil { // clang calls it
		return err
	}
	argv := []string{
		"clang", "--target=wasm32", "-std=c11", "-O2", "-Wall", "-Wextra", "-ffreestanding", "-nostdlib", "-mbulk-memory",
		"-Wl,--no-entry", "-Wl,--strip-all", "-o", b.out,
	}
	return b.run(ctx, b.Dir, installC, nil, append(argv, names(sources)...)...)
}

func (b *builder) compileWAT(ctx context.Context, sources []string) error {
	if len(sources) > 1 {
		return fmt.Errorf("%s has %d .wat files, and a module is one: keep one", b.Dir, len(sources))
	}
	return b.run(ctx, b.Dir, installWAT, nil, "wat2wasm", names(sources)[0], "-o", b.out)
}

func names(paths []string) []string {
	all := make([]string, len(paths))
	for i, p := range paths {
		all[i] = "./" + filepath.Base(p)
	}
	return all
}

// passed lists the variables that compilers get from the caller's environment.
var passed = []string{
	"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOPRIVATE",
	"GONOSUMDB", "GONOPROXY", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE",
}

// run runs a compiler in dir. What it said is the error.
func (b *builder) run(ctx context.Context, dir, install string, env []string, argv ...string) error {
	program, err := find(b.Env, argv[0], install)
	if err != nil {
		return err
	}
	name := argv[0]
	argv[0] = program
	for _, v := range b.Env {
		if key, _, _ := strings.Cut(v, "="); slices.Contains(passed, key) {
			env = append(env, v)
		}
	}
	if _, err := sandbox.Trusted(ctx, sandbox.TrustedCommand{Argv: argv, Dir: dir, Env: env}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// find finds a program in the PATH of an environment.
func find(env []string, program, install string) (string, error) {
	for _, v := range env {
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, program)
			info, err := os.Stat(file)
			if err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed: %s", program, install)
}

// replaceFile writes a whole file or nothing.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
