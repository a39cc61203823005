package cli

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// This file holds what the configuration says of the sandbox.

type (
	sandboxConfig struct {
		Profile string       `toml:"profile"`
		Require string       `toml:"require"`   // bwrap: nothing weaker will do
		Read    []string     `toml:"read"`      // what commands may read besides
		Write   []string     `toml:"write"`     // and change
		VCS     string       `toml:"vcs"`       // readonly: nothing in .git can be changed
		Allow   []string     `toml:"allow"`     // system calls that are refused otherwise
		Net     []string     `toml:"allow_net"` // hosts that commands may reach
		Limits  sandboxLimit `toml:"limits"`
	}
	sandboxLimit struct {
		Memory    size     `toml:"memory"`
		Processes int      `toml:"processes"`
		CPU       duration `toml:"cpu"`
		FileSize  size     `toml:"file_size"`
		OpenFiles int      `toml:"open_files"`
		Disk      size     `toml:"disk"`
		Network   size     `toml:"network"` // by the proxy, both ways
	}
)

// size is a number of bytes such as "512MiB" in TOML.
type size int64

var sizeText = regexp.MustCompile(`^([0-9]{1,9})(KiB|MiB|GiB|TiB)$`)

func (s *size) UnmarshalText(text []byte) error {
	found := sizeText.FindStringSubmatch(string(text))
	if found == nil {
		return fmt.Errorf("%q is no size such as \"512MiB\" or \"2GiB\"", text)
	}
	n, _ := strconv.ParseInt(found[1], 10, 64) // nine digits
	unit := map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[found[2]]
	if n > math.MaxInt64/unit {
		return fmt.Errorf("%q is more than any machine has", text)
	}
	*s = size(n * unit)
	return nil
}

// limits returns what the configuration says of a command's limits.
func (c sandboxLimit) limits() sandbox.Limits {
	return sandbox.Limits{
		Memory: int64(c.Memory), Processes: c.Processes, CPU: time.Duration(c.CPU),
		FileSize: int64(c.FileSize), OpenFiles: c.OpenFiles, Disk: int64(c.Disk),
	}
}

// profile returns the sandbox profile in force.
func (c config) profile() (sandbox.Profile, error) {
	switch p := sandbox.Profile(c.Sandbox.Profile); p {
	case "":
		return sandbox.WorkspaceWrite, nil
	case sandbox.ReadOnly, sandbox.WorkspaceWrite, sandbox.FullAccess:
		return p, nil
	default:
		return "", usagef("sandbox profile %q: not one of read-only, workspace-write, full-access", p)
	}
}

// absolutePaths makes the paths of a table's list absolute, those that are relative below dir.
func absolutePaths(table map[string]any, key, dir string) {
	list, _ := table[key].([]any)
	for i, path := range list {
		if path, ok := path.(string); ok && path != "" {
			list[i] = absolute(path, dir)
		}
	}
}

// granted adds what flags grant to a list of paths, as absolute ones.
func granted(list, flags []string) (all []string) {
	here, _ := os.Getwd() // where that fails, the sandbox refuses what is relative
	for _, path := range append(slices.Clone(list), flags...) {
		all = append(all, absolute(path, here))
	}
	return all
}
