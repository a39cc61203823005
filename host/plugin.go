package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/extism"
)

// This file holds what is different with Extism's plugins: they bring no
// manifest, their handlers take and give nothing but what lies in the kernel's
// memory, and some list their tools when they run.

// isPlugin reports whether a module speaks Extism's ABI.
func (m *module) isPlugin() bool {
	for _, i := range m.imports {
		if i.module == extism.Env {
			return true
		}
	}
	return false
}

// lister returns the dialect of a module that lists its tools itself, and the
// export that does.
func (m *module) lister() (dialect, string, bool) {
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := m.export(name); !ok {
				return false
			}
		}
		return true
	}
	switch {
	case !m.isPlugin():
	case has("describe", "call"):
		return described, "describe", true
	case has("list_tools", abi.CallTool):
		return listed, "list_tools", true
	}
	return 0, "", false
}

// exports lists the exports that the host calls.
func (e *Extension) exports() []string {
	var all []string
	for point := range e.Manifest.Hooks {
		all = append(all, string(point))
	}
	for _, t := range e.Manifest.Tools {
		all = append(all, t.export)
	}
	if e.list != "" {
		all = append(all, e.list, e.dialect.callExport())
	}
	return all
}

var notInName = regexp.MustCompile(`[^a-z0-9-]+`)

// ReadExtension reads a module's file. A plugin with Extism's ABI that has no
// manifest gets that of the file NAME.toml beside it; one that lists its tools
// itself needs none, and is called like its file. The digest of an extension is
// that of both together. Where only the manifest is missing, the module is
// returned with the error.
func ReadExtension(path string) ([]byte, error) {
	wasm, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := parseModule(wasm)
	if err != nil || !m.isPlugin() {
		return wasm, nil // what is wrong with it is told by who loads it
	}
	if _, err := manifestText(m.sections); err == nil {
		return wasm, nil
	}
	base := strings.TrimSuffix(path, ".wasm")
	text, err := ReadFile(base + ".toml")
	_, _, lists := m.lister()
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case lists:
		name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(filepath.Base(base)), "-"), "-")
		text = fmt.Appendf(nil, "name = %q\nversion = \"0\"\nabi = \"extism\"\n", cmp.Or(name, "plugin"))
	default:
		return wasm, fmt.Errorf("it is a plugin with Extism's ABI, and has no manifest: write %s.toml beside it, with abi = \"extism\"", filepath.Base(base))
	}
	return EmbedManifest(wasm, string(text))
}

// checkPlugin checks that a plugin exports what its manifest says, and imports
// nothing that there is not.
func checkPlugin(m *module, manifest *Manifest) error {
	if err := checkPluginImports(m); err != nil {
		return err
	}
	for point := range manifest.Hooks {
		if err := checkHandler(m, string(point)); err != nil {
			return &atKey{"hooks." + string(point), err}
		}
	}
	for _, info := range hook.Points {
		if _, declared := manifest.Hooks[info.Point]; declared {
			continue
		}
		if _, exported := m.export(string(info.Point)); exported {
			return &atKey{"hooks", fmt.Errorf("the module exports %s, and the manifest has no [hooks.%s]: add it, or take the export out", info.Point, info.Point)}
		}
	}
	for _, t := range manifest.Tools {
		if err := checkHandler(m, t.export); err != nil {
			return &atKey{"tools", fmt.Errorf("tool %q: %w", t.Name, err)}
		}
	}
	if d, list, ok := m.lister(); ok && len(manifest.Tools) == 0 {
		return errors.Join(checkHandler(m, list), checkHandler(m, d.callExport()))
	}
	return nil
}

// checkHandler checks an export that takes nothing, and gives nothing or a number.
func checkHandler(m *module, name string) error {
	e, ok := m.export(name)
	if !ok {
		return fmt.Errorf("the module has no export %s: export it, or take this out of the manifest", name)
	}
	if got, ok := m.signatureOf(e); !ok || got.params != "" || got.results != i32 && got.results != "" {
		return fmt.Errorf("the export %s is of another type: a plugin's has no parameters, and the result i32 or none", name)
	}
	return nil
}

func checkPluginImports(m *module) error {
	for _, i := range m.imports {
		params, results, any, known := extism.Knows(i.module, i.name)
		switch {
		case i.kind == kindFunction && i.module == abi.WASI && isWASI(i.name):
			continue // wazero checks its type
		case i.kind != kindFunction || !known:
			return fmt.Errorf("it imports %q, which this host does not have: a plugin may import the functions of %s, %s of %s, and those of %s",
				clean(i.String()), extism.Env, extism.Call, extism.User, abi.WASI)
		}
		got, ok := m.typeAt(i.index)
		fits := got == signature{params: wasmTypes(params), results: wasmTypes(results)} ||
			any && strings.Trim(got.params, i64) == "" && (got.results == "" || got.results == i64)
		if !ok || !fits {
			return fmt.Errorf("it imports %q as %s, which is not its type", clean(i.String()), got)
		}
	}
	return nil
}

func wasmTypes(letters string) string {
	return strings.NewReplacer("i", i32, "I", i64).Replace(letters)
}

// userImports lists what a plugin imports from extism.User besides wharf_call.
func (m *module) userImports() []extism.Import {
	var all []extism.Import
	for _, i := range m.imports {
		if t, ok := m.typeAt(i.index); ok && i.module == extism.User && i.name != extism.Call {
			all = append(all, extism.Import{Name: i.name, Params: len(t.params), Results: len(t.results)})
		}
	}
	return all
}

// pluginHost is an instance as its kernel reaches it.
type pluginHost struct{ *instance }

// Config answers config_get: a text as it is, anything else as JSON.
func (x pluginHost) Config(key string) (string, bool) {
	switch value := x.extension.config[key].(type) {
	case nil:
		return "", false
	case string:
		return value, true
	default:
		raw, err := json.Marshal(value)
		return string(raw), err == nil
	}
}

// Log takes what a plugin logs.
func (x pluginHost) Log(level uint32, text []byte) { x.log.add(abi.Level(level), text) }

// Call runs a host operation for a plugin. The response says how it went.
func (x pluginHost) Call(operation, request []byte) []byte {
	ctx, cancel := x.running.timed()
	defer cancel()
	status := x.operate(ctx, operation, request)
	out, err := encode(struct {
		Status   abi.Status      `json:"status"`
		Response json.RawMessage `json:"response"`
	}{status, x.response})
	if err != nil { // the response is JSON already
		panic(faultf("%s: its response cannot be encoded", operation))
	}
	return out
}

// Room returns what the kernel's memory may take of the limit memory.
func (x pluginHost) Room() int { return int(x.extension.Manifest.Memory) - x.memory.size() }

// pluginMemory is a plugin's own memory, which has the limit memory in common
// with the kernel's.
type pluginMemory struct {
	*instance
	data []byte
	made bool // as large as the module says that it is to begin with
}

func (m *pluginMemory) size() int {
	if m == nil {
		return 0
	}
	return len(m.data)
}

// Allocate makes the memory of the instance; there is one at most.
func (m *pluginMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate grows it. It returns nil where the guest is told that it cannot; the
// first time nobody could be told, and loading has seen that it is not too much.
func (m *pluginMemory) Reallocate(size uint64) []byte {
	if m.made && int64(size) > int64(m.extension.Manifest.Memory)-int64(m.kernel.Size()) {
		return nil
	}
	m.made = true
	if more := int(size) - len(m.data); more > 0 {
		m.data = append(m.data, make([]byte, more)...)
	}
	return m.data[:size]
}

// Free gives it back.
func (m *pluginMemory) Free() { m.data = nil }

// startPlugin runs what a plugin's toolchain wants run once, besides _initialize.
func (x *instance) startPlugin(ctx context.Context) error {
	if x.module.ExportedFunction(abi.Initialize) == nil {
		if f := x.module.ExportedFunction("__wasm_call_ctors"); f != nil && len(f.Definition().ParamTypes()) == 0 {
			if _, err := f.Call(ctx); err != nil {
				return err
			}
		}
	}
	if f := x.module.ExportedFunction("hs_init"); f != nil && len(f.Definition().ParamTypes()) == 2 { // Haskell
		_, err := f.Call(ctx, 0, 0)
		return err
	}
	return nil
}

// handleInput gives a plugin the payload as its input and calls a handler.
func (x *instance) handleInput(ctx context.Context, handler api.Function, payload []byte) (uint64, error) {
	if !x.kernel.Begin(payload) {
		return 0, faultf("there is no memory for the %d bytes of its input: the limit memory is %s", len(payload), x.extension.Manifest.Memory)
	}
	return x.call(ctx, handler, 0, 0)
}

// guestError is a failure that the guest itself reports.
type guestError struct{ text string }

func (e *guestError) Error() string { return e.text }

// takeOutput checks what a plugin's handler gave as its output.
func (x *instance) takeOutput(code uint32) ([]byte, error) {
	if text := x.kernel.Failure(); text != "" {
		return nil, &guestError{clean(string(x.scrub([]byte(text))))}
	}
	if code != 0 {
		return nil, &guestError{fmt.Sprintf("the plugin returned %d, and did not say why", int32(code))}
	}
	return x.checkAnswer(x.kernel.Output())
}
