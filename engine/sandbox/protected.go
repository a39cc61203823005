package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
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
// so does any other spelling that is the same file on some file system.
func Protected(rel string, home bool) (pattern string, protected bool) {
	rel = path.Clean(rel)
	if path.IsAbs(rel) || rel == ".." || strings.HasPrefix(rel, "../") {
		return "..", true
	}
	parts := strings.Split(rel, "/")
	if sameName(parts[len(parts)-1], ".git") {
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
		if w != "*" && !sameName(parts[i], w) {
			return false
		}
	}
	return true
}

// sameName reports whether part is another spelling of name on a file system
// that Linux can use: some ignore letter case, dots and spaces at the end or
// characters that cannot be seen, and those of Windows have streams behind a
// colon and short aliases.
func sameName(part, name string) bool {
	part, _, _ = strings.Cut(part, ":")
	part = strings.TrimRight(ligatures.Replace(strings.Map(seen, part)), ". ")
	return strings.EqualFold(part, name) || isAlias(part, name)
}

// ligatures are single characters that count as several where letter case is
// ignored.
var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st", "ß", "ss", "ẞ", "ss")

// seen drops a character that cannot be seen.
func seen(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return -1
	}
	return r
}

// isAlias reports whether part may be a short alias of name, such as GIT~1: up
// to six characters, of which Windows keeps two at least, and a number.
func isAlias(part, name string) bool {
	begin, number, ok := strings.Cut(part, "~")
	number, _, _ = strings.Cut(number, ".")
	if _, err := strconv.Atoi(number); !ok || err != nil || len(begin) < 2 || len(begin) > 6 {
		return false
	}
	name = strings.TrimLeft(name, ".")
	return len(name) > 2 && strings.EqualFold(begin[:2], name[:2])
}

// LooksLikeHome reports whether dir holds a shell's start-up file, so that what
// is written there would be run at the next login.
func LooksLikeHome(dir string) bool {
	return slices.ContainsFunc([]string{".bashrc", ".profile", ".bash_profile", ".zshrc", ".ssh"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}
