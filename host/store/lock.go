package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// lockVersion is the version of wharf.lock's form that is read and written here.
const lockVersion = 1

// lock is what stands in wharf.lock.
type lock struct {
	entries []Entry
	pins    []pin
}

// pin is the key that alone may sign an extension of that name from there.
type pin struct {
	Name string // of the extension
	From string // see origin
	Key  Key
}

func (l *lock) index(name string) int {
	return slices.IndexFunc(l.entries, func(e Entry) bool { return e.Name == name })
}

// pinned returns the key that is pinned, or the zero Key.
func (l *lock) pinned(name, from string) Key {
	for _, p := range l.pins {
		if p.Name == name && p.From == from {
			return p.Key
		}
	}
	return Key{}
}

// forget takes out the keys that are pinned for a name. It reports whether there were any.
func (l *lock) forget(name string) bool {
	before := len(l.pins)
	l.pins = slices.DeleteFunc(l.pins, func(p pin) bool { return p.Name == name })
	return len(l.pins) < before
}

// pin pins a key in the place of another.
func (l *lock) pin(p pin) {
	l.pins = slices.DeleteFunc(slices.Clone(l.pins), func(old pin) bool { return old.Name == p.Name && old.From == p.From })
	l.pins = append(l.pins, p)
}

// The tables of wharf.lock.
type (
	fileLock struct {
		Version    int         `toml:"version"`
		Extensions []fileEntry `toml:"extension"`
		Keys       []filePin   `toml:"key"`
	}
	fileEntry struct {
		Name      string         `toml:"name"`
		Version   string         `toml:"version"`
		Source    string         `toml:"source"`
		Digest    string         `toml:"digest"`
		ABI       any            `toml:"abi"`
		Role      string         `toml:"role"`
		Hooks     []string       `toml:"hooks"`
		Signer    string         `toml:"signer"`
		Signature string         `toml:"signature"`
		Grants    map[string]any `toml:"grants"`
	}
	filePin struct {
		Name string `toml:"name"`
		From string `toml:"from"`
		Key  string `toml:"key"`
	}
)

// String writes the lock as TOML.
func (l lock) String() string {
	var b strings.Builder
	row := func(key, value string) { fmt.Fprintf(&b, "%s = %s\n", key, value) }
	b.WriteString("# What \"wharf ext install\" installed, and what it may reach.\n# Change it with wharf ext install, remove, grant and revoke.\n")
	row("version", fmt.Sprint(lockVersion))
	for _, e := range l.entries {
		b.WriteString("\n[[extension]]\n")
		row("name", quote(e.Name))
		row("version", quote(e.Version))
		row("source", quote(e.Source))
		row("digest", quote("sha256:"+e.Digest))
		if e.ABI == abiExtism {
			row("abi", quote(e.ABI))
		} else {
			row("abi", e.ABI)
		}
		row("role", quote(roleOf(e.Guard)))
		row("hooks", quoteAll(e.Hooks))
		if !e.Signer.IsZero() {
			row("signer", quote(e.Signer.String()))
			row("signature", quote(e.Signature))
		}
		if !e.Granted.Empty() {
			fmt.Fprintf(&b, "\n[extension.grants]\n%s\n", e.Granted)
		}
	}
	for _, p := range l.pins {
		fmt.Fprintf(&b, "\n[[key]]\nname = %s\nfrom = %s\nkey = %s\n", quote(p.Name), quote(p.From), quote(p.Key.String()))
	}
	return b.String()
}

// quote returns text as a TOML string.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // JSON's strings are TOML's too
	return string(quoted)
}

func quoteAll(points []hook.Point) string {
	quoted := make([]string, len(points))
	for i, p := range points {
		quoted[i] = quote(string(p))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func roleOf(guard bool) string {
	if guard {
		return "guard"
	}
	return "observer"
}

const abiExtism = "extism"

// parseLock reads wharf.lock. It is strict: a lock that was damaged or made up must
// grant nothing.
func parseLock(text string) (lock, error) {
	if len(text) > maxLock {
		return lock{}, fmt.Errorf("it has more than %d bytes: it was damaged", maxLock)
	}
	if err := host.CheckNesting(text); err != nil {
		return lock{}, err
	}
	var known struct {
		Version any `toml:"version"`
	}
	if _, err := toml.Decode(text, &known); err != nil {
		return lock{}, tomlError(err)
	}
	if known.Version == nil {
		return lock{}, errors.New("it has no version: it was damaged")
	}
	if known.Version != int64(lockVersion) {
		return lock{}, fmt.Errorf("it is of version %v, and this wharf reads version %d: use the wharf that wrote it", known.Version, lockVersion)
	}
	var f fileLock
	md, err := toml.Decode(text, &f)
	if err != nil {
		return lock{}, tomlError(err)
	}
	// The grants are checked by their own package.
	unknown := slices.DeleteFunc(md.Undecoded(), func(k toml.Key) bool { return len(k) > 2 && k[0] == "extension" && k[1] == "grants" })
	if len(unknown) > 0 {
		return lock{}, fmt.Errorf("unknown key %q: it was damaged, or a newer wharf wrote it", unknown[0])
	}
	return f.lock()
}

func tomlError(err error) error {
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return fmt.Errorf("line %d: %s", syntax.Position.Line, syntax.Message)
	}
	return err
}

func (f fileLock) lock() (l lock, err error) {
	for _, row := range f.Extensions {
		e, err := row.entry()
		if err != nil {
			return lock{}, fmt.Errorf("extension %q: %w", row.Name, err)
		}
		if l.index(e.Name) >= 0 {
			return lock{}, fmt.Errorf("extension %q: it is there twice", e.Name)
		}
		l.entries = append(l.entries, e)
	}
	for _, row := range f.Keys {
		if err := host.CheckName(row.Name); err != nil {
			return lock{}, fmt.Errorf("key of %q: %w", row.Name, err)
		}
		p := pin{Name: row.Name, From: row.From}
		if p.Key, err = ParseKey(row.Key); err != nil {
			return lock{}, fmt.Errorf("key of %q: %w", row.Name, err)
		}
		if !l.pinned(p.Name, p.From).IsZero() {
			return lock{}, fmt.Errorf("key of %q: it is there twice", row.Name)
		}
		l.pins = append(l.pins, p)
	}
	return l, nil
}

var (
	digestText  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	versionText = regexp.MustCompile(`^[A-Za-z0-9.+-]{1,64}$`)
)

func (row fileEntry) entry() (e Entry, err error) {
	e = Entry{Name: row.Name, Version: row.Version, Source: row.Source, Guard: row.Role == "guard", Signature: row.Signature}
	switch row.ABI {
	case int64(1):
		e.ABI = "1"
	case abiExtism:
		e.ABI = abiExtism
	default:
		return e, fmt.Errorf("abi %v: it is 1 or %q", row.ABI, abiExtism)
	}
	switch {
	case host.CheckName(row.Name) != nil:
		return e, host.CheckName(row.Name)
	case !versionText.MatchString(row.Version):
		return e, fmt.Errorf("version %q is none", row.Version)
	case row.Source == "":
		return e, errors.New("it has no source")
	case !digestText.MatchString(row.Digest):
		return e, fmt.Errorf("digest %q is none: it is sha256: and 64 digits a-f, 0-9", row.Digest)
	case row.Role != "guard" && row.Role != "observer":
		return e, fmt.Errorf("role %q: it is guard or observer", row.Role)
	case (row.Signer == "") != (row.Signature == ""):
		return e, errors.New("signer and signature belong together")
	}
	e.Digest = strings.TrimPrefix(row.Digest, "sha256:")
	if row.Signer != "" {
		if e.Signer, err = ParseKey(row.Signer); err != nil {
			return e, fmt.Errorf("signer: %w", err)
		}
	}
	for _, name := range row.Hooks {
		if _, ok := hook.Lookup(hook.Point(name)); !ok {
			return e, fmt.Errorf("unknown hook point %q: a newer wharf wrote it", name)
		}
		e.Hooks = append(e.Hooks, hook.Point(name))
	}
	if e.Granted, err = capability.FromTable(row.Grants); err != nil {
		return e, fmt.Errorf("grants: %w", err)
	}
	return e, nil
}
