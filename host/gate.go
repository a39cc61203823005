package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/abi"
)

// Gate is the way to the engine: what an extension does on the agent's behalf
// is judged and done there, as if the model had called for it. Its methods may
// be called in the course of a turn, by the code that the turn called.
type Gate interface {
	// Call judges a call that an extension makes, and runs it if it is allowed:
	// schema, the hooks of other extensions, permission, sandbox. A refusal is a
	// result with the code [tool.Denied]; an error is what keeps it from any result.
	Call(ctx context.Context, extension string, call tool.Call) (tool.Result, error)
	// Info describes the session.
	Info() abi.SessionInfo
	// Messages returns what the model gets to see, which is only read.
	Messages() []session.Message
	// Tokens returns how many tokens an extension has spent in the session.
	Tokens(extension string) int64
	// Complete asks the model. reserved tokens count as spent until it answers.
	Complete(ctx context.Context, extension string, call session.CallID, question abi.CompleteRequest, reserved int64) (abi.CompleteResponse, error)
}

// errDenied reports what was granted to the extension, and refused by a gate of
// the engine's.
var errDenied = errors.New("denied")

func (x *instance) gate() (Gate, error) {
	if x.session.Gate == nil {
		return nil, errors.New("this host has no engine behind it")
	}
	return x.session.Gate, nil
}

// request has the engine run a tool, in the course of what runs already.
// What it refuses is an error that says so, and stands in the audit.
func (x *instance) request(ctx context.Context, name string, arguments any) (tool.Result, error) {
	gate, err := x.gate()
	if err != nil {
		return tool.Result{}, err
	}
	raw, err := encode(arguments)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	result, err := gate.Call(x.outward(ctx), x.extension.Manifest.Name, tool.Call{ID: x.using.call, Name: name, Arguments: raw})
	if err != nil {
		return tool.Result{}, err
	}
	if result.Code == tool.Denied {
		denied := &denial{result.Content}
		return tool.Result{}, errors.Join(denied, x.audit(denied))
	}
	return result, nil
}

// denial is errDenied with the gate's own words.
type denial struct{ reason string }

func (d *denial) Error() string   { return d.reason }
func (d *denial) Is(e error) bool { return e == errDenied }
