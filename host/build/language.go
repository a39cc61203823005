package build

import (
	"context"
	"fmt"
	"path/filepath"
)

// Language is a language that extensions are written in.
type Language struct {
	ID    string // for the command line
	Name  string
	Needs []Program // what compiles it
}

// Program is a program that a build starts.
type Program struct {
	Name    string `json:"program"`
	Install string `json:"install"` // the command that installs it, or where to get it

	// look returns how it is called, where that is more than its name in the PATH.
	look func(ctx context.Context, env []string) ([]string, error)
}

// language is how the sources of one language are found and compiled. Each has
// a file of its own.
type language struct {
	Language
	sources  []string // patterns in an extension's folder, of which one must be there
	programs string   // a folder in it whose programs go before those of the PATH; empty for none
	compile  func(b *builder, ctx context.Context, sources []string) error
}

// languages holds a row for each language.
var languages = []language{golang, rust, assemblyscript, c, zig, wat}

// Languages lists the languages that [Extension] builds.
func Languages() []Language {
	all := make([]Language, len(languages))
	for i, l := range languages {
		all[i] = l.Language
	}
	return all
}

// Missing lists what is needed and not found in the PATH of an environment.
func (l Language) Missing(ctx context.Context, env []string) []Program {
	var all []Program
	for _, p := range l.Needs {
		if _, err := p.Command(ctx, env); err != nil {
			all = append(all, p)
		}
	}
	return all
}

// Command returns how a program is called.
func (p Program) Command(ctx context.Context, env []string) ([]string, error) {
	look := p.look
	if look == nil {
		look = func(_ context.Context, env []string) ([]string, error) {
			file, err := find(env, p.Name)
			return []string{file}, err
		}
	}
	argv, err := look(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed: %s", p.Name, p.Install)
	}
	return argv, nil
}

// findLanguage tells a folder's language and lists its sources.
func findLanguage(dir string) (language, []string, error) {
	var found []language
	var sources []string
	for _, l := range languages {
		files, err := l.find(dir)
		if err != nil {
			return language{}, nil, err
		}
		if len(files) > 0 {
			found, sources = append(found, l), files
		}
	}
	switch len(found) {
	case 0:
		return language{}, nil, fmt.Errorf("%s has no sources: put those of one language beside %s: %s", dir, ManifestFile, patterns())
	case 1:
		return found[0], sources, nil
	default:
		return language{}, nil, fmt.Errorf("%s has sources in %s and in %s: keep one", dir, found[0].Name, found[1].Name)
	}
}

// find lists the sources of a language in a folder.
func (l language) find(dir string) ([]string, error) {
	var all []string
	for _, pattern := range l.sources {
		files, err := filepath.Glob(filepath.Join(escapeGlob(dir), pattern))
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	for _, file := range all {
		if err := checkRegular(file); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// patterns lists what sources are called.
func patterns() string {
	text := ""
	for i, l := range languages {
		if i > 0 {
			text += ", "
		}
		text += l.sources[0] + " for " + l.Name
	}
	return text
}
