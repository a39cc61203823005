package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

// The kinds of new extensions.
var kinds = []string{"hook", "tool"}

// copied holds the languages whose SDK is part of an extension's folder, and
// where in it; the others' comes along when it is built.
var copied = map[string]string{
	"c":              ".",
	"go":             "wharf-sdk/guest-sdk/go", // within a module of that name
	"rust":           "wharf",
	"assemblyscript": "wharf",
	"zig":            ".",
}

// newExtension is what templates are given.
type newExtension struct {
	Name     string
	Tool     string // the name as one that a tool may have
	Language string
	Needs    string // what it is built with
}

// made is the output of ext new --json.
type made struct {
	Dir     string          `json:"dir"`
	Files   []string        `json:"files"`
	Missing []build.Program `json:"missing"` // what is needed to build it, and not installed
}

func extNew(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext new", pflag.ContinueOnError)
	var ids []string
	for _, l := range templated() {
		ids = append(ids, l.ID)
	}
	lang := flags.String("lang", "go", "write it in `LANGUAGE`: "+strings.Join(ids, ", "))
	kind := flags.String("kind", "hook", "what it is to be: `KIND` hook or tool")
	dir := flags.String("dir", "", "make `DIR` instead of a folder of the extension's name")
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := parse(io, flags, "ext new [flags] NAME", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext new: it takes the name of the extension to be")
	}
	name := flags.Arg(0)
	l, err := chooseTemplate(name, *lang, *kind, ids)
	if err != nil {
		return err
	}
	if *dir == "" {
		*dir = name
	}
	files, err := renderAll(l, name, *kind)
	if err != nil {
		return fmt.Errorf("ext new: %w", err)
	}
	if err := makeFolder(*dir, files); err != nil {
		return err
	}
	out := made{Dir: *dir, Files: sortedFiles(files), Missing: orEmpty(l.Missing(ctx, os.Environ()))}
	if *asJSON {
		return printJSON(io, out)
	}
	return out.tell(io)
}

// templated lists the languages that there are templates for.
func templated() []build.Language {
	return slices.DeleteFunc(build.Languages(), func(l build.Language) bool { return guestsdk.Templates(l.ID, kinds[0]) == nil })
}

// chooseTemplate checks what was asked for, and finds the language.
func chooseTemplate(name, lang, kind string, ids []string) (build.Language, error) {
	if err := host.CheckName(name); err != nil {
		return build.Language{}, usagef("ext new: %w", err)
	}
	if !slices.Contains(kinds, kind) {
		return build.Language{}, usagef("ext new: --kind %q: it is %s", kind, strings.Join(kinds, " or "))
	}
	i := slices.Index(ids, lang)
	if i < 0 {
		return build.Language{}, usagef("ext new: --lang %q%s: there are templates for %s", lang, didYouMean(lang, ids), strings.Join(ids, ", "))
	}
	return templated()[i], nil
}

// renderAll makes the files of a new extension.
func renderAll(l build.Language, name, kind string) (map[string][]byte, error) {
	about := newExtension{Name: name, Tool: strings.ReplaceAll(name, "-", "_"), Language: l.Name}
	var needs []string
	for _, p := range l.Needs {
		needs = append(needs, p.Name)
	}
	about.Needs = strings.Join(needs, " and ")
	files := map[string][]byte{}
	if into, ok := copied[l.ID]; ok {
		if err := render(guestsdk.SDK(l.ID), into, about, files); err != nil {
			return nil, err
		}
	}
	for _, layer := range guestsdk.Templates(l.ID, kind) {
		if err := render(layer, ".", about, files); err != nil {
			return nil, err
		}
	}
	m, err := host.ParseManifest(string(files[build.ManifestFile]))
	if err != nil {
		return nil, err
	}
	if taken := shadowed(m); len(taken) > 0 {
		return nil, usagef("there is a built-in tool %q already: take another name", about.Tool)
	}
	return files, nil
}

// render adds the files of one layer, in a folder of the extension's.
func render(layer fs.FS, into string, about newExtension, files map[string][]byte) error {
	return fs.WalkDir(layer, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(layer, path)
		if err != nil {
			return err
		}
		name, isTemplate := strings.CutSuffix(filepath.Join(into, path), ".tmpl")
		if !isTemplate {
			files[name] = text
			return nil
		}
		files[name], err = about.fill(text)
		return err
	})
}

// fill puts what is known of the extension into a template. That is no work for
// text/template: see RATIONALE.md, "Which dependencies, and why these?".
func (n newExtension) fill(text []byte) ([]byte, error) {
	filled := strings.NewReplacer("{{.Name}}", n.Name, "{{.Tool}}", n.Tool, "{{.Language}}", n.Language, "{{.Needs}}", n.Needs).Replace(string(text))
	if _, rest, left := strings.Cut(filled, "{{"); left {
		return nil, fmt.Errorf("a template has {{%.20s, which is nothing that it is given", rest)
	}
	return []byte(filled), nil
}

// makeFolder writes a folder that is not there yet, as a whole or not at all.
func makeFolder(dir string, files map[string][]byte) (err error) {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); err == nil {
		return usagef("ext new: %s is there already: take another name, or another folder by --dir", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ext new: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".wharf-new-*")
	if err != nil {
		return fmt.Errorf("ext new: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("ext new: %w", errors.Join(err, os.RemoveAll(temp)))
		}
	}()
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return os.Rename(temp, dir)
}

func sortedFiles(files map[string][]byte) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tell shows a person what was made, and what comes next.
func (m made) tell(io stdio) error {
	for _, p := range m.Missing {
		fmt.Fprintf(io.err, "wharf: to build it, %s is missing: %s\n", p.Name, p.Install)
	}
	var b strings.Builder
	for _, name := range m.Files {
		fmt.Fprintln(&b, filepath.Join(m.Dir, name))
	}
	fmt.Fprintf(&b, "\nnext: wharf ext test %s\n", m.Dir)
	_, err := fmt.Fprint(io.out, printable(b.String()))
	return err
}
