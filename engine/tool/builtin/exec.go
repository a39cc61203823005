package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/tool"
)

// The limits of exec (SANDBOX.md 3.8), and of what becomes a session.
const (
	execDefault    = 120 * time.Second
	execCeiling    = 600 * time.Second
	keptDefault    = time.Hour
	yieldDefault   = 10 * time.Second
	terminalHeight = 30
	terminalWidth  = 120
)

type execArgs struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_seconds"`
	Dir     string `json:"dir"`
	Yield   int    `json:"yield_ms"`
	TTY     bool   `json:"tty"`
	Keep    bool   `json:"keep"`

	AllowNet []string `json:"allow_net"`
	Escalate string   `json:"escalate"`
}

// session reports whether the command is not simply waited for.
func (a execArgs) session() bool { return a.Yield > 0 || a.TTY || a.Keep }

// yield is for how long it is waited for.
func (a execArgs) yield() time.Duration {
	return cmp.Or(time.Duration(a.Yield)*time.Millisecond, yieldDefault)
}

// limit is how long the command may run.
func (a execArgs) limit() time.Duration {
	switch limit := time.Duration(a.Timeout) * time.Second; {
	case limit > 0:
		return limit
	case a.Keep:
		return keptDefault
	case a.session():
		return execCeiling
	}
	return execDefault
}

// execTool runs commands. Its function has the spec alone.
type execTool struct {
	function[execArgs]
	sessions *sessions
}

func newExec(all *sessions) tool.Tool {
	described := define[execArgs]("exec",
		"Run a shell command in the workspace, confined, and get its output, standard output and error together. It has nothing to read; what it leaves running ends with it. Of long output the beginning and the end are kept. "+
			"For what takes long, serves, or wants to be talked to, give yield_ms: a command that still runs then becomes a session for write_stdin, and ends with the turn.",
		`"properties":{
			"command":{"type":"string","minLength":1,"description":"for sh -c"},
			"timeout_seconds":{"type":"integer","minimum":1,"maximum":14400,"description":"120 if absent, 600 for a session and 3600 for a kept one; above 600 only for a kept one"},
			"dir":{"type":"string","description":"the folder to run in, relative to the workspace"},
			"yield_ms":{"type":"integer","minimum":250,"maximum":30000,"description":"wait only so long, then go on beside it, its input open; absent: wait for the end"},
			"tty":{"type":"boolean","description":"run it at a terminal, as REPLs and prompts want it; yield_ms is 10000 if absent"},
			"keep":{"type":"boolean","description":"it may outlive the turn, as a server does; yield_ms is 10000 if absent"},
			"allow_net":{"type":"array","items":{"type":"string"},"maxItems":16,"description":"hosts that it needs, such as pypi.org or *.golang.org:443; the user is asked"},
			"escalate":{"type":"string","minLength":1,"maxLength":500,"description":"only for a command that the sandbox refused something and that cannot do without it: why; the user is asked, once"}
		},"required":["command"]`,
		// The tool's own limit is the one that counts; the engine's is a backstop.
		permission.Executes, execCeiling+time.Minute, nil)
	return execTool{described.(function[execArgs]), all}
}

// EndTurn ends the sessions that are not kept.
func (e execTool) EndTurn(ctx context.Context) { e.sessions.endTurn(ctx) }

// Close ends all sessions.
func (e execTool) Close() error { return e.sessions.close() }

// Run runs the command. For a model, the two streams come as they were
// written; for a program they are kept apart.
func (e execTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, bad := decode[execArgs](call)
	if bad != nil {
		return *bad, nil
	}
	switch {
	case args.Timeout > int(execCeiling/time.Second) && !args.Keep:
		return invalid("timeout_seconds above 600 needs keep: what is not kept ends with the turn"), nil
	case args.session() && call.Program:
		return invalid("a program gets the whole result of a command: leave out yield_ms, tty and keep"), nil
	case args.session():
		return e.sessions.begin(ctx, args)
	}
	var out, errs headTail
	second := &out
	if call.Program {
		second = &errs
	}
	limit := args.limit()
	command, err := args.widened(sandbox.Command{Line: args.Command, Dir: args.Dir, Stdout: &out, Stderr: second, Timeout: limit})
	if err != nil {
		return tool.Result{}, err
	}
	r, err := e.sessions.box.Run(ctx, command)
	e.sessions.refused.note(args, r)
	args.tellWidened(&r)
	result, err := finished(out.String()+errs.String(), r, err, limit)
	if call.Program && err == nil && result.Code == "" {
		result.Structured, err = structured(r.ExitCode, out.kept(), errs.kept())
	}
	return result, err
}

// finished is the result of a command that has ended, with its output.
func finished(output string, r sandbox.Result, err error, limit time.Duration) (tool.Result, error) {
	ended, byUs := errors.AsType[endedBecause](err)
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return tool.Result{Content: err.Error(), IsError: true, Code: tool.SandboxUnavailable}, nil
	case byUs:
		return text("%s[ended %s; sandbox: %s]%s", output, string(ended), r.Rung, notes(r)), nil
	case err != nil:
		return tool.Result{}, err
	case r.TimedOut:
		return tool.Result{
			Content: output + fmt.Sprintf("[Ended after the %v time limit; sandbox: %s]", limit, r.Rung) + notes(r),
			IsError: true, Code: tool.TimedOut,
		}, nil
	}
	return tool.Result{
		Content: output + fmt.Sprintf("[exit status %d; sandbox: %s]", r.ExitCode, r.Rung) + notes(r),
		IsError: r.ExitCode != 0,
	}, nil
}

// invalid is the result of a call whose arguments do not go together.
func invalid(format string, args ...any) tool.Result {
	return tool.Result{Content: fmt.Sprintf(format, args...), IsError: true, Code: tool.InvalidArgs}
}

func structured(exit int, stdout, stderr string) (string, error) {
	raw, err := json.Marshal(struct {
		Exit   int    `json:"exit"`
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}{exit, stdout, stderr})
	return string(raw), err
}

// notes is what the sandbox did besides, for the model.
func notes(r sandbox.Result) string {
	var b strings.Builder
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n[sandbox: %s]", note)
	}
	for _, refused := range r.Refused {
		fmt.Fprintf(&b, "\n[%s]", refused)
	}
	return b.String()
}
