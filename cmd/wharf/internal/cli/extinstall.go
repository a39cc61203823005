package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/store"
)

// installer installs extensions, as its user says or answers.
type installer struct {
	io      stdio
	store   *store.Store
	grants  []string // of --grant
	granted bool     // there was one
	trust   store.Trust
	sha256  string // what the digest must be; empty: anything
	folders folders
}

// newInstaller makes the flags of the commands that install, and returns what is filled
// in when they are parsed.
func newInstaller(io stdio, flags *pflag.FlagSet) *installer {
	i := &installer{io: io}
	flags.Var(&listFlag{kind: "key", set: func(grant string) error {
		i.grants, i.granted = append(i.grants, grant), true
		return nil
	}}, "grant", "ask nothing, and grant `all`, none, or what it asks for (an upgrade: in addition) under a key of [capabilities]; repeatable")
	flags.Bool("yes", false, "the same as --grant all")
	flags.String("pubkey", "", "it must be signed by this minisign `KEY` (or file of one), which is pinned from now on")
	flags.Bool("require-signed", false, "take nothing that is not signed")
	return i
}

// ready fills in what the flags and the configuration say.
func (i *installer) ready(flags *pflag.FlagSet) (err error) {
	if yes, _ := flags.GetBool("yes"); yes {
		i.grants, i.granted = append(i.grants, "all"), true
	}
	if _, err := capability.ParseWords(i.grants); err != nil {
		return usagef("%s: --grant: %w", flags.Name(), err)
	}
	if text, _ := flags.GetString("pubkey"); text != "" {
		if i.trust.Key, err = readKey(text); err != nil {
			return usagef("%s: --pubkey: %w", flags.Name(), err)
		}
	}
	if i.folders, err = findFolders(); err != nil {
		return err
	}
	cfg, _, err := loadConfig(i.folders, "", "", nil, nil)
	if err != nil {
		return err
	}
	required, _ := flags.GetBool("require-signed")
	i.trust.RequireSigned = required || cfg.Install.RequireSigned
	i.store = i.folders.store()
	return nil
}

// readKey reads a public key, or the file of one.
func readKey(text string) (store.Key, error) {
	key, err := store.ParseKey(text)
	if err == nil || !isFile(text) {
		return key, err
	}
	content, err := host.ReadFile(text)
	if err != nil {
		return store.Key{}, err
	}
	if key, err = store.ParseKey(string(content)); err != nil {
		return store.Key{}, fmt.Errorf("%s: %w", text, err)
	}
	return key, nil
}

func extInstall(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext install", pflag.ContinueOnError)
	i := newInstaller(io, flags)
	shipped := flags.Bool("shipped", false, "it is the name of an extension that comes with wharf")
	flags.StringVar(&i.sha256, "sha256", "", "it must have this `DIGEST`")
	if err := parse(io, flags, "ext install [flags] FILE|DIR|URL|--shipped NAME", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext install: it takes one file, folder or URL; with --shipped one of %s", strings.Join(extensions.Names(), ", "))
	}
	if err := i.ready(flags); err != nil {
		return err
	}
	name := flags.Arg(0)
	c, err := i.find(ctx, name, *shipped)
	if err != nil {
		return wrapped(err, "install "+name)
	}
	if want := strings.TrimPrefix(i.sha256, "sha256:"); want != "" && want != c.Digest {
		return fmt.Errorf("install %s: its digest is sha256:%s, and is to be sha256:%s: it is another file than you mean", name, c.Digest, want)
	}
	if err := i.install(ctx, c); err != nil {
		return wrapped(err, "install "+name)
	}
	return nil
}

// find returns what is to be installed.
func (i *installer) find(ctx context.Context, name string, shipped bool) (store.Candidate, error) {
	if shipped {
		wasm, err := extensions.Read(name)
		if err != nil {
			return store.Candidate{}, exitError{exitUsage, err}
		}
		return store.Shipped(name, wasm)
	}
	if store.IsURL(name) {
		return store.Fetcher{}.Fetch(ctx, name)
	}
	if _, err := os.Stat(name); err != nil && extensions.Has(name) {
		return store.Candidate{}, usagef("there is no such file; the extension of that name that comes with wharf: --shipped %s", name)
	}
	file, doubts, err := moduleOf(name)
	for _, doubt := range doubts {
		fmt.Fprintf(i.io.err, "wharf: %s\n", printable(doubt))
	}
	if err != nil {
		return store.Candidate{}, err
	}
	return store.ReadFile(file)
}

// wrapped puts what was done before an error, and keeps its exit status.
func wrapped(err error, what string) error {
	if status, ok := errors.AsType[exitError](err); ok {
		if status.err == nil {
			return status
		}
		return exitError{status.code, fmt.Errorf("%s: %w", what, status.err)}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// install shows what it would change, asks, compiles, and makes it so.
func (i *installer) install(ctx context.Context, c store.Candidate) error {
	p, err := i.store.Propose(c, i.trust)
	if err != nil {
		return err
	}
	modules, err := i.store.Read()
	if err != nil {
		return err
	}
	if p.IsInstalled() {
		return i.mend(p, modules)
	}
	if why := leftOut(p, modules); len(why) > 0 { // and of a guard all calls would be denied
		return errors.New(strings.Join(why, "; "))
	}
	text, whole := proposalText(p)
	page := i.io.out
	if i.io.canAsk() && (!i.granted || p.NewKey) { // who is asked must see it
		page = i.io.terminal()
	}
	if _, err := fmt.Fprint(page, text); err != nil {
		return err
	}
	granted, err := i.ask(ctx, p, whole)
	if err != nil {
		return err
	}
	if err := i.compile(ctx, c); err != nil {
		return err
	}
	e, err := i.store.Accept(p, granted)
	if err != nil {
		return err
	}
	done := "installed"
	if p.Old != nil {
		done = "upgraded to"
	}
	fmt.Fprintf(i.io.out, "%s %s %s: it is asked from the next run on\n", done, e.Name, e.Version)
	if missing := c.Manifest.Capabilities.Minus(e.Granted); !missing.Empty() {
		fmt.Fprintf(i.io.out, "not granted: %s (wharf ext grant %s KEY grants it)\n", strings.Join(keysOf(missing), ", "), e.Name)
	}
	return nil
}

// mend stores the file of what is installed again, which may be missing or damaged.
func (i *installer) mend(p store.Proposal, modules installed) error {
	old, _ := modules.take(p.Manifest.Name)
	if _, err := i.store.Accept(p, p.Old.Granted); err != nil {
		return err
	}
	hint := ""
	if old.Err != nil {
		hint = ", and its file was missing or damaged: it is put back"
	}
	if i.granted {
		hint += fmt.Sprintf("; wharf ext grant %s KEY and revoke change what it may reach", p.Manifest.Name)
	}
	_, err := fmt.Fprintf(i.io.out, "%s %s is installed already%s\n", p.Manifest.Name, p.Manifest.Version, hint)
	return err
}

// keysOf lists the keys under which s has something.
func keysOf(s capability.Set) (keys []string) {
	for _, key := range capability.Keys {
		if s.Line(key) != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// ask returns what the extension is to be granted. whole says that all of what it asks
// for was shown: nobody is asked about what they cannot see.
func (i *installer) ask(ctx context.Context, p store.Proposal, whole bool) (capability.Set, error) {
	if p.NewKey {
		if !i.io.canAsk() {
			return capability.Set{}, usagef("nobody has said whose key that is: if it is its publisher's, add --pubkey %s", p.Signer)
		}
		if err := i.agree(ctx, fmt.Sprintf("Is %s the key of its publisher? It is pinned for the next time.", p.Signer)); err != nil {
			return capability.Set{}, err
		}
	}
	if !i.granted {
		switch {
		case !i.io.canAsk():
			return capability.Set{}, usagef("nobody is there to be asked: to have it as it is shown, add --grant all%s", i.pinDigest(p))
		case !whole:
			return capability.Set{}, usagef("it asks for more than can be shown and read here: look at it by wharf ext inspect, and say with --grant what it gets")
		}
		if err := i.agree(ctx, question(p)); err != nil {
			return capability.Set{}, err
		}
		return p.Kept.Plus(p.New), nil
	}
	grant, err := capability.ParseWords(i.grants)
	if err != nil {
		return capability.Set{}, exitError{exitUsage, err}
	}
	return p.Kept.Plus(grant.Effective(p.Manifest.Name, p.New).Set), nil
}

// pinDigest is the flag by which exactly what was shown is fetched another time.
func (i *installer) pinDigest(p store.Proposal) string {
	if !store.IsURL(p.Source) || i.sha256 != "" {
		return ""
	}
	return " --sha256 " + p.Digest
}

func question(p store.Proposal) string {
	switch {
	case p.Old == nil && p.New.Empty():
		return "Install it?"
	case p.Old == nil:
		return "Install it, and grant it all that?"
	case p.New.Empty():
		return "Upgrade to it?"
	}
	return "Upgrade to it, and grant it that in addition?"
}

// agree asks, and takes anything but a yes for an end.
func (i *installer) agree(ctx context.Context, question string) error {
	yes, err := i.io.confirm(ctx, question)
	if err == nil && !yes {
		err = exitError{exitBlocked, errors.New("nothing was changed: you did not say yes")}
	}
	return err
}

// compile has the module compiled, so that no run has to wait for that, and none finds
// out that it cannot be.
func (i *installer) compile(ctx context.Context, c store.Candidate) error {
	h, err := openHost(i.folders)
	if err != nil {
		return err
	}
	defer h.Close()
	_, err = h.LoadBytes(ctx, c.Manifest.Name, c.Wasm, host.Options{})
	if failed, ok := errors.AsType[*host.LoadError](err); ok {
		return failed.Err
	}
	return err
}
