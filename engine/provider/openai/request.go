package openai

import (
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// encode turns req into the body of a request. Equal requests give equal bytes.
func encode(req provider.Request) (openai.ChatCompletionNewParams, error) {
	params := openai.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if req.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		message, ok, err := encodeMessage(m)
		if err != nil {
			return params, err
		}
		if ok {
			params.Messages = append(params.Messages, message)
		}
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, tool)
	}
	extra, err := parameters(req.Parameters)
	if err != nil {
		return params, err
	}
	params.SetExtraFields(extra)
	return params, nil
}

// parameters returns the body's fields besides those that the rest of a request
// makes. They go out as they were written.
func parameters(raw json.RawMessage) (map[string]any, error) {
	extra := map[string]any{"stream": true}
	if len(raw) == 0 {
		return extra, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, wire.Invalid("the model's parameters are no JSON object", "write them as a table of names and values")
	}
	for name, value := range fields {
		switch name {
		case "model", "messages", "tools", "stream":
			return nil, wire.Invalid(fmt.Sprintf("the model's parameters hold %q, which is not for them to set", name),
				"take it out")
		}
		extra[name] = value
	}
	return extra, nil
}

// encodeMessage reports false for a message that says nothing: servers refuse
// an empty one.
func encodeMessage(m session.Message) (openai.ChatCompletionMessageParamUnion, bool, error) {
	switch m.Role {
	case session.User:
		return openai.UserMessage(m.Content), m.Content != "", nil
	case session.ToolRole:
		content := m.Content
		if content == "" {
			content = "(no output)" // left out, its call would have no answer
		}
		return openai.ToolMessage(content, string(m.CallID)), true, nil
	case session.Assistant:
		message, err := encodeAssistant(m)
		return message, m.Content != "" || len(m.Calls) > 0, err
	}
	return openai.ChatCompletionMessageParamUnion{}, false,
		wire.Invalid(fmt.Sprintf("the history has a message of the unknown role %q", m.Role), "report this as a bug")
}

func encodeAssistant(m session.Message) (openai.ChatCompletionMessageParamUnion, error) {
	var message openai.ChatCompletionAssistantMessageParam
	if m.Content != "" {
		message.Content.OfString = param.NewOpt(m.Content)
	} else {
		message.SetExtraFields(map[string]any{"content": nil}) // some servers miss it, none minds the null
	}
	for _, c := range m.Calls {
		call, err := encodeCall(c)
		if err != nil {
			return openai.ChatCompletionMessageParamUnion{}, err
		}
		message.ToolCalls = append(message.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &message}, nil
}

func encodeCall(c session.Call) (*openai.ChatCompletionMessageFunctionToolCallParam, error) {
	call := &openai.ChatCompletionMessageFunctionToolCallParam{
		ID: string(c.ID),
		Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
			Name: wire.SendableName(c.Name), Arguments: wire.SendableArguments(c.Arguments),
		},
	}
	if len(c.Extra) == 0 {
		return call, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(c.Extra, &fields); err != nil {
		return nil, wire.Invalid(fmt.Sprintf("the extra fields of the call %q are no JSON object", c.ID), "report this as a bug")
	}
	extra := map[string]any{}
	for name, value := range fields {
		switch name {
		case "id", "type", "function": // not what a server attached
		default:
			extra[name] = value
		}
	}
	call.SetExtraFields(extra)
	return call, nil
}

func encodeTool(t session.Tool) (openai.ChatCompletionToolUnionParam, error) {
	function := shared.FunctionDefinitionParam{Name: t.Name}
	if t.Description != "" {
		function.Description = param.NewOpt(t.Description)
	}
	if len(t.InputSchema) > 0 {
		if !json.Valid(t.InputSchema) {
			return openai.ChatCompletionToolUnionParam{},
				wire.Invalid(fmt.Sprintf("the input schema of the tool %q is no JSON", t.Name), "correct it, or take the tool out")
		}
		function.SetExtraFields(map[string]any{"parameters": t.InputSchema}) // raw, so that its order stays
	}
	return openai.ChatCompletionFunctionTool(function), nil
}
