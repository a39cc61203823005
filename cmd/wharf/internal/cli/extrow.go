package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// extensionConfig is what the configuration says of an extension: its row.
type extensionConfig struct {
	Path   string         `toml:"path"`
	Grant  any            `toml:"grant"` // "all", "none", or a table like [capabilities]
	Config map[string]any `toml:"config"`
}

// remedyOfRow says what grants more to an extension whose row names its file.
func remedyOfRow(name string) func(key, line string) string {
	return func(_, line string) string {
		return fmt.Sprintf("have grant under [extensions.%s] say %s", name, line)
	}
}

// noteRows notes which extensions a layer has a row for.
func (l *loader) noteRows(from string, keys []toml.Key) {
	if l.rows == nil {
		l.rows = map[string][]string{}
	}
	for _, key := range keys {
		if len(key) < 2 || key[0] != "extensions" {
			continue
		}
		name := key[1]
		if !slices.Contains(l.order, name) {
			l.order = append(l.order, name)
		}
		if !slices.Contains(l.rows[name], from) {
			l.rows[name] = append(l.rows[name], from)
		}
	}
}

// refuseProjectRow refuses a row of the project's for an extension that is the user's: it
// could disarm a guard.
func (c config) refuseProjectRow(name string) error {
	if c.project == "" || !slices.Contains(c.rows[name], c.project) {
		return nil
	}
	return usagef("%s: the extension %q is your own, and a project has no say in it: take [extensions.%s] out there", c.project, name, name)
}

// withoutRow says how to be rid of an extension's row.
func (c config) withoutRow(name string) string {
	return fmt.Sprintf("take [extensions.%s] out of %s", name, strings.Join(c.rows[name], " and "))
}
