package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/store"
)

func extGrant(_ context.Context, io stdio, args []string) error {
	changed, err := changeGrants(io, "ext grant", args, func(e store.Entry, asked capability.Set, keys []string) capability.Set {
		grant, _ := capability.ParseWords(keys) // which was checked
		return e.Granted.Plus(grant.Effective(e.Name, asked).Set)
	})
	if err != nil {
		return err
	}
	if len(changed.unasked) == len(changed.keys) {
		return fmt.Errorf("grant %s: it does not ask for %s: nothing was granted", changed.extension, strings.Join(changed.unasked, ", "))
	}
	changed.tell(io, false)
	return nil
}

func extRevoke(_ context.Context, io stdio, args []string) error {
	changed, err := changeGrants(io, "ext revoke", args, func(e store.Entry, _ capability.Set, keys []string) capability.Set {
		if slices.Contains(keys, "all") {
			return capability.Set{}
		}
		return e.Granted.Without(keys...)
	})
	if err != nil {
		return err
	}
	changed.tell(io, true)
	return nil
}

// grantChange is what came of grant or revoke.
type grantChange struct {
	extension     string
	keys, unasked []string // what was named, and what of it the manifest does not ask for
	before, after capability.Set
}

// tell says what is granted now, and, if revoked, what no longer is.
func (c grantChange) tell(io stdio, revoked bool) {
	if len(c.unasked) > 0 {
		fmt.Fprintf(io.err, "wharf: it does not ask for %s\n", strings.Join(c.unasked, ", "))
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(io.out, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	if revoked {
		describeAsked(row, "revoked", c.before.Minus(c.after))
	}
	describeAsked(row, "granted", c.after)
}

// changeGrants is grant and revoke.
func changeGrants(io stdio, name string, args []string, next func(store.Entry, capability.Set, []string) capability.Set) (c grantChange, err error) {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	if err := parse(io, flags, name+" NAME all|KEY…", args); err != nil {
		return c, err
	}
	if flags.NArg() < 2 {
		return c, usagef("%s: it takes the name of an installed extension, and all or keys: %s", name, strings.Join(capability.Keys, ", "))
	}
	c.extension, c.keys = flags.Arg(0), flags.Args()[1:]
	if _, err := capability.ParseWords(c.keys); err != nil || c.keys[0] == "none" {
		return c, usagef("%s: %s: write all, or keys of [capabilities]: %s", name, strings.Join(c.keys, " "), strings.Join(capability.Keys, ", "))
	}
	f, err := findFolders()
	if err != nil {
		return c, err
	}
	c.after, err = f.store().SetGrants(c.extension, func(e store.Entry, asked capability.Set) capability.Set {
		for _, key := range c.keys {
			if key != "all" && asked.Line(key) == "" {
				c.unasked = append(c.unasked, key)
			}
		}
		c.before = e.Granted
		return next(e, asked, c.keys)
	})
	return c, notThere(err)
}
