package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/extism"
)

// Options say what a loaded extension gets from the user.
type Options struct {
	Grant  capability.Grant
	Config map[string]any // what config.get answers; values that JSON can hold
	// Remedy says what the user has to do to grant what was refused, of a key of
	// [capabilities] and the line that grants it. Nil: what it is for wharf run --ext.
	Remedy func(key, line string) string
}

// Extension is a loaded module. It is constant and safe for concurrent use.
type Extension struct {
	Manifest *Manifest
	Digest   string // SHA-256 of the file, hexadecimal
	Granted  capability.Effective
	// CompileTime is what compiling took just now; 0 if that was done before, or
	// the module is interpreted.
	CompileTime time.Duration

	host     *Host
	config   map[string]any
	runtime  wazero.Runtime
	compiled wazero.CompiledModule

	// Of plugins with Extism's ABI.
	imports []extism.Import
	list    string // the export that lists the tools; empty: the manifest does
	dialect dialect
}

// LoadError is an extension that cannot be loaded or started. Its text says
// what is wrong and what to do.
type LoadError struct {
	Name     string    // of the file, or of the extension
	Manifest *Manifest // as far as it could be read: name, role and hook points; nil if there is none
	Err      error
}

// Error names the extension and the cause.
func (e *LoadError) Error() string { return fmt.Sprintf("load extension %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// Guard returns a hook that stands in for a guard that could not be loaded:
// it fails whenever it is asked, so that what the guard would have judged is
// denied. It returns nil for what is known not to be a guard.
func (e *LoadError) Guard() hook.Hook {
	if e.Manifest == nil || !e.Manifest.Guard {
		return nil
	}
	return brokenGuard{e}
}

type brokenGuard struct{ *LoadError }

func (g brokenGuard) Name() string { return g.LoadError.Name }

func (g brokenGuard) Handles(p hook.Point) (hook.Handling, bool) {
	h, ok := g.Manifest.Hooks[p]
	return h, ok
}

func (g brokenGuard) Call(context.Context, hook.Point, []byte) ([]byte, error) {
	return nil, fmt.Errorf("this guard could not be loaded: %w", g.Err)
}

// Load loads an extension from a file. Its error is a [*LoadError].
func (h *Host) Load(ctx context.Context, path string, o Options) (*Extension, error) {
	wasm, err := ReadExtension(path)
	if err != nil {
		return nil, &LoadError{Name: filepath.Base(path), Err: err}
	}
	return h.LoadBytes(ctx, filepath.Base(path), wasm, o)
}

// ReadFile reads a module's file: it must be a regular one, nothing is waited
// for, and what is too large is cut off where that shows.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file: name a .wasm file")
	}
	return io.ReadAll(io.LimitReader(f, limitModule+1)) // one byte more shows that it is too large
}

// LoadBytes loads an extension from memory; name is for errors alone. Its
// error is a [*LoadError].
func (h *Host) LoadBytes(ctx context.Context, name string, wasm []byte, o Options) (*Extension, error) {
	e, err := h.load(ctx, wasm, o)
	if err == nil {
		return e, nil
	}
	failed := &LoadError{Name: name, Err: err}
	if text, readErr := ReadManifest(wasm); readErr == nil {
		if failed.Manifest, err = ParseManifest(text); err != nil {
			failed.Manifest = salvage(text)
		}
		if extensionName.MatchString(failed.Manifest.Name) {
			failed.Name = failed.Manifest.Name
		}
	}
	return nil, failed
}

func (h *Host) load(ctx context.Context, wasm []byte, o Options) (*Extension, error) {
	m, manifest, err := examine(wasm)
	if err != nil {
		return nil, err
	}
	rewritten, err := m.rewrite()
	if err != nil {
		return nil, err
	}
	e := &Extension{
		Manifest: manifest, Digest: digest(wasm), host: h, config: o.Config,
		Granted: o.Grant.Effective(manifest.Name, manifest.Capabilities).Remedied(o.Remedy),
	}
	if manifest.Extism {
		e.imports = m.userImports()
	}
	if d, list, ok := m.lister(); ok && len(manifest.Tools) == 0 {
		e.list, e.dialect = list, d
	}
	for point, handling := range manifest.Hooks {
		handling.Approve = e.Granted.Approve
		manifest.Hooks[point] = handling
	}
	if !h.beginLoad() {
		return nil, errors.New("the extension host is closed")
	}
	defer h.loads.Done()
	if err := h.compile(ctx, e, rewritten); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loaded = append(h.loaded, e)
	return e, nil
}

// beginLoad counts a load that Close waits for. It reports whether the host is
// still open.
func (h *Host) beginLoad() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.loads.Add(1)
	}
	return !h.closed
}

// compile makes the runtime that this extension's instances share, and the
// module in it.
func (e *Extension) compile(ctx context.Context, wasm []byte, cfg wazero.RuntimeConfig) error {
	e.runtime = wazero.NewRuntimeWithConfig(ctx, guestRuntime(cfg).WithMemoryLimitPages(uint32(e.Manifest.Memory>>16)))
	e.compiled = nil
	compiled, err := compileModule(ctx, e.runtime, wasm)
	if err == nil {
		err = e.provideImports(context.WithoutCancel(ctx))
	}
	if err != nil {
		return errors.Join(err, e.runtime.Close(context.WithoutCancel(ctx)))
	}
	e.compiled = compiled
	return nil
}

// guestRuntime is the configuration of every runtime for guests. It must be the
// same wherever a module is compiled, or its code is not found in the cache.
func guestRuntime(cfg wazero.RuntimeConfig) wazero.RuntimeConfig {
	return cfg.WithDebugInfoEnabled(false)
}

// compileModule compiles a module that was rewritten.
func compileModule(ctx context.Context, r wazero.Runtime, wasm []byte) (wazero.CompiledModule, error) {
	compiled, err := r.CompileModule(watched(ctx), wasm)
	if disk, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, disk
	}
	if err != nil && !errors.Is(err, errNotCached) {
		return nil, fmt.Errorf("it is no valid module: %s", oneLine(err))
	}
	if err == nil && compiled.ExportedFunctions()[exportYield] == nil { // then nothing listens to it
		return nil, errors.New("it has no function any more by which it can be stopped: build it again")
	}
	return compiled, err
}

func digest(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

// examine checks all of a module that can be checked without compiling it.
func examine(wasm []byte) (*module, *Manifest, error) {
	if len(wasm) > limitModule {
		return nil, nil, fmt.Errorf("the file has more than %d MiB: that is over the limit module", limitModule>>20)
	}
	m, err := parseModule(wasm)
	if err != nil {
		return nil, nil, err
	}
	text, err := manifestText(m.sections)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := ParseManifest(text)
	if err != nil {
		return nil, nil, err
	}
	checks := []func(*module, *Manifest) error{checkImports, checkABI, checkMemory, checkHandlers}
	if manifest.Extism {
		checks = []func(*module, *Manifest) error{checkPlugin, checkMemorySize}
	}
	for _, check := range checks {
		if err := check(m, manifest); err != nil {
			return nil, nil, lineError(text, err)
		}
	}
	return m, manifest, nil
}

// atKey is an error about a key of the manifest.
type atKey struct {
	key string
	err error
}

func (e *atKey) Error() string { return e.err.Error() }

// lineError puts the line into an error about a key.
func lineError(text string, err error) error {
	var at *atKey
	if !errors.As(err, &at) {
		return err
	}
	return (&manifestParser{text: text}).refuse(at.key, -1, "%v", at.err)
}

// hostImports are the three functions that a guest may import from the host.
var hostImports = map[string]signature{
	abi.ImportCall: {params: i32 + i32 + i32 + i32, results: i64},
	abi.ImportRead: {params: i32},
	abi.ImportLog:  {params: i32 + i32 + i32},
}

const (
	i32 = "\x7f"
	i64 = "\x7e"
)

func checkImports(m *module, _ *Manifest) error {
	for _, i := range m.imports {
		want, ours := hostImports[i.name]
		switch {
		case i.kind == kindFunction && i.module == abi.WASI && isWASI(i.name):
			continue // wazero checks its type
		case i.module != abi.ImportModule || !ours || i.kind != kindFunction:
			return fmt.Errorf("it imports %q, which this host does not have: a guest may import %s.call, %s.read, %s.log and the functions of %s",
				clean(i.String()), abi.ImportModule, abi.ImportModule, abi.ImportModule, abi.WASI)
		}
		if got, ok := m.typeAt(i.index); !ok || got != want {
			return fmt.Errorf("it imports %q as %s: its type is %s", i.String(), got, want)
		}
	}
	return nil
}

// String prints s as (i32, i32) -> i64.
func (s signature) String() string {
	names := map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64", 0x7b: "v128", 0x70: "funcref", 0x6f: "externref"}
	show := func(types string) string {
		words := make([]string, len(types))
		for i := range words {
			words[i] = names[types[i]]
		}
		return strings.Join(words, ", ")
	}
	if s.results == "" {
		return "(" + show(s.params) + ")"
	}
	return "(" + show(s.params) + ") -> " + show(s.results)
}

func checkABI(m *module, _ *Manifest) error {
	if _, ok := m.export(abi.Alloc); !ok {
		if _, command := m.export(abi.Start); command {
			return fmt.Errorf("it is a program (it exports %s, and no %s): build it as a reactor (Go: -buildmode=c-shared)", abi.Start, abi.Alloc)
		}
		return fmt.Errorf("it does not export %s, so it is no module of ABI 1: see ABI.md of the guest SDK", abi.Alloc)
	}
	if err := checkType(m, abi.Alloc, signature{params: i32, results: i32}); err != nil {
		return err
	}
	if _, ok := m.export(abi.Initialize); ok {
		return checkType(m, abi.Initialize, signature{})
	}
	return nil
}

func checkType(m *module, name string, want signature) error {
	e, _ := m.export(name)
	if got, ok := m.signatureOf(e); !ok {
		return fmt.Errorf("its export %s is no function: it must be one of type %s", name, want)
	} else if got != want {
		return fmt.Errorf("its export %s has the type %s: it must be %s", name, got, want)
	}
	return nil
}

func checkMemory(m *module, manifest *Manifest) error {
	e, ok := m.export(abi.Memory)
	if !ok || e.kind != kindMemory || len(m.memories) == 0 {
		return fmt.Errorf("it does not export its memory under the name %q: see ABI.md of the guest SDK", abi.Memory)
	}
	return checkMemorySize(m, manifest)
}

func checkMemorySize(m *module, manifest *Manifest) error {
	if len(m.memories) > 1 {
		return fmt.Errorf("it has %d memories: a guest has one", len(m.memories))
	}
	for _, memory := range m.memories {
		if least := capability.Size(memory.min) << 16; least > manifest.Memory {
			return &atKey{"limits.memory", fmt.Errorf("the module needs %s of memory to begin with: that is over the limit memory, %s",
				least, manifest.Memory)}
		}
	}
	return nil
}

// checkHandlers checks that the module exports what its manifest says, and no
// hook point besides.
func checkHandlers(m *module, manifest *Manifest) error {
	handler := signature{params: i32 + i32, results: i64}
	for _, info := range hook.Points {
		name := string(info.Point)
		_, declared := manifest.Hooks[info.Point]
		_, exported := m.export(name)
		switch {
		case declared && !exported:
			return &atKey{"hooks." + name, fmt.Errorf("the module has no export %s for this hook: export it, or take the hook out", name)}
		case exported && !declared:
			return &atKey{"hooks", fmt.Errorf("the module exports %s, and the manifest has no [hooks.%s]: add it, or take the export out", name, name)}
		case declared:
			if err := checkType(m, name, handler); err != nil {
				return &atKey{"hooks." + name, err}
			}
		}
	}
	if len(manifest.Tools) == 0 {
		return nil
	}
	if _, ok := m.export(abi.CallTool); !ok {
		return &atKey{"tools", fmt.Errorf("the module has no export %s for its tools: export it, or take the tools out", abi.CallTool)}
	}
	return checkType(m, abi.CallTool, handler)
}
