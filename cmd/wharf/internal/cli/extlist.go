package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/store"
)

// listedExtension is a line of ext list --json.
type listedExtension struct {
	inspectedShort
	Source string `json:"source"`
	Signer string `json:"signer,omitempty"`
	State  string `json:"problem,omitempty"`
}

// inspectedShort is what ext list and ext inspect have in common.
type inspectedShort struct {
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	Description  string         `json:"description"`
	Role         string         `json:"role"`
	ABI          any            `json:"abi"`
	Digest       string         `json:"digest"`
	Hooks        []string       `json:"hooks"`
	Tools        []string       `json:"tools"`
	Capabilities map[string]any `json:"capabilities"` // what it asks for
	Granted      map[string]any `json:"granted"`
}

func extList(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext list", pflag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON array")
	shipped := flags.Bool("shipped", false, "list the extensions that come with wharf instead")
	if err := parse(io, flags, "ext list [--shipped] [--json]", args); err != nil {
		return err
	}
	if flags.NArg() != 0 {
		return usagef("ext list: it takes no arguments; one extension is shown by wharf ext inspect")
	}
	modules, err := listedModules(*shipped)
	if err != nil {
		return err
	}
	if *asJSON {
		list := make([]listedExtension, len(modules))
		for i, m := range modules {
			list[i] = listedObject(m)
		}
		return printJSON(io, list)
	}
	if len(modules) == 0 {
		fmt.Fprintln(io.err, nothingInstalled)
		return nil
	}
	return listTable(io, modules, *shipped)
}

const nothingInstalled = "wharf: no extension is installed: wharf ext list --shipped shows what comes with wharf, wharf ext install takes a file or a URL, too"

// listedModules returns what is installed, or what comes with wharf.
func listedModules(shipped bool) ([]store.Module, error) {
	if !shipped {
		f, err := findFolders()
		if err != nil {
			return nil, err
		}
		return f.store().Read()
	}
	var modules []store.Module
	for _, name := range extensions.Names() {
		wasm, err := extensions.Read(name)
		if err != nil {
			return nil, err
		}
		c, err := store.Shipped(name, wasm)
		if err != nil {
			return nil, fmt.Errorf("shipped extension %q: %w", name, err)
		}
		m := c.Manifest
		modules = append(modules, store.Module{Wasm: wasm, Entry: store.Entry{
			Name: m.Name, Version: m.Version, Source: c.Source, Digest: c.Digest, ABI: fmt.Sprint(m.ABIName()), Guard: m.Guard, Hooks: m.Points(),
		}})
	}
	return modules, nil
}

func listTable(io stdio, modules []store.Module, shipped bool) error {
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	if shipped {
		fmt.Fprintln(w, "NAME\tVERSION\tROLE\tASKS FOR\tDESCRIPTION")
	} else {
		fmt.Fprintln(w, "NAME\tVERSION\tROLE\tGRANTED\tSIGNED\tSOURCE")
	}
	for _, m := range modules {
		manifest := manifestOf(m)
		switch {
		case m.Err != nil:
			fmt.Fprintf(w, "%s\t%s\t%s\tcannot be loaded: %s\n", m.Name, m.Version, roleName(m.Guard), oneLine(m.Err.Error(), 300))
		case shipped:
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Version, roleName(m.Guard), keyList(manifest.Capabilities), oneLine(manifest.Description, 80))
		default:
			signed := "no"
			if !m.Signer.IsZero() {
				signed = "yes"
			} else if _, shipped := store.ShippedName(m.Source); shipped {
				signed = shippedText
			}
			source, _ := shortened(plainly(m.Source), shownWidth)
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Version, roleName(m.Guard), keyList(m.Granted), signed, source)
		}
	}
	return w.Flush()
}

func keyList(s capability.Set) string {
	if keys := keysOf(s); len(keys) > 0 {
		return strings.Join(keys, ",")
	}
	return "nothing"
}

// manifestOf returns the manifest of a module, or an empty one.
func manifestOf(m store.Module) *host.Manifest {
	if text, err := host.ReadManifest(m.Wasm); err == nil {
		if parsed, err := host.ParseManifest(text); err == nil {
			return parsed
		}
	}
	return &host.Manifest{}
}

func listedObject(m store.Module) listedExtension {
	manifest := manifestOf(m)
	object := listedExtension{
		inspectedShort: inspectedShort{
			Name: m.Name, Version: m.Version, Description: manifest.Description, Role: roleName(m.Guard), ABI: m.ABI, Digest: m.Digest,
			Hooks: []string{}, Tools: []string{}, Capabilities: table(manifest.Capabilities), Granted: table(m.Granted),
		},
		Source: m.Source, Signer: m.Signer.String(),
	}
	if m.ABI == "1" {
		object.ABI = 1
	}
	for _, p := range m.Hooks {
		object.Hooks = append(object.Hooks, string(p))
	}
	for _, t := range manifest.Tools {
		object.Tools = append(object.Tools, t.Name)
	}
	if m.Err != nil {
		object.State = m.Err.Error()
	}
	return object
}

func extRemove(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext remove", pflag.ContinueOnError)
	forget := flags.Bool("forget-key", false, "forget the keys, too, that are pinned for it")
	if err := parse(io, flags, "ext remove [--forget-key] NAME…", args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return usagef("ext remove: it takes the names of installed extensions: wharf ext list")
	}
	f, err := findFolders()
	if err != nil {
		return err
	}
	cfg, _, unread := loadConfig(f, "", "", nil, nil)
	for _, name := range flags.Args() {
		if err := f.store().Remove(name, *forget); err != nil {
			return notThere(err)
		}
		fmt.Fprintf(io.out, "removed %s\n", name)
		if kept := filepath.Join(f.state, "kv", name+".json"); exists(kept) {
			fmt.Fprintf(io.out, "what it kept is still in %s, where another extension of that name would find it\n", kept)
		}
		if row, has := cfg.Extensions[name]; unread == nil && has && row.Path == "" {
			fmt.Fprintf(io.err, "wharf: each call is denied until you %s, too: without the extension nobody knows whether it was a guard\n", printable(cfg.withoutRow(name)))
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// notThere makes a mistake of the command line of a name that is not installed.
func notThere(err error) error {
	if errors.Is(err, store.ErrNotInstalled) {
		return exitError{exitUsage, err}
	}
	return err
}
