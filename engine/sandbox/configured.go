package sandbox

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// addNamed adds what the configuration of a repository names, as far as it lies in what commands may
// write. What could not be read is told once.
func (s *Sandbox) addNamed(g *guard, git, top string) error {
	n := lookAtSettings(git, top, s.homes)
	for _, doubt := range n.doubts {
		if !s.lookout.doubted[doubt] {
			g.notes = append(g.notes, doubt)
		}
		if s.lookout.doubted == nil {
			s.lookout.doubted = map[string]bool{}
		}
		s.lookout.doubted[doubt] = true
	}
	for _, path := range append(n.hooks, n.files...) {
		for _, outer := range s.writable() {
			if path == outer || !within(path, outer) {
				continue
			}
			if err := g.hold(outer, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// hold has a path below outer be read-only, or absent, in folders that stay where they are. Those
// are made: a link in the place of one would lead git to what nobody looks at.
func (g *guard) hold(outer, path string) error {
	between, _ := filepath.Rel(outer, filepath.Dir(path))
	at := outer
	for name := range strings.SplitSeq(between, "/") {
		if name == "." {
			break
		}
		makeIn(at, name)
		at = filepath.Join(at, name)
		if there, err := g.pin(at); err != nil || !there {
			return err // below a file there is nothing
		}
	}
	return g.seal(path)
}

// settle has outer folders come before what is in them, and leaves out what lies in what is
// read-only anyway: mounted again, it could be written.
func (g *guard) settle() {
	sealed := map[string]bool{}
	for _, path := range g.sealed {
		sealed[path] = true
	}
	covered := func(path string) bool {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			if sealed[dir] {
				delete(g.seen, path)
				return true
			}
		}
		return false
	}
	for _, all := range []*[]string{&g.pinned, &g.sealed} {
		slices.Sort(*all)
		*all = slices.DeleteFunc(slices.Compact(*all), covered)
	}
	g.pinned = slices.DeleteFunc(g.pinned, func(dir string) bool { return sealed[dir] })
	slices.Sort(g.absent)
	g.absent = slices.Compact(g.absent)
}

// protected reports whether rel must not be written, and by which pattern: by its name, or since a
// repository that it lies in has git run or read it.
func (r *Root) protected(rel string) (pattern string, protected bool) {
	if pattern, protected := Protected(rel, r.home); protected {
		return pattern, true
	}
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		if pattern := r.namedIn(filepath.Join(r.dir, dir), rel); pattern != "" {
			return pattern, true
		}
		if dir == "." {
			return "", false
		}
	}
}

// namedIn returns why a repository whose top is the folder top protects rel, if it does.
func (r *Root) namedIn(top, rel string) string {
	git := filepath.Join(top, ".git")
	if isBare(top) {
		git = top
		for _, name := range gitNames {
			if r.leads(rel, filepath.Join(top, name)) {
				return name + " of a bare repository"
			}
		}
	}
	n := lookAtSettings(git, top, r.homes)
	switch leads := func(path string) bool { return r.leads(rel, path) }; {
	case slices.ContainsFunc(n.hooks, leads):
		return "core.hooksPath of git's configuration"
	case slices.ContainsFunc(n.files, leads):
		return "include.path of git's configuration"
	}
	return ""
}

// leads reports whether rel is, or lies below, an absolute path, by any spelling.
func (r *Root) leads(rel, path string) bool {
	pattern, err := filepath.Rel(r.dir, path)
	return err == nil && path != r.dir && within(path, r.dir) && hasPattern(strings.Split(rel, "/"), filepath.ToSlash(pattern))
}
