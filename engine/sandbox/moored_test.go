package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// meddled is bubblewrap in a workspace that somebody changes just before it is started.
type meddled struct {
	bwrap
	meddle func()
}

func (m meddled) launch(c Command) (*launch, error) {
	m.meddle()
	return m.bwrap.launch(c)
}

// What is exchanged between the look at the workspace and the mounts, is mounted; but no command
// runs with it.
func TestExchangedBeforeMounting(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	for name, test := range map[string]struct {
		path string
		put  func(path string) error // in its place
	}{
		"a folder for a link":            {path: ".git/worktrees", put: func(path string) error { return os.Symlink("../objects", path) }},
		"a folder for another one":       {path: ".git/info", put: func(path string) error { return os.MkdirAll(filepath.Join(path, "attributes"), 0o755) }},
		"a file for another one":         {path: ".envrc", put: func(path string) error { return os.WriteFile(path, nil, 0o644) }},
		"a repository for a link to one": {path: "vendor/lib", put: func(path string) error { return os.Symlink("../elsewhere", path) }},
		"the workspace for another one":  {path: ".", put: func(path string) error { return os.Mkdir(path, 0o755) }},
	} {
		t.Run(name, func(t *testing.T) {
			ws := filepath.Join(folder(t), "ws")
			if err := os.Rename(repository(t), ws); err != nil {
				t.Fatal(err)
			}
			s := open(t, Bubblewrap, Config{Workspace: ws})
			path, aside := filepath.Join(ws, test.path), filepath.Join(ws, "elsewhere")
			if test.path == "." {
				aside = ws + "-aside"
			}
			s.chosen = meddled{s.chosen.(bwrap), func() {
				if err := errors.Join(os.Rename(path, aside), test.put(path)); err != nil {
					t.Error(err)
				}
			}}
			_, err := s.Run(t.Context(), Command{Line: "echo x > ran"})
			if !errors.Is(err, ErrUnavailable) {
				t.Errorf("Run: %v", err)
			}
			for _, dir := range []string{ws, aside} {
				if _, err := os.Lstat(filepath.Join(dir, "ran")); err == nil {
					t.Error("it was run")
				}
			}
		})
	}
}

// The first folder that is another one is named.
func TestMovedIsSaid(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	ws := repository(t)
	s := open(t, Bubblewrap, Config{Workspace: ws})
	info := filepath.Join(ws, ".git/info")
	s.chosen = meddled{s.chosen.(bwrap), func() {
		_ = errors.Join(os.Rename(info, filepath.Join(ws, "aside")), os.MkdirAll(info, 0o755), os.WriteFile(filepath.Join(info, "attributes"), nil, 0o644))
	}}
	_, err := s.Run(t.Context(), Command{Line: "true"})
	want := "Sandbox unavailable: " + info + " was changed while the sandbox was built: run the command again when nothing else moves it. The command was not run."
	if err == nil || err.Error() != want {
		t.Errorf("Run: %v\nwant %s", err, want)
	}
}
