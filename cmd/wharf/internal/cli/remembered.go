package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/BurntSushi/toml"
)

// remembered is what a person allowed always in a workspace. It stands among
// Wharf's own state, which no command and no file tool can reach.
type remembered struct {
	path string
	rememberedFile
}

type rememberedFile struct {
	Workspace string   `toml:"workspace"`
	Allow     []string `toml:"allow"` // rules
}

// readRemembered reads what is remembered of a workspace. A file that cannot be
// read is an error, so that nothing is written over it.
func readRemembered(f folders, workspace string) (remembered, error) {
	key := sha256.Sum256([]byte(workspace))
	r := remembered{path: filepath.Join(f.state, "permissions", hex.EncodeToString(key[:8])+".toml")}
	r.Workspace = workspace
	text, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		_, err = toml.Decode(string(text), &r.rememberedFile)
	}
	if err == nil && r.Workspace != workspace {
		err = fmt.Errorf("it is about %q", r.Workspace)
	}
	if err != nil {
		return r, fmt.Errorf("read what is allowed in this project, %s: %w: delete it to be asked again", r.path, err)
	}
	return r, nil
}

// changeRemembered changes what is remembered of a workspace, beside others who may.
func changeRemembered(f folders, workspace string, change func([]string) ([]string, error)) error {
	dir := filepath.Join(f.state, "permissions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it goes the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	r, err := readRemembered(f, workspace)
	if err != nil {
		return err
	}
	if r.Allow, err = change(r.Allow); err != nil {
		return err
	}
	text, err := toml.Marshal(r.rememberedFile)
	if err != nil {
		return err
	}
	return replaceText(r.path, string(text))
}

// remember has a rule allow always in a workspace.
func remember(f folders, workspace, rule string) error {
	return changeRemembered(f, workspace, func(rules []string) ([]string, error) {
		if slices.Contains(rules, rule) {
			return rules, nil
		}
		return append(rules, rule), nil
	})
}

// forget takes a rule back.
func forget(f folders, workspace, rule string) error {
	return changeRemembered(f, workspace, func(rules []string) ([]string, error) {
		at := slices.Index(rules, rule)
		if at < 0 {
			return nil, usagef("permissions revoke: %q was not allowed in %s: wharf permissions list shows what was", rule, workspace)
		}
		return slices.Delete(rules, at, at+1), nil
	})
}
