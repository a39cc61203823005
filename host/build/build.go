// Package build makes an extension's .wasm file from a folder of sources.
//
// The folder holds extension.toml and the sources in one language, which its
// files tell. The compiler is the stock one of the language, found in PATH;
// nothing is fetched. The same sources and compiler give the same bytes.
package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/host"
)

// Config says what to build, and with what.
type Config struct {
	Dir string                      // the folder
	SDK func(language string) fs.FS // the sources of a language's SDK, nil if there is none
	Env []string                    // the caller's environment, of which compilers get what they need
}

// Result is what was built.
type Result struct {
	Path     string // DIR/NAME.wasm
	Manifest *host.Manifest
	Wasm     []byte
}

// ManifestFile is the name of the manifest in an extension's folder.
const ManifestFile = "extension.toml"

// ErrNoManifest reports a folder that is not an extension's, or not yet.
var ErrNoManifest = errors.New("it is no folder of an extension: it has no " + ManifestFile + ": name the folder that has it, or begin one: wharf ext new NAME")

// Extension builds the folder's extension and writes DIR/NAME.wasm. What the
// host would refuse to load is an error, and then nothing is written.
func Extension(ctx context.Context, cfg Config) (*Result, error) {
	text, err := readManifest(cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("build extension: %s: %w", cfg.Dir, ErrNoManifest)
	}
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

// readManifest reads a folder's manifest. A pipe there holds nobody up.
func readManifest(dir string) ([]byte, error) {
	path := filepath.Join(dir, ManifestFile)
	if err := checkRegular(path); err != nil {
		return nil, err
	}
	return host.ReadFile(path)
}

// checkRegular refuses what is there and no file: reading a pipe or a device may never end.
func checkRegular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	return nil // that it is not there says who reads it
}

// builder builds one extension.
type builder struct {
	Config
	manifest *host.Manifest
	language language
	temp     string // a folder of its own
	out      string // the file that the compiler writes
}

// build compiles the folder in a temporary one.
func (b *builder) build(ctx context.Context) (wasm []byte, err error) {
	var sources []string
	if b.language, sources, err = findLanguage(b.Dir); err != nil {
		return nil, err
	}
	if b.temp, err = os.MkdirTemp("", "wharf-build-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.temp)) }()
	b.out = filepath.Join(b.temp, "out.wasm")
	if b.Env, err = b.withOwnPrograms(); err != nil {
		return nil, err
	}
	for _, p := range b.language.Needs {
		if _, err := p.Command(ctx, b.Env); err != nil {
			return nil, err
		}
	}
	if err := b.language.compile(b, ctx, sources); err != nil {
		return nil, err
	}
	if wasm, err = host.ReadFile(b.out); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s found nothing wrong, and wrote no module", b.language.Needs[0].Name)
	}
	return wasm, err
}

// withOwnPrograms returns the environment with the programs first that stand in
// the folder itself.
func (b *builder) withOwnPrograms() ([]string, error) {
	if b.language.programs == "" {
		return b.Env, nil
	}
	own, err := filepath.Abs(filepath.Join(b.Dir, b.language.programs))
	if err != nil {
		return nil, err
	}
	env := slices.Clone(b.Env)
	for i, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			env[i] = "PATH=" + own + string(filepath.ListSeparator) + path
		}
	}
	return env, nil
}

// unpackSDK writes the sources of the language's SDK to a folder of their own.
func (b *builder) unpackSDK() (string, error) {
	var sdk fs.FS
	if b.SDK != nil {
		sdk = b.SDK(b.language.ID)
	}
	if sdk == nil {
		return "", fmt.Errorf("the SDK for %s is not part of this program", b.language.Name)
	}
	to := filepath.Join(b.temp, "sdk", "guest-sdk", b.language.ID)
	return to, copyTree(sdk, to, func(string) bool { return false })
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
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
	"PATH", "HOME", "XDG_CACHE_HOME", "GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOPRIVATE",
	"GONOSUMDB", "GONOPROXY", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE",
	"ZIG_GLOBAL_CACHE_DIR", "PYTHONPATH", "PYENV_ROOT", "PYENV_VERSION",
}

// run runs a compiler in dir. What it said is the error.
func (b *builder) run(ctx context.Context, program Program, dir string, env []string, args ...string) error {
	argv, err := program.Command(ctx, b.Env)
	if err != nil {
		return err
	}
	out, err := sandbox.Trusted(ctx, sandbox.TrustedCommand{Argv: append(argv, args...), Dir: dir, Env: b.env(env)})
	switch said := b.asKnown(firstWords(out)); {
	case err == nil:
		return nil
	case ctx.Err() != nil || said == "":
		return fmt.Errorf("%s: %w", program.Name, err)
	default:
		return fmt.Errorf("%s:\n%s", program.Name, said)
	}
}

// env is a compiler's environment. What it leaves behind when it is killed is in the
// folder that goes with the build.
func (b *builder) env(own []string) []string {
	return append(append(slices.Clip(own), ofCaller(b.Env)...), "TMPDIR="+b.temp)
}

// firstWords returns the beginning of what a compiler said: its first complaint
// often explains the others.
func firstWords(out sandbox.Output) string {
	said := out.Stderr
	if len(bytes.TrimSpace(said)) == 0 {
		said = out.Stdout
	}
	const most = 4000
	if len(said) > most {
		said = append(slices.Clip(said[:most]), "…"...)
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(said), "\ufffd"))
}

// place is a file's name and a line, in a compiler's words.
var place = regexp.MustCompile("(?m)(^|[\\s\"'`(])([^\\s\"'`(:]+):([0-9]+)")

// placeOfAsc is the same as asc says it.
var placeOfAsc = regexp.MustCompile(`(?m)( in \S+\.ts)\((\d+),(\d+)\)$`)

// asKnown names files in a compiler's words as the author knows them: from where
// wharf was started.
func (b *builder) asKnown(text string) string {
	text = strings.ReplaceAll(text, filepath.Join(b.temp, "extension")+"/", "./")
	text = strings.ReplaceAll(text, filepath.Join(b.temp, "sdk")+"/", "")
	text = placeOfAsc.ReplaceAllString(text, "$1:$2:$3")
	return place.ReplaceAllStringFunc(text, func(found string) string {
		m := place.FindStringSubmatch(found)
		file := filepath.Join(b.Dir, m[2])
		if info, err := os.Stat(file); err != nil || filepath.IsAbs(m[2]) || !info.Mode().IsRegular() {
			return found
		}
		return m[1] + file + ":" + m[3]
	})
}

// ofCaller picks out of the caller's environment what compilers get.
func ofCaller(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		key, _, _ := strings.Cut(v, "=")
		return !slices.Contains(passed, key)
	})
}

// find finds a program in the PATH of an environment.
func find(env []string, program string) (string, error) {
	files := findAll(env, program)
	if len(files) == 0 {
		return "", fs.ErrNotExist
	}
	return files[0], nil
}

// findAll finds all programs of a name in the PATH of an environment.
func findAll(env []string, program string) []string {
	var all []string
	for _, v := range env {
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, program)
			info, err := os.Stat(file)
			if err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				all = append(all, file)
			}
		}
	}
	return all
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
