package cli

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/abi"
)

// gate leads extensions to the engine, which is made after they have joined:
// until then nothing goes through.
type gate struct{ engine atomic.Pointer[engine.Engine] }

var _ host.Gate = (*gate)(nil)

var errNotYet = errors.New("the session has not begun yet")

// Call runs a tool for an extension.
func (g *gate) Call(ctx context.Context, extension string, call tool.Call) (tool.Result, error) {
	e := g.engine.Load()
	if e == nil {
		return tool.Result{}, errNotYet
	}
	return e.CallTool(ctx, extension, call)
}

// Info describes the session.
func (g *gate) Info() abi.SessionInfo {
	e := g.engine.Load()
	if e == nil {
		return abi.SessionInfo{}
	}
	i := e.Info()
	return abi.SessionInfo{ID: string(i.ID), Cwd: i.Cwd, Model: i.Model, Turn: i.Turn}
}

// Messages returns what the model gets to see.
func (g *gate) Messages() []session.Message {
	e := g.engine.Load()
	if e == nil {
		return nil
	}
	return e.Messages()
}

// Tokens returns how many tokens an extension has spent.
func (g *gate) Tokens(extension string) int64 {
	e := g.engine.Load()
	if e == nil {
		return 0
	}
	return e.Tokens(extension)
}

// Complete asks the model for an extension.
func (g *gate) Complete(ctx context.Context, extension string, call session.CallID, question abi.CompleteRequest, reserved int64) (abi.CompleteResponse, error) {
	e := g.engine.Load()
	if e == nil {
		return abi.CompleteResponse{}, errNotYet
	}
	answer, err := e.Complete(ctx, engine.Completion{
		By: extension, CallID: call, Prompt: question.Prompt, MaxTokens: question.MaxTokens, Reserved: reserved,
	})
	return abi.CompleteResponse{
		Text:  answer.Text,
		Usage: abi.Usage{InputTokens: answer.Usage.InputTokens, OutputTokens: answer.Usage.OutputTokens},
	}, err
}
