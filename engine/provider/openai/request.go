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
func (c Compat) encode(req provider.Request, own bool) (openai.ChatCompletionNewParams, error) {
	params := openai.ChatCompletionNewParams{Model: req.Model}
	if !c.NoStreamUsage {
		params.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	fields, err := wire.Parameters(req, "model", "messages", "tools", "stream")
	if err != nil {
		return params, err
	}
	fields["stream"] = true
	if _, set := fields["prompt_cache_key"]; !set && own && req.Session != "" {
		params.PromptCacheKey = param.NewOpt(string(req.Session))
	}
	if params.Messages, err = c.messages(req, own); err != nil {
		return params, err
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, tool)
	}
	if len(params.Tools) > 0 {
		params.ToolChoice = toolChoice(req.ToolChoice)
		if req.SingleCalls {
			params.ParallelToolCalls = param.NewOpt(false)
		}
	}
	if req.OutputSchema != nil {
		fields["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{
			"name": "answer", "strict": wire.StrictSchema(req.OutputSchema), "schema": req.OutputSchema,
		}}
	}
	body, err := wire.Body(params, fields)
	return param.Override[openai.ChatCompletionNewParams](body), err
}

func (c Compat) messages(req provider.Request, own bool) ([]openai.ChatCompletionMessageParamUnion, error) {
	talk := conversation{Compat: c, model: req.Model, own: own}
	switch {
	case req.System == "":
	case c.SystemRole == "user":
		talk.system = req.System
	case c.SystemRole == "developer":
		talk.all = append(talk.all, openai.DeveloperMessage(req.System))
	default:
		talk.all = append(talk.all, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		if err := talk.add(m); err != nil {
			return nil, err
		}
	}
	talk.flush()
	return talk.all, nil
}

func toolChoice(choice string) openai.ChatCompletionToolChoiceOptionUnionParam {
	switch choice {
	case "":
		return openai.ChatCompletionToolChoiceOptionUnionParam{}
	case "auto", "none", "required":
		return openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(choice)}
	}
	return openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: choice})
}

func encodeCall(id string, c session.Call) (*openai.ChatCompletionMessageFunctionToolCallParam, error) {
	call := &openai.ChatCompletionMessageFunctionToolCallParam{
		ID: id,
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
