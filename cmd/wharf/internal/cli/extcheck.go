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

	"github.com/wharf-agent/wharf/engine/tool/builtin"
	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

// checked is the output of ext check --json.
type checked struct {
	inspected
	Warnings []string `json:"warnings"`
}

func extCheck(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext check", pflag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON object")
	strict := flags.Bool("strict", false, "take a warning for a failure")
	verbose := flags.BoolP("verbose", "v", false, "show the imports and exports, too")
	if err := parse(io, flags, "ext check [--json] [--strict] [-v] FILE.wasm|DIR", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext check: it takes one file or folder, or the name of a shipped extension: %s", strings.Join(extensions.Names(), ", "))
	}
	file, doubts, err := moduleOf(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("check %s: %w", flags.Arg(0), err)
	}
	wasm, missing := readModule(file)
	if wasm == nil {
		return fmt.Errorf("check %s: %w", flags.Arg(0), missing)
	}
	in, err := host.Inspect(wasm)
	if err != nil {
		return fmt.Errorf("check %s: %w", file, err)
	}
	v := view{Inspection: in, brief: !*verbose, size: len(wasm)}
	if in.Problem == nil {
		v.load(ctx, wasm)
	} else if missing != nil {
		v.Problem = missing
	}
	warnings := slices.Concat(doubts, in.Warnings(), shadowed(in.Manifest))
	if *asJSON {
		err = printJSON(io, checked{v.object(), orEmpty(warnings)})
	} else {
		_, err = fmt.Fprint(io.out, printable(v.text(false)+judgement(v.Problem, warnings)))
	}
	if err == nil && (v.Problem != nil || *strict && len(warnings) > 0) {
		err = exitError{code: exitFailed} // why has been shown
	}
	return err
}

// judgement is the end of the report.
func judgement(problem error, warnings []string) string {
	var b strings.Builder
	for _, w := range warnings {
		fmt.Fprintf(&b, "%-13s %s\n", "warning", w)
	}
	if problem == nil {
		fmt.Fprintf(&b, "%-13s it can be loaded, with %s\n", "result", count(len(warnings), "warning"))
	}
	return b.String()
}

// moduleOf returns the file that a path names: itself, or what was built in the
// folder, and what there is to be said of that.
func moduleOf(path string) (file string, doubts []string, err error) {
	info, err := os.Stat(path)
	if !isFile(path) && err != nil || err == nil && !info.IsDir() {
		return path, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	manifest, m, err := readManifestFile(path)
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(path, m.Name+".wasm")
	wasm, err := host.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("it is not built yet: wharf ext build %s", path)
	}
	if err != nil {
		return "", nil, err
	}
	stale, err := build.Stale(path, file)
	if err != nil {
		return "", nil, err
	}
	text, err := host.ReadManifest(wasm)
	switch {
	case err == nil && text != manifest:
		doubts = append(doubts, fmt.Sprintf("the manifest in %s is another than %s: wharf ext build %s", filepath.Base(file), build.ManifestFile, path))
	case stale:
		doubts = append(doubts, fmt.Sprintf("%s is older than its sources: wharf ext build %s", filepath.Base(file), path))
	}
	return file, doubts, nil
}

// readManifestFile reads the manifest of an extension's folder.
func readManifestFile(dir string) (string, *host.Manifest, error) {
	file := filepath.Join(dir, build.ManifestFile)
	text, err := host.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, build.ErrNoManifest
	}
	if err != nil {
		return "", nil, err
	}
	m, err := host.ParseManifest(string(text))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", file, err)
	}
	return string(text), m, nil
}

// shadowed warns of tools that wharf run would refuse, since it has one of that
// name itself.
func shadowed(m *host.Manifest) []string {
	if m == nil {
		return nil
	}
	var all, own []string
	for _, t := range builtin.Tools(builtin.Config{}) { // to be looked at, not run
		own = append(own, t.Spec().Name)
	}
	for _, t := range m.Tools {
		if slices.Contains(own, t.Name) {
			all = append(all, fmt.Sprintf("its tool %q has the name of a built-in one, and nothing is shadowed: wharf run leaves it out, so rename it", t.Name))
		}
	}
	return all
}
