//go:build wasip1

// Command guest-go obeys the scripts of the conformance vectors with the SDK
// for Go, as far as its types let it.
package main

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/wharf-agent/wharf/guest-sdk/go"
)

func init() {
	wharf.UserPromptSubmit(func(p wharf.Text) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.BeforeExecuteTool(func(c wharf.ToolCall) wharf.Verdict { return obey(c.SessionID, c) })
	wharf.AfterExecuteTool(func(c wharf.ToolCall, r wharf.ToolResult) wharf.Verdict {
		return obey(c.SessionID, struct {
			wharf.ToolCall
			Result wharf.ToolResult `json:"result"`
		}{c, r})
	})
	wharf.FinalizeContent(func(p wharf.Text) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.OnFinally(func(e wharf.End) { obey(e.SessionID, e) })
	wharf.OnStream(func(text []byte) { obey(string(text), nil) })
	wharf.SessionStart(func(p wharf.SessionStartPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.BeforeRun(func(p wharf.Text) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.BeforeIteration(func(p wharf.BeforeIterationPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.BeforeRequest(func(p wharf.BeforeRequestPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.OnRequestError(func(p wharf.OnRequestErrorPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.BeforeExecuteTools(func(p wharf.BeforeExecuteToolsPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.PermissionRequest(func(p wharf.PermissionRequestPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.OnExecuteToolError(func(p wharf.OnExecuteToolErrorPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.SubagentStart(func(p wharf.SubagentStartPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.SubagentStop(func(p wharf.SubagentStopPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.BeforeCompact(func(p wharf.BeforeCompactPayload) wharf.Verdict { return obey(p.SessionID, p) })
	wharf.TurnStopping(func(p wharf.Text) wharf.Verdict { return obey(p.SessionID, p) })
	// The functions of these points take no answer, and the vectors try what one does.
	for _, point := range []string{
		"emit_reasoning_end", "on_stream_end", "on_provider_tool_event", "after_iteration", "after_compact", "notification",
		"after_run", "on_error", "session_end",
	} {
		wharf.On(point, func(payload []byte) wharf.Verdict {
			var at wharf.At
			if err := json.Unmarshal(payload, &at); err != nil {
				return wharf.Fail(err)
			}
			return obey(at.SessionID, json.RawMessage(payload))
		})
	}
	wharf.EmitReasoning(func(text []byte) { obey(string(text), nil) })
	wharf.Tool("do", func(args struct{ Do string }) (wharf.Result, error) { return work(args.Do) })
}

// obey does what a script says.
func obey(script string, payload any) (v wharf.Verdict) {
	for _, line := range strings.Split(script, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "answer":
			if err := json.Unmarshal([]byte(rest), &v); err != nil {
				return wharf.Fail(err)
			}
		case "log":
			level, text, _ := strings.Cut(rest, " ")
			wharf.Logf(levels[level], "%s", text)
		case "read":
			wharf.Logf(wharf.Info, "%s", member(payload, rest))
		case "spin":
			for {
			}
		}
	}
	return v
}

var levels = map[string]wharf.Level{"debug": wharf.Debug, "info": wharf.Info, "warning": wharf.Warning, "error": wharf.Severe}

// member returns the JSON of one key.
func member(payload any, key string) []byte {
	raw, err := json.Marshal(payload)
	if err != nil {
		return []byte(err.Error())
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return []byte(err.Error())
	}
	return object[key]
}

// work does what a script says of a tool.
func work(script string) (wharf.Result, error) {
	verb, rest, _ := strings.Cut(script, " ")
	if verb == "spin" {
		for {
		}
	}
	var answer struct {
		Content    string
		Structured any
		IsError    bool `json:"is_error"`
		Error      string
	}
	if err := json.Unmarshal([]byte(rest), &answer); err != nil {
		return wharf.Result{}, err
	}
	if answer.Error != "" {
		return wharf.Result{}, errors.New(answer.Error)
	}
	return wharf.Result{Content: answer.Content, Structured: answer.Structured, IsError: answer.IsError}, nil
}

func main() {}
