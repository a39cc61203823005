// Package capability says what an extension may reach.
//
// A manifest asks for capabilities ([Set]); the user grants all, none or some
// of them ([Grant]). What counts is the [Effective] grant: what was asked for,
// cut down to what was granted. A host operation states its [Need] there before
// it does anything, and a refusal names the line that would allow it. Sets are
// compared by meaning: a folder within a folder, a command within a pattern.
//
// The grammar of all capabilities is here, so that a manifest that uses them
// can be read, shown and granted; the operations behind them live in package
// host. What the agent itself may do is judged by engine/permission instead.
package capability

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wharf-agent/wharf/engine/egress"
)

// ErrNotGranted reports a need that the effective grant does not cover.
var ErrNotGranted = errors.New("capability not granted")

// Set is a [capabilities] table. The zero Set reaches nothing.
type Set struct {
	HTTP    []egress.Pattern
	Secrets []Secret
	FS      []Folder
	KV      Size     // how much may be kept; 0 is nothing
	Exec    []string // patterns of simple commands
	Tools   []string // tools that it may call
	Session bool     // session = "read"
	LLM     int64    // tokens a session; 0 is none
	Env     []string // exact names
	Events  bool
	Approve bool // its allow may skip a question
}

// Secret is a secret that the host puts into requests to one host.
type Secret struct {
	Name   string // of the secret
	Host   string // or *.host, for its subdomains
	Header string
	Format string // holds one {} where the value goes
}

// BoundTo reports whether s may go to a host, which is as
// [url.URL.Hostname] returns it. Which ports of it is said by http.
func (s Secret) BoundTo(host string) bool {
	bound, err := egress.ParseHost(s.Host)
	return err == nil && bound.MatchesName(host)
}

// bracketed returns a host as it stands in a URL.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Folder is a folder of the workspace.
type Folder struct {
	Path  string // relative
	Write bool   // mode = "write", which includes reading
}

// Size is a number of bytes.
type Size int64

// Keys lists the keys of a [capabilities] table in the order in which they
// are printed.
var Keys = []string{"http", "secrets", "fs", "kv", "exec", "tools", "session", "llm", "env", "events", "approve"}

// units are the suffixes of a size, the largest first.
var units = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads a size such as "16MiB": a whole number above 0 with the unit
// B, KiB, MiB or GiB.
func ParseSize(text string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= 0 || n > (1<<50)/u.bytes || digits[0] == '+' {
			break
		}
		return Size(n * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is no size: write a number with B, KiB, MiB or GiB, such as \"16MiB\"", text)
}

// String prints s as [ParseSize] reads it, in the largest unit that fits.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return "0B"
}

// Empty reports whether s reaches nothing.
func (s Set) Empty() bool { return s.String() == "" }

// String prints s as the lines of a [capabilities] table, in the order of
// [Keys]. [FromTable] reads what it prints.
func (s Set) String() string {
	var lines []string
	for _, key := range Keys {
		if line := s.Line(key); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Line prints one key of s, or nothing if s does not have it.
func (s Set) Line(key string) string {
	value := ""
	switch key {
	case "http":
		value = list(s.HTTP, func(p egress.Pattern) string { return quote(p.String()) })
	case "secrets":
		value = list(s.Secrets, Secret.String)
	case "fs":
		value = list(s.FS, Folder.String)
	case "kv":
		if s.KV > 0 {
			value = quote(s.KV.String())
		}
	case "exec":
		value = list(s.Exec, quote)
	case "tools":
		value = list(s.Tools, quote)
	case "session":
		value = when(s.Session, `"read"`)
	case "llm":
		value = when(s.LLM > 0, fmt.Sprintf("{ tokens = %d }", s.LLM))
	case "env":
		value = list(s.Env, quote)
	case "events":
		value = when(s.Events, "true")
	case "approve":
		value = when(s.Approve, "true")
	}
	if value == "" {
		return ""
	}
	return key + " = " + value
}

// String prints s as an inline table.
func (s Secret) String() string {
	return fmt.Sprintf("{ name = %s, host = %s, header = %s, format = %s }",
		quote(s.Name), quote(s.Host), quote(s.Header), quote(s.Format))
}

// String prints f as an inline table.
func (f Folder) String() string {
	mode := "read"
	if f.Write {
		mode = "write"
	}
	return fmt.Sprintf("{ path = %s, mode = %q }", quote(f.Path), mode)
}

func when(on bool, text string) string {
	if on {
		return text
	}
	return ""
}

func list[T any](items []T, show func(T) string) string {
	if len(items) == 0 {
		return ""
	}
	shown := make([]string, len(items))
	for i, item := range items {
		shown[i] = show(item)
	}
	return "[" + strings.Join(shown, ", ") + "]"
}

// quote writes text as a basic string of TOML. The grammar lets no control
// characters in, so quotes and backslashes are all there is to escape.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
