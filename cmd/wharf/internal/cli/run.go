package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/session"
)

// runOptions are the flags of wharf run.
type runOptions struct {
	format     string
	verbose    bool
	cont       bool
	resume     string
	fork       bool
	provider   string
	model      string
	baseURL    string
	script     string
	record     string
	images     []string
	schema     string
	maxSteps   int
	goal       string
	profile    string
	read       []string // of wharf sandbox
	write      []string
	noSandbox  bool
	allowNet   []string
	approve    string
	rules      permissionsConfig
	extensions []extensionFlag
	configFile string
	sets       []string
	trust      []string // digests
	dir        string

	withoutModel bool // of wharf session compact

	// demo is what wharf demo runs instead of what flags and files say.
	demo *demoRun
}

func (o *runOptions) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetNormalizeFunc(alsoNamed("profile", "sandbox"))
	f.StringVar(&o.format, "output-format", formatText, "text, json (one object at the end) or stream-json (each event of the log, then that object)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show progress on standard error also where that is no terminal")
	f.BoolVarP(&o.cont, "continue", "c", false, "go on with the last session of this folder")
	f.StringVar(&o.resume, "resume", "", "go on with the session `ID` (or a beginning or end of that, or last)")
	f.BoolVar(&o.fork, "fork", false, "with -c or --resume: go on in a copy of the session, which stays as it is")
	f.StringVar(&o.provider, "provider", "", "openai (any compatible server), anthropic or script")
	f.StringVar(&o.model, "model", "", "the model, by the server's name for it")
	f.StringVar(&o.baseURL, "base-url", "", "the server, such as http://localhost:11434/v1")
	f.StringVar(&o.script, "script", "", "replay the model's replies from `FILE`")
	f.StringVar(&o.record, "record", "", "write the model's replies to the new file `FILE`, for --script")
	f.StringVar(&o.goal, "goal", "", "go on until this `GOAL` is reached, for 12 rounds at most (goal.rounds); without a PROMPT it is the prompt")
	f.IntVar(&o.maxSteps, "max-steps", 0, "replies of the model in one turn (default 40), not counting summaries and a last word without tools")
	f.StringVar(&o.profile, "sandbox", "", "read-only, workspace-write (the default), or full-access, of which each command is asked about")
	f.BoolVar(&o.noSandbox, "no-sandbox", false, "run commands unconfined, this time")
	addNetworkFlag(f, &o.allowNet)
	f.StringArrayVar(&o.read, "read", nil, "let commands read the file or folder `PATH` too; repeatable")
	f.StringArrayVar(&o.write, "write", nil, "let commands change the file or folder `PATH` too; repeatable")
	f.StringVar(&o.approve, "approve", "", "what needs approval: ask at the terminal (ask, the default), refuse it (never), or do it where the sandbox confines it (auto)")
	addRuleFlags(f, &o.rules)
	addExtensionFlags(f, &o.extensions)
	f.StringVar(&o.configFile, "config", "", "read the configuration from `FILE` instead of the user's")
	addTrustFlag(f, &o.trust)
	f.StringArrayVar(&o.images, "image", nil, "show the model the image in `FILE` (PNG, JPEG, GIF, WebP) with the prompt; repeatable")
	f.StringVar(&o.schema, "output-schema", "", "the answer is to be a JSON object that meets the JSON Schema in `FILE`")
	f.StringArrayVar(&o.sets, "set", nil, "set a configuration `key=value` (a TOML value); repeatable")
	f.StringVarP(&o.dir, "directory", "C", "", "work in `DIR` instead of this folder")
	return f
}

func runCommand(ctx context.Context, io stdio, args []string) error {
	o, prompt, err := parseRun(io, args)
	if err != nil {
		return err
	}
	return o.run(ctx, io, prompt)
}

// parseRun reads the arguments of wharf run.
func parseRun(io stdio, args []string) (o runOptions, prompt string, err error) {
	f := o.flags()
	if err := parse(io, f, "run [flags] PROMPT|-", args); err != nil {
		return o, "", err
	}
	if f.Changed("max-steps") && o.maxSteps < 1 {
		return o, "", usagef("--max-steps %d: it must be positive", o.maxSteps)
	}
	if f.Changed("goal") && strings.TrimSpace(o.goal) == "" {
		return o, "", usagef("--goal: it is empty: say what is to be reached")
	}
	prompt, err = readPrompt(io.in, f.Args(), o.goal)
	return o, prompt, err
}

// maxPrompt bounds a prompt, so that a wrong file on standard input is noticed
// before it is paid for.
const maxPrompt = 10 << 20

// readPrompt returns what is asked for. A goal without anything else is all of it.
func readPrompt(stdin io.Reader, args []string, goal string) (string, error) {
	prompt := strings.Join(args, " ")
	if prompt == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("read the prompt from standard input: %w", err)
		}
		prompt = string(text)
	}
	if goal != "" && len(args) == 0 {
		prompt = goal
	} else if goal != "" {
		prompt += "\n\nThe goal: " + goal
	}
	switch {
	case strings.TrimSpace(prompt) == "":
		return "", usagef("there is no prompt: write wharf run \"what to do\", or - to read it from standard input")
	case len(prompt) > maxPrompt:
		return "", usagef("the prompt is longer than %d MiB: put the text into a file and name that", maxPrompt>>20)
	case !utf8.ValidString(prompt):
		return "", usagef("the prompt is not UTF-8 text: put the data into a file and name that")
	}
	return prompt, nil
}

// run runs one turn and shows it. The error says how the turn ended unless it
// completed.
func (o runOptions) run(ctx context.Context, io stdio, prompt string) error {
	// A reader that goes away, or a limit on files, is a failed write, and not the end of this process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	out, err := newOutput(o.format, io.out, lost)
	if err != nil {
		return err
	}
	view := newProgress(io.err, o.verbose)
	collect := deferCollection()
	plan, err := o.plan(view)
	if err != nil {
		return err
	}
	if o.format == formatText && o.demo == nil {
		plan.approver = newApprover(io, plan, newKeyboard(io.in), nil)
	}
	parts, err := o.build(ctx, plan, view, func(r session.Record) {
		if _, replied := r.Event.(session.AssistantMessage); replied {
			collect()
		}
		view.event(r)
		out.event(r)
		o.demo.event(r)
	})
	if err != nil {
		return err
	}
	result := parts.turn(ctx, plan.source(), engine.Input{Text: prompt, Images: plan.images, Goal: o.goal != ""})
	if err := parts.close(); err != nil && result.Err == nil {
		result.Err, result.Reason = err, session.ToolError
	}
	err = out.result(parts.log.ID(), result)
	if code := status(result.Reason, context.Cause(ctx)); code != exitOK {
		return exitError{code, o.explain(parts.log.ID(), result.Err)}
	}
	if err != nil {
		return exitError{exitFailed, err}
	}
	return nil
}

// turn runs the one turn of this process, with what begins and ends around it.
func (p *parts) turn(ctx context.Context, source string, in engine.Input) engine.Result {
	if err := p.engine.Start(ctx, source); err != nil {
		return engine.Result{Reason: session.HookError, Err: err}
	}
	result := p.engine.Turn(ctx, in)
	if err := p.engine.End(ctx, "exit"); err != nil && result.Err == nil {
		result.Reason, result.Err = session.HookError, err
	}
	return result
}

// deferCollection lets the heap grow to 16 MiB before the garbage collector
// runs, until collect is called: a collection while a run is put together costs
// its start a sixth, and frees little.
func deferCollection() (collect func()) {
	before := debug.SetGCPercent(400)
	return sync.OnceFunc(func() { debug.SetGCPercent(before) })
}

// explain adds to an error how to go on.
func (o runOptions) explain(id session.ID, err error) error {
	if err == nil {
		err = errors.New("the turn did not complete")
	}
	what := "PROMPT"
	if o.goal != "" {
		what = "--goal GOAL"
	}
	return fmt.Errorf("%w\nto go on: wharf run --resume %s%s %s", err, id, o.repeat(), what)
}

// repeat returns the flags that the next turn of a session should have again,
// since a session does not remember them.
func (o runOptions) repeat() string {
	var b strings.Builder
	add := func(flag, value string) {
		if value != "" {
			b.WriteString(" --" + flag + " " + shellWord(value))
		}
	}
	add("provider", o.provider)
	add("model", o.model)
	add("base-url", o.baseURL)
	if o.script != "" {
		b.WriteString(scriptHint) // the one that was played is used up
	}
	add("output-schema", o.schema)
	add("sandbox", o.profile)
	if o.noSandbox {
		b.WriteString(" --no-sandbox")
	}
	for _, host := range o.allowNet {
		add("allow-net", host)
	}
	for _, path := range o.read {
		add("read", path)
	}
	for _, path := range o.write {
		add("write", path)
	}
	add("approve", o.approve)
	for _, list := range []struct {
		flag  string
		rules []string
	}{{"deny", o.rules.Deny}, {"ask", o.rules.Ask}, {"allow", o.rules.Allow}} {
		for _, rule := range list.rules {
			add(list.flag, rule)
		}
	}
	for _, e := range o.extensions {
		add("ext", e.path)
		for _, g := range e.grants {
			add("grant", g)
		}
	}
	add("config", o.configFile)
	for _, digest := range o.trust {
		add("trust", digest)
	}
	for _, set := range o.sets {
		add("set", set)
	}
	return b.String()
}

// scriptHint stands for the replies of a model that is none.
const scriptHint = " --script FILE"

// goOn returns how a session is gone on with, as far as its log tells: that names
// the model that was asked, and not the server.
func goOn(log *session.Log) string {
	hint := ""
	if model := log.Header().Model; model != "" {
		hint = " --model " + shellWord(oneLine(model, 200))
	} else if log.Turns() > 0 {
		hint = scriptHint // only that goes without a model's name
	}
	return fmt.Sprintf("to go on: wharf run --resume %s%s PROMPT", log.ID(), hint)
}

func plainWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@+%~", r)
}

// shellWord returns text as one word of a shell.
func shellWord(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !plainWord(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
