package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/text/width"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
)

// What is shown of a text: lines, and the columns of each. A longer line goes on in the
// next, so that a terminal of 80 columns breaks none by itself.
const (
	maxShown = 40
	maxWidth = 72
)

// question is what a person is shown.
func (a *asker) question(q permission.Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "? %s, since %s\n", q.Tool, strings.TrimSuffix(strings.TrimSuffix(q.Why, " asks"), ","))
	for line := range strings.Lines(a.target(q)) {
		fmt.Fprintf(&b, "    %s", line)
	}
	fmt.Fprintf(&b, "  y yes")
	if q.Rule != "" {
		fmt.Fprintf(&b, " · s yes to %s in this session · a yes to it always in this project", q.Rule)
	}
	fmt.Fprintf(&b, " · n no, or say why not: ")
	return b.String()
}

// target is what a call is about: its command, its change to a file, or what it was
// given. Other tools than Wharf's own may name anything path or command, so all of that
// is shown.
func (a *asker) target(q permission.Question) string {
	var arguments struct {
		Command string `json:"command"`
		Dir     string `json:"dir"`
		Keep    bool   `json:"keep"`
		Path    string `json:"path"`
		Session string `json:"session_id"`
		Text    string `json:"text"`
		Close   bool   `json:"close"`
		Kill    bool   `json:"kill"`
		Patch   string `json:"patch"`
		URL     string `json:"url"`
		Query   string `json:"query"`
		Content string `json:"content"`
		Old     string `json:"old_text"`
		New     string `json:"new_text"`
	}
	if json.Unmarshal(q.Arguments, &arguments) != nil {
		return shown(string(q.Arguments))
	}
	switch q.Tool {
	case "exec":
		text := shown(arguments.Command)
		if arguments.Dir != "" {
			text += shown("in the folder " + named(arguments.Dir))
		}
		if arguments.Keep {
			text += "kept running beyond this turn\n"
		}
		return text
	case "write_file":
		return a.change(arguments.Path, a.content(arguments.Path), arguments.Content)
	case "edit_file":
		return a.change(arguments.Path, arguments.Old, arguments.New)
	case "apply_patch":
		return shown(arguments.Patch)
	case "web_fetch":
		return shown(arguments.URL)
	case "web_search":
		return shown(arguments.Query)
	case "read_file", "list_dir":
		return shown(named(arguments.Path))
	case "write_stdin":
		return toSession(arguments.Session, arguments.Text, arguments.Close, arguments.Kill)
	}
	return shown(string(q.Arguments))
}

// toSession is what write_stdin does to a session.
func toSession(session, text string, closes, kills bool) string {
	what := shown("in the session " + named(session))
	if text != "" {
		what += shown(keys(text))
	}
	switch {
	case kills:
		what += "which is ended\n"
	case closes:
		what += "whose input ends then\n"
	}
	return what
}

// named returns the name of a file or folder, quoted if something in it could pass for
// more than a name.
func named(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// keys returns what is typed, with names for what cannot be seen.
func keys(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString("[Enter]\n")
		case r == '\r':
			b.WriteString("[Return]")
		case r == '\t':
			b.WriteString("[Tab]")
		case r == '\x1b':
			b.WriteString("[Esc]")
		case r == '\x7f':
			b.WriteString("[Backspace]")
		case r < ' ':
			fmt.Fprintf(&b, "[Ctrl-%c]", r+'@')
		case r != ' ' && !unicode.IsPrint(r):
			fmt.Fprintf(&b, "[%U]", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// manyBlanks could move what stands behind them out of sight.
var manyBlanks = regexp.MustCompile(`[\s\p{Z}]{40,}`)

// shown returns a text so that its beginning and its end can be seen, and what is left
// out is said.
func shown(text string) string {
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		rows = append(rows, broken(manyBlanks.ReplaceAllStringFunc(line, func(blanks string) string {
			return fmt.Sprintf(" … %s … ", count(len([]rune(blanks)), "blank"))
		}))...)
	}
	if left := len(rows) - maxShown; left > 0 {
		note := fmt.Sprintf("… %s left out here …", count(left, "line"))
		rows = slices.Concat(rows[:maxShown/2], []string{note}, rows[len(rows)-maxShown/2:])
	}
	return strings.Join(rows, "\n") + "\n"
}

// broken breaks a line into rows, the further ones with a mark in front.
func broken(line string) (rows []string) {
	var row strings.Builder
	used := 0
	for _, r := range line {
		if used += columns(r); used > maxWidth {
			rows = append(rows, row.String())
			row.Reset()
			row.WriteString("↪ ")
			used = 2 + columns(r)
		}
		row.WriteRune(r)
	}
	return append(rows, row.String())
}

// columns is how many columns of a terminal a character takes, at most.
func columns(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case r == '\t':
		return 8
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// content is what a file holds now, as far as it can be shown.
func (a *asker) content(path string) string {
	root, err := sandbox.OpenRoot(a.workspace)
	if err != nil {
		return ""
	}
	defer root.Close()
	text, _, err := root.ReadAll(path, 1<<20)
	if err != nil {
		return ""
	}
	return string(text)
}

// change shows what becomes of a file.
func (a *asker) change(path, before, after string) string {
	lines := strings.SplitAfter(string(diff.Diff("before", []byte(before), "after", []byte(after))), "\n")
	if len(lines) > 3 {
		lines = lines[3:] // its head
	}
	return shown(named(path)) + shown(strings.Join(lines, ""))
}
