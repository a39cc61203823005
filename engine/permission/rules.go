package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/patch"
)

// Place is where a policy's rules about paths apply.
type Place struct {
	Workspace string // absolute
	Home      string // absolute
	// Resolve follows the links of a path in the workspace, so that a rule about a
	// file counts for its other names; nil follows none. Empty is what it returns
	// for what is not there.
	Resolve func(path string) string
}

// WithRules returns the same policy with rules, which are asked in the order deny,
// ask, allow, whatever they are about. They never allow what the profile denies.
func (p *Policy) WithRules(rules []Rule, at Place) *Policy {
	with := *p
	with.rules, with.at = rules, at
	return &with
}

// Hides reports whether a tool is denied whatever it is called with, so that a
// model need not know of it.
func (p *Policy) Hides(tool string) bool {
	return slices.ContainsFunc(p.rules, func(r Rule) bool { return r.Verdict == Deny && r.kind == whole && r.covers(tool) })
}

// Conceals reports whether a file may not be read, so that a search of the folder that it
// lies in must not find it.
func (p *Policy) Conceals(name string) bool {
	return slices.ContainsFunc(p.rules, func(r Rule) bool { return r.Verdict == Deny && r.kind == onRead && p.at.place().matches(r.path, name) })
}

// subject is what rules look at of a call.
type subject struct {
	Call
	line  commandLine // of a command
	paths []string    // that it names
	reads []string    // what a patch reads: the files that it changes, and of which its result shows lines
	host  string      // of its URL
	kind  kind        // onCommand, onRead, onWrite or onHost; else whole
}

// subjectOf reads a call. Arguments have been checked against the tool's schema.
func (p *Policy) subjectOf(c Call) subject {
	s := subject{Call: c}
	var arguments struct {
		Command string `json:"command"`
		Dir     string `json:"dir"`
		Path    string `json:"path"`
		Text    string `json:"text"`
		Patch   string `json:"patch"`
		URL     string `json:"url"`
	}
	readable := json.Unmarshal(c.Arguments, &arguments) == nil
	switch c.Tool {
	case "exec":
		s.kind, s.line = onCommand, readLine(arguments.Command)
		s.line.dirs = s.line.folders(arguments.Dir)
		if !readable {
			s.line.open = "its arguments cannot be read"
		}
	case "write_stdin":
		s.kind = onCommand
		if typed := strings.Trim(arguments.Text, quietKeys); typed != "" || !readable {
			s.line = readTyped(typed)
		}
	case "read_file", "grep", "find_files", "list_dir":
		s.kind = onRead
	case "write_file", "edit_file", "apply_patch":
		s.kind = onWrite
	case "web_fetch":
		s.kind = onHost
		if u, err := egress.ParseURL(arguments.URL); err == nil { // else the tool refuses it
			s.host = u.Hostname()
		}
	}
	switch {
	case c.Tool == "apply_patch":
		parts, _ := patch.Parse(arguments.Patch) // of one that cannot be read the tool does nothing
		for _, part := range parts {
			names := p.files(part.Path)
			if part.Kind != patch.Add {
				s.reads = append(s.reads, names...)
			}
			if part.MoveTo != "" {
				names = append(names, p.files(part.MoveTo)...)
			}
			s.paths = append(s.paths, names...)
		}
	case s.kind == onRead || s.kind == onWrite:
		s.paths = p.files(arguments.Path)
	}
	return s
}

// files is names for a path of a file tool, for which ~ is a name like others, whatever who
// wrote it meant.
func (p *Policy) files(name string) []string {
	if strings.HasPrefix(name, "~") {
		return append(p.names(name), p.names("./"+name)...)
	}
	return p.names(name)
}

// quietKeys are what may be typed into any program: Ctrl-C, Ctrl-D and Ctrl-\, which
// interrupt it or end it.
const quietKeys = "\x03\x04\x1c"

// readTyped reads what is typed into a program. It may be a shell or not, so it may run
// anything, and what looks like the name of a file may be one.
func readTyped(text string) commandLine {
	l := readLine(text)
	l.open, l.dirs = "what a program is told cannot be judged", l.folders("")
	name := func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-~/*?[]{}=@:,", c)
	}
	words := []word{{}} // touches has no look at the command itself
	for _, field := range strings.FieldsFunc(text, name) {
		words = append(words, word{text: field, glob: strings.ContainsAny(field, "*?[{")})
	}
	l.commands = append(l.commands, simpleCommand{words: words})
	return l
}

// names returns a path and where it leads.
func (p *Policy) names(name string) []string {
	all := []string{name}
	if p.at.Resolve != nil {
		if real := p.at.Resolve(name); real != "" && real != name {
			all = append(all, real)
		}
	}
	return all
}

// judge asks the rules. spoke is whether any had something to say.
func (p *Policy) judge(c Call) (verdict Verdict, by string, spoke bool) {
	s := p.subjectOf(c)
	var doubt Rule
	for _, r := range p.rules {
		if r.Verdict != Deny {
			continue
		}
		switch p.fits(r, s) {
		case yes:
			return Deny, r.name(), true
		case maybe:
			doubt = r
		}
	}
	if doubt.Text != "" {
		return Ask, s.unsure(doubt), true
	}
	granted := p.answered(s)
	for _, r := range p.rules {
		if r.Verdict == Ask && granted == "" && p.fits(r, s) != no {
			return Ask, r.name(), true
		}
	}
	if by := p.allows(s, p.rules); by != "" {
		return Allow, by, true
	}
	return Allow, granted, granted != ""
}

// asks reports whether it is a rule that wants the user to be asked: then the
// sandbox is no answer.
func (p *Policy) asks(c Call) bool {
	if len(p.rules) == 0 {
		return false
	}
	verdict, _, spoke := p.judge(c)
	return spoke && verdict == Ask
}

// name is the rule as a refusal or a question names it.
func (r Rule) name() string { return fmt.Sprintf("the rule %q", r.String()) }

// unsure says why a rule may be about a call.
func (s subject) unsure(r Rule) string {
	why := "some of its words are not known before it runs"
	switch about := r.kind != onCommand; {
	case about && s.line.has(func(w word) bool { return w.glob }):
		why = "it names such a file, or may mean one by a pattern, and nobody can tell what it does with it"
	case about:
		why = "it names such a file, and nobody can tell what it does with it"
	case s.line.open != "":
		why = s.line.open
	case !s.line.has(func(w word) bool { return w.kind != known }):
		why = "it has that command among its words, and another program may run it"
	}
	return fmt.Sprintf("%s, which may forbid it: %s,", r.name(), why)
}

// has reports whether a line has such a word; words that may follow are of any kind.
func (l commandLine) has(such func(word) bool) bool {
	for _, f := range l.files {
		if such(f.path) {
			return true
		}
	}
	return slices.ContainsFunc(l.commands, func(c simpleCommand) bool {
		return c.more && such(word{kind: many}) || slices.ContainsFunc(c.words, such) || slices.ContainsFunc(c.values, such)
	})
}

// fits says how sure it is that a rule that forbids or asks is about a call.
func (p *Policy) fits(r Rule, s subject) certainty {
	switch {
	case r.kind == whole && (r.covers(s.Tool) || len(s.reads) > 0 && r.covers("read_file")):
		return yes
	case r.kind == onRead && slices.ContainsFunc(s.reads, func(name string) bool { return p.at.place().matches(r.path, name) }):
		return yes
	case r.kind == onCommand && s.kind == onCommand:
		return min(s.line.may(r), s.surest())
	case r.kind == onHost && s.kind == onHost:
		if r.host.MatchesName(s.host) {
			return yes
		}
	case r.kind == s.kind && r.covers(s.Tool):
		for _, name := range s.paths {
			if p.at.place().matches(r.path, name) {
				return yes
			}
		}
	case (r.kind == onRead || r.kind == onWrite) && s.kind == onCommand:
		return min(p.touches(r, s.line), s.surest())
	}
	return no
}

// surest is how sure anybody can be of what becomes of a command line: what is typed may be
// anything to the program that reads it.
func (s subject) surest() certainty {
	if s.Tool == "exec" {
		return yes
	}
	return maybe
}

func (a Place) place() place { return place{a.Workspace, a.Home} }

// may says how sure it is that a line runs what a rule is about.
func (l commandLine) may(r Rule) certainty {
	best := no
	if l.open != "" {
		best = maybe
	}
	for _, c := range l.commands {
		best = max(best, r.command.may(c), r.command.within(c))
	}
	return best
}

// readsOnly is what allows a command that needs no rule.
const readsOnly = "that it only reads"

// allows says which of some rules allow a call, or nothing: each part of a command must be
// allowed, or known to read.
func (p *Policy) allows(s subject, rules []Rule) string {
	if s.kind != onCommand {
		for _, r := range rules {
			if r.Verdict == Allow && r.covers(s.Tool) && (r.kind == whole || r.kind == s.kind && p.about(r, s)) {
				return r.name()
			}
		}
		return ""
	}
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.Verdict == Allow && r.kind == whole && r.covers(s.Tool) }); i >= 0 {
		return rules[i].name()
	}
	if s.Tool == "write_stdin" && s.line.open == "" {
		return readsOnly // it looks, or ends what was begun
	}
	if s.line.open != "" || len(s.line.commands) == 0 {
		return ""
	}
	by := readsOnly
	for _, c := range s.line.commands {
		allowed, rule := allowsCommand(c, rules)
		if !allowed || rule == "" && p.profile == FullAccess { // where it reads whatever the user can
			return ""
		}
		if rule != "" {
			by = rule
		}
	}
	for _, f := range s.line.files {
		if f.writes && !p.allowsWriting(f, s.line.dirs, rules) {
			return ""
		}
	}
	return by
}

// about reports whether all that a call is about is what an allowing rule is about.
func (p *Policy) about(r Rule, s subject) bool {
	if r.kind == onHost {
		return r.host.MatchesName(s.host)
	}
	return p.allPaths(r, s.paths)
}

func (p *Policy) allPaths(r Rule, paths []string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(name string) bool { return !p.at.place().matches(r.path, name) })
}

// allowsCommand reports whether one part of a command is allowed, and by which
// rule if it needs one.
func allowsCommand(c simpleCommand, rules []Rule) (allowed bool, rule string) {
	if !c.setsHarmless() {
		return false, ""
	}
	if len(c.words) == 0 || c.only || c.reads() {
		return true, ""
	}
	for _, r := range rules {
		if r.Verdict == Allow && r.kind == onCommand && r.command.must(c) {
			return true, r.name()
		}
	}
	return false, ""
}

// allowsWriting reports whether a redirection may write its file.
func (p *Policy) allowsWriting(f redirection, dirs []string, rules []Rule) bool {
	if f.path.kind != known {
		return false
	}
	return f.path.text == "/dev/null" || slices.ContainsFunc(rules, func(r Rule) bool {
		return r.Verdict == Allow && r.kind == onWrite && !slices.ContainsFunc(dirs, func(dir string) bool { return !p.allPaths(r, p.names(from(dir, f.path.text))) })
	})
}
