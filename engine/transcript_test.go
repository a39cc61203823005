package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

var update = flag.Bool("update", false, "rewrite the logs that transcripts expect")

// transcript is the config file of a transcript.
type transcript struct {
	Prompts  []string // a turn each
	Goals    []bool   // whether a turn has one
	Rounds   int      // of a goal
	MaxSteps int
	Profile  permission.Profile
	Approve  permission.Approve
	Nested   bool   // with the tools nest and nest_side
	Secret   string // is taken out of results
	Hooks    []*scriptedHook

	Context     governance.Config
	OutputLimit string
	Parameters  json.RawMessage
	Budget      engine.Budget
	Prices      map[string]engine.Price
	Fallbacks   []string
	Repeats     engine.Repeats
	ToolRepeats map[string]engine.Repeats
	Options     session.Options
}

// redact is the engine's Redact, nil if there is no secret.
func (c transcript) redact() func(string) string {
	if c.Secret == "" {
		return nil
	}
	return func(text string) string { return strings.ReplaceAll(text, c.Secret, "[redacted]") }
}

// scriptedHook answers from lists, one answer a call. An answer that starts
// with "!" is a failure with that text, one that starts with ">" a call of a
// tool, "cancel" is a user who cancels meanwhile; lists that run out answer nothing.
type scriptedHook struct {
	ID      string
	Answers map[hook.Point][]string
	Guard   bool
	Tools   []string
	Approve bool
	Abort   bool     // its failures end the turn
	All     bool     // it handles every point, also those without answers
	seen    []string // the payloads
	nest    func(ctx context.Context, by, text string) tool.Result
	cancel  context.CancelCauseFunc
}

func (h *scriptedHook) Name() string { return h.ID }

func (h *scriptedHook) Handles(p hook.Point) (hook.Handling, bool) {
	_, ok := h.Answers[p]
	ok = ok || h.All
	return hook.Handling{
		Tools: h.Tools, Timeout: time.Second, OnFailure: h.onFailure(p), Approve: h.Approve,
	}, ok
}

func (h *scriptedHook) Call(ctx context.Context, p hook.Point, payload []byte) ([]byte, error) {
	h.seen = append(h.seen, string(p)+" "+string(payload))
	list := h.Answers[p]
	if len(list) == 0 {
		return nil, nil
	}
	h.Answers[p] = list[1:]
	if text, failed := strings.CutPrefix(list[0], "!"); failed {
		return nil, errors.New(text)
	}
	if list[0] == "cancel" {
		h.cancel(errors.New("the user pressed Ctrl-C"))
		return nil, nil
	}
	if text, nested := strings.CutPrefix(list[0], ">"); nested {
		result := h.nest(ctx, h.ID, text)
		h.seen = append(h.seen, fmt.Sprintf("the result %q %s", result.Content, result.Code))
		return nil, nil
	}
	return []byte(list[0]), nil
}

// fakeTool is a tool made of a function.
type fakeTool struct {
	spec tool.Spec
	run  func(context.Context, tool.Call) (tool.Result, error)
}

func (f fakeTool) Spec() tool.Spec { return f.spec }
func (f fakeTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	return f.run(ctx, call)
}

func fake(name string, effect permission.Effect, run func(context.Context, tool.Call) (tool.Result, error)) tool.Tool {
	return fakeTool{tool.Spec{
		Tool: session.Tool{
			Name: name, Description: name,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		},
		Effect: effect, Timeout: time.Minute,
	}, run}
}

// say leaves an input for the model while a turn runs, as a user might: the text
// is the delivery and, after a colon, what is said.
func (n *nested) say(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct{ Text string }
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return tool.Result{}, err
	}
	delivery, text, _ := strings.Cut(args.Text, ":")
	return tool.Result{Content: "said"}, n.engine.Add(engine.Input{Text: text}, engine.Delivery(delivery))
}

// echo is the body of a tool that gives its text back.
func echo(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct{ Text string }
	err := json.Unmarshal(c.Arguments, &args)
	return tool.Result{Content: args.Text}, err
}

// testTools are what transcripts call: echo, write, boom, hang, cancel and net.
func testTools(t *testing.T, cancel context.CancelCauseFunc) *tool.Registry {
	wait := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, context.Cause(ctx)
	}
	r := &tool.Registry{}
	for _, tl := range []tool.Tool{
		fake("echo", permission.Reads, echo),
		fake("write", permission.Writes, echo),
		fake("net", permission.Network, echo),
		fake("secret", permission.Unknown, echo),
		fake("boom", permission.Reads, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("the boom went off")
		}),
		fake("hang", permission.Reads, wait),
		fake("cancel", permission.Reads, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			cancel(errors.New("the user pressed Ctrl-C"))
			return wait(ctx, c)
		}),
		fakeTool{tool.Spec{Tool: session.Tool{
			Name: engine.GoalTool, Description: "goal",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"status":{"enum":["reached","given_up"]},"note":{"type":"string"}},"required":["status","note"]}`),
		}, Effect: permission.Reads}, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Content: "noted"}, nil
		}},
		fake("unavailable", permission.Executes, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Content: "Sandbox unavailable.", IsError: true, Code: tool.SandboxUnavailable}, nil
		}),
	} {
		if err := r.Add(tl); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestTurn plays each transcript and compares the log that it leaves.
func TestTurn(t *testing.T) {
	paths, err := filepath.Glob("testdata/turn/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, archive) })
			want := string(part(archive, "log"))
			if *update && got != want {
				setPart(archive, "log", got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func part(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func setPart(a *txtar.Archive, name, text string) {
	for i, f := range a.Files {
		if f.Name == name {
			a.Files[i].Data = []byte(text)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
}

// play runs a transcript and returns its log and results as text.
func play(t *testing.T, archive *txtar.Archive) string {
	text, _ := playRecorded(t, archive)
	return text
}

// playRecorded returns the events too.
func playRecorded(t *testing.T, archive *txtar.Archive) (string, []session.Record) {
	var config transcript
	dec := json.NewDecoder(strings.NewReader(string(part(archive, "config"))))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&config); err != nil {
		t.Fatalf("config: %v", err)
	}
	replies, err := script.Parse("model.jsonl", strings.NewReader(string(part(archive, "model.jsonl"))))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	store, log := createLog(t, func(r session.Record) { out.WriteString(show(t, r)) })
	policy, err := permission.New(config.Profile, config.Approve)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	nested, tools := &nested{}, testTools(t, cancel)
	for name, run := range map[string]func(context.Context, tool.Call) (tool.Result, error){"say": nested.say, "exec": echo} {
		if bytes.Contains(part(archive, "model.jsonl"), []byte(`"name":"`+name+`"`)) {
			if err := tools.Add(fake(name, permission.Reads, run)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if bytes.Contains(part(archive, "model.jsonl"), []byte(`"name":"job"`)) {
		if err := tools.Add(newJob(&out)); err != nil {
			t.Fatal(err)
		}
	}
	if config.Nested {
		nested.addTools(t, tools)
	}
	var hooks []hook.Hook
	for _, h := range config.Hooks {
		h.nest, h.cancel = nested.call, cancel
		hooks = append(hooks, h)
	}
	e, err := engine.New(engine.Config{
		Provider: script.New(replies), Log: log, Tools: tools, Policy: policy, Hooks: hooks,
		Model: "scripted", System: "test", MaxSteps: config.MaxSteps, GoalRounds: config.Rounds, Redact: config.redact(),
		Context: config.Context, OutputLimit: config.OutputLimit, Parameters: config.Parameters,
		Budget: config.Budget, Prices: config.Prices, Fallbacks: config.Fallbacks, Repeats: config.Repeats, ToolRepeats: config.ToolRepeats, Options: config.Options,
	})
	if err != nil {
		t.Fatal(err)
	}
	nested.engine = e
	if err := e.Start(ctx, "new"); err != nil {
		fmt.Fprintf(&out, "= the session does not start: %v\n", err)
		config.Prompts = nil
	}
	for i, prompt := range config.Prompts {
		in := engine.Input{Text: prompt, Goal: i < len(config.Goals) && config.Goals[i]}
		result := e.Turn(ctx, in)
		fmt.Fprintf(&out, "= %s %q, %d denied, error: %v\n", result.Reason, result.Text, len(result.Denials), result.Err)
	}
	for in, ok := e.Next(); ok; in, ok = e.Next() {
		fmt.Fprintf(&out, "= waiting: %q\n", in.Text)
	}
	if err := e.End(ctx, "exit"); err != nil {
		fmt.Fprintf(&out, "= the session ends with: %v\n", err)
	}
	for _, h := range config.Hooks {
		for _, payload := range h.seen {
			fmt.Fprintf(&out, "~ %s saw %s\n", h.ID, strings.ReplaceAll(payload, string(log.ID()), "SESSION"))
		}
	}
	return out.String(), checkLog(t, store, log.ID())
}

// createLog begins the log of a session in a store of its own.
func createLog(t *testing.T, observe func(session.Record)) (*session.Store, *session.Log) {
	t.Helper()
	store, err := session.NewStore(t.TempDir(), "test", session.SyncNever)
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Create("/workspace", observe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return store, log
}

// checkLog is what must hold of every log, whatever happened.
func checkLog(t *testing.T, store *session.Store, id session.ID) []session.Record {
	t.Helper()
	records, torn, err := store.Read(id)
	if err != nil || torn > 0 {
		t.Errorf("the log cannot be read: %v, %d bytes torn", err, torn)
	}
	for _, problem := range session.Verify(records).Problems {
		t.Errorf("the log does not hold: %s", problem)
	}
	checkReplay(t, records)
	return records
}

// checkReplay replays a session: it makes the requests that it made.
func checkReplay(t *testing.T, records []session.Record) engine.Replayed {
	t.Helper()
	dir, err := os.MkdirTemp("", "wharf-replay-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	report, err := engine.Replay(context.WithoutCancel(t.Context()), records, dir)
	if err != nil || report.Difference != "" {
		t.Errorf("replayed: %v, from event %d on: %s", err, report.Seq, report.Difference)
	}
	return report
}

// delays are those of retries without what chance adds to them.
var delays = regexp.MustCompile(`"delay_ms":(\d)\d{3}\b`)

var digests = regexp.MustCompile(`"digest":"[0-9a-f]{64}"`)

// show returns a record as a transcript has it: without what differs from run
// to run, and without what only the prompt's caching needs.
func show(t *testing.T, r session.Record) string {
	switch e := r.Event.(type) {
	case session.Started:
		return ""
	case session.Header:
		names := []string{}
		for _, tl := range e.Tools {
			names = append(names, tl.Name)
		}
		if e.Model != "scripted" {
			names = append(names, "to "+e.Model)
		}
		if e.Parameters != nil {
			names = append(names, "with "+string(e.Parameters))
		}
		return fmt.Sprintf("%d request.header %s\n", r.Seq, strings.Join(names, " "))
	}
	line, err := session.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	var env struct{ Data json.RawMessage }
	if err := json.Unmarshal(line, &env); err != nil {
		t.Fatal(err)
	}
	data := digests.ReplaceAllString(string(env.Data), `"digest":"…"`)
	data = delays.ReplaceAllString(data, `"delay_ms":${1}000`)
	return fmt.Sprintf("%d %s %s\n", r.Seq, r.Type(), data)
}
