package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A link that a command puts in the place of a repository has nothing taken away that is the user's,
// neither at its end nor when the next one begins.
func TestTakesNothingFromOutside(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		home := folder(t)
		ws := filepath.Join(home, "ws")
		write(t, filepath.Join(ws, "sub/.git/config"), "")
		own := write(t, filepath.Join(home, "other/.claude/token"), canary)
		write(t, filepath.Join(home, "other/.git/config"), canary)
		s := open(t, rung, Config{Workspace: ws})
		for _, line := range []string{"mv sub away && ln -s ../other sub && echo tried", "echo tried"} {
			if out, res := sh(t, s, line); !has(out, "tried") || len(res.Notes) > 0 {
				t.Errorf("%s: it was told %q\n%s", line, res.Notes, out)
			}
		}
		if text, err := os.ReadFile(own); string(text) != canary {
			t.Errorf("the user's file holds %q: %v", text, err)
		}
		if _, err := os.Lstat(filepath.Join(home, "other/.git/hooks")); err == nil {
			t.Error("a folder was made in another repository")
		}
	})
}

// What a command made is moved away also where the folder for that is no folder, and never
// through a link.
func TestQuarantineThatIsNone(t *testing.T) {
	for name, plant := range map[string]func(ws, outside string) error{
		"the quarantine is a link": func(ws, outside string) error {
			return os.Symlink(outside, filepath.Join(ws, ".wharf", "quarantine"))
		},
		"the quarantine is a file": func(ws, _ string) error { return os.WriteFile(filepath.Join(ws, ".wharf", "quarantine"), nil, 0o600) },
		"all of it is a file": func(ws, _ string) error {
			if err := os.Remove(filepath.Join(ws, ".wharf")); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(ws, ".wharf"), nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachRung(t, func(t *testing.T, rung Rung) {
				ws, outside := folder(t), folder(t)
				if err := os.Mkdir(filepath.Join(ws, ".wharf"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := plant(ws, outside); err != nil {
					t.Fatal(err)
				}
				s := open(t, rung, Config{Workspace: ws})
				_, res := sh(t, s, "echo planted > .envrc")
				if len(res.Notes) != 1 || !strings.HasPrefix(res.Notes[0], "the command made .envrc, which is protected: it was moved to quarantine-") {
					t.Errorf("it was told %q", res.Notes)
				}
				if _, err := os.Lstat(filepath.Join(ws, ".envrc")); err == nil {
					t.Error(".envrc is still there")
				}
				if there, err := os.ReadDir(outside); err != nil || len(there) > 0 {
					t.Errorf("outside are %v: %v", there, err)
				}
			})
		})
	}
}
