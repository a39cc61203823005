package cli

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// demoFiles are a small broken Go project and the recorded model that mends it.
//
//go:embed demo
var demoFiles embed.FS

// demoToken is planted into the recorded model's last reply. It is no real key,
// and it is put together here so that it does not look like one in the source.
var demoToken = "sk-" + "demo" + strings.Repeat("0123456789", 3)

// demoCache names the build cache of all demos, which only the first has to fill.
const demoCache = "demo"

// demoRun is a run of the demo: what it plays, and what it saw.
type demoRun struct {
	replies []script.Reply
	dir     string // the project and the folder next door
	calls   []session.ToolCall
	results map[session.CallID]session.ToolResult
}

// event takes note of what happens. A run that is no demo has a nil demoRun.
func (d *demoRun) event(r session.Record) {
	if d == nil {
		return
	}
	switch e := r.Event.(type) {
	case session.ToolCall:
		d.calls = append(d.calls, e)
	case session.ToolResult:
		d.results[e.CallID] = e
	}
}

func demoCommand(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	if err := parse(io, flags, "demo", args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return usagef("demo: it takes no arguments")
	}
	d, err := newDemo()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer os.RemoveAll(d.dir)
	fmt.Fprintf(io.err, "A recorded model mends a small Go project in %s.\n"+
		"Its commands run in the sandbox, the guard no-rm judges each, and redact masks what looks like a key.\n", d.project())
	if f, err := findFolders(); err == nil {
		if _, err := os.Stat(workspaceCache(f, demoCache)); err != nil {
			fmt.Fprintf(io.err, "This first time, the tests take half a minute: the sandbox has a build cache of its own, and it is empty.\n")
		}
	}
	fmt.Fprintln(io.err)

	var screen bytes.Buffer
	o := runOptions{
		format: formatText, verbose: true, dir: d.project(), demo: d,
		extensions: []extensionFlag{{path: "no-rm"}, {path: "redact"}, {path: "count-words"}},
	}
	err = o.run(ctx, stdio{io.in, &screen, io.err}, "The tests of this project fail. Find out why, mend it, and tell me what it was.")
	fmt.Fprintf(io.err, "\n")
	if _, failure := io.out.Write(screen.Bytes()); failure != nil {
		return failure
	}
	if err != nil {
		return err
	}
	return d.judge(io, screen.String())
}

// newDemo writes the project into a temporary folder, and beside it one that
// the recorded model will try to remove.
func newDemo() (*demoRun, error) {
	dir, err := os.MkdirTemp("", "wharf-demo-")
	if err != nil {
		return nil, err
	}
	d := &demoRun{dir: dir, results: map[session.CallID]session.ToolResult{}}
	err = errors.Join(
		os.Mkdir(d.project(), 0o755), os.Mkdir(filepath.Dir(d.canary()), 0o755),
		os.WriteFile(d.canary(), []byte("still here\n"), 0o644),
	)
	for _, name := range []string{"go.mod", "stats.go", "stats_test.go"} {
		content, failure := demoFiles.ReadFile("demo/" + name + ".txt")
		err = errors.Join(err, failure, os.WriteFile(filepath.Join(d.project(), name), content, 0o644))
	}
	text, failure := demoFiles.ReadFile("demo/script.jsonl")
	if err = errors.Join(err, failure); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte("{{token}}"), []byte(demoToken))
	d.replies, err = script.Parse("demo/script.jsonl", bytes.NewReader(text))
	return d, err
}

func (d *demoRun) project() string { return filepath.Join(d.dir, "stats") }
func (d *demoRun) canary() string  { return filepath.Join(d.dir, "precious", "canary") }

// judge checks that everything happened as the demo tells it.
func (d *demoRun) judge(io stdio, screen string) error {
	f, err := findFolders()
	if err != nil {
		return err
	}
	store, err := session.NewStore(f.sessions(), version, "")
	if err != nil {
		return err
	}
	id, _, err := store.Latest(d.realProject())
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	path := filepath.Join(f.sessions(), string(id), "log.jsonl")
	log, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for _, fault := range []string{
		d.want(0, "the folder is listed", "", "stats.go"),
		d.want(1, "the source is read", "", "func Mean"),
		d.want(2, "the test is read", "", "TestMean"),
		d.want(3, "the tests fail", "error", "FAIL"),
		d.want(4, "the forbidden command is denied by no-rm", string(tool.Denied), "no-rm"),
		d.want(5, "the source is edited", "", "replaced 1 occurrence"),
		d.want(6, "the tests pass", "", "ok"),
		d.want(7, "the Wasm tool counts 15 words", "", "15"),
		d.wantMasked("on the screen", screen),
		d.wantMasked("in the log", string(log)),
		d.wantCanary(),
	} {
		if fault != "" {
			return fmt.Errorf("demo: it did not happen that %s\nthe log: %s", fault, path)
		}
	}
	report, err := verifySession(store, id)
	if err == nil && len(report.Problems) > 0 {
		err = errors.New(report.Problems[0])
	}
	if err != nil {
		return fmt.Errorf("demo: the log does not hold: %w\nthe log: %s", err, path)
	}
	fmt.Fprintf(io.err, "\nThe key in the answer was masked before anybody saw it, and the folder next door was not touched.\n"+
		"Everything that the model saw is in the log: %s\n"+
		"It holds: each of its %d requests is what the log says (wharf session verify %s).\n",
		path, report.Requests, id)
	return nil
}

// realProject is the project's folder without links, as a session names it.
func (d *demoRun) realProject() string {
	if dir, err := filepath.EvalSymlinks(d.project()); err == nil {
		return dir
	}
	return d.project()
}

// want checks the result of the n-th call. code is "" for success, "error" for
// a failure without a code, or a code.
func (d *demoRun) want(n int, what, code, contains string) string {
	if n >= len(d.calls) {
		return what + ": there was no such call"
	}
	result := d.results[d.calls[n].CallID]
	got := result.Code
	if got == "" && result.IsError {
		got = "error"
	}
	if got != code || !strings.Contains(result.Content, contains) {
		return fmt.Sprintf("%s: %s gave: %s", what, d.calls[n].Name, oneLine(result.Content, 400))
	}
	return ""
}

func (d *demoRun) wantMasked(where, text string) string {
	if strings.Contains(text, demoToken) || !strings.Contains(text, "Mean skipped the first element") {
		return "the key is masked " + where
	}
	return ""
}

func (d *demoRun) wantCanary() string {
	if content, err := os.ReadFile(d.canary()); err != nil || string(content) != "still here\n" {
		return "the folder next door is left alone"
	}
	return ""
}
