package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/exttest"
)

// caseRecorder records what an extension meets in a run.
type caseRecorder struct{ tape *exttest.Tape }

// begin returns what the extension's session plays its calls to.
func (r *caseRecorder) begin(ctx context.Context, ext *host.Extension, o host.Options, secrets *secret.Store) (func(host.Taped), error) {
	if r == nil {
		return nil, nil
	}
	var err error
	if r.tape, err = exttest.NewTape(ctx, ext, o.Config, secrets); err != nil {
		return nil, err
	}
	return r.tape.Take, nil
}

// recorded is a file of cases that one is added to.
type recorded struct {
	path string
	text string // what is there already
}

// recordCase does what wharf run does with these arguments, and makes a case of
// that name of what the extension met in it.
func (t *tester) recordCase(ctx context.Context, name string, args []string) error {
	file, err := t.module(ctx)
	if err != nil {
		return err
	}
	runner, err := t.open(ctx, file)
	if err != nil {
		return err
	}
	defer runner.Close()
	into, err := openRecorded(file, name, runner.Manifest)
	if err != nil {
		return exitError{exitUsage, fmt.Errorf("ext test --record: %w", err)}
	}
	o, prompt, err := parseRun(t.io, append([]string{"--ext", file}, args...))
	if err != nil {
		return err
	}
	var recorder caseRecorder
	o.extensions[0].recorder = &recorder
	ran := o.run(ctx, t.io, prompt) // however it ended: that may be what is to be recorded
	if recorder.tape == nil {
		return ran
	}
	return errors.Join(ran, t.keep(ctx, runner, into, name, recorder.tape))
}

// openRecorded reads the file that recorded cases of a module are in.
func openRecorded(module, name string, m *host.Manifest) (recorded, error) {
	into := recorded{path: filepath.Join(filepath.Dir(module), "testdata", "recorded.toml")}
	text, err := host.ReadFile(into.path)
	if errors.Is(err, fs.ErrNotExist) {
		return into, nil
	}
	if err != nil {
		return into, err
	}
	into.text = string(text) + "\n"
	f, err := exttest.ParseFile(into.path, string(text), m)
	if err != nil {
		return into, err
	}
	if slices.ContainsFunc(f.Cases, func(c *exttest.Case) bool { return c.Name == name }) {
		return into, fmt.Errorf("%s has a case %q already: give this one another name", into.path, name)
	}
	return into, nil
}

// keep writes the case, and tries whether it comes out as the run did.
func (t *tester) keep(ctx context.Context, runner *exttest.Runner, into recorded, name string, tape *exttest.Tape) error {
	text, left := tape.Case(name)
	if text == "" {
		return fmt.Errorf("ext test --record: the run had nothing for the extension %q to do, so there is no case", runner.Manifest.Name)
	}
	f, err := exttest.ParseFile(into.path, into.text+text, runner.Manifest)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(into.path), 0o755)
	}
	if err == nil {
		err = replaceText(into.path, into.text+text)
	}
	if err != nil {
		return fmt.Errorf("ext test --record: %w", err)
	}
	made := f.Cases[len(f.Cases)-1]
	fmt.Fprintf(t.io.err, "recorded: %s:%d: %s, %s\n", into.path, made.Line, name, count(len(made.Steps), "call"))
	if left > 0 {
		fmt.Fprintf(t.io.err, "recorded: %s more did not find room in it\n", count(left, "call"))
	}
	result, err := runner.Run(ctx, made)
	if err != nil || result.Passed() {
		return err
	}
	report := &testReport{Extension: runner.Manifest.Name}
	report.add(f, result)
	fmt.Fprintf(t.io.err, "%srecorded: it does not come out as the run did: what differs hangs on something that a recording does not keep, such as a time, a folder, or what is in a file that was only looked at: mend it by hand\n",
		printable(t.text(report)))
	return exitError{code: exitFailed} // which has been shown
}
