package capability

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/egress"
)

// KeyError is a key of a [capabilities] table whose value does not do.
type KeyError struct {
	Key string
	Err error
}

// Error names the key and says what is wrong with it.
func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *KeyError) Unwrap() error { return e.Err }

// FromTable reads a [capabilities] table as a TOML decoder returns it. An
// unknown key and a value that does not fit are a [*KeyError].
func FromTable(table map[string]any) (Set, error) {
	var s Set
	for key := range table {
		if !slices.Contains(Keys, key) {
			return Set{}, &KeyError{key, fmt.Errorf("unknown capability: there are %s", strings.Join(Keys, ", "))}
		}
	}
	for _, key := range Keys { // in a fixed order, so that the first error is always the same
		value, ok := table[key]
		if !ok {
			continue
		}
		if err := s.set(key, value); err != nil {
			if _, wrong := errors.AsType[*formError](err); wrong {
				err = fmt.Errorf("%w: write %s = %s", err, key, forms[key])
			}
			return Set{}, &KeyError{key, err}
		}
	}
	return s, nil
}

// formError is a value of another form than its key has.
type formError struct{ text string }

func (e *formError) Error() string { return e.text }

func badForm(format string, args ...any) error { return &formError{fmt.Sprintf(format, args...)} }

// forms shows the form of each key's value.
var forms = map[string]string{
	"http":    `["GET https://api.example.com/v1/*"]`,
	"secrets": `[{ name = "TOKEN", host = "api.example.com", header = "Authorization", format = "Bearer {}" }]`,
	"fs":      `[{ path = "notes", mode = "read" }]`,
	"kv":      `"1MiB"`,
	"exec":    `["gofmt *"]`,
	"tools":   `["read_file"]`,
	"session": `"read"`,
	"llm":     `{ tokens = 20000 }`,
	"env":     `["LANG"]`,
	"events":  `true`,
	"approve": `true`,
}

// set reads one key.
func (s *Set) set(key string, value any) (err error) {
	switch key {
	case "http":
		s.HTTP, err = items(value, asPattern)
	case "secrets":
		s.Secrets, err = items(value, asSecret)
	case "fs":
		s.FS, err = items(value, asFolder)
	case "kv":
		s.KV, err = asSize(value)
	case "exec":
		s.Exec, err = items(value, asText(checkCommandPattern))
	case "tools":
		s.Tools, err = items(value, asText(checkToolName))
	case "session":
		if value != "read" {
			return badForm("%v is no mode", value)
		}
		s.Session = true
	case "llm":
		s.LLM, err = asTokens(value)
	case "env":
		s.Env, err = items(value, asText(checkEnvName))
	case "events":
		s.Events, err = asBool(value)
	case "approve":
		s.Approve, err = asBool(value)
	}
	return err
}

// items reads a list. One without items asks for nothing; one of the same
// item twice is a mistake.
func items[T comparable](value any, read func(any) (T, error)) ([]T, error) {
	var raw []any
	switch v := value.(type) {
	case []any:
		raw = v
	case []map[string]any: // how a TOML decoder returns a list of tables
		for _, table := range v {
			raw = append(raw, table)
		}
	default:
		return nil, badForm("it is no list")
	}
	var all []T
	for _, r := range raw {
		item, err := read(r)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, item) {
			return nil, fmt.Errorf("%v is listed twice", item)
		}
		all = append(all, item)
	}
	return all, nil
}

func asText(check func(string) error) func(any) (string, error) {
	return func(value any) (string, error) {
		text, ok := value.(string)
		if !ok {
			return "", badForm("an item of it is no string")
		}
		return text, check(text)
	}
}

func asBool(value any) (bool, error) {
	b, ok := value.(bool)
	if !ok {
		return false, badForm("%v is neither true nor false", value)
	}
	return b, nil
}

func asSize(value any) (Size, error) {
	text, ok := value.(string)
	if !ok {
		return 0, badForm("it is no size")
	}
	return ParseSize(text)
}

func asTokens(value any) (int64, error) {
	table, ok := value.(map[string]any)
	tokens, isInt := table["tokens"].(int64)
	if !ok || !isInt || len(table) != 1 || tokens <= 0 {
		return 0, badForm("it is no budget")
	}
	return tokens, nil
}

func asPattern(value any) (egress.Pattern, error) {
	text, ok := value.(string)
	if !ok {
		return egress.Pattern{}, badForm("an item of it is no string")
	}
	return egress.ParsePattern(text)
}

func asSecret(value any) (Secret, error) {
	var s Secret
	fields := map[string]*string{"name": &s.Name, "host": &s.Host, "header": &s.Header, "format": &s.Format}
	if err := readFields(value, fields); err != nil {
		return Secret{}, err
	}
	switch {
	case checkEnvName(s.Name) != nil:
		return Secret{}, fmt.Errorf("name %q: letters, digits and _ only", s.Name)
	case !isHost(s.Host):
		return Secret{}, fmt.Errorf("host %q is no host name without a port, alone or with *. before it", s.Host)
	case !headerName.MatchString(s.Header):
		return Secret{}, fmt.Errorf("header %q is no name of a header", s.Header)
	case strings.Count(s.Format, "{}") != 1 || checkPlain(s.Format) != nil:
		return Secret{}, fmt.Errorf("format %q needs one {}, where the value goes", s.Format)
	}
	return s, nil
}

func asFolder(value any) (Folder, error) {
	var name, mode string
	if err := readFields(value, map[string]*string{"path": &name, "mode": &mode}); err != nil {
		return Folder{}, err
	}
	if checkPlain(name) != nil || path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "..") {
		return Folder{}, fmt.Errorf("path %q: write a clean path below the workspace, without .. in it", name)
	}
	if mode != "read" && mode != "write" {
		return Folder{}, fmt.Errorf("mode %q is neither read nor write", mode)
	}
	return Folder{Path: name, Write: mode == "write"}, nil
}

// readFields reads an inline table that has exactly these keys, all strings.
func readFields(value any, fields map[string]*string) error {
	table, ok := value.(map[string]any)
	if !ok {
		return badForm("an item of it is no table")
	}
	for key, v := range table {
		text, isText := v.(string)
		if fields[key] == nil || !isText {
			return badForm("an item has the unknown key %q, or no string in it", key)
		}
		*fields[key] = text
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, there := table[key]; !there {
			return badForm("an item has no %s", key)
		}
	}
	return nil
}

var (
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	toolName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// isHost reports whether text names the host that a secret is bound to. Its
// ports are those that http names.
func isHost(text string) bool {
	host, err := egress.ParseHost(text)
	return err == nil && !host.HasPort() && host.String() == text
}

func checkEnvName(text string) error {
	if !envName.MatchString(text) {
		return fmt.Errorf("%q is no name of a variable", text)
	}
	return nil
}

func checkToolName(text string) error {
	if !toolName.MatchString(text) {
		return fmt.Errorf("%q is no name of a tool", text)
	}
	return nil
}

// checkPlain refuses what could not be printed in one line.
func checkPlain(text string) error {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }
	if text == "" || strings.ContainsFunc(text, odd) {
		return fmt.Errorf("%q is empty or has control characters", text)
	}
	return nil
}
