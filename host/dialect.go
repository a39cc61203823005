package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/abi"
)

// dialect is how an export is given a tool's call, and how it answers.
type dialect int

const (
	native    dialect = iota // ABI 1
	mapped                   // the arguments alone, and a text
	described                // the modules of mcp.run: describe and call
	listed                   // those of hyper-mcp: list_tools and call_tool
)

// request makes the payload of a call.
func (d dialect) request(call tool.Call) ([]byte, error) {
	type named struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	inner := named{call.Name, call.Arguments}
	switch d {
	case mapped:
		return call.Arguments, nil
	case described:
		return encode(struct {
			Method string `json:"method"`
			Params named  `json:"params"`
		}{"tools/call", inner})
	case listed:
		type context struct {
			ID   string   `json:"id"`
			Meta struct{} `json:"_meta"`
		}
		return encode(struct {
			Request named   `json:"request"`
			Context context `json:"context"`
		}{inner, context{ID: string(call.ID)}})
	default:
		return encode(abi.ToolRequest{Name: call.Name, Arguments: call.Arguments, CallID: string(call.ID)})
	}
}

// response makes a tool's result of an answer.
func (d dialect) response(answer []byte) (tool.Result, error) {
	switch d {
	case mapped:
		return tool.Result{Content: string(answer)}, nil
	case described, listed:
		return parseMCP(answer)
	default:
		return parseResult(answer)
	}
}

// list makes the payload that asks for the tools.
func (d dialect) list() []byte {
	if d == listed {
		return []byte(`{"context":{"id":"list","_meta":{}}}`)
	}
	return nil
}

// parseMCP reads a result as the Model Context Protocol has it. What it knows
// besides is not ours to refuse.
func parseMCP(answer []byte) (tool.Result, error) {
	var r struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return tool.Result{}, fmt.Errorf("%w: %w", errBadAnswer, err)
	}
	content, err := contentText(abi.ToolResponse{Content: r.Content, Structured: r.Structured})
	if err != nil {
		return tool.Result{}, fmt.Errorf("%w: %w", errBadAnswer, err)
	}
	return tool.Result{Content: content, IsError: r.IsError}, nil
}

// callExport names the export that runs the tools of a module that lists them.
func (d dialect) callExport() string {
	if d == described {
		return "call"
	}
	return abi.CallTool
}

// maxListed bounds the tools that one module may list.
const maxListed = 128

// parseList reads which tools a module lists.
func (d dialect) parseList(answer []byte) ([]ManifestTool, error) {
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("its list of tools: %w", err)
	}
	if len(list.Tools) > maxListed {
		return nil, fmt.Errorf("it lists %d tools, and %d is the most", len(list.Tools), maxListed)
	}
	var all []ManifestTool
	for _, t := range list.Tools {
		made := ManifestTool{
			Name: t.Name, Description: t.Description, InputSchema: t.InputSchema,
			Timeout: DefaultToolTimeout, PerSession: true, // they may keep state between calls
			export: d.callExport(), dialect: d,
		}
		if _, err := made.check(all); err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return all, nil
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
