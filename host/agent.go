package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// What an extension has the agent do: it passes the hooks of other extensions,
// the permission rules and the sandbox.
var (
	toolCall = judged(define("tool.call", needTool, callTool))
	execRun  = judged(define("exec.run", needExec, runCommand))
)

func needTool(in abi.ToolCallRequest) (capability.Need, error) {
	need, err := capability.Tool(in.Name)
	if len(in.Arguments) > 0 {
		need.Target += " " + string(in.Arguments) // whole, or one could be hidden behind another
	}
	return need, err
}

func callTool(ctx context.Context, x *instance, in abi.ToolCallRequest) (abi.ToolCallResponse, error) {
	arguments := in.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	result, err := x.request(ctx, in.Name, arguments)
	return abi.ToolCallResponse{Content: result.Content, IsError: result.IsError, Code: string(result.Code)}, err
}

func needExec(in abi.ExecRequest) (capability.Need, error) {
	if limit := maxTimeout.Milliseconds(); in.TimeoutMS < 0 || in.TimeoutMS > limit {
		return capability.Need{}, fmt.Errorf(`"timeout_ms" must be 0 to %d`, limit)
	}
	return capability.Exec(in.Command)
}

// execArguments are those of the tool exec.
type execArguments struct {
	Command string `json:"command"`
	Timeout int64  `json:"timeout_seconds,omitempty"`
}

// runCommand runs a command by the tool exec. Its time limit is in whole
// seconds there, so the rest of it is the context's.
func runCommand(ctx context.Context, x *instance, in abi.ExecRequest) (abi.ExecResponse, error) {
	limit := time.Duration(in.TimeoutMS) * time.Millisecond
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errCommandTime)
		defer cancel()
	}
	seconds := int64((limit + time.Second - 1) / time.Second)
	result, err := x.request(ctx, "exec", execArguments{in.Command, seconds})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errCommandTime):
		return abi.ExecResponse{}, fmt.Errorf("%w of %v", errCommandTime, limit)
	case err != nil:
		return abi.ExecResponse{}, err
	case result.Code != "":
		return abi.ExecResponse{}, errors.New(result.Content)
	}
	return commandOutcome(result)
}

var errCommandTime = errors.New("the command was ended after its time limit")

// commandOutcome reads how a command ended. Where a hook put something else in
// the place of its output, or of the command, that is all there is.
func commandOutcome(result tool.Result) (abi.ExecResponse, error) {
	var out abi.ExecResponse
	if result.Structured != "" {
		err := json.NewDecoder(bytes.NewReader([]byte(result.Structured))).Decode(&out)
		return out, err
	}
	out.Stdout = result.Content
	if result.IsError {
		out.Exit = 1
	}
	return out, nil
}

// cut cuts a text to what is kept of it.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xc0 == 0x80 { // not within a character
		limit--
	}
	return text[:limit] + "…"
}
