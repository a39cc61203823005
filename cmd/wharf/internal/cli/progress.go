package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// progress shows on standard error what an agent does, a line for each call.
// What a user must not miss (denials, failures of hooks, a weaker sandbox) is
// shown even where the rest is not.
type progress struct {
	w        io.Writer
	verbose  bool
	live     bool // the last line can be overwritten
	streamed bool // somebody else shows what the model says
	color    bool
	calls    map[session.CallID]session.ToolCall // under way
	settle   func()                              // ends what still counts down; nil: nothing does
}

func newProgress(w io.Writer, verbose bool) *progress {
	terminal := isTerminal(w)
	return &progress{
		w: w, verbose: verbose || terminal, live: terminal && os.Getenv("TERM") != "dumb",
		color: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		calls: map[session.CallID]session.ToolCall{},
	}
}

// The colours of the view.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p *progress) paint(color, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// notice shows a line that must not be missed.
func (p *progress) notice(format string, args ...any) {
	fmt.Fprintf(p.w, "wharf: %s\n", printable(fmt.Sprintf(format, args...)))
}

// event shows an event of the log.
func (p *progress) event(r session.Record) {
	if p.settle != nil {
		p.settle()
		p.settle = nil
	}
	switch e := r.Event.(type) {
	case session.AssistantMessage:
		if p.verbose && !p.streamed && len(e.Calls) > 0 && strings.TrimSpace(e.Text) != "" {
			fmt.Fprintf(p.w, "%s\n", printable(strings.TrimSpace(e.Text)))
		}
	case session.ToolCall:
		p.calls[e.CallID] = e
		if p.live { // overwritten by the call's result
			fmt.Fprintf(p.w, "… %s\r", p.paint(dim, oneLine(e.Name+" "+summary(e.Arguments), 70)))
		}
	case session.ToolResult:
		p.result(p.calls[e.CallID], e)
		delete(p.calls, e.CallID)
	case session.RequestRetried:
		p.retried(e)
	case session.CompactionStarted:
		if p.verbose {
			fmt.Fprintln(p.w, p.paint(dim, fmt.Sprintf("  the conversation is long: %s are summarized", count(e.Messages, "earlier message"))))
		}
	case session.CompactionEnded:
		if e.By == "fallback" {
			p.notice("the model gave no summary of what was before, so an extract has to do: %s", e.Error)
		}
	case session.ContextReplaced:
		p.madeRoom(e)
	case session.HookVerdict:
		if p.verbose && e.Replaced != nil {
			fmt.Fprintln(p.w, p.paint(dim, fmt.Sprintf("  the extension %s changed %s", printable(e.Extension), changed[hook.Point(e.Point)])))
		}
	case session.GoalChanged:
		p.goal(e)
	case session.HookFailed:
		p.notice("extension %q failed at %s (%s): %s", e.Extension, e.Point, e.OnFailure, e.Failure)
	case session.ExtensionQuarantined:
		p.notice("extension %q is quarantined for this session: %s", e.Extension, e.Reason)
	case session.ExtensionUsed:
		if p.verbose && !e.Allowed {
			fmt.Fprintln(p.w, p.paint(dim, "  "+oneLine(fmt.Sprintf("%s of %s was refused: %s", e.Operation, e.Extension, e.Reason), 240)))
		}
	case session.ExtensionLogged:
		if p.verbose {
			fmt.Fprintln(p.w, p.paint(dim, fmt.Sprintf("  [%s %s] %s", e.Extension, e.Level, oneLine(e.Text, 160))))
		}
	}
}

// goal tells how it stands with the turn's goal.
func (p *progress) goal(e session.GoalChanged) {
	switch {
	case e.Status == "reached" || e.Status == "given_up" || e.Status == "ended":
		p.notice("the goal is %s: %s", goalStatus(e), e.Note)
	case p.verbose:
		fmt.Fprintln(p.w, p.paint(dim, fmt.Sprintf("  goal: round %d of %d", e.Round, e.Rounds)))
	}
}

// goalStatus says in words how it stands with a goal.
func goalStatus(e session.GoalChanged) string {
	switch e.Status {
	case "given_up":
		return "given up"
	case "ended":
		return "not reached"
	case "round":
		return "not reached yet"
	}
	return e.Status
}

// madeRoom tells of what requests are sent without from here on.
func (p *progress) madeRoom(e session.ContextReplaced) {
	n, what := len(e.Targets), ""
	switch e.By {
	case governance.ByInFlight:
		what = count(n, "result") + " of this turn"
	case governance.BySnip:
		what = count(n, "old message") + " or results"
	}
	if p.verbose && what != "" {
		fmt.Fprintln(p.w, p.paint(dim, "  the conversation is long, so it goes on without "+what))
	}
}

// retried tells of a request that failed, and counts down until it is sent again.
func (p *progress) retried(e session.RequestRetried) {
	if e.Model != "" {
		p.notice("the request failed, and the model %s is asked instead: %s", e.Model, e.Cause)
		return
	}
	wait := time.Duration(e.DelayMS) * time.Millisecond
	if wait == 0 { // it is another request now
		p.notice("the request failed and is sent again without what was too much: %s", e.Cause)
		return
	}
	p.notice("the request failed: %s (attempt %s); again in %v", e.Cause, ofAttempts(e), wait.Round(100*time.Millisecond))
	if !p.live {
		return
	}
	end, ended := make(chan struct{}), make(chan struct{})
	p.settle = func() {
		close(end)
		<-ended
	}
	go func() {
		defer close(ended)
		p.countDown(time.Now().Add(wait), end)
	}()
}

// ofAttempts says which attempt failed, of how many if the log says.
func ofAttempts(e session.RequestRetried) string {
	if e.Attempts == 0 {
		return strconv.Itoa(e.Attempt)
	}
	return fmt.Sprintf("%d of %d", e.Attempt, e.Attempts)
}

// countDown shows a line that says how long it is until then.
func (p *progress) countDown(then time.Time, end <-chan struct{}) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	defer fmt.Fprint(p.w, "\r\x1b[K")
	for left := time.Until(then); left > 0; left = time.Until(then) {
		fmt.Fprintf(p.w, "\r\x1b[K%s", p.paint(dim, fmt.Sprintf("… again in %v", left.Round(time.Second))))
		select {
		case <-ticks.C:
		case <-end:
			return
		}
	}
}

// changed says what an extension changes at a hook point.
var changed = map[hook.Point]string{
	hook.UserPromptSubmit:  "the prompt",
	hook.BeforeExecuteTool: "the call, or answered it",
	hook.AfterExecuteTool:  "the result",
	hook.FinalizeContent:   "the final answer",

	hook.BeforeRequest:      "the request, or answered it",
	hook.OnExecuteToolError: "the error",
}

// result shows a call that is over.
func (p *progress) result(call session.ToolCall, result session.ToolResult) {
	what := call.Name + " " + summary(call.Arguments)
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	if tool.Code(result.Code) == tool.Denied {
		label := "denied: "
		if strings.HasPrefix(result.Content, hook.Withheld) { // it ran, and only what came of it is kept back
			label = "withheld: "
		}
		why := strings.ReplaceAll(strings.TrimSpace(result.Content), "\n", "; ")
		fmt.Fprintf(p.w, "%s %s\n", p.paint(yellow, "✗"), oneLine(label+what+": "+why, 400))
		return
	}
	if !p.verbose {
		return
	}
	mark, note := p.paint(green, "✓"), ""
	if result.IsError {
		mark, note = p.paint(red, "✗"), ": "+oneLine(firstLine(result.Content), 120)
	}
	took := ""
	if result.DurationMS > 0 {
		took = " " + p.paint(dim, (time.Duration(result.DurationMS)*time.Millisecond).String())
	}
	fmt.Fprintf(p.w, "%s %s%s%s\n", mark, oneLine(what, 120), took, note)
}

// summary returns the argument of a call that tells most about it.
func summary(arguments string) string {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return arguments
	}
	for _, key := range []string{"command", "pattern", "path", "url", "query", "name"} {
		if text, ok := args[key].(string); ok {
			return text
		}
	}
	if len(args) == 0 {
		return ""
	}
	return arguments
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
