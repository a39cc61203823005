package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A protected path is one that trusted code reads or runs later: what the
// sandboxed side writes there would act outside the sandbox. The patterns are
// the components of a path, "*" standing for one component of any name; what
// lies below a protected path is protected too.
var (
	// protectedAnywhere counts at any depth, since nested repositories and
	// vendored folders are read by the same programs as the outermost ones.
	protectedAnywhere = []string{
		".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir",
		".git/modules", ".git/info/attributes",
		".git/worktrees/*/config.worktree", ".git/worktrees/*/commondir", ".git/worktrees/*/gitdir",
		".wharf",
		".claude", ".codex", ".gemini", ".cursor", ".mcp.json", ".vscode", ".idea", ".envrc",
	}
	// protectedInHome counts at the top of a workspace that looks like a home folder.
	protectedInHome = []string{
		".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv",
		".gitconfig", ".ssh", ".gnupg", ".aws",
	}
)

// ProtectedPatterns returns the patterns that [Protected] judges by: those that
// count at any depth, and those that count at the top of a home folder.
func ProtectedPatterns() (anywhere, home []string) {
	return slices.Clone(protectedAnywhere), slices.Clone(protectedInHome)
}

// Protected reports whether rel must not be written by the model's tools, and
// by which pattern. rel is a slash-separated path relative to the workspace;
// one that leaves the workspace is protected. home says that the workspace
// looks like a home folder ([LooksLikeHome]).
//
// It judges names only: the caller has resolved links before. A path that is
// itself named .git counts as protected, for as a file it points git elsewhere;
// letter case is ignored, since some file systems do too.
func Protected(rel string, home bool) (pattern string, protected bool) {
	rel = path.Clean(strings.ToLower(rel))
	if path.IsAbs(rel) || rel == ".." || strings.HasPrefix(rel, "../") {
		return "..", true
	}
	parts := strings.Split(rel, "/")
	if parts[len(parts)-1] == ".git" {
		return ".git", true
	}
	for start := range parts {
		for _, p := range protectedAnywhere {
			if hasPattern(parts[start:], p) {
				return p, true
			}
		}
	}
	for _, p := range protectedInHome {
		if home && hasPattern(parts, p) {
			return p, true
		}
	}
	return "", false
}

// hasPattern reports whether parts begin with the components of pattern.
func hasPattern(parts []string, pattern string) bool {
	want := strings.Split(pattern, "/")
	if len(parts) < len(want) {
		return false
	}
	for i, w := range want {
		if w != "*" && w != parts[i] {
			return false
		}
	}
	return true
}

// LooksLikeHome reports whether dir holds a shell's start-up file, so that what
// is written there would be run at the next login.
func LooksLikeHome(dir string) bool {
	return slices.ContainsFunc([]string{".bashrc", ".profile", ".bash_profile", ".zshrc", ".ssh"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}
