package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// guard is what a run must leave as it is in a workspace that it may write: the
// protected paths ([Protected]) at its top and in each repository in it.
type guard struct {
	pinned  []string // folders that must stay where they are, the outer ones first
	sealed  []string // what is read-only
	absent  []string // protected names that are not there
	bare    []string // where a repository would be, if what may be written is none
	keepGit bool     // all of .git is read-only
	notes   []string // of what was taken away as it was made
}

// lookout knows the guards of the commands that run. Where one of them makes what is protected, the
// next to begin or end takes it away: a long one must not leave it there for hours, and two that
// end together must not both.
type lookout struct {
	mu     sync.Mutex
	guards map[*guard]bool
}

// beginGuard makes the guard of a command that is to run.
func (s *Sandbox) beginGuard(profile Profile) (*guard, error) {
	s.lookout.mu.Lock()
	defer s.lookout.mu.Unlock()
	notes := s.sweepLocked() // or it would count as there before
	g, err := s.newGuard(profile)
	if err != nil {
		return nil, err
	}
	g.notes = notes
	if s.lookout.guards == nil {
		s.lookout.guards = map[*guard]bool{}
	}
	s.lookout.guards[&g] = true
	return &g, nil
}

// endGuard ends the guard of a command that has ended, and returns what was done besides.
func (s *Sandbox) endGuard(g *guard) []string {
	s.lookout.mu.Lock()
	defer s.lookout.mu.Unlock()
	notes := append(g.notes, s.quarantine(*g)...)
	delete(s.lookout.guards, g)
	return append(notes, s.sweepLocked()...)
}

// sweepLocked takes away what the commands that run have made.
func (s *Sandbox) sweepLocked() (notes []string) {
	for g := range s.lookout.guards {
		notes = append(notes, s.takeAway(g.absent)...)
	}
	return notes
}

// The protected names within a repository's .git folder.
var gitNames = []string{"hooks", "config", "config.worktree", "commondir", "modules", "info/attributes"}

// newGuard looks at the workspace as it is now. A link where something is protected
// is an error: nothing can be mounted over one.
func (s *Sandbox) newGuard(profile Profile) (guard, error) {
	g := guard{keepGit: s.cfg.VCS == VCSReadOnly}
	if s.cfg.None || profile != WorkspaceWrite {
		return g, nil
	}
	s.look.Do(s.findRepositories)
	// So that no command can make it; where that fails, it counts as absent.
	_ = os.Mkdir(filepath.Join(s.cfg.Workspace, ".wharf"), 0o755)
	for _, top := range s.writable() {
		if err := g.add(top, true); err != nil {
			return g, err
		}
	}
	for _, top := range s.repositories {
		if err := g.add(top, false); err != nil {
			return g, err
		}
	}
	return g, nil
}

// linked is the path of a link where something is protected.
type linked string

func (l linked) Error() string {
	text := fmt.Sprintf("%s is a symbolic link; what has that name must stay read-only, and a link cannot. ", string(l))
	if strings.Contains(string(l), "/.git/") {
		return text + `Set sandbox.vcs = "readonly" for this workspace or remove the link`
	}
	return text + "Put what it leads to in its place or remove the link"
}

// add adds what is protected in a folder that may be written, or in a repository in it.
func (g *guard) add(top string, outermost bool) error {
	var protected []string
	for _, pattern := range protectedAnywhere {
		if !strings.HasPrefix(pattern, ".git/") && (outermost || pattern != ".wharf") {
			protected = append(protected, pattern)
		}
	}
	if outermost && LooksLikeHome(top) {
		protected = append(protected, protectedInHome...)
	}
	for _, name := range protected {
		if err := g.seal(filepath.Join(top, name)); err != nil {
			return err
		}
	}
	return g.addGit(filepath.Join(top, ".git"))
}

// seal has a path be read-only if it is there.
func (g *guard) seal(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		g.absent = append(g.absent, path)
	case info.Mode().Type() == fs.ModeSymlink:
		return linked(path)
	default:
		g.sealed = append(g.sealed, path)
	}
	return nil
}

// pin has a folder stay where it is; there is whether it is a folder at all.
func (g *guard) pin(dir string) (there bool, err error) {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return false, nil
	case info.Mode().Type() == fs.ModeSymlink:
		return false, linked(dir)
	case info.IsDir():
		g.pinned = append(g.pinned, dir)
	}
	return info.IsDir(), nil
}

// addGit adds what git reads and runs later, or all of .git. A .git that is a file points to such a
// folder.
func (g *guard) addGit(git string) error {
	there, err := g.pin(git)
	if err != nil {
		return err
	}
	if _, missing := os.Lstat(git); missing != nil {
		g.bare = append(g.bare, git)
		return nil
	}
	if !there || g.keepGit {
		return g.seal(git)
	}
	_ = os.Mkdir(filepath.Join(git, "hooks"), 0o755) // likewise, so that no command can make it
	if _, err := g.pin(filepath.Join(git, "info")); err != nil {
		return err
	}
	for _, name := range gitNames {
		if err := g.seal(filepath.Join(git, name)); err != nil {
			return err
		}
	}
	return g.addWorktrees(filepath.Join(git, "worktrees"))
}

// addWorktrees adds what says where the other working trees of a repository are.
func (g *guard) addWorktrees(dir string) error {
	if there, err := g.pin(dir); err != nil || !there {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what cannot be read, is not written either
	}
	for _, entry := range entries {
		tree := filepath.Join(dir, entry.Name())
		if there, err := g.pin(tree); err != nil || !there {
			return err
		}
		for _, name := range []string{"config.worktree", "commondir", "gitdir"} {
			if err := g.seal(filepath.Join(tree, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxFolders bounds the search for repositories, which is made once.
const maxFolders = 20_000

// findRepositories finds the repositories below the folders that may be written.
func (s *Sandbox) findRepositories() {
	folders := 0
	for _, top := range s.writable() {
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || !entry.IsDir():
				return nil
			case entry.Name() == ".git":
				return fs.SkipDir
			}
			if folders++; folders > maxFolders {
				s.unseen = true
				return fs.SkipAll
			}
			if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil && path != top {
				s.repositories = append(s.repositories, path)
			}
			return nil
		})
	}
}

// quarantine takes away what a run made under a protected name, before any trusted
// code sees it, and says so.
func (s *Sandbox) quarantine(g guard) (notes []string) {
	for _, git := range g.bare {
		if _, err := os.Lstat(git); err == nil {
			notes = append(notes, "the command made a repository: what its hooks and configuration say is the command's word")
		}
	}
	return append(notes, s.takeAway(g.absent)...)
}

// takeAway moves what is there of protected paths that were not there into quarantine.
func (s *Sandbox) takeAway(absent []string) (notes []string) {
	for _, path := range absent {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		rel, err := filepath.Rel(s.cfg.Workspace, path)
		if err != nil {
			continue
		}
		to := filepath.Join(".wharf", "quarantine", time.Now().UTC().Format("20060102-150405.000")+"-"+strings.ReplaceAll(rel, "/", "-"))
		err = os.MkdirAll(filepath.Join(s.cfg.Workspace, ".wharf", "quarantine"), 0o700)
		if err == nil {
			err = os.Rename(path, filepath.Join(s.cfg.Workspace, to))
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("the command made %s, which is protected, and it could not be moved away: %v: look at it before you use anything here", rel, err))
			continue
		}
		notes = append(notes, fmt.Sprintf("the command made %s, which is protected: it was moved to %s. Ask for approval instead of working around it", rel, to))
	}
	return notes
}

// sealing are the arguments of bubblewrap that hold the guard. A folder is mounted over
// itself, since one that holds a mount point could be moved, and the mount point is
// nowhere then.
func (g guard) sealing() (args [][]string) {
	for _, dir := range g.pinned {
		args = append(args, []string{"--bind", dir, dir})
	}
	for _, path := range g.sealed {
		args = append(args, []string{"--ro-bind", path, path})
	}
	return args
}
