package permission

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A command line is judged by all that it may run, as far as its text tells: each
// part of a pipeline, a list, a substitution, a function's body, what wrappers such
// as sudo, xargs and sh -c run in turn, and the files of its redirections. What the
// text does not tell stays open, and what is open is never allowed by a rule.

// commandLine is what a line may run.
type commandLine struct {
	commands []simpleCommand
	files    []redirection
	open     string          // why there may be more to it; empty: there is not
	dirs     []string        // where it may be
	read     map[string]bool // scripts that were
	counts   bool            // it does arithmetic with variables
	untold   bool            // variables have values that its text does not tell
}

// Parts is what a command line may run.
type Parts struct {
	Runs   []string // commands; … is what is not known before
	Writes []string // files, by redirections
	Open   string   // why there may be more; empty: there is not
}

// Explain shows a person what a command line is judged by.
func Explain(command string) Parts {
	l := readLine(command)
	p := Parts{Open: l.open}
	for _, c := range l.commands {
		if len(c.words) > 0 {
			p.Runs = append(p.Runs, c.String())
		}
	}
	for _, f := range l.files {
		if text := f.path.String(); f.writes && !slices.Contains(p.Writes, text) {
			p.Writes = append(p.Writes, text)
		}
	}
	return p
}

// simpleCommand is a program with its arguments.
type simpleCommand struct {
	words  []word // the program first; none: it only sets variables
	more   bool   // words that nobody knows may follow
	sets   []string
	values []word // of the variables
	only   bool   // it does nothing by itself: what it runs is judged
}

// word is an argument.
type word struct {
	text string // of one that is not known, no more than a pattern of files
	kind wordKind
	glob bool // many, since it is such a pattern
}

type wordKind int

const (
	known wordKind = iota // it is text
	one                   // it is one word, and nobody knows which
	many                  // any number of words may come of it
)

// redirection is a file that the shell opens.
type redirection struct {
	path   word
	writes bool
}

// longestLine is how much of a command line is read; a longer one is open.
const longestLine = 10_000

// deepest is how far scripts may lie within each other, as in sh -c "sh -c …".
const deepest = 8

// readLine finds what a line may run. /bin/sh may be one of several shells, so the
// line is read both as POSIX has it and as bash does.
func readLine(text string) commandLine {
	l := commandLine{read: map[string]bool{}}
	l.add(text, 0)
	if l.counts && l.untold { // bash evaluates what a variable holds: x='a[$(rm y)]'; echo $((x))
		l.open = "it calculates with what is not known before"
	}
	l.runWritten()
	return l
}

// runWritten notes that a line runs a file that it has written itself.
func (l *commandLine) runWritten() {
	for _, c := range l.commands {
		for _, w := range c.words[:min(len(c.words), 3)] { // ./FILE, sh FILE, sh -x FILE
			if slices.ContainsFunc(l.files, func(f redirection) bool { return f.writes && f.runBy(c, w) }) {
				l.open = "it may run a file that it writes"
			}
		}
	}
}

// runBy reports whether a command has a file among its words and runs files.
func (f redirection) runBy(c simpleCommand, w word) bool {
	name := path.Base(c.words[0].text)
	runs := strings.Contains(c.words[0].text, "/") || slices.Contains(shells, name) || name == "." || name == "source"
	return runs && (f.path.kind != known || w.kind != known || path.Clean(f.path.text) == path.Clean(w.text))
}

var errDeep = errors.New("it is nested too deeply to be judged")

// add adds what a script runs.
func (l *commandLine) add(text string, depth int) {
	switch {
	case len(text) > longestLine:
		l.open = fmt.Sprintf("it has more than %d characters", longestLine)
		return
	case depth > deepest:
		l.open = errDeep.Error()
		return
	case l.read[text]: // by the other reading of what it stands in
		return
	}
	l.read[text] = true
	var failed []error
	for _, variant := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
		if err != nil {
			failed = append(failed, err)
			continue
		}
		l.walk(file, depth)
	}
	if len(failed) == 2 {
		l.open = "it is no shell command that can be read: " + failed[1].Error()
	}
}

// walk looks at each statement of a script.
func (l *commandLine) walk(file *syntax.File, depth int) {
	piped := map[*syntax.Stmt]bool{} // whose input is a pipe's end
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				piped[n.Y] = true
			}
		case *syntax.Stmt:
			for _, r := range n.Redirs {
				l.redirect(r)
			}
			if call, ok := n.Cmd.(*syntax.CallExpr); ok {
				l.call(call, n, piped[n], depth)
			}
		case *syntax.DeclClause:
			c := simpleCommand{words: []word{{text: n.Variant.Value}}}
			for _, assign := range n.Args {
				c.set(assign)
			}
			l.run(c, stdin{}, depth)
		case *syntax.CoprocClause, *syntax.TestDecl:
			l.open = "it has a construct that is not judged"
		default:
			l.evaluate(node)
		}
		return true
	})
}

// set notes a variable that is set for a command.
func (c *simpleCommand) set(assign *syntax.Assign) {
	if assign.Name != nil && !assign.Naked {
		c.sets = append(c.sets, assign.Name.Value)
		c.values = append(c.values, readWord(assign.Value))
	} else if assign.Value != nil {
		c.words = append(c.words, readWord(assign.Value))
	}
}

// redirect notes the file of a redirection.
func (l *commandLine) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") { // {NAME}>FILE sets NAME
		l.keep(simpleCommand{sets: []string{strings.Trim(r.N.Value, "{}")}})
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
	case syntax.DplIn, syntax.DplOut: // 2>&1; a name behind it is a file
		if target := readWord(r.Word); target.kind != known || strings.Trim(target.text, "0123456789-") != "" {
			l.files = append(l.files, redirection{target, true})
		}
	default:
		w := readWord(r.Word)
		talks := strings.HasPrefix(w.text, "/dev/tcp/") || strings.HasPrefix(w.text, "/dev/udp/") // in bash, a connection
		l.files = append(l.files, redirection{w, r.Op != syntax.RdrIn || talks})
	}
}

// call notes a command, and what it runs in turn.
func (l *commandLine) call(call *syntax.CallExpr, stmt *syntax.Stmt, piped bool, depth int) {
	var c simpleCommand
	for _, assign := range call.Assigns {
		c.set(assign)
	}
	for _, arg := range call.Args {
		c.words = append(c.words, readWord(arg))
	}
	l.run(c, input(stmt, piped), depth)
}

// stdin is what a command reads.
type stdin struct {
	text  string
	given bool // by the line itself
	piped bool // from another command
}

// input finds what a statement reads.
func input(stmt *syntax.Stmt, piped bool) stdin {
	in := stdin{piped: piped}
	for _, r := range stmt.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if text, ok := literal(r.Hdoc); ok && (isQuoted(r.Word) || !strings.Contains(text, `\`)) {
				in = stdin{text: text, given: true}
			} else {
				in = stdin{piped: true}
			}
		case syntax.WordHdoc:
			if w := readWord(r.Word); w.kind == known {
				in = stdin{text: w.text, given: true}
			} else {
				in = stdin{piped: true}
			}
		case syntax.RdrIn:
			in = stdin{piped: true} // a file's
		}
	}
	return in
}

// literal returns a word in which nothing is expanded.
func literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", true
	}
	var b strings.Builder
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	return b.String(), true
}

// isQuoted reports whether the end of a document is quoted, so that the document is
// read as it is.
func isQuoted(end *syntax.Word) bool {
	text, ok := literal(end)
	return !ok || strings.Contains(text, `\`)
}

// keep adds a command that was not seen yet: both readings of a line mostly agree.
func (l *commandLine) keep(c simpleCommand) {
	if slices.ContainsFunc(c.sets, func(name string) bool { return slices.Contains(evaluated, name) }) {
		l.open = "it sets what a shell runs"
	}
	if !slices.ContainsFunc(l.commands, c.equal) {
		l.commands = append(l.commands, c)
	}
}

func (c simpleCommand) equal(other simpleCommand) bool {
	return slices.Equal(c.words, other.words) && slices.Equal(c.sets, other.sets) && slices.Equal(c.values, other.values) && c.more == other.more && c.only == other.only
}

// String is the command as it can be shown; … is what is not known.
func (c simpleCommand) String() string {
	var all []string
	for _, name := range c.sets {
		all = append(all, name+"=…")
	}
	for _, w := range c.words {
		all = append(all, w.String())
	}
	if c.more {
		all = append(all, "…")
	}
	return strings.Join(all, " ")
}

// String is the word as a shell could be given it.
func (w word) String() string {
	if w.kind != known {
		return "…"
	}
	quoted, err := syntax.Quote(w.text, syntax.LangBash)
	if err != nil {
		return "…"
	}
	return quoted
}

// readWord reads a word as far as its text tells.
func readWord(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	if w.Lit() == "[" {
		return word{text: "["} // the program
	}
	r := wordReader{}
	for _, part := range w.Parts {
		r.part(part)
	}
	text := r.text.String()
	switch {
	case r.brace && (strings.Contains(text, ",") || strings.Contains(text, "..")): // {} and {a} are themselves in all shells
		return word{kind: many}
	case r.kind == known && isHome(w):
		return word{kind: one}
	case r.kind == many && r.glob && !r.open:
		return word{text: text, kind: many, glob: true}
	case r.kind != known:
		return word{kind: r.kind}
	}
	return word{text: text}
}

// isHome reports whether a word is ~, ~+ or the like alone: what a variable holds.
func isHome(w *syntax.Word) bool {
	if len(w.Parts) == 0 {
		return false
	}
	first, ok := w.Parts[0].(*syntax.Lit)
	return ok && strings.HasPrefix(first.Value, "~") && !strings.Contains(first.Value, "/")
}

type wordReader struct {
	text  strings.Builder
	kind  wordKind
	brace bool // it has one without quotes
	glob  bool // it has a pattern of files
	open  bool // it has something else that is not known
}

// become notes that the word is not known.
func (r *wordReader) become(kind wordKind) { r.kind, r.open = max(r.kind, kind), true }

func (r *wordReader) part(part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		r.literal(p.Value)
	case *syntax.SglQuoted:
		if p.Dollar { // some shells have escapes there, others a dollar
			r.become(one)
		}
		r.text.WriteString(p.Value)
	case *syntax.DblQuoted:
		r.quoted(p)
	default:
		r.become(many)
	}
}

// literal reads what stands without quotes: a backslash quotes one character, and
// what makes names of files or several words is not known.
func (r *wordReader) literal(text string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i < len(text) && text[i] != '\n' {
				r.text.WriteByte(text[i])
			}
		case '*', '?', '[':
			r.kind, r.glob = many, true
			r.text.WriteByte(c)
		case '{':
			r.brace = true
			r.text.WriteByte(c)
		default:
			r.text.WriteByte(c)
		}
	}
}

// quoted reads what stands in double quotes.
func (r *wordReader) quoted(q *syntax.DblQuoted) {
	if q.Dollar {
		r.become(one)
	}
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			r.become(one)
			if p, ok := part.(*syntax.ParamExp); ok && (!p.Short || p.Param.Value == "@") {
				r.become(many) // "$@", "${a[@]}" and such are several words
			}
			continue
		}
		text := lit.Value
		for i := 0; i < len(text); i++ {
			if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
				if i++; text[i] == '\n' {
					continue
				}
			}
			r.text.WriteByte(text[i])
		}
	}
}
