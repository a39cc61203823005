package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/host"
)

// This file holds what a project may say of how Wharf is to be run in it:
// nothing, unless the user trusts exactly that.

// maxProjectConfig bounds a project's configuration, in bytes.
const maxProjectConfig = 1 << 20

// addProject reads the workspace's wharf.toml, if the user trusts exactly what
// is in it: a cloned repository must not configure the engine.
func (l *loader) addProject(workspace string) error {
	if workspace == "" {
		return nil
	}
	root, err := sandbox.OpenRoot(workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	path := filepath.Join(workspace, "wharf.toml")
	text, _, err := root.ReadAll("wharf.toml", maxProjectConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.notices = append(l.notices, fmt.Sprintf("%s was left out: %v", path, err))
		return nil
	}
	sum := sha256.Sum256(text)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	l.trust.paths = l.trustedPaths()
	if err := l.trust.check(path, digest, string(text)); err != nil {
		l.notices = append(l.notices, fmt.Sprintf("%s was left out: %v", path, err))
		return nil
	}
	l.project = path
	before := l.files()
	if err := l.addFile(path, text, l.refuseOwn); err != nil {
		return err
	}
	l.brought = l.files()
	maps.DeleteFunc(l.brought, func(name, file string) bool { return before[name] == file })
	return nil
}

// files returns the extensions' files so far.
func (l *loader) files() map[string]string {
	files := map[string]string{}
	rows, _ := l.merged["extensions"].(map[string]any)
	for name, row := range rows {
		row, _ := row.(map[string]any)
		if file, ok := row["path"].(string); ok && isFile(file) {
			files[name] = file
		}
	}
	return files
}

// isFile tells the file of an extension from the name of a shipped one.
func isFile(path string) bool { return strings.ContainsAny(path, "/.") }

// trustedPaths is the table [trust] so far.
func (l *loader) trustedPaths() map[string]string {
	paths := map[string]string{}
	table, _ := l.merged["trust"].(map[string]any)
	for path, digest := range table {
		paths[path], _ = digest.(string)
	}
	return paths
}

// vouch refuses an extension of a file that the project names, unless the user
// trusts exactly what is in it: who can write into the project could exchange it.
func (c config) vouch(name, file string, ext *host.Extension) error {
	if theirs, brings := c.brought[name]; !brings || theirs != file {
		return nil
	}
	if err := c.trust.check(file, "sha256:"+ext.Digest, extensionText(ext.Manifest)); err != nil {
		return fmt.Errorf("the project brings it: %w", err)
	}
	return nil
}

// widths orders the values of what a project may only narrow, the narrowest first. The
// empty one is that of a key that is not set.
var widths = map[string][]string{
	"approve":         {"never", "ask", "", "auto"},
	"sandbox.profile": {"read-only", "workspace-write", "", "full-access"},
	"sandbox.require": {"bwrap", ""},
	"sandbox.vcs":     {"readonly", ""},
}

// refuseOwn keeps a project from saying what is the user's alone to say, also one
// that is trusted for all else: what is read and run for a secret, who is trusted, where
// the key of the model's server is sent, and what may be done unasked or reached.
func (l *loader) refuseOwn(layer map[string]any) error {
	own := func(key string) error {
		return fmt.Errorf("%s is the user's to say: take it out here, and put it into your own configuration, %s", key, l.user)
	}
	for _, table := range []string{"secrets", "trust", "install", "web_search"} {
		if _, has := layer[table]; has {
			return own("[" + table + "]")
		}
	}
	if _, has := layer["base_url"]; has {
		return own("base_url")
	}
	if name := readsVariable(layer); name != "" {
		return fmt.Errorf("a project cannot read the environment, which may hold secrets: write out what %s stands for, or put it into your own configuration, %s", name, l.user)
	}
	if key := l.said(layer); key != "" {
		return fmt.Errorf("%s is in your own configuration, and is yours to say: take it out here", key)
	}
	rules, _ := layer["permissions"].(map[string]any)
	if _, has := rules["allow"]; has {
		return fmt.Errorf("a project can deny and ask, and not allow: take permissions.allow out here, and put it into your own configuration, %s", l.user)
	}
	box, _ := layer["sandbox"].(map[string]any)
	for key := range box {
		if _, narrows := widths["sandbox."+key]; !narrows {
			return own("sandbox." + key)
		}
	}
	return l.refuseWider(layer)
}

// refuseWider keeps a project from widening what it may narrow; an empty text would take
// back what the user said.
func (l *loader) refuseWider(layer map[string]any) error {
	for key, order := range widths {
		was, _ := textAt(l.merged, key)
		is, has := textAt(layer, key)
		if has && slices.Index(order, is) > slices.Index(order, was) {
			return fmt.Errorf("a project can only narrow, and %s = %q is wider than what your own configuration says: take it out here", key, is)
		}
	}
	return nil
}

// readsVariable returns a reference to the environment that stands in a table, if there is one.
func readsVariable(table map[string]any) (found string) {
	_ = expand(table, func(name string) (string, bool) {
		found = "${" + name + "}"
		return found, true
	})
	return found
}

// said returns what a project would change of what the user said: of an extension, which
// may be the user's guard, or of what a turn may cost.
func (l *loader) said(layer map[string]any) string {
	for _, key := range []string{"budget", "prices"} {
		_, was := l.merged[key]
		if _, is := layer[key]; was && is {
			return key
		}
	}
	theirs, _ := layer["extensions"].(map[string]any)
	mine, _ := l.merged["extensions"].(map[string]any)
	for name := range theirs {
		if _, was := mine[name]; was {
			return "extensions." + name
		}
	}
	return ""
}

// textAt returns the text at a key such as sandbox.profile, and whether there is one.
func textAt(table map[string]any, key string) (text string, has bool) {
	if outer, inner, nested := strings.Cut(key, "."); nested {
		table, _ = table[outer].(map[string]any)
		key = inner
	}
	text, has = table[key].(string)
	return text, has
}
