package cli

import (
	"os"
	"os/user"
	"path/filepath"

	"github.com/wharf-agent/wharf/host/store"
)

// folders are where Wharf keeps its things, after the XDG base directory
// specification.
type folders struct{ config, state, data, cache string }

func findFolders() (folders, error) {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		u, lookup := user.Current()
		if lookup != nil || u.HomeDir == "" {
			return folders{}, usagef("there is no home folder to keep sessions in: set HOME")
		}
		home = u.HomeDir
	}
	under := func(variable, fallback string) string {
		base := os.Getenv(variable)
		if !filepath.IsAbs(base) { // the specification says to ignore a relative one
			base = filepath.Join(home, fallback)
		}
		return filepath.Join(base, "wharf")
	}
	return folders{
		config: under("XDG_CONFIG_HOME", ".config"),
		state:  under("XDG_STATE_HOME", ".local/state"),
		data:   under("XDG_DATA_HOME", ".local/share"),
		cache:  under("XDG_CACHE_HOME", ".cache"),
	}, nil
}

// sessions is where the session store is.
func (f folders) sessions() string { return filepath.Join(f.state, "sessions") }

// store is where the installed extensions are.
func (f folders) store() *store.Store { return store.New(f.data) }

func (f folders) configFile() string { return filepath.Join(f.config, "config.toml") }
