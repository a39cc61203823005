package permission

import (
	"path"
	"slices"
	"strings"
)

// touches says how sure it is that a line reads or writes a file that a rule is
// about: by a redirection, or because a word names it.
func (p *Policy) touches(r Rule, l commandLine) certainty {
	best := no
	for _, f := range l.files {
		switch found := p.named(r, l, f.path); {
		case r.kind == onWrite && !f.writes:
		case found == yes:
			return yes
		default:
			best = max(best, found)
		}
	}
	for _, c := range l.commands {
		for _, value := range c.values { // X=.env; cat $X
			best = max(best, min(p.named(r, l, value), maybe))
		}
		for _, w := range c.words[min(1, len(c.words)):] {
			found := p.named(r, l, w)
			switch {
			case r.kind == onWrite && c.reads():
			case r.kind == onWrite:
				best = max(best, min(found, maybe))
			case found == yes:
				return yes
			default:
				best = max(best, found)
			}
		}
	}
	return best
}

// named says how sure it is that a word is, or has in it, the name of a file that a rule is
// about, as seen from where the line may be.
func (p *Policy) named(r Rule, l commandLine, w word) certainty {
	at := p.at.place()
	if w.glob {
		return at.overlaps(r.path, w.text)
	}
	if w.kind != known || w.text == "" {
		return no
	}
	best := no
	for i, text := range namesIn(w.text) {
		for _, dir := range l.dirs {
			if !slices.ContainsFunc(p.names(from(dir, text)), func(name string) bool { return at.matches(r.path, name) }) {
				continue
			}
			if i == 0 {
				return yes
			}
			best = maybe
		}
	}
	return best
}

// from returns a path as it is seen from a folder.
func from(dir, name string) string {
	if dir == "" || path.IsAbs(name) || strings.HasPrefix(name, "~") {
		return name
	}
	return dir + "/" + name // and not shorter: behind a link, .. leads elsewhere
}

// namesIn returns a word, and what of it may be the name of a file: if=.env, @.env,
// --file=.env, -f.env, HEAD:.env.
func namesIn(text string) []string {
	names := []string{text}
	for i := 0; i+1 < len(text) && len(names) < 9; i++ {
		if strings.IndexByte("=@:,", text[i]) >= 0 {
			names = append(names, text[i+1:])
		}
	}
	if isOption(text) && len(text) > 2 {
		names = append(names, text[2:])
	}
	return names
}

// mostFolders is how many folders a line is followed into.
const mostFolders = 32

// folders returns where a line may be when it names files: where it begins, and where cd
// and the like go from there.
func (l commandLine) folders(dir string) []string {
	dirs := []string{dir}
	for _, c := range l.commands {
		for i, w := range c.words {
			goes := i > 0 && (c.words[0].text == "cd" || c.words[0].text == "pushd" || slices.Contains([]string{"-C", "--chdir", "--directory"}, c.words[i-1].text))
			if !goes || w.kind != known {
				continue
			}
			for _, d := range dirs {
				if next := path.Clean(from(d, w.text)); len(dirs) < mostFolders && !slices.Contains(dirs, next) {
					dirs = append(dirs, next)
				}
			}
		}
	}
	return dirs
}
