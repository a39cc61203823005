package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/abi"
)

// guestTool is a tool that a guest runs.
type guestTool struct {
	session  *Session
	manifest ManifestTool
}

// Spec describes the tool as the manifest does. It reaches only what was
// granted to its extension.
func (t *guestTool) Spec() tool.Spec {
	return tool.Spec{
		Tool: session.Tool{
			Name: t.manifest.Name, Description: t.manifest.Description, InputSchema: t.manifest.InputSchema,
		},
		Effect: permission.Reads, Timeout: t.manifest.Timeout, Parallel: t.manifest.Parallel,
	}
}

// Run calls the guest: in an instance of its own, or in the session's.
func (t *guestTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	payload, err := encode(abi.ToolRequest{Name: call.Name, Arguments: call.Arguments, CallID: string(call.ID)})
	if err != nil {
		return tool.Result{}, fmt.Errorf("tool %s: encode its arguments: %w", call.Name, err)
	}
	var result tool.Result
	ask := func(limit time.Duration, x *instance) error {
		answer, err := x.invoke(ctx, abi.CallTool, limit, payload)
		if err == nil {
			result, err = parseResult(answer)
		}
		return err
	}
	if t.manifest.PerSession {
		err = t.session.within(ctx, t.manifest.Timeout, ask)
	} else {
		err = t.session.alone(ctx, func(x *instance) error { return ask(t.manifest.Timeout, x) })
	}
	return t.outcome(ctx, result, err)
}

// outcome makes the result for the model of a call that failed.
func (t *guestTool) outcome(ctx context.Context, result tool.Result, err error) (tool.Result, error) {
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	failed := tool.Result{Content: fmt.Sprintf("tool %s of extension %s: %v", t.manifest.Name, t.session.Name(), err), IsError: true}
	switch {
	case errors.Is(err, errTimeout):
		failed.Code = tool.TimedOut
	case errors.Is(err, errBadAnswer):
		failed.Code = tool.InvalidOutput
	}
	return failed, nil
}

var errBadAnswer = errors.New("its answer is no tool result")

// parseResult reads what call_tool answered.
func parseResult(answer []byte) (tool.Result, error) {
	if len(answer) == 0 {
		return tool.Result{}, fmt.Errorf("%w: it is empty", errBadAnswer)
	}
	var r abi.ToolResponse
	if err := decodeStrict(answer, &r); err != nil {
		return tool.Result{}, fmt.Errorf("%w: %w", errBadAnswer, err)
	}
	if r.Error != "" {
		return tool.Result{Content: r.Error, IsError: true}, nil
	}
	content, err := contentText(r)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%w: %w", errBadAnswer, err)
	}
	return tool.Result{Content: content, IsError: r.IsError}, nil
}

// contentText makes the text that the model reads. A structured result
// speaks where there is no content.
func contentText(r abi.ToolResponse) (string, error) {
	switch {
	case len(r.Content) > 0 && r.Content[0] == '"':
		var text string
		err := json.Unmarshal(r.Content, &text)
		return text, err
	case len(r.Content) > 0 && r.Content[0] == '[':
		var blocks []abi.ContentBlock
		if err := json.Unmarshal(r.Content, &blocks); err != nil {
			return "", err
		}
		return blocksText(blocks)
	case len(r.Content) > 0 && string(r.Content) != "null":
		return "", errors.New("content is neither a string nor an array")
	case len(r.Structured) > 0 && string(r.Structured) != "null":
		return string(r.Structured), nil
	default:
		return "", errors.New("it has neither content nor structured nor error")
	}
}

// blocksText joins content blocks. What is no text is named in its place.
func blocksText(blocks []abi.ContentBlock) (string, error) {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		switch b.Type {
		case "text":
			texts[i] = b.Text
		case "resource":
			texts[i] = b.Resource.Text
			if b.Resource.Text == "" {
				texts[i] = fmt.Sprintf("[resource %s]", b.Resource.URI)
			}
		case "resource_link":
			texts[i] = fmt.Sprintf("[resource %s]", b.URI)
		case "image", "audio":
			texts[i] = fmt.Sprintf("[%s %s]", b.Type, b.MIMEType)
		default:
			return "", fmt.Errorf("content block %d has the unknown type %q", i, b.Type)
		}
	}
	return strings.Join(texts, "\n"), nil
}
