package sandbox

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/sandbox/sandboxtest"
)

// repository makes a workspace with a repository, another one in it, one that is a
// pointer, and the start-up files of an editor and an agent.
func repository(t *testing.T) string {
	t.Helper()
	ws := folder(t)
	for path, content := range sandboxtest.Repository(canary) {
		write(t, filepath.Join(ws, path), content)
	}
	return ws
}

// snapshot is what a tree holds: each file with its content, each folder, each link.
func snapshot(t *testing.T, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, path)
		switch {
		case entry.IsDir():
			all[rel+"/"] = ""
		case entry.Type() == fs.ModeSymlink:
			all[rel], _ = os.Readlink(path)
		case !entry.Type().IsRegular():
			all[rel] = entry.Type().String()
		default:
			content, err := os.ReadFile(path)
			all[rel] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// guarded is the part of a snapshot that no command may change.
func guarded(all map[string]string) map[string]string {
	kept := map[string]string{}
	for path, content := range all {
		if _, protected := Protected(strings.TrimSuffix(path, "/"), false); protected && !strings.HasPrefix(path, ".wharf") {
			kept[path] = content
		}
	}
	return kept
}

// What trusted code reads and runs later stays as it was, however a command goes
// about it: what is there cannot be written or moved, and what is new is moved away.
func TestRefusesProtected(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	for _, tt := range slices.Concat(sandboxtest.Protected, sandboxtest.Planted, sandboxtest.OwnFolder) {
		t.Run(tt.Name, func(t *testing.T) {
			ws := repository(t)
			before := guarded(snapshot(t, ws))
			before[".git/hooks/"], before["vendor/lib/.git/hooks/"] = "", ""
			s := open(t, Bubblewrap, Config{Workspace: ws})
			out, _ := sh(t, s, sandboxtest.Places{Probe: probe(t)}.Script(tt.Line))
			if !has(out, "tried") {
				t.Fatalf("the attempt did not run:\n%s", out)
			}
			after := snapshot(t, ws)
			for path, content := range before {
				if after[path] != content {
					t.Errorf("%s is %q; want %q", path, after[path], content)
				}
			}
			for path := range guarded(after) {
				if _, was := before[path]; !was {
					t.Errorf("%s is new", path)
				}
			}
			if info, err := os.Lstat(filepath.Join(ws, ".wharf")); err != nil || !info.IsDir() {
				t.Errorf(".wharf: %v", err)
			}
		})
	}
}

// What was moved away is told, and is kept.
func TestQuarantine(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		ws := repository(t)
		s := open(t, rung, Config{Workspace: ws})
		_, res := sh(t, s, "echo planted > .mcp.json")
		if len(res.Notes) != 1 || !strings.HasPrefix(res.Notes[0], "the command made .mcp.json, which is protected: it was moved to .wharf/quarantine/") {
			t.Fatalf("Notes = %q", res.Notes)
		}
		_, rest, _ := strings.Cut(res.Notes[0], "moved to ")
		to, _, _ := strings.Cut(rest, ". Ask")
		if text, err := os.ReadFile(filepath.Join(ws, to)); string(text) != "planted\n" {
			t.Errorf("%s holds %q, %v", to, text, err)
		}
		if _, err := os.Lstat(filepath.Join(ws, ".mcp.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf(".mcp.json: %v", err)
		}
		if _, res := sh(t, s, "true"); len(res.Notes) > 0 {
			t.Errorf("nothing was made, and it says %q", res.Notes)
		}
	})
}

// A repository that a command makes is told, and protected from then on.
func TestNewRepositoryIsTold(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	ws := folder(t)
	s := open(t, Bubblewrap, Config{Workspace: ws})
	_, res := sh(t, s, "mkdir .git; echo x > .git/config")
	if want := "the command made a repository: what its hooks and configuration say is the command's word"; len(res.Notes) != 1 || res.Notes[0] != want {
		t.Errorf("Notes = %q", res.Notes)
	}
	if out, res := sh(t, s, "echo y > .git/config"); res.ExitCode == 0 || !strings.Contains(out, "Read-only file system") {
		t.Errorf("afterwards: %+v\n%s", res, out)
	}
}

// What git would go on with is told when a command leaves it, and not when it was there before.
func TestRebaseUnderWayIsTold(t *testing.T) {
	want := "the command left a rebase under way: what it will run is the command's word"
	onEachRung(t, func(t *testing.T, rung Rung) {
		for _, path := range []string{".git/rebase-merge", ".git/rebase-apply", ".git/sequencer", "vendor/lib/.git/rebase-merge", ".git/worktrees/w/rebase-merge"} {
			s := open(t, rung, Config{Workspace: repository(t)})
			if out, res := sh(t, s, "mkdir "+path); len(res.Notes) != 1 || res.Notes[0] != want {
				t.Errorf("%s: Notes = %q\n%s", path, res.Notes, out)
			}
			if _, res := sh(t, s, "true"); len(res.Notes) > 0 {
				t.Errorf("%s: it was there, and it says %q", path, res.Notes)
			}
		}
	})
}

// Nothing can be mounted over a link, so nothing is run.
func TestLinkedProtectedPaths(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	for _, path := range []string{".git/hooks", ".git", ".git/info", ".vscode", ".envrc", "vendor/lib/.git/config"} {
		t.Run(path, func(t *testing.T) {
			ws := repository(t)
			s := open(t, Bubblewrap, Config{Workspace: ws})
			link := filepath.Join(ws, path)
			if err := os.Rename(link, filepath.Join(ws, "elsewhere")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(ws, "elsewhere"), link); err != nil {
				t.Fatal(err)
			}
			_, err := s.Run(t.Context(), Command{Line: "echo x > ran"})
			remedy := "Put what it leads to in its place or remove the link"
			if strings.Contains(path, ".git/") {
				remedy = `Set sandbox.vcs = "readonly" for this workspace or remove the link`
			}
			want := "Refused: " + link + " is a symbolic link; what has that name must stay read-only, and a link cannot. " + remedy + ". The command was not run."
			if !errors.Is(err, ErrUnavailable) || err.Error() != want {
				t.Errorf("Run: %v\nwant %s", err, want)
			}
			if _, err := os.Lstat(filepath.Join(ws, "ran")); err == nil {
				t.Error("it was run")
			}
		})
	}
}

// What a long command makes under a protected name is gone before the next one begins, and is
// moved once, whoever ends first.
func TestQuarantineOverlaps(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		s := open(t, rung, Config{})
		long := launchWatched(t, s, Command{Line: "mkdir .vscode && echo made; cat; mkdir -p .idea", Input: true}, "made")
		long.await(t)
		out, res := sh(t, s, "ls -d .vscode 2>/dev/null; echo looked")
		if out != "looked\n" || len(res.Notes) != 1 || !strings.HasPrefix(res.Notes[0], "the command made .vscode, which is protected: it was moved to .wharf/quarantine/") {
			t.Errorf("the next command saw %q and was told %q", out, res.Notes)
		}
		if err := long.CloseInput(t.Context()); err != nil {
			t.Fatal(err)
		}
		last, err := long.Wait()
		if err != nil || len(last.Notes) != 1 || !strings.HasPrefix(last.Notes[0], "the command made .idea,") {
			t.Errorf("Wait = %+v, %v", last, err)
		}
	})
}

// Commands that end together take nothing away twice.
func TestHammerQuarantine(t *testing.T) {
	need(t, landlockVersion() > 0, "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK")
	s := open(t, Landlock, Config{})
	var all []begun
	for range 6 {
		all = append(all, launchWatched(t, s, Command{Line: "cat; mkdir -p .vscode/x .idea/x", Input: true}, ""))
	}
	for _, b := range all {
		if err := b.CloseInput(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	notes := 0
	for _, b := range all {
		res, err := b.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if notes += len(res.Notes); strings.Contains(strings.Join(res.Notes, ""), "could not") {
			t.Errorf("notes: %q", res.Notes)
		}
	}
	moved, err := os.ReadDir(filepath.Join(s.cfg.Workspace, ".wharf", "quarantine"))
	if err != nil || len(moved) != notes || notes < 2 {
		t.Errorf("%d were moved, %d notes (%v)", len(moved), notes, err)
	}
}

// Where git's own files are links, all of .git can be read-only instead.
func TestReadOnlyRepository(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	ws := repository(t)
	hooks := filepath.Join(ws, ".git", "hooks")
	if err := os.Rename(hooks, filepath.Join(ws, "linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../linked", hooks); err != nil {
		t.Fatal(err)
	}
	s := open(t, Bubblewrap, Config{Workspace: ws, VCS: VCSReadOnly})
	before := snapshot(t, filepath.Join(ws, ".git"))
	out, _ := sh(t, s, "git status --short; echo x > .git/x; mv .git g; rm -r .git; echo x > .git/HEAD; echo tried; echo own > own")
	if !has(out, "tried") || !maps.Equal(before, snapshot(t, filepath.Join(ws, ".git"))) {
		t.Errorf("the repository was changed:\n%s", out)
	}
	if text, err := os.ReadFile(filepath.Join(ws, "own")); string(text) != "own\n" {
		t.Errorf("the workspace could not be written: %v", err)
	}
}
