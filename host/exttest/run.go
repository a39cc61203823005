package exttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/host"
)

// Config says what a Runner tests.
type Config struct {
	Wasm     []byte // the extension's file
	CacheDir string // for compiled modules, as in [host.Config]; empty: a temporary one
	Compiler string // likewise
}

// Runner runs cases on one extension, one at a time. Close it.
type Runner struct {
	Manifest *host.Manifest

	wasm   []byte
	host   *host.Host
	dir    string                     // of what extensions keep
	loaded map[string]*host.Extension // by what cases share
}

// Open makes a Runner. A module that could not be loaded is an error.
func Open(ctx context.Context, cfg Config) (*Runner, error) {
	dir, err := os.MkdirTemp("", "wharf-kept-")
	if err != nil {
		return nil, err
	}
	r := &Runner{wasm: cfg.Wasm, dir: dir, loaded: map[string]*host.Extension{}}
	if r.host, err = host.Open(host.Config{CacheDir: cfg.CacheDir, KVDir: dir, Compiler: cfg.Compiler}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ext, err := r.host.LoadBytes(ctx, "the module", cfg.Wasm, host.Options{})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.Manifest = ext.Manifest
	return r, nil
}

// Close frees what was loaded.
func (r *Runner) Close() error { return errors.Join(r.host.Close(), os.RemoveAll(r.dir)) }

// Result is how a case went.
type Result struct {
	Case     *Case
	Failures []Failure // none: it passed
	Took     time.Duration
	steps    []expectation // what came, for an update
}

// Failure is what was not as a case has it.
type Failure struct {
	Line int      // in the file
	What string   // in one line
	Diff string   // from what was expected to what came; may be empty
	Seen []string // what the handler logged and tried, where that may say why
}

// Run runs a case. Its error is that of a machine that cannot, or of ctx; what the
// extension does wrong is in the result.
func (r *Runner) Run(ctx context.Context, c *Case) (Result, error) {
	begin := time.Now()
	result := Result{Case: c}
	stage, err := openStage(c)
	if err != nil {
		return result, fmt.Errorf("case %q: %w", c.Name, err)
	}
	err = r.play(ctx, c, stage, &result)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	result.Took = time.Since(begin)
	return result, errors.Join(err, stage.close())
}

// play makes the case's calls in a session.
func (r *Runner) play(ctx context.Context, c *Case, stage *stage, result *Result) error {
	ext, err := r.extension(ctx, c)
	if err != nil {
		return err
	}
	if err := stage.furnish(); err != nil {
		result.fail(c.Line, err.Error(), "")
		return nil
	}
	var recorder Recorder
	world, err := stage.session(c, &recorder)
	if err != nil {
		return err
	}
	for _, granted := range ext.Granted.Secrets { // known from the start, as in a session of the engine; one that is not there fails whoever needs it
		_, _ = world.Secrets.Value(ctx, granted.Name)
	}
	s, err := ext.Session(ctx, world)
	if err != nil {
		result.fail(c.Line, "it cannot start: "+err.Error(), "")
		return nil
	}
	defer s.Close()
	for _, step := range c.Steps {
		var out Outcome
		if step.form.Tool != "" {
			if out, err = recorder.CallTool(ctx, s, step.form.Tool, step.payload); err != nil {
				out = Outcome{Error: err.Error()}
			}
		} else {
			out = recorder.CallHook(ctx, s, step.hook.Point, step.payload)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := result.judge(ctx, ext, stage, step, out); err != nil {
			return err
		}
	}
	unused := stage.unused()
	for _, path := range sortedKeys(unused) {
		result.fail(c.Line, unused[path], "")
	}
	return nil
}

// extension loads the extension as the case has it granted and configured, with
// what it keeps.
func (r *Runner) extension(ctx context.Context, c *Case) (*host.Extension, error) {
	ext := r.loaded[c.share]
	if ext == nil {
		var err error
		if ext, err = r.host.LoadBytes(ctx, r.Manifest.Name, r.wasm, host.Options{Grant: c.grant, Config: c.world.Config}); err != nil {
			return nil, err
		}
		r.loaded[c.share] = ext
	}
	kept, err := keptForm(c.world.Kept)
	if err != nil {
		return nil, err
	}
	return ext, ext.Keep(ctx, kept)
}

func (r *Result) fail(line int, what, diff string) {
	r.Failures = append(r.Failures, Failure{Line: line, What: what, Diff: diff})
}

// Passed reports whether all was as the case has it.
func (r Result) Passed() bool { return len(r.Failures) == 0 }

// expectation is a key of a step, and what came in its place.
type expectation struct {
	step *Step
	key  string
	got  any  // nil: nothing came
	must bool // it is expected without being written
}

// judge compares what came of a step with what it expects.
func (r *Result) judge(ctx context.Context, ext *host.Extension, stage *stage, step *Step, out Outcome) error {
	name := step.form.Tool
	if name == "" {
		name = step.form.Hook
	}
	for _, text := range stage.takeMissing() {
		r.fail(step.Line, name+": "+text, "")
	}
	all := step.expect(out)
	if step.form.Keeps != nil {
		kept, err := ext.Kept(ctx)
		if err != nil {
			return err
		}
		got := map[string]any{}
		for key, raw := range kept {
			value, err := decode(raw)
			if err != nil {
				return err
			}
			got[key] = plain(value)
		}
		all = append(all, expectation{step, "keeps", got, false})
	}
	if step.form.Writes != nil {
		written, err := stage.written()
		if err != nil {
			return err
		}
		all = append(all, expectation{step, "writes", written, false})
	}
	seen := out.seen()
	for _, e := range all {
		want, err := step.want(e.key)
		if err != nil {
			return err
		}
		if diff := difference(want, e.got); diff != "" {
			r.fail(step.Line, e.told(name), diff)
			if e.must && seen != nil {
				r.Failures[len(r.Failures)-1].Seen, seen = seen, nil // once
			}
		}
	}
	r.steps = append(r.steps, all...)
	return nil
}

// told says in one line what is not as expected.
func (e expectation) told(name string) string {
	return fmt.Sprintf("%s: %s is not as expected", name, map[string]string{
		"verdict": "the verdict", "result": "the result", "fails": "how it fails", "logs": "what it logs", "tries": "what it tries",
		"emits": "what it emits", "keeps": "what it keeps", "writes": "what it writes",
	}[e.key])
}

// expect lists what is looked at of a step's outcome.
func (s *Step) expect(out Outcome) []expectation {
	answer := "verdict"
	if s.form.Tool != "" {
		answer = "result"
	}
	var all []expectation
	var got, failure any
	if out.Answer != nil {
		got = plain(out.Answer)
	}
	if out.Error != "" {
		failure = out.Error
	}
	if s.form.Fails != nil || failure != nil {
		all = append(all, expectation{s, "fails", failure, true})
	}
	if s.form.Fails == nil && failure == nil || got != nil || s.form.Verdict != nil || s.form.Result != nil {
		all = append(all, expectation{s, answer, got, true})
	}
	if s.form.Logs != nil {
		all = append(all, expectation{s, "logs", lines(out.Log, func(l LogLine) string { return l.Level + ": " + l.Text }), false})
	}
	if s.form.Tries != nil {
		all = append(all, expectation{s, "tries", lines(out.Operations, Operation.String), false})
	}
	if s.form.Emits != nil {
		emitted := []any{}
		for _, e := range out.Emitted {
			data, _ := decode(e.Data) // the host has decoded it before
			emitted = append(emitted, map[string]any{"name": e.Name, "data": plain(data)})
		}
		all = append(all, expectation{s, "emits", emitted, false})
	}
	return all
}

// mostSeen bounds what is shown of a call that did not come out as expected.
const mostSeen = 20

// seen tells what a handler logged and tried.
func (o Outcome) seen() []string {
	var all []string
	for _, l := range o.Log {
		all = append(all, "it logged "+l.Level+": "+l.Text)
	}
	for _, op := range o.Operations {
		text := "it tried " + op.String()
		if op.Reason != "" {
			text += ": " + op.Reason
		}
		all = append(all, text)
	}
	if left := len(all) - mostSeen; left > 0 {
		all = append(all[:mostSeen], fmt.Sprintf("and %d more", left))
	}
	return all
}

// String is an operation as cases write it.
func (o Operation) String() string {
	text := strings.TrimSpace(o.Name + " " + o.Target)
	if !o.Allowed {
		text += " (refused)"
	}
	return text
}

func lines[T any](list []T, show func(T) string) []any {
	out := []any{}
	for _, item := range list {
		out = append(out, show(item))
	}
	return out
}

// want is what a step expects under a key.
func (s *Step) want(key string) (any, error) {
	var value any
	switch key {
	case "verdict", "result":
		value = map[string]any{}
		if given := map[string]any{"verdict": s.form.Verdict, "result": s.form.Result}[key]; given != nil {
			value = given
		}
		normal, err := normalize(value)
		if empty, ok := normal.(map[string]any); ok && len(empty) == 0 {
			return nil, err
		}
		return normal, err
	case "fails":
		if s.form.Fails == nil {
			return nil, nil
		}
		return *s.form.Fails, nil
	case "logs":
		value = *s.form.Logs
	case "tries":
		value = *s.form.Tries
	case "emits":
		value = *s.form.Emits
	case "keeps":
		value = s.form.Keeps
	case "writes":
		value = s.form.Writes
	}
	raw, err := encode(value)
	if err != nil {
		return nil, err
	}
	decoded, err := decode(raw)
	return plain(decoded), err
}
