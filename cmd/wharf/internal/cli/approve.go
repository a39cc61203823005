package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
)

// asker asks whoever sits at the terminal. It is safe for concurrent use: one
// question waits for the other.
type asker struct {
	keys      *keyboard
	out       io.Writer
	workspace string
	remember  func(rule string) error // for the project
	ready     <-chan struct{}         // what came before the question has been shown; nil: it has at once
	mu        sync.Mutex
}

var _ engine.Approver = (*asker)(nil)

// newApprover returns who asks on this process's terminal; nil if nobody sits there,
// or nothing is ever to be asked.
func newApprover(io stdio, p plan, keys *keyboard, ready <-chan struct{}) engine.Approver {
	if p.cfg.Approve == string(permission.ApproveNever) || keys == nil || !isTerminal(io.err) {
		return nil
	}
	return &asker{keys: keys, ready: ready, out: io.err, workspace: p.workspace, remember: func(rule string) error {
		return remember(p.folders, p.workspace, rule)
	}}
}

// Approve shows a call and reads what is to become of it. An empty line, and
// the end of the input, is a no.
func (a *asker) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready != nil {
		select {
		case <-a.ready:
		case <-ctx.Done():
			return permission.Answer{}, context.Cause(ctx)
		}
	}
	a.keys.discard()
	fmt.Fprint(a.out, "\r\x1b[K"+printable(a.question(q)))
	line, err := a.keys.line(ctx)
	if err != nil {
		fmt.Fprintln(a.out)
		return permission.Answer{}, err
	}
	answer := readAnswer(strings.TrimSpace(line), q.Rule)
	if answer.Scope == permission.Project {
		if err := a.remember(q.Rule); err != nil {
			fmt.Fprintf(a.out, "wharf: it is allowed for this session alone: %s\n", printable(err.Error()))
			answer.Scope = permission.Session
		}
	}
	return answer, nil
}

// readAnswer reads a line: anything but a clear yes is a no, and more than a
// letter is a word to the model.
func readAnswer(line, rule string) permission.Answer {
	switch word := strings.ToLower(line); {
	case word == "y" || word == "yes":
		return permission.Answer{Allowed: true}
	case rule != "" && (word == "s" || word == "session"):
		return permission.Answer{Allowed: true, Scope: permission.Session}
	case rule != "" && (word == "a" || word == "always"):
		return permission.Answer{Allowed: true, Scope: permission.Project}
	case word == "" || word == "n" || word == "no" || word == "s" || word == "a":
		return permission.Answer{}
	}
	return permission.Answer{Message: line}
}

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

// What is shown of a text: lines, and characters of each.
const (
	maxShown = 40
	maxWidth = 400
)

// target is what a call is about: its command, its change to a file, or what it was
// given. Other tools than Wharf's own may name anything path or command, so all of that
// is shown.
func (a *asker) target(q permission.Question) string {
	var arguments struct {
		Command string `json:"command"`
		Dir     string `json:"dir"`
		Keep    bool   `json:"keep"`
		Path    string `json:"path"`
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
			text += "in the folder " + shown(arguments.Dir)
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
		return shown(arguments.Path)
	}
	return shown(string(q.Arguments))
}

// manyBlanks could move what stands behind them out of sight.
var manyBlanks = regexp.MustCompile(`[\s\p{Z}]{40,}`)

// shown returns a text so that its beginning and its end can be seen, and what is left
// out is said.
func shown(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if left := len(lines) - maxShown; left > 0 {
		note := fmt.Sprintf("… %s left out here …", count(left, "line"))
		lines = slices.Concat(lines[:maxShown/2], []string{note}, lines[len(lines)-maxShown/2:])
	}
	for i, line := range lines {
		line = manyBlanks.ReplaceAllStringFunc(line, func(blanks string) string {
			return fmt.Sprintf(" … %s … ", count(len([]rune(blanks)), "blank"))
		})
		if runes := []rune(line); len(runes) > maxWidth {
			left := len(runes) - maxWidth
			line = fmt.Sprintf("%s … %s left out here … %s", string(runes[:maxWidth/2]), count(left, "character"), string(runes[len(runes)-maxWidth/2:]))
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n") + "\n"
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
	lines := strings.SplitAfter(string(diff.Diff(path, []byte(before), path, []byte(after))), "\n")
	if len(lines) > 3 {
		lines = lines[3:] // its head
	}
	return shown(path) + shown(strings.Join(lines, ""))
}
