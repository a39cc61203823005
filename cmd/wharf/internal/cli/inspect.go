package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// inspected is the output of ext inspect --json.
type inspected struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Role         string            `json:"role"`
	ABI          any               `json:"abi"` // 1 or "extism"
	Digest       string            `json:"digest"`
	Size         int               `json:"size"` // bytes
	Hooks        []hook.Point      `json:"hooks"`
	Tools        []string          `json:"tools"`
	Capabilities map[string]any    `json:"capabilities"` // what it asks for
	Granted      map[string]any    `json:"granted"`      // by the configuration
	NotGranted   map[string]any    `json:"not_granted"`
	Limits       map[string]string `json:"limits"`
	CompileMS    float64           `json:"compile_ms"` // 0: it was compiled before
	LoadMS       float64           `json:"load_ms"`
	Imports      []string          `json:"imports"`
	Exports      []string          `json:"exports"`
	Problem      string            `json:"problem,omitempty"`
}

func extInspect(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext inspect", pflag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := parse(io, flags, "ext inspect [--json] FILE.wasm|DIR", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext inspect: it takes one file or folder, or the name of a shipped extension: %s", strings.Join(extensions.Names(), ", "))
	}
	file, err := builtIn(flags.Arg(0), newProgress(io.err, false))
	if err != nil {
		return fmt.Errorf("inspect %w", err)
	}
	wasm, missing := readModule(file)
	if wasm == nil {
		return missing
	}
	in, err := host.Inspect(wasm)
	if err != nil {
		return fmt.Errorf("inspect %s: %w", flags.Arg(0), err)
	}
	granted, err := grantedTo(in)
	if err != nil {
		return err
	}
	v := view{Inspection: in, granted: granted, size: len(wasm)}
	if in.Problem == nil {
		v.load(ctx, wasm)
	} else if missing != nil {
		v.Problem = missing
	}
	if *asJSON {
		return printJSON(io, v.object())
	}
	_, err = fmt.Fprint(io.out, printable(v.text(true)))
	return err
}

// grantedTo returns what the user's configuration grants the extension, or what it was
// granted if exactly that is installed.
func grantedTo(in *host.Inspection) (capability.Set, error) {
	m := in.Manifest
	if m == nil {
		return capability.Set{}, nil
	}
	own, isInstalled := installedModule(m.Name)
	isInstalled = isInstalled && own.Digest == in.Digest
	f, err := findFolders()
	if err != nil {
		return capability.Set{}, err
	}
	cfg, _, err := loadConfig(f, "", "", nil, nil)
	if err != nil {
		return capability.Set{}, err
	}
	row := cfg.Extensions[m.Name].Grant
	if isInstalled && row == nil {
		return own.Granted, nil
	}
	grant, err := capability.ParseValue(orNone(row))
	if err != nil {
		return capability.Set{}, usagef("extensions.%s.grant: %w", m.Name, err)
	}
	if isInstalled {
		return grant.Effective(m.Name, own.Granted).Set, nil
	}
	return grant.Effective(m.Name, m.Capabilities).Set, nil
}

// view is all that is shown of a module.
type view struct {
	*host.Inspection
	granted  capability.Set
	brief    bool // without imports and exports, which may be many
	size     int
	compiled time.Duration // 0: before
	loaded   time.Duration // in all
}

// load compiles the module, unless it is in the cache, and runs nothing of it.
func (v *view) load(ctx context.Context, wasm []byte) {
	begin := time.Now()
	h, closeHost, err := ownHost()
	if err == nil {
		defer closeHost()
		var ext *host.Extension
		if ext, err = h.LoadBytes(ctx, v.Manifest.Name, wasm, host.Options{}); err == nil {
			v.compiled, v.loaded = ext.CompileTime, time.Since(begin)
			return
		}
	}
	v.Problem = err
	if failed, ok := errors.AsType[*host.LoadError](err); ok {
		v.Problem = failed.Err
	}
}

// ownHost opens the host on the user's folders.
func ownHost() (*host.Host, func(), error) {
	f, err := findFolders()
	if err != nil {
		return nil, nil, err
	}
	h, err := openHost(f)
	if err != nil {
		return nil, nil, err
	}
	return h, func() { h.Close() }, nil
}

func (v *view) object() inspected {
	object := inspected{
		Digest: v.Digest, Size: v.size, Imports: v.Imports, Exports: v.Exports, Hooks: []hook.Point{}, Tools: []string{},
		Capabilities: map[string]any{}, Granted: map[string]any{}, NotGranted: map[string]any{}, Limits: map[string]string{},
		CompileMS: milliseconds(v.compiled), LoadMS: milliseconds(v.loaded),
	}
	if v.Problem != nil {
		object.Problem = v.Problem.Error()
	}
	m := v.Manifest
	if m == nil {
		return object
	}
	object.Name, object.Version, object.ABI = m.Name, m.Version, m.ABIName()
	object.Description, object.License, object.Role = m.Description, m.License, role(m)
	object.Hooks = append(object.Hooks, m.Points()...)
	for _, t := range m.Tools {
		object.Tools = append(object.Tools, t.Name)
	}
	object.Capabilities, object.Granted = table(m.Capabilities), table(v.granted)
	object.NotGranted = table(m.Capabilities.Minus(v.granted))
	for _, limit := range m.Limits() {
		object.Limits[limit.Name] = limit.Value
	}
	return object
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func role(m *host.Manifest) string { return roleName(m.Guard) }

func roleName(guard bool) string {
	if guard {
		return "guard"
	}
	return "observer"
}

// table returns capabilities as the TOML table that they print as.
func table(set capability.Set) map[string]any {
	t := map[string]any{}
	if _, err := toml.Decode(set.String(), &t); err != nil {
		t["problem"] = err.Error()
	}
	return t
}

// text tells a person what a module is, what it does and what it asks for, and
// what of that is granted.
func (v *view) text(grants bool) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	if m := v.Manifest; m != nil {
		row("name", "%s %s (ABI %v, %s)", m.Name, m.Version, m.ABIName(), role(m))
		row("description", "%s", m.Description)
		row("license", "%s", m.License)
		for _, p := range m.Points() {
			row("hook", "%s", describeHook(p, m.Hooks[p]))
		}
		for _, t := range m.Tools {
			row("tool", "%s: %s", t.Name, t.Description)
		}
		if m.Extism && len(m.Tools) == 0 {
			row("tool", "those that it lists itself when it starts, if any")
		}
		describeSet(row, "asks to", m.Capabilities)
		if grants {
			describeSet(row, "granted", v.granted)
		}
		if missing := m.Capabilities.Minus(v.granted); grants && !missing.Empty() {
			describeSet(row, "not granted", missing)
		}
		for _, limit := range m.Limits() {
			row("limit", "%s: %s", limit.Name, limit.Value)
		}
	} else {
		row("name", "none: it has no manifest that can be read")
	}
	row("size", "%d bytes", v.size)
	row("digest", "sha256:%s", v.Digest)
	switch {
	case v.compiled > 0:
		row("compiled", "in %v; from now on it is in the cache", v.compiled.Round(time.Millisecond))
	case v.loaded > 0:
		row("compiled", "before; loaded out of the cache in %v", v.loaded.Round(10*time.Microsecond))
	}
	if !v.brief {
		row("imports", "%s", strings.Join(v.Imports, ", "))
		row("exports", "%s", strings.Join(v.Exports, ", "))
	}
	if v.Problem != nil {
		row("problem", "Wharf would not load it: %v", v.Problem)
	}
	return b.String()
}

// describeHook says when a hook is asked, and what follows when it cannot be.
func describeHook(p hook.Point, h hook.Handling) string {
	info, _ := hook.Lookup(p)
	only := ""
	if len(h.Tools) > 0 {
		only = " (only for " + strings.Join(h.Tools, ", ") + ")"
	}
	failure := map[hook.OnFailure]string{
		hook.Isolate: "it is noted, and all goes on", hook.DenyIt: "the answer is no", hook.AbortTurn: "the turn ends",
	}[h.OnFailure]
	may := ""
	if info.Deciding() {
		may = ", and may answer"
	}
	return fmt.Sprintf("%s: is told that %s%s%s; if it has not answered within %v, or fails, %s", p, info.When, only, may, h.Timeout, failure)
}

func describeSet(row func(string, string, ...any), name string, set capability.Set) {
	words := set.Words()
	if len(words) == 0 {
		row(name, "nothing")
	}
	for _, line := range words {
		row(name, "%s", line)
	}
}
