package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// guard is what a run must leave as it is in a workspace that it may write: the
// protected paths ([Protected]) at its top and in each repository in it, and what the configuration
// of those names.
type guard struct {
	pinned  []string // folders that must stay where they are, the outer ones first
	sealed  []string // what is read-only
	absent  []string // protected names that are not there
	news    []news   // what is only told of where a command makes it
	keepGit bool     // all of .git is read-only
	notes   []string // of what was taken away as it was made

	seen map[string]spot // what is to be mounted, as it was looked at
}

// news is a path at which there is nothing yet, and what is said where a command makes something.
type news struct{ path, note string }

// lookout knows the guards of the commands that run. Where one of them makes what is protected, the
// next to begin or end takes it away: a long one must not leave it there for hours, and two that
// end together must not both.
type lookout struct {
	mu      sync.Mutex
	guards  map[*guard]bool
	doubted map[string]bool // what of git's configuration was told already
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
	g.notes = append(notes, g.notes...)
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
	g := guard{keepGit: s.cfg.VCS == VCSReadOnly, seen: map[string]spot{}}
	if s.cfg.None || profile == FullAccess {
		return g, nil
	}
	for _, path := range append([]string{s.cfg.Workspace}, s.cfg.Write...) {
		if _, err := g.see(path); err != nil {
			return g, err
		}
	}
	if profile != WorkspaceWrite {
		return g, nil
	}
	s.look.Do(s.findRepositories)
	makeIn(s.cfg.Workspace, ".wharf")
	for _, top := range s.writable() {
		if err := s.addTop(&g, top, true); err != nil {
			return g, err
		}
	}
	if err := s.addRepositories(&g); err != nil {
		return g, err
	}
	g.settle()
	return g, nil
}

// addRepositories adds the repositories that were found.
func (s *Sandbox) addRepositories(g *guard) error {
	for _, top := range s.repositories {
		if _, _, err := lookFree(top); err != nil {
			continue // a command has moved it, and what a link leads to instead is not the workspace's
		}
		if err := s.addTop(g, top, false); err != nil {
			return err
		}
	}
	for _, git := range s.bare {
		if there, err := g.pin(git); err != nil || !there {
			continue
		}
		if err := g.addOwn(git); err != nil {
			return err
		}
		if err := s.addNamed(g, git, git); err != nil {
			return err
		}
	}
	return nil
}

// addTop adds what is protected in a folder that may be written, or in a repository in it, and what
// its configuration names.
func (s *Sandbox) addTop(g *guard, top string, outermost bool) error {
	if err := g.add(top, outermost); err != nil {
		return err
	}
	return s.addNamed(g, filepath.Join(top, ".git"), top)
}

// makeIn makes a folder, so that no command can make it; where that fails, it counts as absent.
func makeIn(dir, name string) {
	above, err := openFree("/", dir)
	if err != nil {
		return
	}
	defer func() { _ = above.Close() }()
	if made, err := makeFree(above, name, 0o755); err == nil {
		_ = made.Close()
	}
}

// see returns of what kind a path is that is to be mounted, and notes what is there.
func (g *guard) see(path string) (kind uint32, err error) {
	at, kind, err := lookFree(path)
	if err == nil {
		g.seen[path] = at
	}
	return kind, err
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
	_, err := g.see(path)
	if link, ok := errors.AsType[linked](err); ok {
		return link
	}
	if err != nil {
		g.absent = append(g.absent, path)
		return nil
	}
	g.sealed = append(g.sealed, path)
	return nil
}

// pin has a folder stay where it is; there is whether it is a folder at all.
func (g *guard) pin(dir string) (there bool, err error) {
	kind, err := g.see(dir)
	if link, ok := errors.AsType[linked](err); ok {
		return false, link
	}
	if err != nil || kind != unix.S_IFDIR {
		return false, nil
	}
	g.pinned = append(g.pinned, dir)
	return true, nil
}

// addGit adds what git reads and runs later, or all of .git. A .git that is a file points to such a
// folder.
func (g *guard) addGit(git string) error {
	there, err := g.pin(git)
	if err != nil {
		return err
	}
	if _, missing := os.Lstat(git); missing != nil {
		g.news = append(g.news, news{git, "the command made a repository: what its hooks and configuration say is the command's word"})
		return nil
	}
	if !there || g.keepGit {
		return g.seal(git)
	}
	return g.addOwn(git)
}

// addOwn adds what is protected in a repository's own folder.
func (g *guard) addOwn(git string) error {
	makeIn(git, "hooks")
	g.expectUnderWay(git)
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

// expectUnderWay has a rebase or the like be told of that a command leaves: git goes on with it by
// what stands in these folders, a rebase's "exec" among that.
func (g *guard) expectUnderWay(git string) {
	for _, name := range []string{"rebase-merge", "rebase-apply", "sequencer"} {
		path := filepath.Join(git, name)
		if _, missing := os.Lstat(path); missing != nil {
			g.news = append(g.news, news{path, "the command left a rebase under way: what it will run is the command's word"})
		}
	}
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
		g.expectUnderWay(tree)
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

// findRepositories finds the repositories below the folders that may be written, and those without
// a working tree.
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
			if isBare(path) {
				s.bare = append(s.bare, path)
			}
			return nil
		})
	}
}

// quarantine takes away what a run made under a protected name, before any trusted
// code sees it, and says so.
func (s *Sandbox) quarantine(g guard) (notes []string) {
	for _, n := range g.news {
		if _, err := os.Lstat(n.path); err == nil {
			notes = append(notes, n.note)
		}
	}
	return append(notes, s.takeAway(g.absent)...)
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
