package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/extensions"
	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/capability"
)

func extCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "ext: ", []command{
		{name: "inspect", run: extInspect},
		{name: "build", run: extBuild},
	}, args)
}

// inspected is the output of ext inspect --json.
type inspected struct {
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	ABI          any            `json:"abi"` // 1 or "extism"
	Digest       string         `json:"digest"`
	Hooks        []hook.Point   `json:"hooks"`
	Tools        []string       `json:"tools"`
	Capabilities map[string]any `json:"capabilities"`
	Granted      map[string]any `json:"granted"` // by the configuration
	Imports      []string       `json:"imports"`
	Exports      []string       `json:"exports"`
	Problem      string         `json:"problem,omitempty"`
}

func extInspect(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext inspect", pflag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := parse(io, flags, "ext inspect [--json] FILE.wasm", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext inspect: it takes one file, or the name of a shipped extension: %s", strings.Join(extensions.Names(), ", "))
	}
	wasm, err := readModule(flags.Arg(0))
	if err != nil {
		return err
	}
	in, err := host.Inspect(wasm)
	if err != nil {
		return fmt.Errorf("inspect %s: %w", flags.Arg(0), err)
	}
	granted, err := grantedTo(in.Manifest)
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(io, newInspected(in, granted))
	}
	_, err = fmt.Fprint(io.out, printable(describe(in, granted)))
	return err
}

// grantedTo returns what the user's configuration grants the extension.
func grantedTo(m *host.Manifest) (capability.Set, error) {
	if m == nil {
		return capability.Set{}, nil
	}
	f, err := findFolders()
	if err != nil {
		return capability.Set{}, err
	}
	cfg, _, err := loadConfig(f, "", "", nil)
	if err != nil {
		return capability.Set{}, err
	}
	grant, err := capability.ParseValue(orNone(cfg.Extensions[m.Name].Grant))
	if err != nil {
		return capability.Set{}, usagef("extensions.%s.grant: %w", m.Name, err)
	}
	return grant.Effective(m.Name, m.Capabilities).Set, nil
}

func newInspected(in *host.Inspection, granted capability.Set) inspected {
	object := inspected{
		Digest: in.Digest, Imports: in.Imports, Exports: in.Exports, Hooks: []hook.Point{}, Tools: []string{},
		Capabilities: map[string]any{}, Granted: map[string]any{},
	}
	if in.Problem != nil {
		object.Problem = in.Problem.Error()
	}
	if m := in.Manifest; m != nil {
		object.Name, object.Version, object.ABI = m.Name, m.Version, m.ABIName()
		object.Hooks = append(object.Hooks, m.Points()...)
		for _, t := range m.Tools {
			object.Tools = append(object.Tools, t.Name)
		}
		object.Capabilities, object.Granted = table(m.Capabilities), table(granted)
	}
	return object
}

// table returns capabilities as the TOML table that they print as.
func table(set capability.Set) map[string]any {
	t := map[string]any{}
	if _, err := toml.Decode(set.String(), &t); err != nil {
		t["problem"] = err.Error()
	}
	return t
}

// describe tells a person what a module is and what it asks for.
func describe(in *host.Inspection, granted capability.Set) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	if m := in.Manifest; m != nil {
		role := "observer"
		if m.Guard {
			role = "guard"
		}
		row("name", "%s %s (ABI %v, %s)", m.Name, m.Version, m.ABIName(), role)
		row("description", "%s", m.Description)
		row("license", "%s", m.License)
		for _, p := range m.Points() {
			h := m.Hooks[p]
			only := ""
			if len(h.Tools) > 0 {
				only = ", only for " + strings.Join(h.Tools, ", ")
			}
			row("hook", "%s (within %v, on failure %s%s)", p, h.Timeout, h.OnFailure, only)
		}
		for _, t := range m.Tools {
			row("tool", "%s: %s", t.Name, t.Description)
		}
		row("memory", "at most %s", m.Memory)
		describeSet(row, "asks for", m.Capabilities)
		describeSet(row, "granted", granted)
	} else {
		row("name", "none: it has no manifest that can be read")
	}
	row("digest", "sha256:%s", in.Digest)
	row("imports", "%s", strings.Join(in.Imports, ", "))
	row("exports", "%s", strings.Join(in.Exports, ", "))
	if in.Problem != nil {
		row("problem", "Wharf would not load it: %v", in.Problem)
	}
	return b.String()
}

func describeSet(row func(string, string, ...any), name string, set capability.Set) {
	if set.Empty() {
		row(name, "nothing")
		return
	}
	for line := range strings.Lines(set.String()) {
		row(name, "%s", strings.TrimSpace(line))
	}
}

func extBuild(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext build", pflag.ContinueOnError)
	if err := parse(io, flags, "ext build DIR", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext build: it takes one folder, with an extension.toml and the source beside it")
	}
	built, err := build.Extension(ctx, build.Config{Dir: flags.Arg(0), SDK: guestsdk.Go(), Env: os.Environ()})
	if err != nil {
		return err
	}
	if err := tryOut(ctx, built); err != nil {
		return errors.Join(err, os.Remove(built.Path))
	}
	fmt.Fprintf(io.out, "%s: %d bytes, sha256:%x\n", built.Path, len(built.Wasm), sha256.Sum256(built.Wasm))
	return nil
}

// tryOut starts what was built, once: a handler that the manifest does not
// declare shows only then. It also fills the compile cache, ahead of the first
// run.
func tryOut(ctx context.Context, built *build.Result) error {
	f, err := findFolders()
	if err != nil {
		return err
	}
	h, err := openHost(f)
	if err != nil {
		return err
	}
	defer h.Close()
	ext, err := h.LoadBytes(ctx, built.Manifest.Name, built.Wasm, host.Options{})
	if err != nil {
		return err
	}
	session, err := ext.Session(ctx, host.SessionConfig{})
	if err != nil {
		return err
	}
	session.Close()
	return nil
}

// readModule reads a module from a file, or the shipped extension of that name.
func readModule(path string) ([]byte, error) {
	if !strings.ContainsAny(path, "/.") {
		return extensions.Read(path)
	}
	return host.ReadExtension(path)
}
