package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/gcfg"
)

// named is what the configuration of a repository has git run or read that lies anywhere: the user's
// next commit runs the hooks in core.hooksPath, as it does those in .git/hooks.
type named struct {
	hooks  []string // folders of hooks, or hooks where other things lie beside them
	files  []string // included configuration
	doubts []string // what could not be read, and why: there may be more than is listed
}

const (
	longestConfig = 256 << 10
	mostConfigs   = 16 // files that are read for one repository
)

// usualHooks are the folders that hooks are kept in by convention. They count where the
// configuration cannot be read.
var usualHooks = []string{".husky", ".githooks"}

// hookNames are the programs that git looks for in a folder of hooks.
var hookNames = []string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase",
	"post-checkout", "post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction",
	"push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist",
	"p4-post-changelist", "p4-pre-submit", "post-index-change",
}

// lookAtSettings returns what the configuration of a repository names: git is its .git, and top the
// folder that hooks run in. Every value counts, also one that a later one overrides, since
// conditions of git's decide which are read.
func lookAtSettings(git, top string, homes []string) (n named) {
	own, common, err := gitFolders(git)
	if errors.Is(err, fs.ErrNotExist) {
		return n
	}
	if err != nil {
		n.doubt(git, top, err)
		return n
	}
	tops, hooks := []string{top}, []string(nil)
	todo := []string{filepath.Join(common, "config"), filepath.Join(own, "config.worktree")}
	for i := 0; i < len(todo); i++ {
		file := todo[i]
		if i == mostConfigs {
			n.doubt(file, top, errors.New("more files are included than are looked into"))
			break
		}
		found, err := readSettings(file)
		if err != nil {
			n.doubt(file, top, err)
			continue
		}
		hooks = append(hooks, found.hooks...)
		for _, tree := range found.trees {
			tops = append(tops, meant(own, tree, homes)...)
		}
		for _, path := range found.includes {
			for _, at := range meant(filepath.Dir(file), path, homes) {
				if n.files = append(n.files, at); !slices.Contains(todo, at) {
					todo = append(todo, at)
				}
			}
		}
	}
	for _, top := range tops {
		for _, path := range hooks {
			n.addHooks(top, meant(top, path, homes))
		}
	}
	return n
}

// doubt notes that a file could not be read, and has the usual folders count.
func (n *named) doubt(file, top string, err error) {
	n.doubts = append(n.doubts, fmt.Sprintf("%s could not be read as git does (%v): of the hooks that it may name, only those in %s are protected", file, err, strings.Join(usualHooks, " and ")))
	for _, name := range usualHooks {
		n.hooks = append(n.hooks, filepath.Join(top, name))
	}
}

// addHooks adds folders of hooks. One that holds the working tree or is a repository has to stay
// writable: there the hooks count one by one.
func (n *named) addHooks(top string, dirs []string) {
	for _, dir := range dirs {
		if filepath.Base(dir) == "_" { // of husky, whose hooks there run those of the folder above
			dir = filepath.Dir(dir)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil && !within(top, dir) && !isBare(dir) {
			n.hooks = append(n.hooks, dir)
			continue
		}
		for _, name := range hookNames {
			n.hooks = append(n.hooks, filepath.Join(dir, name))
		}
	}
}

// settings are the values of one file, as they are written there.
type settings struct{ hooks, includes, trees []string }

// readSettings reads a file of git's configuration; one that is not there says nothing.
func readSettings(path string) (settings, error) {
	text, err := readFree(path, longestConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return settings{}, nil
	}
	if err != nil {
		return settings{}, err
	}
	return parseSettings(text)
}

// parseSettings never fails by a panic, whatever the text: the parser is not ours.
func parseSettings(text []byte) (found settings, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the parser broke down: %v", broken)
		}
	}()
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	err = gcfg.ReadWithCallback(bytes.NewReader(text), func(section, sub, key, value string, _ bool) error {
		value = strings.ReplaceAll(value, "\n", "") // a line that goes on: the parser leaves the line's end in it
		if value == "" {
			return nil
		}
		switch is := strings.EqualFold; {
		case is(section, "core") && sub == "" && is(key, "hooksPath"):
			found.hooks = append(found.hooks, value)
		case is(section, "core") && sub == "" && is(key, "worktree"):
			found.trees = append(found.trees, value)
		case (is(section, "include") && sub == "" || is(section, "includeIf")) && is(key, "path"):
			found.includes = append(found.includes, value)
		}
		return nil
	})
	return found, err
}

// meant returns the absolute paths that a value may mean: as it is written, and with links followed
// as far as it is there.
func meant(base, value string, homes []string) (all []string) {
	paths := []string{value}
	if rest, ok := strings.CutPrefix(value, "~"); ok {
		_, rest, _ = strings.Cut(rest, "/") // behind a user's name, of whom we know one
		paths = nil
		for _, home := range homes {
			paths = append(paths, home+"/"+rest)
		}
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = base + "/" + path
		}
		for _, at := range []string{filepath.Clean(path), realPath(path)} {
			if !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// realPath follows the links of a path as far as there is something.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	path = filepath.Clean(path)
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil || at == filepath.Dir(at) {
			return filepath.Join(real, rest)
		}
	}
}
