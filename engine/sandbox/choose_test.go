package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeBwrap makes a bubblewrap that fails as a system that forbids user
// namespaces makes the real one fail.
func fakeBwrap(t *testing.T) string {
	t.Helper()
	return fakeProgram(t, "echo 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
}

// fakeProgram makes a bubblewrap of a shell script.
func fakeProgram(t *testing.T, script string) string {
	t.Helper()
	path := write(t, filepath.Join(folder(t), "bwrap"), "#!/bin/sh\n"+script)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLadder(t *testing.T) {
	const reason = "setting up uid map: Permission denied"
	fake := fakeBwrap(t)
	none := func() int { return 0 }
	hangs := fakeProgram(t, "exec sleep 1000\n")
	lies := fakeProgram(t, `echo '{"child-pid": 2147483647} {"exit-code": 1}' >&4`)
	starved := fakeProgram(t, "echo 'bwrap: open pipe: Too many open files' >&2\nexit 1\n")
	tests := []struct {
		name     string
		bwrap    []string
		landlock func() int
		require  Rung
		rung     Rung
		notice   string
		err      string
	}{
		{
			"without bubblewrap it is Landlock, and said once", nil, landlockVersion, "", Landlock,
			`Sandbox: bubblewrap is not installed; using the weaker Landlock mode (see "wharf doctor"). Install bubblewrap for the full one.`, "",
		},
		{
			"a bubblewrap that may not is Landlock too",
			[]string{fake},
			landlockVersion, "", Landlock,
			`Sandbox: bubblewrap does not work here (` + reason + `); using the weaker Landlock mode (see "wharf doctor").`, "",
		},
		{
			"and one that hangs",
			[]string{hangs},
			landlockVersion, "", Landlock,
			`Sandbox: bubblewrap does not work here (it did not answer within 2s); using the weaker Landlock mode (see "wharf doctor").`, "",
		},
		{
			"and one that ran something else",
			[]string{lies},
			landlockVersion, "", Landlock,
			`Sandbox: bubblewrap does not work here (limit processor time: no such process); using the weaker Landlock mode (see "wharf doctor").`, "",
		},
		{
			"without both nothing runs", nil, none, "", "", "",
			"Sandbox unavailable: bubblewrap is not installed and this kernel has no Landlock. " +
				"Install bubblewrap (apt install bubblewrap). The command was not run.",
		},
		{
			"without Landlock a bubblewrap that may not is explained",
			[]string{fake},
			none, "", "", "",
			"Sandbox unavailable: this system does not let bubblewrap create user namespaces (" + reason +
				`). On Ubuntu 24.04 and later add the AppArmor profile shown by "wharf doctor". The command was not run.`,
		},
		{
			"with too few files to open no weaker rung is taken, and that is what is said",
			[]string{starved},
			landlockVersion, "", "", "",
			"Sandbox unavailable: Wharf may not open as many files as a sandbox needs (open pipe: Too many open files): " +
				"raise the limit (ulimit -n 1024) and start Wharf again. The command was not run.",
		},
		{
			"required and missing", nil, landlockVersion, Bubblewrap, "", "",
			`Sandbox unavailable: bubblewrap is not installed and the configuration requires it (sandbox.require = "bwrap"). ` +
				"Install bubblewrap (apt install bubblewrap). The command was not run.",
		},
		{
			"required and not allowed",
			[]string{fake},
			landlockVersion, Bubblewrap, "", "",
			"Sandbox unavailable: this system does not let bubblewrap create user namespaces (" + reason +
				`). On Ubuntu 24.04 and later add the AppArmor profile shown by "wharf doctor". The command was not run.`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			need(t, tt.rung != Landlock || landlockVersion() > 0, "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK")
			ws := folder(t)
			s, err := New(Config{Workspace: ws, Require: tt.require})
			if err != nil {
				t.Fatal(err)
			}
			s.bwrapPaths, s.landlock = tt.bwrap, tt.landlock
			if slices.Contains(tt.bwrap, hangs) {
				s.probeTime = 2 * time.Second
			}
			res, err := s.Run(t.Context(), Command{Line: "touch ran"})
			if tt.err != "" {
				if !errors.Is(err, ErrUnavailable) || err.Error() != tt.err {
					t.Errorf("Run error = %v; want %q", err, tt.err)
				}
				if !strings.Contains(s.Explain(t.Context()), tt.err) {
					t.Errorf("Explain does not say why:\n%s", s.Explain(t.Context()))
				}
			} else if err != nil || res.Rung != tt.rung || s.Notice() != tt.notice {
				t.Errorf("Run = %+v, %v; notice %q; want %q, %q", res, err, s.Notice(), tt.rung, tt.notice)
			}
			if _, err := os.Stat(filepath.Join(ws, "ran")); (err == nil) != (tt.err == "") {
				t.Errorf("the command's trace: %v", err)
			}
		})
	}
}

// A program whose main does not begin with Init has nobody to confine by Landlock.
func TestLandlockNeedsInit(t *testing.T) {
	initCalled.Store(false)
	defer initCalled.Store(true)
	s, err := New(Config{Workspace: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.bwrapPaths, s.landlock = nil, func() int { return 7 }
	want := "Sandbox unavailable: bubblewrap is not installed and this program cannot use Landlock " +
		"(its main does not begin with sandbox.Init). Install bubblewrap (apt install bubblewrap). The command was not run."
	if _, err := s.Run(t.Context(), Command{Line: "true"}); err == nil || err.Error() != want {
		t.Errorf("Run error = %v; want %q", err, want)
	}
}

// A rung, once chosen, stays: a bubblewrap that breaks later is a refusal, not
// a step down.
func TestRungStays(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	s := open(t, Bubblewrap, Config{})
	by := s.chosen.(bwrap)
	by.program = fakeBwrap(t)
	s.chosen = by
	_, err := s.Run(t.Context(), Command{Line: "touch ran"})
	want := "Sandbox unavailable: setting up uid map: Permission denied. The command was not run."
	if !errors.Is(err, ErrUnavailable) || err.Error() != want {
		t.Errorf("Run error = %v; want %q", err, want)
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Workspace, "ran")); err == nil {
		t.Error("the command was run")
	}
}

// Nor does what a command does to the workspace bring a later session to a
// weaker rung.
func TestUnusableWorkspaceIsNoStepDown(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	ws := folder(t)
	sh(t, open(t, Bubblewrap, Config{Workspace: ws}), "chmod 0 .")
	s, err := New(Config{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(t.Context(), Command{Line: "true"})
	want := fmt.Sprintf("Sandbox unavailable: Can't chdir to %s: Permission denied. The command was not run.", ws)
	if s.Notice() != "" || err == nil || err.Error() != want {
		t.Errorf("Run error = %v, notice %q; want %s", err, s.Notice(), want)
	}
	if err := os.Chmod(ws, 0o700); err != nil {
		t.Fatal(err)
	}
}

// Where bubblewrap cannot forbid nested namespaces the filter does, and it is said.
func TestBwrapWithoutDisableUserns(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	s := open(t, Bubblewrap, Config{})
	by := s.chosen.(bwrap)
	by.noNested = false
	s.chosen = by
	if out, _ := sh(t, s, probe(t, "calls")); !has(out, "unshare EPERM") || !has(out, "clone EPERM") || !has(out, "clone3 ENOSYS") {
		t.Errorf("calls inside:\n%s", out)
	}
	if !strings.Contains(s.Explain(t.Context()), "gap          this bubblewrap or kernel cannot forbid nested user namespaces") {
		t.Errorf("Explain:\n%s", s.Explain(t.Context()))
	}
}

func TestExplain(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		t.Setenv("WHARF_TEST_TOKEN", canary)
		cache := filepath.Join(folder(t), "cache")
		s := open(t, rung, Config{Profile: ReadOnly, CacheDir: cache})
		text := s.Explain(t.Context())
		for _, line := range []string{
			"confined by  " + string(rung), "profile      read-only", "workspace    " + s.cfg.Workspace + " (read)",
			"read         /usr", "rated        partial", "write        " + cache + " (caches of Go, npm and pip, kept for this workspace)",
		} {
			if !has(text, line) {
				t.Errorf("Explain lacks %q:\n%s", line, text)
			}
		}
		if !strings.Contains(text, "\nlimits       1073741824 MiB of memory for ") {
			t.Errorf("Explain does not tell the limits:\n%s", text)
		}
		if strings.Contains(text, canary) || strings.Contains(text, "gap ") != (rung == Landlock) {
			t.Errorf("Explain:\n%s", text)
		}
	})
}
