package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/exttest"
)

// testReport is the output of ext test --json.
type testReport struct {
	Extension string     `json:"extension"`
	Passed    int        `json:"passed"`
	Failed    int        `json:"failed"`
	Cases     []testCase `json:"cases"`
}

type testCase struct {
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Name     string        `json:"name"`
	Passed   bool          `json:"passed"`
	TimeMS   float64       `json:"time_ms"`
	Failures []testFailure `json:"failures"`
}

type testFailure struct {
	Line    int      `json:"line"`
	Message string   `json:"message"`
	Diff    string   `json:"diff,omitempty"`
	Seen    []string `json:"seen,omitempty"` // what the handler logged and tried
}

// tester is a call of ext test.
type tester struct {
	io                  stdio
	path                string // of the folder or the file
	pattern             *regexp.Regexp
	update, build, asJS bool
	verbose             bool
}

func extTest(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext test", pflag.ContinueOnError)
	t := tester{io: io, path: "."}
	pattern := flags.String("run", "", "run the cases whose names match the regular expression `PATTERN`")
	flags.BoolVar(&t.update, "update", false, "write what comes into the cases, in the place of what they expect")
	flags.BoolVar(&t.build, "build", false, "build the folder first, also if nothing in it is newer than its module")
	flags.BoolVar(&t.asJS, "json", false, "print one JSON object")
	flags.BoolVarP(&t.verbose, "verbose", "v", false, "show the cases that pass, too")
	record := flags.String("record", "", "do what wharf run does with what stands behind --, and make a case of that `NAME` of what the extension met")
	if err := parse(io, flags, "ext test [flags] [DIR|FILE.wasm] [-- PROMPT and flags of wharf run]", longFlags(args, "run", "update")); err != nil {
		return err
	}
	own, rest := flags.Args(), []string(nil)
	if dash := flags.ArgsLenAtDash(); dash >= 0 {
		own, rest = own[:dash], own[dash:]
	}
	if flags.Changed("record") != (rest != nil) || flags.Changed("record") && *record == "" {
		return usagef("ext test: --record NAME goes with -- and what to run: wharf ext test --record NAME DIR -- \"what to do\"")
	}
	var err error
	if t.pattern, err = regexp.Compile(*pattern); err != nil {
		return usagef("ext test: --run: %w", err)
	}
	switch len(own) {
	case 0:
	case 1:
		t.path = own[0]
	default:
		return usagef("ext test: it takes one folder or file")
	}
	if *record != "" {
		return t.recordCase(ctx, *record, rest)
	}
	return t.run(ctx)
}

// longFlags has -run mean --run, as those write it who come from go test.
func longFlags(args []string, names ...string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		name, _, _ := strings.Cut(arg, "=")
		if slices.Contains(names, strings.TrimPrefix(name, "-")) && strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") {
			out[i] = "-" + arg
		}
	}
	return out
}

func (t *tester) run(ctx context.Context) error {
	file, err := t.module(ctx)
	if err != nil {
		return err
	}
	runner, err := t.open(ctx, file)
	if err != nil {
		return err
	}
	defer runner.Close()
	report, err := t.files(ctx, runner, filepath.Join(filepath.Dir(file), "testdata"))
	if err != nil {
		return err
	}
	if t.asJS {
		err = printJSON(t.io, report)
	} else {
		_, err = fmt.Fprint(t.io.out, printable(t.text(report)))
	}
	switch {
	case err != nil:
		return err
	case report.Failed > 0:
		return exitError{code: exitFailed} // which has been shown
	case len(report.Cases) == 0:
		return usagef("test %s: no case has a name that matches %q", t.path, t.pattern)
	}
	return nil
}

// open makes what runs the cases of a module.
func (t *tester) open(ctx context.Context, file string) (*exttest.Runner, error) {
	f, err := findFolders()
	if err != nil {
		return nil, err
	}
	wasm, err := host.ReadExtension(file)
	var runner *exttest.Runner
	if err == nil {
		runner, err = exttest.Open(ctx, exttest.Config{Wasm: wasm, CacheDir: compiledCache(f), Compiler: Compiler})
	}
	if err != nil {
		return nil, exitError{exitUsage, fmt.Errorf("test %s: %w", file, err)}
	}
	return runner, nil
}

// module returns the module to test. That of a folder is built if it is not up
// to date.
func (t *tester) module(ctx context.Context) (string, error) {
	info, err := os.Stat(t.path)
	if err != nil {
		return "", usagef("ext test: %w", err)
	}
	if !info.IsDir() {
		if t.build {
			return "", usagef("ext test: --build builds a folder, and %s is a file", t.path)
		}
		return t.path, nil
	}
	_, m, err := readManifestFile(t.path)
	if err != nil {
		return "", usagef("test %s: %w", t.path, err)
	}
	file := filepath.Join(t.path, m.Name+".wasm")
	stale, err := build.Stale(t.path, file)
	if err != nil {
		return "", fmt.Errorf("test %s: %w", t.path, err)
	}
	if !stale && !t.build {
		return file, nil
	}
	built, err := build.Extension(ctx, build.Config{Dir: t.path, SDK: guestsdk.SDK, Env: os.Environ()})
	if err != nil {
		return "", exitError{exitUsage, err}
	}
	return built.Path, nil
}

// files runs the cases of a folder.
func (t *tester) files(ctx context.Context, runner *exttest.Runner, dir string) (*testReport, error) {
	files, err := exttest.ReadDir(dir, runner.Manifest)
	if err != nil {
		return nil, exitError{exitUsage, fmt.Errorf("test %s: %w", t.path, err)}
	}
	report := &testReport{Extension: runner.Manifest.Name, Cases: []testCase{}}
	for _, f := range files {
		results, err := t.cases(ctx, runner, f)
		if err == nil && t.update {
			f, results, err = t.renew(ctx, runner, f, results)
		}
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			report.add(f, r)
		}
	}
	return report, nil
}

// cases runs the cases of a file that are asked for.
func (t *tester) cases(ctx context.Context, runner *exttest.Runner, f *exttest.File) ([]exttest.Result, error) {
	var all []exttest.Result
	for _, c := range f.Cases {
		if !t.pattern.MatchString(c.Name) {
			continue
		}
		result, err := runner.Run(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("test %s:%d: %w", f.Name, c.Line, err)
		}
		all = append(all, result)
	}
	return all, nil
}

// renew writes what came into a file, where it is not what was expected, and runs
// it again: what still fails, no update can help.
func (t *tester) renew(ctx context.Context, runner *exttest.Runner, f *exttest.File, results []exttest.Result) (*exttest.File, []exttest.Result, error) {
	if !slices.ContainsFunc(results, func(r exttest.Result) bool { return !r.Passed() }) {
		return f, results, nil
	}
	text, err := f.Update(results, runner.Manifest)
	if err != nil {
		return nil, nil, fmt.Errorf("test %s: %w", t.path, err)
	}
	if err := replaceText(f.Name, text); err != nil {
		return nil, nil, fmt.Errorf("test %s: %w", t.path, err)
	}
	renewed, err := exttest.ParseFile(f.Name, text, runner.Manifest)
	if err != nil {
		return nil, nil, err
	}
	results, err = t.cases(ctx, runner, renewed)
	return renewed, results, err
}

// replaceText replaces a file as a whole, or not at all.
func replaceText(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".wharf-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (r *testReport) add(f *exttest.File, result exttest.Result) {
	c := testCase{
		File: f.Name, Line: result.Case.Line, Name: result.Case.Name, Passed: result.Passed(),
		TimeMS: milliseconds(result.Took), Failures: []testFailure{},
	}
	for _, failure := range result.Failures {
		c.Failures = append(c.Failures, testFailure{failure.Line, failure.What, failure.Diff, failure.Seen})
	}
	if c.Passed {
		r.Passed++
	} else {
		r.Failed++
	}
	r.Cases = append(r.Cases, c)
}

// text shows a person how the cases went.
func (t *tester) text(r *testReport) string {
	var b strings.Builder
	for _, c := range r.Cases {
		took := time.Duration(c.TimeMS * float64(time.Millisecond))
		if c.Passed && t.verbose {
			fmt.Fprintf(&b, "ok    %s:%d: %s (%v)\n", c.File, c.Line, c.Name, took)
		}
		if c.Passed {
			continue
		}
		fmt.Fprintf(&b, "FAIL  %s:%d: %s (%v)\n", c.File, c.Line, c.Name, took)
		for _, f := range c.Failures {
			fmt.Fprintf(&b, "      line %d: %s\n", f.Line, f.Message)
			for line := range strings.Lines(f.Diff) {
				fmt.Fprintf(&b, "        %s", line)
			}
			for _, text := range f.Seen {
				fmt.Fprintf(&b, "        %s\n", oneLine(text, 500))
			}
		}
	}
	if r.Failed > 0 {
		fmt.Fprintf(&b, "%s: %d of %s failed\n", r.Extension, r.Failed, count(len(r.Cases), "case"))
	} else if len(r.Cases) > 0 {
		fmt.Fprintf(&b, "%s: %s passed\n", r.Extension, count(r.Passed, "case"))
	}
	return b.String()
}
