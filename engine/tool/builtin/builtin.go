// Package builtin holds the native tools: reading, finding and changing files
// in the workspace, running commands, and reading what is on the web.
//
// All file tools reach the workspace through [sandbox.Root], which keeps them
// in it and off the protected paths; exec runs under [sandbox.Sandbox]. A file
// that changed since the model last read it is not written over. What the web tools reach
// passes package egress.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// Runner runs commands, confined; *sandbox.Sandbox does.
type Runner interface {
	Run(context.Context, sandbox.Command) (sandbox.Result, error)
	Start(context.Context, sandbox.Command) (*sandbox.Process, error)
}

// Config is what the tools of a session work with. The zero Config is for tools that
// are looked at, and not run.
type Config struct {
	Root   *sandbox.Root          // stays the caller's to close
	Box    Runner                 // of commands
	Hidden func(path string) bool // what is not found in a folder by grep and find_files, by its path relative to the workspace; nil hides nothing
	Web    Web
}

// Tools returns the native tools of one session, in a constant order, for a
// registry that is closed at the session's end.
func Tools(cfg Config) []tool.Tool {
	if cfg.Hidden == nil {
		cfg.Hidden = func(string) bool { return false }
	}
	f := &files{root: cfg.Root, hidden: cfg.Hidden, seen: map[string]digest{}}
	all := &sessions{box: cfg.Box}
	return []tool.Tool{
		f.readFile(), f.writeFile(), f.editFile(), f.applyPatch(), f.listDir(), f.findFiles(), f.grep(),
		newExec(all), newWriteStdin(all), newListSessions(all), cfg.Web.fetchTool(), cfg.Web.searchTool(), updateGoal(),
	}
}

// function is a tool made of a Go function whose arguments are A.
type function[A any] struct {
	spec tool.Spec
	run  func(context.Context, A) (tool.Result, error)
}

func (f function[A]) Spec() tool.Spec { return f.spec }

func (f function[A]) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, bad := decode[A](call)
	if bad != nil {
		return *bad, nil
	}
	return f.run(ctx, args)
}

// decode reads a call's arguments, or says why they do not fit.
func decode[A any](call tool.Call) (args A, bad *tool.Result) {
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // a schema's integer may be written 1.0
			err = fmt.Errorf("%q: got %s, want %s", wrong.Field, wrong.Value, wrong.Type)
		}
		bad = &tool.Result{Content: fmt.Sprintf("the arguments of %s do not fit: %v", call.Name, err), IsError: true, Code: tool.InvalidArgs}
	}
	return args, bad
}

// define makes a tool. schema is its input schema's properties and what else
// belongs beside them.
func define[A any](name, description, schema string, effect permission.Effect, timeout time.Duration,
	run func(context.Context, A) (tool.Result, error),
) tool.Tool {
	return function[A]{
		spec: tool.Spec{
			Tool: session.Tool{
				Name: name, Description: description,
				InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,` + schema + `}`),
			},
			Effect: effect, Timeout: timeout, Parallel: effect == permission.Reads,
		},
		run: run,
	}
}

// plainName returns a file's name as it is, or quoted if it could be taken for more
// than a name: a line break in it must not forge a line.
func plainName(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// text returns a result that is only its content.
func text(format string, args ...any) tool.Result {
	return tool.Result{Content: fmt.Sprintf(format, args...)}
}
