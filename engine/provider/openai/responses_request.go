package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// responsesAPI is the name under which a message's Extra holds what belongs to
// the Responses API.
const responsesAPI = "responses"

// longestID is how long the id of a call may be.
const longestID = 64

// encodeResponses turns req into the body of a request to the Responses API. The
// server keeps nothing of it: each request brings the whole conversation.
func encodeResponses(req provider.Request, own bool) (responses.ResponseNewParams, error) {
	params := responses.ResponseNewParams{Model: req.Model, Store: param.NewOpt(false)}
	fields, err := wire.Parameters(req, "model", "input", "instructions", "tools", "stream", "store")
	if err != nil {
		return params, err
	}
	wire.LimitAs("max_output_tokens", fields)
	fields["stream"] = true
	if _, set := fields["include"]; !set && reasons(req.Model) {
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if _, set := fields["prompt_cache_key"]; !set && own && req.Session != "" {
		params.PromptCacheKey = param.NewOpt(string(req.Session))
	}
	if req.System != "" {
		params.Instructions = param.NewOpt(req.System)
	}
	for _, t := range req.Tools {
		tool, err := encodeFunction(t)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: tool})
	}
	if len(params.Tools) > 0 {
		params.ToolChoice = responsesChoice(req.ToolChoice)
		if req.SingleCalls {
			params.ParallelToolCalls = param.NewOpt(false)
		}
	}
	if req.OutputSchema != nil {
		fields["text"] = withField(fields["text"], "format", map[string]any{
			"type": "json_schema", "name": "answer", "strict": wire.StrictSchema(req.OutputSchema), "schema": req.OutputSchema,
		})
	}
	for _, m := range req.Messages {
		items, err := encodeItems(req.Model, m)
		if err != nil {
			return params, err
		}
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, items...)
	}
	body, err := wire.Body(params, fields)
	return param.Override[responses.ResponseNewParams](body), err
}

// reasons reports whether a model may be asked for its reasoning in encrypted form.
// Those that cannot reason refuse the request.
func reasons(model string) bool {
	name := model[strings.LastIndex(model, "/")+1:]
	for _, prefix := range []string{"gpt-3", "gpt-4", "chatgpt-4"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
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

func responsesChoice(choice string) responses.ResponseNewParamsToolChoiceUnion {
	switch choice {
	case "":
		return responses.ResponseNewParamsToolChoiceUnion{}
	case "auto", "none", "required":
		return responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptions(choice))}
	}
	return responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: choice}}
}

func encodeFunction(t session.Tool) (*responses.FunctionToolParam, error) {
	function := map[string]any{"type": "function", "name": t.Name, "strict": false} // strict is the API's default, and few schemas are
	if t.Description != "" {
		function["description"] = t.Description
	}
	schema := t.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if !json.Valid(schema) {
		return nil, wire.Invalid(fmt.Sprintf("the input schema of the tool %q is no JSON", t.Name), "correct it, or take the tool out")
	}
	function["parameters"] = schema
	tool := param.Override[responses.FunctionToolParam](wire.Marshal(function)) // raw, so that the schema's order stays
	return &tool, nil
}

// encodeItems returns no item for a message that says nothing: servers refuse an
// empty one.
func encodeItems(model string, m session.Message) ([]responses.ResponseInputItemUnionParam, error) {
	switch m.Role {
	case session.User:
		return encodeUser(m), nil
	case session.ToolRole:
		return []responses.ResponseInputItemUnionParam{encodeOutput(m)}, nil
	case session.Assistant:
		return encodeReply(model, m), nil
	}
	return nil, wire.Invalid(fmt.Sprintf("the history has a message of the unknown role %q", m.Role), "report this as a bug")
}

func encodeUser(m session.Message) []responses.ResponseInputItemUnionParam {
	if len(m.Images) == 0 {
		if m.Content == "" {
			return nil
		}
		return []responses.ResponseInputItemUnionParam{
			responses.ResponseInputItemParamOfMessage(m.Content, responses.EasyInputMessageRoleUser),
		}
	}
	var parts responses.ResponseInputMessageContentListParam
	if m.Content != "" {
		parts = append(parts, responses.ResponseInputContentParamOfInputText(m.Content))
	}
	for _, image := range m.Images {
		parts = append(parts, responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
			Detail: responses.ResponseInputImageDetailAuto, ImageURL: param.NewOpt(wire.DataURL(image)),
		}})
	}
	return []responses.ResponseInputItemUnionParam{responses.ResponseInputItemParamOfMessage(parts, responses.EasyInputMessageRoleUser)}
}

func encodeOutput(m session.Message) responses.ResponseInputItemUnionParam {
	output := responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(wire.SendableID(m.CallID, longestID))}
	if len(m.Images) == 0 {
		output.Output.OfString = param.NewOpt(cmp.Or(m.Content, "(no output)"))
		return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &output}
	}
	var parts responses.ResponseFunctionCallOutputItemListParam
	if m.Content != "" {
		parts = append(parts, responses.ResponseFunctionCallOutputItemUnionParam{OfInputText: &responses.ResponseInputTextContentParam{Text: m.Content}})
	}
	for _, image := range m.Images {
		parts = append(parts, responses.ResponseFunctionCallOutputItemUnionParam{OfInputImage: &responses.ResponseInputImageContentParam{
			Detail: responses.ResponseInputImageContentDetailAuto, ImageURL: param.NewOpt(wire.DataURL(image)),
		}})
	}
	output.Output.OfResponseFunctionCallOutputItemArray = parts
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &output}
}

// encodeReply sends a reply back as the items that it came in.
func encodeReply(model string, m session.Message) []responses.ResponseInputItemUnionParam {
	var items []responses.ResponseInputItemUnionParam
	for _, p := range wire.Pieces(responsesAPI, model, m) {
		switch {
		case p.Item != nil:
			items = append(items, param.Override[responses.ResponseInputItemUnionParam](p.Item))
		case p.Call != nil:
			items = append(items, rawItem(p.With, map[string]any{
				"type": "function_call", "call_id": wire.SendableID(p.Call.ID, longestID), "name": wire.SendableName(p.Call.Name),
				"arguments": wire.SendableArguments(p.Call.Arguments),
			}))
		case p.With == nil:
			items = append(items, responses.ResponseInputItemParamOfMessage(p.Text, responses.EasyInputMessageRoleAssistant))
		default:
			items = append(items, rawItem(p.With, map[string]any{
				"type": "message", "role": "assistant",
				"content": []any{map[string]any{"type": "output_text", "text": p.Text, "annotations": []any{}}},
			}))
		}
	}
	return items
}

// rawItem makes an item of fields and of what the server itself had given it.
func rawItem(with json.RawMessage, fields map[string]any) responses.ResponseInputItemUnionParam {
	var given map[string]json.RawMessage
	if json.Unmarshal(with, &given) == nil {
		all := map[string]any{}
		for name, value := range given {
			all[name] = value
		}
		maps.Copy(all, fields)
		fields = all
	}
	return param.Override[responses.ResponseInputItemUnionParam](wire.Marshal(fields))
}
