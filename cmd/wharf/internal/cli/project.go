package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"

	"github.com/wharf-agent/wharf/engine/sandbox"
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
	trust, _ := l.merged["trust"].(map[string]any)
	if trust[path] != digest {
		l.notices = append(l.notices, fmt.Sprintf("%s was left out: to trust what it says now, add to %s under [trust]: %q = %q",
			path, l.user, path, digest))
		return nil
	}
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

// vouch refuses an extension of a file that the project names, unless the user
// trusts exactly what is in it: who can write into the project could exchange it.
func (c config) vouch(name, file, digest string) error {
	digest = "sha256:" + digest
	if theirs, brings := c.brought[name]; !brings || theirs != file || c.Trust[file] == digest {
		return nil
	}
	return fmt.Errorf("the project brings it: to trust what is in it now, add to %s under [trust]: %q = %q", c.user, file, digest)
}

// refuseOwn keeps a project from saying what is the user's alone to say, also one
// that is trusted for all else: what is read and run for a secret, and what may be
// done unasked.
func (l *loader) refuseOwn(layer map[string]any) error {
	if _, has := layer["secrets"]; has {
		return fmt.Errorf("secrets belong into your own configuration, %s: take [secrets] out here", l.user)
	}
	rules, _ := layer["permissions"].(map[string]any)
	if _, has := rules["allow"]; has {
		return fmt.Errorf("a project can deny and ask, and not allow: take permissions.allow out here, and put it into your own configuration, %s", l.user)
	}
	return nil
}
