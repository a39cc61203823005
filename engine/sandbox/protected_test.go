package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProtected(t *testing.T) {
	tests := []struct {
		name string
		rel  string
		home bool
		want string // the pattern; empty: not protected
	}{
		{"a source file is free", "cmd/main.go", false, ""},
		{"hooks are protected", ".git/hooks", false, ".git/hooks"},
		{"a file below hooks is too", ".git/hooks/pre-commit", false, ".git/hooks"},
		{"a nested repository's hooks are too", "vendor/dep/.git/hooks/post-merge", false, ".git/hooks"},
		{"git's index is free, or commits would fail", ".git/index", false, ""},
		{"git's info/exclude is free", ".git/info/exclude", false, ""},
		{"git's attributes run filters", ".git/info/attributes", false, ".git/info/attributes"},
		{"a pointer file sends git elsewhere", "sub/.git", false, ".git"},
		{"the git folder itself is not to be replaced", ".git", false, ".git"},
		{"a worktree's pointers are protected", ".git/worktrees/w/gitdir", false, ".git/worktrees/*/gitdir"},
		{"a worktree's index is free", ".git/worktrees/w/index", false, ""},
		{"a name that only begins alike is free", ".git/config.bak", false, ""},
		{"the engine's own folder", ".wharf/state", false, ".wharf"},
		{"an editor's folder at any depth", "a/b/.vscode/tasks.json", false, ".vscode"},
		{"another letter case is the same file on some systems", ".GIT/Config", false, ".git/config"},
		{"a letter that is another only in print", ".git/hoo\u212as/x", false, ".git/hooks"},
		{"a ligature counts as its letters", ".git/con\ufb01g", false, ".git/config"},
		{"characters that cannot be seen are passed over", ".g\u200cit/co\u00adnfig\ufe0f", false, ".git/config"},
		{"dots and spaces at the end are dropped on Windows' file systems", ".git. /config .", false, ".git/config"},
		{"a stream of a file is the file", ".git::$INDEX_ALLOCATION/hooks:x/y", false, ".git/hooks"},
		{"a short alias", "GIT~1/config", false, ".git/config"},
		{"a short alias with an extension", "sub/MCP~1.JSO", false, ".mcp.json"},
		{"a short alias of many", "gi7eba~12", false, ".git"},
		{"a copy that an editor kept is free", "main.go.~1~", false, ""},
		{"a name that only ends in a number is free", "notes~1", false, ""},
		{"detours are cleaned away", "a/../.git//config", false, ".git/config"},
		{"leaving the workspace is protected", "../x", false, ".."},
		{"an absolute path is protected", "/etc/passwd", false, ".."},
		{"start-up files are free in a project", ".bashrc", false, ""},
		{"start-up files are protected in a home folder", ".bashrc", true, ".bashrc"},
		{"keys are protected in a home folder", ".ssh/id_ed25519", true, ".ssh"},
		{"start-up files count only at its top", "dotfiles/.bashrc", true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := Protected(tt.rel, tt.home); got != tt.want || ok != (tt.want != "") {
				t.Errorf("Protected(%q, %v) = %q, %v; want %q", tt.rel, tt.home, got, ok, tt.want)
			}
		})
	}
}

// Whatever path leads to a protected one by cleaning is protected as well, and
// so is all that lies below it.
func FuzzProtected(f *testing.F) {
	for _, seed := range []string{".git/hooks", "a/.GIT/config", "../..", "", "/", "a/./.wharf/x", "\x00", ".git. :x/hooks", "GIT~1/config"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		pattern, protected := Protected(rel, false)
		if protected != (pattern != "") {
			t.Fatalf("Protected(%q) = %q, %v", rel, pattern, protected)
		}
		if !protected || pattern == ".git" {
			return
		}
		if _, below := Protected(strings.TrimSuffix(rel, "/")+"/below", false); !below {
			t.Errorf("%q is protected by %q, what lies below is not", rel, pattern)
		}
	})
}

func TestLooksLikeHome(t *testing.T) {
	dir := t.TempDir()
	if LooksLikeHome(dir) {
		t.Errorf("LooksLikeHome(%q) = true for an empty folder", dir)
	}
	if err := os.WriteFile(filepath.Join(dir, ".profile"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !LooksLikeHome(dir) {
		t.Errorf("LooksLikeHome(%q) = false beside a .profile", dir)
	}
}
