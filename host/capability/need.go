package capability

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/egress"
)

// Need is what one operation is about to reach. The zero Need is nothing,
// which is always allowed; the others are made by the functions below.
type Need struct {
	Key    string // of [capabilities]
	Target string // for the audit: a key, a path, an address
	least  Set    // what allows it, and little else

	matches func(Set) bool // whether a set allows it; nil: whether it includes least
}

// KV is the need to use what is kept under a key.
func KV(key string) Need { return Need{Key: "kv", Target: key, least: Set{KV: 1}} }

// Session is the need to know the session.
func Session() Need { return Need{Key: "session", least: Set{Session: true}} }

// Events is the need to write an event of a name.
func Events(name string) Need { return Need{Key: "events", Target: name, least: Set{Events: true}} }

// LLM is the need to ask a model; target is for the audit. How many tokens are
// left is for the caller to see.
func LLM(target string) Need { return Need{Key: "llm", Target: target, least: Set{LLM: 1}} }

// HTTP is the need to send a request to u, which is as [egress.ParseURL]
// returns it.
func HTTP(method string, u *url.URL) Need {
	address := method + " " + u.Scheme + "://" + u.Host
	pattern, err := egress.ParsePattern(address + u.Path)
	if err != nil || !pattern.Matches(method, u) {
		pattern, _ = egress.ParsePattern(address + "/*") // no pattern is exactly this path
	}
	return Need{
		Key: "http", Target: address + u.Path, least: Set{HTTP: []egress.Pattern{pattern}},
		matches: func(s Set) bool {
			return slices.ContainsFunc(s.HTTP, func(p egress.Pattern) bool { return p.Matches(method, u) })
		},
	}
}

// SecretFor is the need to put a secret into a request to a host, which is as
// [url.URL.Hostname] returns it.
func SecretFor(name, host string) (Need, error) {
	return Need{
		Key: "secrets", Target: name + " for " + host,
		least: Set{Secrets: []Secret{{Name: name, Host: bracketed(host), Header: "Authorization", Format: "Bearer {}"}}},
		matches: func(s Set) bool {
			return slices.ContainsFunc(s.Secrets, func(s Secret) bool { return s.Name == name && s.BoundTo(host) })
		},
	}, checkEnvName(name)
}

// File is the need to read a file or folder, or to write it. The name is
// relative to the workspace; where links in it lead is for the caller to see.
func File(name string, write bool) (Need, error) {
	if checkPlain(name) != nil || len(name) > 4096 {
		return Need{}, errors.New(`"path" must have 1 to 4096 bytes, and no control characters`)
	}
	if path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
		return Need{}, fmt.Errorf("path %q: write a path below the workspace, without .. in it", name)
	}
	name = path.Clean(name)
	return Need{Key: "fs", Target: name, least: Set{FS: []Folder{{Path: name, Write: write}}}}, nil
}

// Exec is the need to run a command, which must be one simple command.
func Exec(command string) (Need, error) {
	words, err := splitCommand(command, false)
	if err != nil {
		return Need{}, err
	}
	return Need{Key: "exec", Target: command, least: Set{Exec: []string{commandPattern(words)}}}, nil
}

// Tool is the need to call a tool.
func Tool(name string) (Need, error) {
	return Need{Key: "tools", Target: name, least: Set{Tools: []string{name}}}, checkToolName(name)
}

// Env is the need to read a variable of the environment.
func Env(name string) (Need, error) {
	return Need{Key: "env", Target: name, least: Set{Env: []string{name}}}, checkEnvName(name)
}

// Covers reports whether s reaches what n needs.
func (s Set) Covers(n Need) bool {
	switch {
	case n.Key == "":
		return true
	case n.matches != nil:
		return n.matches(s)
	default:
		return !n.least.Empty() && s.Includes(n.least)
	}
}

// Allow returns nil if e covers n. Its error is [ErrNotGranted] and says which
// line of the manifest or of the user's grant would allow it.
func (e Effective) Allow(n Need) error {
	switch {
	case e.Covers(n):
		return nil
	case !e.asked.Covers(n):
		return fmt.Errorf("%w: %s: the manifest does not ask for it: add %s under [capabilities], and grant it",
			ErrNotGranted, n.Key, n.addition(e.asked))
	case e.remedy != nil:
		return fmt.Errorf("%w: %s: the user did not grant it: %s", ErrNotGranted, n.Key, e.remedy(n.Key, n.line(e.asked)))
	default:
		return fmt.Errorf("%w: %s: the user did not grant it: add --grant %s after --ext, or grant = { %s } under [extensions.%s]",
			ErrNotGranted, n.Key, n.Key, n.line(e.asked), e.extension)
	}
}

// line is the line that grants n, of what was asked for.
func (n Need) line(asked Set) string {
	if n.Key == "kv" || n.Key == "llm" || n.Key == "secrets" {
		return asked.Line(n.Key) // as it asks for: less would not last
	}
	return n.least.Line(n.Key)
}

// addition is what is to be added to a manifest: an item to a list that it
// has, or a line.
func (n Need) addition(asked Set) string {
	line := n.least.Line(n.Key)
	switch {
	case n.Key == "kv":
		return `kv = "1MiB"`
	case n.Key == "llm":
		return "llm = { tokens = 20000 }"
	case asked.Line(n.Key) == "":
		return line
	}
	_, item, _ := strings.Cut(line, " = ")
	return strings.TrimSuffix(strings.TrimPrefix(item, "["), "]") + " to " + n.Key
}
