package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// api is the name under which a message's Extra holds what belongs to this API.
const api = "anthropic"

// longestID is how long the id of a call may be. The API names no limit.
const longestID = 64

// encode turns req into the body of a request. Equal requests give equal bytes.
func encode(req provider.Request) (anthropic.MessageNewParams, error) {
	params := anthropic.MessageNewParams{Model: req.Model, MaxTokens: DefaultMaxTokens}
	extra, err := wire.Parameters(req, "model", "messages", "system", "tools", "stream")
	if err != nil {
		return params, err
	}
	wire.LimitAs("max_tokens", extra)
	system := req.System
	if req.OutputSchema != nil {
		if wire.StrictSchema(req.OutputSchema) {
			format := map[string]any{"type": "json_schema", "schema": req.OutputSchema}
			extra["output_config"] = withField(extra["output_config"], "format", format)
		} else {
			system = joined(system, wire.SchemaWords(req.OutputSchema))
		}
	}
	if system != "" {
		params.System = []anthropic.TextBlockParam{{Text: system, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	if n := len(params.Tools); n > 0 {
		params.Tools[n-1].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
		params.ToolChoice = toolChoice(req.Options)
	} else if params.Tools = calledTools(req.Messages); params.Tools != nil {
		params.ToolChoice = toolChoice(session.Options{ToolChoice: "none"})
	}
	if params.Messages, err = encodeMessages(req); err != nil {
		return params, err
	}
	if !thinksThrough(params.Messages) {
		delete(extra, "thinking")
	}
	markNewest(params.Messages)
	body, err := wire.Body(params, extra)
	return param.Override[anthropic.MessageNewParams](body), err
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

// withField returns an object, or none, with one more field.
func withField(object any, name string, value any) map[string]any {
	fields := map[string]any{}
	if raw, ok := object.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &fields) // what is no object is replaced
	}
	fields[name] = value
	return fields
}

func toolChoice(o session.Options) anthropic.ToolChoiceUnionParam {
	single := param.NewOpt(true)
	if !o.SingleCalls {
		single = param.Opt[bool]{}
	}
	switch o.ToolChoice {
	case "", "auto":
		if !o.SingleCalls {
			return anthropic.ToolChoiceUnionParam{}
		}
		return anthropic.ToolChoiceUnionParam{OfAuto: &anthropic.ToolChoiceAutoParam{DisableParallelToolUse: single}}
	case "none":
		return anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	case "required":
		return anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{DisableParallelToolUse: single}}
	}
	return anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{Name: o.ToolChoice, DisableParallelToolUse: single}}
}

// calledTools returns the tools that the history has calls of, as bare as can be: the
// API refuses such a history where no tools are defined, so a request that is to
// have none forbids their use instead.
func calledTools(messages []session.Message) (tools []anthropic.ToolUnionParam) {
	seen := map[string]bool{}
	for _, m := range messages {
		for _, c := range m.Calls {
			name := wire.SendableName(c.Name)
			if seen[name] {
				continue
			}
			seen[name] = true
			bare := &anthropic.ToolParam{Name: name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](json.RawMessage(`{"type":"object"}`))}
			tools = append(tools, anthropic.ToolUnionParam{OfTool: bare})
		}
	}
	return tools
}

func encodeTool(t session.Tool) (*anthropic.ToolParam, error) {
	tool := &anthropic.ToolParam{Name: t.Name}
	if t.Description != "" {
		tool.Description = param.NewOpt(t.Description)
	}
	schema := t.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	if !json.Valid(schema) {
		return nil, wire.Invalid(fmt.Sprintf("the input schema of the tool %q is no JSON", t.Name), "correct it, or take the tool out")
	}
	tool.InputSchema = param.Override[anthropic.ToolInputSchemaParam](schema) // raw, so that its order stays
	return tool, nil
}

// encodeMessages makes messages whose roles take turns: what several messages in
// a row say in one role becomes one, as the API wants it of the results of
// calls.
func encodeMessages(req provider.Request) ([]anthropic.MessageParam, error) {
	var all []anthropic.MessageParam
	for i, m := range req.Messages {
		role, blocks, err := encodeMessage(req.Model, m)
		switch {
		case err != nil:
			return nil, fmt.Errorf("message %d: %w", i, err)
		case len(blocks) == 0:
		case len(all) > 0 && all[len(all)-1].Role == role:
			last := &all[len(all)-1]
			last.Content = append(last.Content, blocks...)
		default:
			all = append(all, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	return all, nil
}

func encodeMessage(model string, m session.Message) (anthropic.MessageParamRole, []anthropic.ContentBlockParamUnion, error) {
	switch m.Role {
	case session.User:
		var blocks []anthropic.ContentBlockParamUnion
		if strings.TrimSpace(m.Content) != "" { // the API refuses a blank text
			blocks = append(blocks, anthropic.NewTextBlock(m.Content))
		}
		for _, image := range m.Images {
			blocks = append(blocks, anthropic.ContentBlockParamUnion{OfImage: encodeImage(image)})
		}
		return anthropic.MessageParamRoleUser, blocks, nil
	case session.ToolRole:
		return anthropic.MessageParamRoleUser, []anthropic.ContentBlockParamUnion{{OfToolResult: encodeResult(m)}}, nil
	case session.Assistant:
		return anthropic.MessageParamRoleAssistant, encodeAssistant(model, m), nil
	}
	return "", nil, wire.Invalid(fmt.Sprintf("the history has a message of the unknown role %q", m.Role), "report this as a bug")
}

func encodeResult(m session.Message) *anthropic.ToolResultBlockParam {
	result := &anthropic.ToolResultBlockParam{ToolUseID: wire.SendableID(m.CallID, longestID)}
	if m.IsError {
		result.IsError = param.NewOpt(true)
	}
	content := m.Content
	if strings.TrimSpace(content) == "" {
		content = ""
	}
	if content == "" && len(m.Images) == 0 {
		content = "(no output)"
	}
	if content != "" {
		result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: content}})
	}
	for _, image := range m.Images {
		result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: encodeImage(image)})
	}
	return result
}

func encodeImage(image session.Image) *anthropic.ImageBlockParam {
	return anthropic.NewImageBlockBase64(image.MediaType, wire.Base64(image)).OfImage
}

func encodeAssistant(model string, m session.Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	for _, p := range wire.Pieces(api, model, m) {
		switch {
		case p.Item != nil:
			blocks = append(blocks, param.Override[anthropic.ContentBlockParamUnion](p.Item))
		case p.Call != nil:
			input := json.RawMessage(wire.SendableArguments(p.Call.Arguments))
			blocks = append(blocks, anthropic.NewToolUseBlock(wire.SendableID(p.Call.ID, longestID), input, wire.SendableName(p.Call.Name)))
		default:
			blocks = append(blocks, anthropic.NewTextBlock(p.Text))
		}
	}
	return blocks
}

// thinksThrough reports whether the model's part in the current turn begins with its
// own thinking, or has yet to begin. Where another model began the turn, the API
// refuses to go on with thinking switched on.
func thinksThrough(messages []anthropic.MessageParam) bool {
	for i, m := range messages {
		asked := i > 0 && m.Role == anthropic.MessageParamRoleAssistant
		if !asked || !slices.ContainsFunc(m.Content, func(b anthropic.ContentBlockParamUnion) bool { return b.OfToolUse != nil }) {
			continue
		}
		if answered(messages[i+1:]) {
			continue // of an earlier turn
		}
		if first := m.Content[0]; first.OfText != nil || first.OfToolUse != nil {
			return false
		}
	}
	return true
}

// answered reports whether a model has ended its turn among these messages, by saying
// something without a call.
func answered(messages []anthropic.MessageParam) bool {
	return slices.ContainsFunc(messages, func(m anthropic.MessageParam) bool {
		return m.Role == anthropic.MessageParamRoleAssistant &&
			!slices.ContainsFunc(m.Content, func(b anthropic.ContentBlockParamUnion) bool { return b.OfToolUse != nil })
	})
}

// markNewest marks the ends of the two newest messages of the user's role for the
// server's cache: the last, up to which the next request will be the same, and
// the one before, up to which the previous one was. With the system text and the
// tools that makes the four marks that the API allows.
func markNewest(messages []anthropic.MessageParam) {
	left := 2
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		if messages[i].Role != anthropic.MessageParamRoleUser {
			continue
		}
		left--
		last := &messages[i].Content[len(messages[i].Content)-1]
		if mark := last.GetCacheControl(); mark != nil {
			*mark = anthropic.NewCacheControlEphemeralParam()
		}
	}
}
