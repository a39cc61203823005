package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Explain describes, for people, how commands are confined here. It chooses the
// rung if that was not done yet; where nothing can be run it says why.
func (s *Sandbox) Explain(ctx context.Context) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	by, err := s.choose(ctx)
	if err != nil {
		row("confined by", "nothing: no command is run")
		row("reason", "%s", err)
		s.explainRemedy(row)
		return b.String()
	}
	row("confined by", "%s", by.rung())
	if by.rung() != Unconfined {
		s.explainRating(ctx, row, by)
		row("profile", "%s", s.cfg.Profile)
		if s.cfg.Profile == FullAccess {
			s.explainFull(row, by.rung())
		} else {
			s.explainFiles(row, by.rung())
			s.explainNetwork(row, by.rung())
		}
		row("limits", "%s", s.cfg.Limits.inWords(groupedBy(by)))
	}
	row("processes", "ended with the command; time limit %v unless the caller sets another", defaultTimeout)
	for _, gap := range by.gaps() {
		row("gap", "%s", gap)
	}
	return b.String()
}

// explainFiles adds what a command sees of the host's files.
func (s *Sandbox) explainFiles(row func(name, format string, args ...any), rung Rung) {
	access := "write"
	if s.cfg.Profile == ReadOnly {
		access = "read"
	}
	row("workspace", "%s (%s)", s.cfg.Workspace, map[string]string{"read": "read", "write": "read and write"}[access])
	for _, dir := range append([]string{"/usr"}, s.tools.roots...) {
		row("read", "%s", dir)
	}
	for _, m := range etcView() {
		row("read", "%s", m.file)
	}
	for _, path := range s.cfg.Read {
		row("read", "%s (sandbox.read)", path)
	}
	for _, path := range s.cfg.Write {
		row(access, "%s (sandbox.write)", path)
	}
	if s.cfg.CacheDir != "" {
		row("write", "%s (caches of Go, npm and pip, kept for this workspace)", s.cfg.CacheDir)
	}
	if rung == Bubblewrap {
		row("private", "/tmp (%d MiB), %s (%d MiB), /dev/shm (%d MiB)", tmpSize>>20, insideHome, homeSize>>20, shmSize>>20)
		return
	}
	row("read", "/etc/passwd, /etc/group")
	row("private", "a folder for each run in %s, removed after it, as TMPDIR and HOME", filepath.Clean(os.TempDir()))
}

// explainNetwork adds what a command reaches of the network, and by which
// variables it knows.
func (s *Sandbox) explainNetwork(row func(name, format string, args ...any), rung Rung) {
	env, network := s.environment(place{}, s.cfg.Profile), "none: no sockets at all"
	if rung == Bubblewrap {
		own, open := "a loopback of its own, no Unix sockets", s.cfg.Network.Allow
		if s.open.UnixSockets {
			own = "a loopback of its own, and Unix sockets that are in view (sandbox.allow)"
		}
		network = "none: " + own
		if len(open) > 0 {
			env = append(env, proxyEnvironment(open)...)
			network = listed(open) + ", by Wharf's proxy at " + proxyAddress + "; else " + own
		}
	}
	row("environment", "%s", strings.Join(names(env), " "))
	row("network", "%s", network)
}

// names returns the names of environment variables.
func names(env []string) []string {
	all := make([]string, len(env))
	for i, v := range env {
		all[i], _, _ = strings.Cut(v, "=")
	}
	return all
}
