package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/permission"
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
	for again := 0; err == nil && again < 2 && unclear(strings.TrimSpace(line), q.Rule); again++ {
		fmt.Fprint(a.out, explanation(q.Rule))
		line, err = a.keys.line(ctx)
	}
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

// nearlyYes are words that may be meant as a yes, and are none.
var nearlyYes = regexp.MustCompile(`^(y|yes|yep|yeah|yup|ok|okay|k|sure|fine|go|allow)\b`)

// unclear reports whether a line asks what there is to say, is a yes that is not on offer,
// or may be one: neither a yes nor a word to the model should come of it.
func unclear(line, rule string) bool {
	switch word := strings.ToLower(line); word {
	case "y", "yes":
		return false
	case "?", "h", "help":
		return true
	case "s", "session", "a", "always":
		return rule == ""
	default:
		return nearlyYes.MatchString(word)
	}
}

// explanation says what there is to say, and asks again.
func explanation(rule string) string {
	longer := "There is no yes for longer: this is for one call. "
	if rule != "" {
		longer = "s is a yes to " + printable(rule) + " in this session, a always in this project. "
	}
	return "  y lets this call run. " + longer + "n refuses it, and so does anything else, which the model is told.\n  y or n: "
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
