package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/store"
)

func extUpdate(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext update", pflag.ContinueOnError)
	i := newInstaller(io, flags)
	diff := flags.Bool("diff", false, "show what would be otherwise, and change nothing")
	if err := parse(io, flags, "ext update [flags] [NAME…]", args); err != nil {
		return err
	}
	if err := i.ready(flags); err != nil {
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		entries, err := i.store.List()
		if err != nil {
			return err
		}
		for _, e := range entries {
			names = append(names, e.Name)
		}
		if len(names) == 0 {
			fmt.Fprintln(io.err, nothingInstalled)
		}
	}
	if !i.trust.Key.IsZero() && len(names) != 1 {
		return usagef("ext update: --pubkey is the key of one: name the extension that it belongs to")
	}
	var failed []error
	status := exitFailed
	for _, name := range names {
		err := i.update(ctx, name, *diff)
		if err == nil {
			continue
		}
		failed = append(failed, wrapped(notThere(err), "update "+name))
		if own, ok := errors.AsType[exitError](failed[0]); ok {
			status = own.code
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(failed) > 0 {
		return exitError{status, errors.Join(failed...)}
	}
	return nil
}

// update looks at an extension's source again.
func (i *installer) update(ctx context.Context, name string, diff bool) error {
	e, err := i.store.Find(name)
	if err != nil {
		return err
	}
	source, shipped := e.Source, false
	if own, ok := store.ShippedName(e.Source); ok {
		source, shipped = own, true
	}
	c, err := i.find(ctx, source, shipped)
	if err != nil {
		return err
	}
	if c.Manifest.Name != name {
		return fmt.Errorf("at %s there is the extension %q now: if you want that, install it", plainly(e.Source), c.Manifest.Name)
	}
	if !diff {
		return i.install(ctx, c)
	}
	return i.showDifference(name, c)
}

// showDifference shows what an update would change, and changes nothing.
func (i *installer) showDifference(name string, c store.Candidate) error {
	p, err := i.store.Propose(c, i.trust)
	if err != nil {
		return err
	}
	if p.IsInstalled() {
		fmt.Fprintf(i.io.out, "%s %s is what is installed\n", name, c.Manifest.Version)
		return nil
	}
	modules, err := i.store.Read()
	if err != nil {
		return err
	}
	for _, m := range modules {
		if m.Name != name {
			continue
		}
		if m.Err != nil {
			return m.Failure().Err
		}
		old, err := host.Inspect(m.Wasm)
		if err == nil {
			err = old.Problem
		}
		if err != nil {
			return fmt.Errorf("what is installed cannot be read: %w", err)
		}
		fmt.Fprintf(i.io.out, "%s\n%s", name, difference(old, c.Inspection, [2]int{len(m.Wasm), len(c.Wasm)}))
		fmt.Fprintf(i.io.out, "%-13s %s\n", "signed", signedText(p))
	}
	return nil
}
