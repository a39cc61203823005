// Package wharf is the guest SDK for Go: with it, a hook or a tool for Wharf
// is a plain function.
//
//	func init() {
//		wharf.BeforeExecuteTool(func(c wharf.ToolCall) wharf.Verdict {
//			if c.Tool == "exec" {
//				return wharf.Deny("no commands today")
//			}
//			return wharf.Verdict{}
//		})
//	}
//
//	func main() {}
//
// Handlers are registered in init. "wharf ext build" compiles the folder with
// stock Go (GOOS=wasip1, -buildmode=c-shared), writes the exports for what
// extension.toml declares, and embeds that manifest. What is registered and
// not declared stops the extension from loading; what is declared and not
// registered fails each call.
//
// A guest sees no files, no network, no arguments and no environment. What it
// prints is logged. [Config], [KVGet] and the functions beside them are what
// the host does for it; each returns an ordinary error. A handler that panics
// is a failed call, and its instance is dropped.
//
// The package uses the standard library alone. Off Wasm it builds too, so that
// handlers can be tested with plain go test; there is no host there.
package wharf

import "encoding/json"

// At says where in a session a handler is called.
type At struct {
	SessionID string `json:"session_id"`
	Turn      int    `json:"turn"`
	Step      int    `json:"step"`
}

// ToolCall is a call that the model made.
type ToolCall struct {
	At
	CallID    string          `json:"call_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // an object
}

// Argument returns one argument if it is a string, or "".
func (c ToolCall) Argument(name string) string {
	var all map[string]any
	if json.Unmarshal(c.Arguments, &all) != nil {
		return ""
	}
	text, _ := all[name].(string)
	return text
}

// ToolResult is the result of a call.
type ToolResult struct {
	Content string `json:"content"`
	IsError bool   `json:"is_error"`
	Code    string `json:"code"`
}

// DoneCall is a call with its result.
type DoneCall struct {
	ToolCall
	Result ToolResult `json:"result"`
}

// Budget is what a turn may use up; 0 is not limited.
type Budget struct {
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
	TimeMS int64   `json:"time_ms"`
}

// Text is a text that a handler judges: a prompt, or the final answer.
type Text struct {
	At
	Text string `json:"text"`
}

// End is how a turn ended.
type End struct {
	At
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// Verdict is what a handler answers. The zero Verdict is no opinion.
type Verdict struct {
	Decision string         `json:"decision,omitempty"` // allow, deny, ask, block, continue, retry or fail, where the point takes it
	Reason   string         `json:"reason,omitempty"`   // reaches the model
	Replace  map[string]any `json:"replace,omitempty"`
	Context  string         `json:"context,omitempty"` // the model is told
	Message  string         `json:"message,omitempty"` // with continue: what the model goes on with
	Error    string         `json:"error,omitempty"`   // the handler failed
}

// Allow says that a tool call may run. It skips a question to the user only
// where the user granted the extension approve.
func Allow(reason string) Verdict { return Verdict{Decision: "allow", Reason: reason} }

// Deny refuses a tool call.
func Deny(reason string) Verdict { return Verdict{Decision: "deny", Reason: reason} }

// Ask wants the user to be asked about a tool call.
func Ask(reason string) Verdict { return Verdict{Decision: "ask", Reason: reason} }

// Block stops a prompt, or gives the model reason in the place of a result.
func Block(reason string) Verdict { return Verdict{Decision: "block", Reason: reason} }

// ReplaceText puts another text in the place of a prompt or final answer.
func ReplaceText(text string) Verdict { return replace("text", text) }

// ReplaceArguments gives a tool call other arguments: a value whose JSON is an
// object. They are checked and judged like the model's own.
func ReplaceArguments(arguments any) Verdict { return replace("arguments", arguments) }

// ReplaceContent gives the model another content of a result.
func ReplaceContent(content string) Verdict { return replace("content", content) }

// AnswerInPlace answers a tool call in the tool's place.
func AnswerInPlace(content string) Verdict {
	return replace("result", map[string]any{"content": content})
}

// AddContext tells the model something besides.
func AddContext(text string) Verdict { return Verdict{Context: text} }

// ReplaceParameters sends a request with other parameters: a value whose JSON is an
// object.
func ReplaceParameters(parameters any) Verdict { return replace("parameters", parameters) }

// HideTools leaves tools out of a request.
func HideTools(names ...string) Verdict { return replace("hide_tools", names) }

// AnswerForModel answers a request in the model's place.
func AnswerForModel(text string) Verdict { return replace("response", map[string]any{"text": text}) }

// Retry has a request that failed sent again.
func Retry(reason string) Verdict { return Verdict{Decision: "retry", Reason: reason} }

// GiveUp has a request that failed not sent again.
func GiveUp(reason string) Verdict { return Verdict{Decision: "fail", Reason: reason} }

// Continue has the model go on with a message where a turn is about to end.
func Continue(message string) Verdict { return Verdict{Decision: "continue", Message: message} }

// Fail says that the handler could not judge. What follows is the manifest's
// on_failure.
func Fail(err error) Verdict { return Verdict{Error: err.Error()} }

func replace(key string, value any) Verdict {
	return Verdict{Replace: map[string]any{key: value}}
}
