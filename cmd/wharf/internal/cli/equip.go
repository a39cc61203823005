package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/engine/tool/builtin"
	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// extensionFlag is an --ext with the --grant values that follow it.
type extensionFlag struct {
	path     string
	grants   []string
	recorder *caseRecorder // of ext test --record; nil: nothing is recorded

	wasm []byte         // once it was read
	name string         // of the extension, if its manifest can be read
	asks capability.Set // likewise
}

// addExtensionFlags adds --ext and --grant, of which the second belongs to the
// first that stands before it.
func addExtensionFlags(f *pflag.FlagSet, into *[]extensionFlag) {
	f.Var(&listFlag{kind: "file", set: func(path string) error {
		*into = append(*into, extensionFlag{path: path})
		return nil
	}}, "ext", "load the extension in `FILE.wasm`, or what was built in that folder, or the shipped one of that name; repeatable")
	f.Var(&listFlag{kind: "key", set: func(grant string) error {
		if len(*into) == 0 {
			return errors.New("it belongs to the --ext before it, and there is none")
		}
		last := &(*into)[len(*into)-1]
		last.grants = append(last.grants, grant)
		return nil
	}}, "grant", "grant the extension before it `all`, none, or what it asks for under a key of [capabilities]; repeatable")
}

// listFlag is a flag that may be repeated.
type listFlag struct {
	kind string
	set  func(string) error
}

func (l *listFlag) String() string         { return "" }
func (l *listFlag) Type() string           { return l.kind }
func (l *listFlag) Set(value string) error { return l.set(value) }

// equipment is what a turn works with: the tools and hooks of a session.
type equipment struct {
	tools   tool.Registry
	hooks   []hook.Hook
	journal journal
	gate    gate
	root    *sandbox.Root
	names   map[string]bool // of the extensions
	secrets *secret.Store
	vouch   func(name, file string, ext *host.Extension) error // for an extension of the configuration
	closes  []func()
}

func (e *equipment) close() error {
	for i := len(e.closes) - 1; i >= 0; i-- {
		e.closes[i]()
	}
	return nil
}

// journal takes events of extensions for a log that may yet have to be opened:
// an extension is started before a session is touched, and may log something.
type journal struct {
	mu      sync.Mutex
	log     *session.Log
	pending []session.Event
}

func (j *journal) record(e session.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log == nil {
		j.pending = append(j.pending, e)
		return nil
	}
	_, err := j.log.Append(e)
	return err
}

// attach writes what is pending to log, and from now on all else.
func (j *journal) attach(log *session.Log) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.pending {
		if _, err := log.Append(e); err != nil {
			return err
		}
	}
	j.log, j.pending = log, nil
	return nil
}

// equip makes the tools and loads the extensions.
func (o runOptions) equip(ctx context.Context, plan plan, view *progress) (_ *equipment, err error) {
	e := &equipment{names: map[string]bool{}, secrets: plan.secrets}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	cache := plan.workspace
	if o.demo != nil {
		cache = demoCache
	}
	box, err := newSandbox(plan.cfg, plan.folders, plan.workspace, cache, o.noSandbox, e.journal.checked)
	if err != nil {
		return nil, err
	}
	root, err := sandbox.OpenRoot(plan.workspace)
	if err != nil {
		return nil, err
	}
	e.root = root
	e.closes = append(e.closes, func() { root.Close() }, func() { e.tools.Close() })
	for _, t := range builtin.Tools(builtin.Config{
		Root: root, Box: &noticing{Sandbox: box, view: view}, Hidden: plan.policy.Conceals, Web: e.web(ctx, plan.cfg, view),
	}) {
		if plan.policy.Hides(t.Spec().Name) {
			continue // why tell the model of what is denied whatever it is called with
		}
		if err := e.tools.Add(t); err != nil {
			return nil, err
		}
	}
	var store installed
	if o.demo == nil {
		if store, err = readInstalled(plan.folders); err != nil {
			return nil, err
		}
	}
	return e, e.load(ctx, plan.cfg, store, o.extensions, plan.folders, view)
}

// noticing is a sandbox that says, at the first command, that a weaker way to
// confine was taken.
type noticing struct {
	*sandbox.Sandbox
	view *progress
	once sync.Once
}

func (n *noticing) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	result, err := n.Sandbox.Run(ctx, c)
	n.notice()
	return result, err
}

func (n *noticing) Start(ctx context.Context, c sandbox.Command) (*sandbox.Process, error) {
	p, err := n.Sandbox.Start(ctx, c)
	n.notice()
	return p, err
}

func (n *noticing) notice() {
	n.once.Do(func() {
		if text := n.Notice(); text != "" {
			n.view.notice("%s", text)
		}
	})
}

// newSandbox returns the sandbox of a workspace. cache names the folder that
// keeps its build caches; audit is told of what commands connect to.
func newSandbox(cfg config, f folders, workspace, cache string, none bool, audit func(egress.Check) error) (*sandbox.Sandbox, error) {
	profile, err := cfg.profile()
	if err != nil {
		return nil, err
	}
	box, err := sandbox.New(sandbox.Config{
		Profile: profile, Workspace: workspace, Hidden: []string{f.state, f.config, f.data, compiledCache(f)},
		CacheDir: workspaceCache(f, cache),
		Require:  sandbox.Rung(cfg.Sandbox.Require), None: none,
		Read: cfg.Sandbox.Read, Write: cfg.Sandbox.Write, VCS: cfg.Sandbox.VCS, Allow: cfg.Sandbox.Allow, Limits: cfg.Sandbox.Limits.limits(),
		Network: cfg.network(audit),
	})
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return box, nil
}

// workspaceCache returns the folder of build caches of that name.
func workspaceCache(f folders, name string) string {
	key := sha256.Sum256([]byte(name))
	return filepath.Join(f.cache, "workspaces", hex.EncodeToString(key[:8]))
}

// compiledCache returns the folder of compiled extensions. What is in it runs
// in this process, so no command may ever reach it.
func compiledCache(f folders) string { return filepath.Join(f.cache, "compiled") }

// Compiler is the program that compiles modules: this one, in a process of its own.
// Tests name another, which is built without the race detector.
var Compiler = "/proc/self/exe"

// openHost opens the Wasm host on Wharf's folders.
func openHost(f folders) (*host.Host, error) {
	return host.Open(host.Config{CacheDir: compiledCache(f), KVDir: filepath.Join(f.state, "kv"), Compiler: Compiler})
}

// load loads the extensions of the configuration, those that are installed and those
// named by --ext. One of the first two that cannot be loaded is reported and left out,
// and if it may be a guard, what it would have judged is denied; of --ext it is an
// error.
func (e *equipment) load(ctx context.Context, cfg config, store installed, flags []extensionFlag, f folders, view *progress) error {
	if len(cfg.Extensions)+len(store)+len(flags) == 0 {
		return nil
	}
	h, err := openHost(f)
	if err != nil {
		return err
	}
	e.closes = append(e.closes, func() { h.Close() })
	e.vouch = cfg.vouch
	for i := range flags {
		if flags[i].path, err = builtIn(flags[i].path, view); err != nil {
			return usagef("--ext %w", err)
		}
		flags[i].read()
		if cfg.Extensions[flags[i].name].Path == "" { // else the row is about another file
			if err := cfg.refuseProjectRow(flags[i].name); err != nil {
				return err
			}
		}
		if _, was := store.take(flags[i].name); was {
			view.notice("the extension %q of --ext stands in for the installed one", flags[i].name)
		}
	}
	for _, m := range store {
		if err := cfg.refuseProjectRow(m.Name); err != nil {
			return err
		}
	}
	if err := e.loadConfigured(ctx, h, cfg, &store, flags, view); err != nil {
		return err
	}
	for _, m := range store {
		ext, err := loadInstalled(ctx, h, m, extensionConfig{})
		e.joinOr(ctx, ext, err, "", m.Name, view)
	}
	for _, flag := range flags {
		options, err := flag.options(cfg)
		if err != nil {
			return err
		}
		ext, err := flag.load(ctx, h, options)
		var tape func(host.Taped)
		if err == nil {
			tape, err = flag.recorder.begin(ctx, ext, options, e.secrets)
		}
		if err == nil {
			err = e.join(ctx, ext, flag.path, "", tape, view)
		}
		if err != nil {
			return usagef("--ext %s: %w", flag.path, err)
		}
		flag.tellGrants(view, cfg)
	}
	return nil
}

// loadConfigured loads what has a row in the configuration, in its order. A row without
// a path is about the extension of that name that is installed, or that --ext names.
func (e *equipment) loadConfigured(ctx context.Context, h *host.Host, cfg config, store *installed, flags []extensionFlag, view *progress) error {
	for _, name := range cfg.order {
		row := cfg.Extensions[name]
		byFlag := slices.ContainsFunc(flags, func(f extensionFlag) bool { return f.name == name })
		m, isInstalled := store.take(name)
		if row.Path == "" && byFlag {
			continue // it says how the one of --ext is to be
		}
		if row.Path != "" && isInstalled {
			return usagef("extensions.%s has a path, and an extension of that name is installed: take the path out, or: wharf ext remove %s", name, name)
		}
		grant, err := capability.ParseValue(orNone(row.Grant))
		if err != nil {
			return usagef("extensions.%s.grant: %w", name, err)
		}
		var ext *host.Extension
		switch {
		case isInstalled:
			ext, err = loadInstalled(ctx, h, m, row)
		case row.Path == "":
			err = fmt.Errorf("it is not installed, and has no path: install it, or %s", cfg.withoutRow(name))
		default:
			ext, err = loadExtension(ctx, h, row.Path, host.Options{Grant: grant, Config: row.Config, Remedy: remedyOfRow(name)})
		}
		e.joinOr(ctx, ext, err, row.Path, name, view)
	}
	return nil
}

// joinOr takes an extension into the session, or, if that or its loading fails, what
// stands in for it.
func (e *equipment) joinOr(ctx context.Context, ext *host.Extension, err error, path, name string, view *progress) {
	if err == nil {
		err = e.join(ctx, ext, path, name, nil, view)
	}
	if err == nil {
		return
	}
	view.notice("extension %q was left out: %v", name, err)
	if guard := standIn(name, err); guard != nil {
		e.hooks = append(e.hooks, guard)
	}
}

// read reads the module and what its manifest says. What of that cannot be read
// is for load to say.
func (f *extensionFlag) read() {
	wasm, err := readModule(f.path)
	if err != nil {
		return
	}
	f.wasm = wasm
	text, err := host.ReadManifest(wasm)
	if err != nil {
		return
	}
	if m, err := host.ParseManifest(text); err == nil {
		f.name, f.asks = m.Name, m.Capabilities
	}
}

// load loads what was read.
func (f extensionFlag) load(ctx context.Context, h *host.Host, o host.Options) (*host.Extension, error) {
	if f.wasm == nil {
		return loadExtension(ctx, h, f.path, o)
	}
	return h.LoadBytes(ctx, filepath.Base(f.path), f.wasm, o)
}

// tellGrants says what a user may have forgotten, or misspelt, of the grants.
func (f extensionFlag) tellGrants(view *progress, cfg config) {
	if len(f.grants) == 0 && cfg.Extensions[f.name].Grant == nil && !f.asks.Empty() {
		view.notice("extension %q asks for what is not granted: wharf ext inspect %s shows it, and --grant grants it", f.name, f.path)
	}
	for _, key := range f.grants {
		if slices.Contains(capability.Keys, key) && f.asks.Line(key) == "" {
			view.notice("extension %q does not ask for %s, so --grant %s grants nothing", f.name, key, key)
		}
	}
}

// options are what --grant says, and what the configuration says of an extension
// of that name, unless it names a file of its own.
func (f extensionFlag) options(cfg config) (host.Options, error) {
	grant, err := capability.ParseWords(f.grants)
	if err != nil {
		return host.Options{}, usagef("--grant of %s: %w", f.path, err)
	}
	row := cfg.Extensions[f.name]
	if row.Path != "" {
		return host.Options{Grant: grant}, nil
	}
	if len(f.grants) == 0 && row.Grant != nil {
		if grant, err = capability.ParseValue(row.Grant); err != nil {
			return host.Options{}, usagef("extensions.%s.grant: %w", f.name, err)
		}
	}
	return host.Options{Grant: grant, Config: row.Config}, nil
}

// standIn returns what denies in the place of an extension that could not be
// loaded, or nil if it is known not to be a guard. Of one whose manifest cannot
// be read nobody knows: it may have judged every call.
func standIn(name string, err error) hook.Hook {
	broken := &host.LoadError{Name: name, Err: err}
	if known, ok := errors.AsType[*host.LoadError](err); ok && known.Manifest != nil {
		broken.Manifest = known.Manifest
	} else {
		broken.Manifest = &host.Manifest{Name: name, Guard: true, Hooks: map[hook.Point]hook.Handling{
			hook.BeforeExecuteTool: {Timeout: host.DefaultHookTimeout, OnFailure: hook.DenyIt},
		}}
	}
	return broken.Guard()
}

func orNone(grant any) any {
	if grant == nil {
		return "none"
	}
	return grant
}

// join takes an extension into the session. name is what the configuration calls
// it, if it does; tape hears its calls, unless it is nil.
func (e *equipment) join(ctx context.Context, ext *host.Extension, path, name string, tape func(host.Taped), view *progress) error {
	m := ext.Manifest
	refuse := func(format string, args ...any) error {
		return &host.LoadError{Name: m.Name, Manifest: m, Err: fmt.Errorf(format, args...)}
	}
	if name != "" && name != m.Name {
		return refuse("its name is %q: write [extensions.%s]", m.Name, m.Name)
	}
	if name != "" {
		if err := e.vouch(name, path, ext); err != nil {
			return refuse("%w", err)
		}
	}
	if e.names[m.Name] {
		return refuse("there is an extension of that name already: nothing is shadowed, leave one out")
	}
	for _, p := range m.Points() {
		if info, _ := hook.Lookup(p); info.Later {
			return refuse("it handles %s, and this release of Wharf has no such moment yet: take [hooks.%s] and the export out, or use a later release", p, p)
		}
	}
	for _, t := range m.Tools {
		if _, taken := e.tools.Lookup(t.Name); taken == nil {
			return refuse("there is a tool %q already: nothing is shadowed, leave one out", t.Name)
		}
	}
	e.readSecrets(ctx, ext, view)
	joined, err := ext.Session(ctx, host.SessionConfig{
		Record: e.journal.record, Gate: &e.gate, Root: e.root, Env: os.LookupEnv, Secrets: e.secrets, Tape: tape,
	})
	if err != nil {
		return err
	}
	e.closes = append(e.closes, joined.Close)
	e.names[m.Name] = true
	e.hooks = append(e.hooks, joined)
	for _, t := range joined.Tools() {
		if err := e.tools.Add(t); err != nil {
			return refuse("%w", err)
		}
	}
	return nil
}

// loadExtension loads an extension from a file, or the shipped one of that
// name: a name is what has neither a slash nor an ending.
func loadExtension(ctx context.Context, h *host.Host, path string, options host.Options) (*host.Extension, error) {
	if !isFile(path) {
		wasm, err := extensions.Read(path)
		if err != nil {
			return nil, err
		}
		return h.LoadBytes(ctx, path, wasm, options)
	}
	return h.Load(ctx, path, options)
}
