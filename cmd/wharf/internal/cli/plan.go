package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/session"
)

// plan is what flags, files and the environment add up to, checked: nothing in
// it has touched a session or made a request yet.
type plan struct {
	folders    folders
	workspace  string
	resume     session.ID // the session to go on with; empty starts one
	fork       bool       // in a copy of it
	cfg        config
	model      engine.Provider
	policy     *permission.Policy
	approver   engine.Approver // nil: nobody is asked
	parameters json.RawMessage
	images     []session.Image // of the prompt
	schema     json.RawMessage // of the answer
	secrets    *secret.Store
	store      *session.Store
}

// plan checks everything that the user can get wrong. Its errors are the
// user's mistakes.
func (o runOptions) plan(view *progress) (p plan, err error) {
	if p.folders, err = findFolders(); err != nil {
		return p, err
	}
	if p.workspace, p.resume, err = o.workspace(p.folders, view); err != nil {
		return p, err
	}
	p.fork = o.fork
	var notices []string
	if o.demo != nil {
		p.cfg = config{Provider: "script", Model: "recorded"}
	} else if p.cfg, notices, err = o.config(p.folders, p.workspace); err != nil {
		return p, err
	}
	for _, notice := range notices {
		view.notice("%s", notice)
	}
	if o.withoutModel {
		p.model = noModel{}
	} else if p.model, err = o.newProvider(p.cfg); err != nil {
		return p, err
	}
	if p.images, err = readImages(o.images); err != nil {
		return p, err
	}
	if p.schema, err = readSchema(o.schema); err != nil {
		return p, err
	}
	if p.secrets, err = newSecrets(p.cfg); err != nil {
		return p, err
	}
	if p.parameters, err = p.cfg.parameters(); err != nil {
		return p, usagef("parameters: %w", err)
	}
	if p.policy, err = o.newPolicy(p); err != nil {
		return p, err
	}
	if p.store, err = session.NewStore(p.folders.sessions(), version, session.Sync(p.cfg.Log.Sync)); err != nil {
		return p, exitError{exitUsage, err}
	}
	return p, nil
}

// newPolicy returns what judges the calls of a session.
func (o runOptions) newPolicy(p plan) (*permission.Policy, error) {
	policy, err := newPolicy(p.cfg, p.folders, p.workspace)
	if err == nil && o.noSandbox {
		policy = policy.Unconfined()
	}
	return policy, err
}

// workspace returns the folder to work in, without links, and the session to
// go on with, if there is to be one.
func (o runOptions) workspace(f folders, view *progress) (string, session.ID, error) {
	if o.cont && o.resume != "" {
		return "", "", usagef("-c and --resume exclude each other: name the session, or take the last one")
	}
	if o.fork && !o.cont && o.resume == "" {
		return "", "", usagef("--fork needs a session to copy: add -c or --resume ID")
	}
	dir, err := realFolder(o.dir)
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
	name := o.resume
	if o.cont {
		name = lastSession
	}
	if name == "" {
		return dir, "", nil
	}
	id, err := findSession(store, dir, name, view)
	if err != nil {
		return "", "", exitError{exitUsage, err}
	}
	if o.resume != "" && o.dir == "" {
		dir, err = folderOf(store, id)
	}
	return dir, id, err
}

// realFolder returns a folder without links; no name is that of this folder.
func realFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// folderOf returns the folder that a session works in.
func folderOf(store *session.Store, id session.ID) (string, error) {
	records, _, err := store.Read(id)
	if err != nil {
		return "", exitError{exitUsage, err}
	}
	if len(records) == 0 {
		return realFolder("")
	}
	cwd := records[0].Event.(session.Started).Cwd
	dir, err := filepath.EvalSymlinks(cwd)
	if err != nil || !filepath.IsAbs(dir) {
		return "", usagef("resume session %s: its folder %q is not there any more: name another with -C DIR", id, cwd)
	}
	return dir, nil
}

// config loads the configuration and puts the flags over it.
func (o runOptions) config(f folders, workspace string) (config, []string, error) {
	cfg, notices, err := loadConfig(f, o.configFile, workspace, o.sets, o.trust)
	if err != nil {
		return config{}, nil, err
	}
	rules, err := o.rules.rules("the command line")
	if err != nil {
		return config{}, nil, exitError{exitUsage, err}
	}
	cfg.rules = append(cfg.rules, rules...)
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
	cfg.Sandbox.Read = granted(cfg.Sandbox.Read, o.read)
	cfg.Sandbox.Write = granted(cfg.Sandbox.Write, o.write)
	if o.maxSteps != 0 {
		cfg.MaxSteps = o.maxSteps
	}
	if err := cfg.openHosts(o.allowNet); err != nil {
		return config{}, nil, err
	}
	if err := cfg.checkLimits(); err != nil {
		return config{}, nil, err
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
	if err == nil && o.noSandbox && profile == sandbox.ReadOnly {
		err = usagef("--no-sandbox runs commands unconfined, and the profile read-only promises that they change nothing: leave one of the two out")
	}
	cfg.Sandbox.Profile = string(profile)
	return cfg, notices, err
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
		return nil, usagef("--script: %w", err)
	}
	defer file.Close()
	replies, err := script.Parse(o.script, file)
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return script.New(replies), nil
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

// build puts a run together. The tools and extensions come first, so that what
// is wrong with them is found out before a session is touched.
func (o runOptions) build(ctx context.Context, plan plan, view *progress, observe func(session.Record)) (_ *parts, err error) {
	p := &parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	equipment, err := o.equip(ctx, plan, view)
	if err != nil {
		return nil, err
	}
	p.closes = append(p.closes, equipment.close)
	if o.demo == nil {
		if err := plan.cfg.trust.unused(); err != nil {
			return nil, err
		}
	}
	tellMisspelt(view, plan.cfg.rules, &equipment.tools)
	system := systemText(plan.workspace, plan.cfg, o.noSandbox)
	if err := plan.cfg.checkRoom(session.Header{System: system, Tools: equipment.tools.Specs()}); err != nil && !o.withoutModel {
		return nil, err
	}
	if err := plan.cfg.checkToolChoice(&equipment.tools); err != nil {
		return nil, err
	}
	if o.record != "" {
		file, err := newRecording(o.record)
		if err != nil {
			return nil, err
		}
		p.closes = append(p.closes, file.close)
		plan.model = script.Record(plan.model, file)
	}
	if p.log, err = plan.openLog(observe); err != nil {
		return nil, err
	}
	p.closes = append(p.closes, p.log.Close)
	if plan.resume != "" {
		plan.tellChanges(view, p.log, equipment, o.noSandbox)
	}
	for _, repair := range p.log.Repairs() {
		view.notice("session %s was repaired: %s", p.log.ID(), repair)
	}
	if err := equipment.journal.attach(p.log); err != nil {
		return nil, err
	}
	cfg := engine.Config{
		Provider: plan.model, Log: p.log, Tools: &equipment.tools, Hooks: equipment.hooks, Policy: plan.policy, Approver: plan.approver,
		Model: plan.cfg.Model, System: system,
		Parameters: plan.parameters, Redact: plan.redact,
		Options: session.Options{ToolChoice: plan.cfg.ToolChoice, SingleCalls: plan.cfg.SingleCalls, OutputSchema: plan.schema},
	}
	plan.cfg.limit(&cfg)
	if plan.cfg.Sandbox.Profile != string(sandbox.ReadOnly) { // which promises that nothing is written here
		cfg.Context.Keep = governance.NewFolder(plan.workspace, p.log.ID()).Keep
	}
	p.engine, err = engine.New(cfg)
	equipment.gate.engine.Store(p.engine)
	return p, err
}

// source says how the session comes about.
func (p plan) source() string {
	switch {
	case p.fork:
		return "fork"
	case p.resume != "":
		return "resume"
	}
	return "new"
}

// redact takes the values of secrets out of a text.
func (p plan) redact(text string) string {
	clean, _ := p.secrets.Scanner().Redact(text)
	return clean
}

// tellChanges says what a session is gone on without, or otherwise than before:
// a log remembers what was said and done, and not how Wharf was started.
func (p plan) tellChanges(view *progress, log *session.Log, e *equipment, noSandbox bool) {
	if here, err := os.Getwd(); err == nil && here != p.workspace {
		view.notice("the session's folder is %s, and that is where the work goes on", p.workspace)
	}
	for _, name := range log.Extensions() {
		if !e.names[name] {
			view.notice("the extension %q had a part in this session and is not loaded now: add --ext to have it again", name)
		}
	}
	before := log.Header()
	if before.System != "" && before.System != systemText(p.workspace, p.cfg, noSandbox) {
		view.notice("commands are confined otherwise than before in this session: now %s", confinement(p.cfg, noSandbox))
	}
	if before.Model != "" && p.cfg.Model != "" && before.Model != p.cfg.Model {
		view.notice("the model was %q before in this session, and is %q now", before.Model, p.cfg.Model)
	}
}

func confinement(cfg config, noSandbox bool) string {
	if noSandbox {
		return "not at all"
	}
	profile := cmp.Or(cfg.Sandbox.Profile, string(sandbox.WorkspaceWrite))
	if open := cfg.openInWords(); open != "" && profile != string(sandbox.FullAccess) {
		profile += ", with a way to " + open
	}
	return profile
}

func (p plan) openLog(observe func(session.Record)) (*session.Log, error) {
	switch {
	case p.fork:
		return p.store.Fork(p.resume, 0, p.workspace, observe)
	case p.resume != "":
		return p.store.Resume(p.resume, observe)
	}
	return p.store.Create(p.workspace, observe)
}
