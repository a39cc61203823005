package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/openai"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
)

// runOptions are the flags of wharf run.
type runOptions struct {
	format     string
	verbose    bool
	cont       bool
	resume     string
	provider   string
	model      string
	baseURL    string
	script     string
	maxSteps   int
	profile    string
	noSandbox  bool
	approve    string
	extensions []extensionFlag
	configFile string
	sets       []string
	dir        string

	// demo is what wharf demo runs instead of what flags and files say.
	demo *demoRun
}

func (o *runOptions) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&o.format, "output-format", formatText, "text, json (one object at the end) or stream-json (each event of the log, then that object)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show progress on standard error also where that is no terminal")
	f.BoolVarP(&o.cont, "continue", "c", false, "go on with the last session of this folder")
	f.StringVar(&o.resume, "resume", "", "go on with the session `ID`")
	f.StringVar(&o.provider, "provider", "", "openai (any compatible server) or script")
	f.StringVar(&o.model, "model", "", "the model, by the server's name for it")
	f.StringVar(&o.baseURL, "base-url", "", "the server, such as http://localhost:11434/v1")
	f.StringVar(&o.script, "script", "", "replay the model's replies from `FILE`")
	f.IntVar(&o.maxSteps, "max-steps", 0, "model requests in one turn (default 40)")
	f.StringVar(&o.profile, "sandbox", "", "read-only or workspace-write (the default)")
	f.BoolVar(&o.noSandbox, "no-sandbox", false, "run commands unconfined, this time")
	f.StringVar(&o.approve, "approve", "", "who answers what needs approval: ask, never or auto")
	addExtensionFlags(f, &o.extensions)
	f.StringVar(&o.configFile, "config", "", "read the configuration from `FILE` instead of the user's")
	f.StringArrayVar(&o.sets, "set", nil, "set a configuration `key=value` (a TOML value); repeatable")
	f.StringVarP(&o.dir, "directory", "C", "", "work in `DIR` instead of this folder")
	return f
}

func runCommand(ctx context.Context, io stdio, args []string) error {
	var o runOptions
	f := o.flags()
	if err := parse(io, f, "run [flags] PROMPT|-", args); err != nil {
		return err
	}
	prompt, err := readPrompt(io.in, f.Args())
	if err != nil {
		return err
	}
	_, err = o.run(ctx, io, prompt)
	return err
}

// maxPrompt bounds a prompt, so that a wrong file on standard input is noticed
// before it is paid for.
const maxPrompt = 10 << 20

func readPrompt(stdin io.Reader, args []string) (string, error) {
	prompt := strings.Join(args, " ")
	if prompt == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("read the prompt from standard input: %w", err)
		}
		prompt = string(text)
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

// run runs one turn and shows it. The result is there also when the error says
// that the turn did not complete, unless it could not be started.
func (o runOptions) run(ctx context.Context, io stdio, prompt string) (*engine.Result, error) {
	out, err := newOutput(o.format, io.out)
	if err != nil {
		return nil, err
	}
	view := newProgress(io.err, o.verbose)
	collect := deferCollection()
	parts, err := o.build(ctx, view, func(r session.Record) {
		if _, replied := r.Event.(session.AssistantMessage); replied {
			collect()
		}
		view.event(r)
		out.event(r)
		o.demo.event(r)
	})
	if err != nil {
		return nil, err
	}
	result := parts.engine.Run(ctx, prompt)
	if err := parts.close(); err != nil && result.Err == nil {
		result.Err, result.Reason = err, session.ToolError
	}
	err = out.result(parts.log.ID(), result)
	if code := status(result.Reason, context.Cause(ctx)); code != exitOK {
		return &result, exitError{code, o.explain(parts.log.ID(), result.Err)}
	}
	if err != nil {
		return &result, exitError{exitFailed, err}
	}
	return &result, nil
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
	return fmt.Errorf("%w\nto go on: wharf run --resume %s PROMPT", err, id)
}

// parts is what a run is made of.
type parts struct {
	engine *engine.Engine
	log    *session.Log
	closes []func() error // in the order of opening
}

func (p *parts) close() error {
	var err error
	for i := len(p.closes) - 1; i >= 0; i-- {
		err = errors.Join(err, p.closes[i]())
	}
	p.closes = nil
	return err
}

// build puts a run together. Everything that the user can get wrong is checked
// before a session is touched, and before any request.
func (o runOptions) build(ctx context.Context, view *progress, observe func(session.Record)) (_ *parts, err error) {
	f, err := findFolders()
	if err != nil {
		return nil, err
	}
	workspace, id, err := o.workspace(f)
	if err != nil {
		return nil, err
	}
	cfg, notices, err := o.config(f, workspace)
	if o.demo != nil {
		cfg, notices, err = config{Provider: "script", Model: "recorded"}, nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, notice := range notices {
		view.notice("%s", notice)
	}
	model, err := o.newProvider(cfg)
	if err != nil {
		return nil, err
	}
	policy, err := permission.New(permission.Profile(cfg.Sandbox.Profile), permission.Approve(cfg.Approve))
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	parameters, err := cfg.parameters()
	if err != nil {
		return nil, usagef("parameters: %w", err)
	}
	store, err := session.NewStore(f.sessions(), version, session.Sync(cfg.Log.Sync))
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	p := &parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	equipment, err := o.equip(ctx, cfg, f, workspace, view)
	if err != nil {
		return nil, err
	}
	p.closes = append(p.closes, equipment.close)
	if id != "" {
		p.log, err = store.Resume(id, observe)
	} else {
		p.log, err = store.Create(workspace, observe)
	}
	if err != nil {
		return nil, err
	}
	p.closes = append(p.closes, p.log.Close)
	for _, repair := range p.log.Repairs() {
		view.notice("session %s was repaired: %s", p.log.ID(), repair)
	}
	if err := equipment.journal.attach(p.log); err != nil {
		return nil, err
	}
	p.engine, err = engine.New(engine.Config{
		Provider: model, Log: p.log, Tools: &equipment.tools, Hooks: equipment.hooks, Policy: policy,
		Model: cfg.Model, System: systemText(workspace, cfg, o.noSandbox), Parameters: parameters, MaxSteps: cfg.MaxSteps,
	})
	return p, err
}

// workspace returns the folder to work in, without links, and the session to
// go on with, if there is to be one.
func (o runOptions) workspace(f folders) (string, session.ID, error) {
	if o.cont && o.resume != "" {
		return "", "", usagef("-c and --resume exclude each other: name the session, or take the last one")
	}
	dir, err := filepath.Abs(o.dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", "", usagef("work in %q: %w", o.dir, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", "", usagef("work in %q: it is no folder", o.dir)
	}
	store, err := session.NewStore(f.sessions(), version, "")
	if err != nil {
		return "", "", err
	}
	switch {
	case o.cont:
		id, err := store.Latest(dir)
		if err != nil {
			return "", "", exitError{exitUsage, err}
		}
		return dir, id, nil
	case o.resume != "":
		records, _, err := store.Read(session.ID(o.resume))
		if err != nil {
			return "", "", exitError{exitUsage, err}
		}
		if len(records) > 0 && o.dir == "" {
			dir = records[0].Event.(session.Started).Cwd
		}
		return dir, session.ID(o.resume), nil
	}
	return dir, "", nil
}

// config loads the configuration and puts the flags over it.
func (o runOptions) config(f folders, workspace string) (config, []string, error) {
	cfg, notices, err := loadConfig(f, o.configFile, workspace, o.sets)
	if err != nil {
		return config{}, nil, err
	}
	override := func(into *string, flag string) {
		if flag != "" {
			*into = flag
		}
	}
	override(&cfg.Provider, o.provider)
	override(&cfg.Model, o.model)
	override(&cfg.BaseURL, o.baseURL)
	override(&cfg.Approve, o.approve)
	override(&cfg.Sandbox.Profile, o.profile)
	if o.maxSteps != 0 {
		cfg.MaxSteps = o.maxSteps
	}
	if cfg.MaxSteps < 0 {
		return config{}, nil, usagef("max_steps %d: it must be positive", cfg.MaxSteps)
	}
	switch {
	case o.script != "" && o.provider == "":
		cfg.Provider = "script"
	case o.script != "" && o.provider != "script":
		return config{}, nil, usagef("--script belongs to the script provider, not to %q: leave one of the two out", o.provider)
	case cfg.Provider == "":
		cfg.Provider = "openai"
	}
	profile, err := cfg.profile()
	cfg.Sandbox.Profile = string(profile)
	return cfg, notices, err
}

func (o runOptions) newProvider(cfg config) (engine.Provider, error) {
	switch cfg.Provider {
	case "script":
		return o.newScript()
	case "openai":
		return newOpenAI(cfg)
	}
	return nil, usagef("provider %q: not one of openai, script", cfg.Provider)
}

func (o runOptions) newScript() (engine.Provider, error) {
	if o.demo != nil {
		return script.New(o.demo.replies), nil
	}
	if o.script == "" {
		return nil, usagef("the script provider needs a script: add --script FILE")
	}
	file, err := os.Open(o.script)
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	defer file.Close()
	replies, err := script.Parse(o.script, file)
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return script.New(replies), nil
}

func newOpenAI(cfg config) (engine.Provider, error) {
	base := cfg.BaseURL
	if base == "" {
		base = os.Getenv("OPENAI_BASE_URL")
	}
	key := os.Getenv("OPENAI_API_KEY")
	switch {
	case cfg.Model == "":
		return nil, usagef("no model was named: add --model NAME, or model = \"NAME\" to the configuration")
	case key == "" && base == "":
		return nil, usagef("there is no key for OpenAI: set OPENAI_API_KEY, or --base-url for another server; \"wharf demo\" needs neither")
	}
	p, err := openai.New(openai.Config{BaseURL: base, APIKey: key, IdleTimeout: time.Duration(cfg.IdleTimeout)})
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return p, nil
}
