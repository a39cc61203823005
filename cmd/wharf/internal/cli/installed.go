package cli

import (
	"context"
	"fmt"

	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/store"
)

// This file holds how a run gets the extensions that are installed: all of them, each
// with what it was granted when it was installed.

// installed are the extensions of the store that no row of the configuration and no
// flag has taken yet, in the order of installing.
type installed []store.Module

// readInstalled reads the store. What cannot be read may have been a guard.
func readInstalled(f folders) (installed, error) {
	modules, err := f.store().Read()
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return modules, nil
}

// installedModule returns the installed extension of that name, if it can be had.
func installedModule(name string) (store.Module, bool) {
	f, err := findFolders()
	if err != nil {
		return store.Module{}, false
	}
	modules, err := readInstalled(f)
	if err != nil {
		return store.Module{}, false
	}
	return modules.take(name)
}

// take takes the extension of that name out.
func (i *installed) take(name string) (store.Module, bool) {
	for n, m := range *i {
		if m.Name == name {
			*i = append((*i)[:n:n], (*i)[n+1:]...)
			return m, true
		}
	}
	return store.Module{}, false
}

// loadInstalled loads an installed extension. What the configuration says of it can
// narrow what it was granted, and nothing widens that.
func loadInstalled(ctx context.Context, h *host.Host, m store.Module, row extensionConfig) (*host.Extension, error) {
	granted := m.Granted
	if row.Grant != nil {
		only, err := capability.ParseValue(row.Grant)
		if err != nil {
			return nil, usagef("extensions.%s.grant: %w", m.Name, err)
		}
		granted = only.Effective(m.Name, granted).Set
	}
	if m.Err != nil {
		return nil, m.Failure()
	}
	return h.LoadBytes(ctx, m.Name, m.Wasm, host.Options{
		Grant: capability.Only(granted), Config: row.Config, Remedy: remedyOfInstalled(m.Name, row),
	})
}

// remedyOfInstalled says what grants more to an installed extension.
func remedyOfInstalled(name string, row extensionConfig) func(key, line string) string {
	return func(key, line string) string {
		remedy := fmt.Sprintf("wharf ext grant %s %s", name, key)
		if row.Grant != nil {
			remedy += fmt.Sprintf(", and have grant under [extensions.%s], which narrows that, say %s", name, line)
		}
		return remedy
	}
}
