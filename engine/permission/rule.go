package permission

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/wharf-agent/wharf/engine/egress"
)

// Rule says what is to become of some calls. [ParseRule] makes it; it is constant.
type Rule struct {
	Verdict Verdict
	Text    string // as it was written
	Source  string // where, for people

	tools   []string // names, in which * stands for anything
	kind    kind
	command commandPattern
	path    string // a glob; in front of it / for the workspace, // for the file system
	host    egress.HostPattern
}

// kind is what a rule's pattern is about.
type kind int

const (
	whole     kind = iota // it has none, and is about each call of the tool
	onCommand             // of a command line
	onRead                // of a file that is read
	onWrite               // of a file that is written
	onHost                // of a URL that is fetched
)

// aliases are the names that others have for these tools, in their rules.
var aliases = map[string][]string{
	"Bash":      {"exec", "write_stdin"},
	"exec":      {"exec", "write_stdin"},
	"Read":      {"read_file", "grep", "find_files", "list_dir"},
	"Edit":      {"write_file", "edit_file", "apply_patch"},
	"Write":     {"write_file", "edit_file", "apply_patch"},
	"MultiEdit": {"write_file", "edit_file", "apply_patch"},
	"Glob":      {"find_files"},
	"Grep":      {"grep"},
	"WebFetch":  {"web_fetch"},
	"WebSearch": {"web_search"},
	"TodoWrite": {"todo_write"},
	"Task":      {"task"},
	"Agent":     {"task"},
}

// unaliased are further tools of Wharf, of this release and later ones.
var unaliased = []string{"list_exec_sessions", "skill", "cron", "ask_user"}

// Names lists the names that rules may have for Wharf's own tools, sorted.
func Names() []string {
	all := slices.Clone(unaliased)
	for alias, tools := range aliases {
		all = append(append(all, alias), tools...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var ruleForm = regexp.MustCompile(`^([A-Za-z0-9_.*-]{1,128})(?:\((.*)\))?$`)

// ParseRule reads a rule as Claude Code's settings have it: Tool or Tool(pattern),
// with the names of Wharf's tools or those that there stand for them. source is
// where it stands.
func ParseRule(verdict Verdict, text, source string) (Rule, error) {
	r := Rule{Verdict: verdict, Text: text, Source: source}
	form := ruleForm.FindStringSubmatch(strings.TrimSpace(text))
	if form == nil {
		return r, fmt.Errorf("rule %q: write it as Tool or Tool(pattern), such as exec(git push *)", text)
	}
	name, pattern := form[1], form[2]
	r.tools = aliases[name]
	if r.tools == nil {
		r.tools = []string{name}
	}
	if verdict == Allow && strings.Contains(name, "*") && !strings.HasPrefix(name, "mcp__") {
		return r, fmt.Errorf("rule %q: only the tools of a server (mcp__SERVER__*) can be allowed by a pattern: name the tool", text)
	}
	if !strings.HasSuffix(strings.TrimSpace(text), ")") || pattern == "*" || pattern == "**" && len(r.tools) > 1 && r.tools[0] != "exec" {
		return r, nil
	}
	if err := r.setPattern(pattern); err != nil {
		return r, fmt.Errorf("rule %q: %w", text, err)
	}
	return r, nil
}

// setPattern reads what stands in the parentheses.
func (r *Rule) setPattern(pattern string) error {
	switch r.tools[0] {
	case "exec":
		if r.command = parseCommandPattern(pattern); len(r.command.words) == 0 {
			return errors.New("there is no command in it: write the tool alone for all of them")
		}
		r.kind = onCommand
		return nil
	case "read_file", "grep", "find_files", "list_dir":
		r.kind = onRead
	case "write_file", "edit_file", "apply_patch":
		r.kind = onWrite
	case "web_fetch":
		r.kind = onHost
		return r.setHost(pattern)
	default:
		return fmt.Errorf("%s takes no pattern", r.tools[0])
	}
	if r.path = strings.TrimPrefix(pattern, "./"); r.path == "" || !doublestar.ValidatePattern(r.path) {
		return errors.New("that is no pattern of paths: write one such as src/** or *.env")
	}
	return nil
}

// setHost reads domain:HOST, where *. before a host stands for its subdomains.
func (r *Rule) setHost(pattern string) (err error) {
	host, ok := strings.CutPrefix(pattern, "domain:")
	if ok {
		r.host, err = egress.ParseHost(strings.ToLower(host))
	}
	if !ok || err != nil || r.host.HasPort() {
		return errors.New("write a host as domain:example.com, or domain:*.example.com for its subdomains")
	}
	return nil
}

// covers reports whether a rule is about a tool at all.
func (r Rule) covers(tool string) bool {
	return slices.ContainsFunc(r.tools, func(name string) bool { return matchText(name, tool) })
}

// Misses returns the name of the tool that a rule is about if it is neither one of these nor
// one of [Names], so that it may be misspelt. Of the tools of servers (mcp__…) nobody knows.
func (r Rule) Misses(tools []string) string {
	if len(r.tools) != 1 || strings.HasPrefix(r.tools[0], "mcp__") || slices.ContainsFunc(Names(), r.covers) || slices.ContainsFunc(tools, r.covers) {
		return ""
	}
	return r.tools[0]
}

// String is the rule with what it says: deny exec(git push *).
func (r Rule) String() string { return r.Verdict.String() + " " + r.Text }

// place is where paths are: rules know the workspace and the home folder.
type place struct{ workspace, home string }

// matches reports whether a path is one that a rule is about. As in a .gitignore, a
// pattern without a slash is about a name at any depth, and one that names a folder
// about all in it; one with a slash begins at the workspace, with // at the root
// and with ~/ at the home folder.
func (p place) matches(pattern, name string) bool {
	absolute := p.absolute(name)
	var glob string
	switch {
	case strings.HasPrefix(pattern, "//"):
		glob = pattern[1:]
	case strings.HasPrefix(pattern, "~/"):
		glob = escape(p.home) + pattern[1:]
	case strings.Contains(strings.TrimSuffix(pattern, "/"), "/"):
		glob = escape(p.workspace) + "/" + strings.TrimPrefix(pattern, "/")
	default:
		glob = "/**/" + pattern
	}
	glob = strings.TrimSuffix(glob, "/")
	return doublestar.MatchUnvalidated(glob, absolute) || doublestar.MatchUnvalidated(glob+"/**", absolute)
}

// overlaps says whether a pattern of files in a command may mean one that a rule is about:
// its parts are held against the last name in the rule's pattern.
func (p place) overlaps(pattern, glob string) certainty {
	if (strings.HasPrefix(pattern, "//") || strings.HasPrefix(pattern, "~/")) && !strings.HasPrefix(glob, "/") && !strings.HasPrefix(glob, "~") && !strings.Contains(glob, "..") {
		return no
	}
	name := strings.TrimSuffix(strings.TrimSuffix(pattern, "/"), "/**")
	name = name[strings.LastIndexByte(name, '/')+1:]
	for part := range strings.SplitSeq(glob, "/") {
		if hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(part, "."); !hidden && meet(part, name) { // a shell leaves hidden files out
			return maybe
		}
	}
	return no
}

// meet reports whether two patterns of a name may both fit one: what stands before their
// first wildcard and behind their last must agree.
func meet(a, b string) bool {
	const wild = "*?[]{}"
	i, j := strings.IndexAny(a, wild), strings.IndexAny(b, wild)
	if i < 0 || j < 0 {
		ok, _ := doublestar.Match(b, a)
		back, _ := doublestar.Match(a, b)
		return ok || back
	}
	first := min(i, j)
	last := min(len(a)-1-strings.LastIndexAny(a, wild), len(b)-1-strings.LastIndexAny(b, wild))
	return a[:first] == b[:first] && a[len(a)-last:] == b[len(b)-last:]
}

// absolute returns a path that is relative to the workspace, or to the home folder
// by ~, as one from the root.
func (p place) absolute(name string) string {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		name = p.home + name[1:]
	case !path.IsAbs(name):
		name = p.workspace + "/" + name
	}
	return filepath.Clean(name)
}

// within returns a path as it is relative to the workspace, where it lies in it.
func (p place) within(name string) string {
	absolute := p.absolute(name)
	if rest, ok := strings.CutPrefix(absolute, p.workspace+"/"); ok {
		return rest
	}
	return "/" + absolute
}

var escapes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`)

func escape(name string) string { return escapes.Replace(name) }
