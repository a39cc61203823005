package wharf

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// handlers holds the handler of each point, and tools that of each tool. They
// take the payload and give the answer, nil for no opinion.
var (
	handlers = map[string]func([]byte) ([]byte, error){}
	tools    = map[string]func(json.RawMessage) (Result, error){}
	declared []string // what the manifest declares; nil if nobody said so
)

// On handles a hook point by its name, such as one of a later release than this SDK.
// The payload is as the page ABI.md has it: a JSON object, or plain text for
// on_stream and emit_reasoning. points.go has a function for each point.
func On(point string, h func(payload []byte) Verdict) {
	register(point, func(payload []byte) ([]byte, error) { return answerWith(h(payload)) })
}

// Result is a tool's result for the model.
type Result struct {
	Content    string
	Structured any  // for programs; its JSON is the content where there is none
	IsError    bool // the call failed, and Content says why
}

// Tool registers the tool of that name in the manifest. Args is a struct into
// which the arguments are decoded; the host has checked them against the input
// schema. An error becomes an error result.
func Tool[Args any](name string, run func(Args) (Result, error)) {
	check("tool", name)
	tools[name] = func(raw json.RawMessage) (Result, error) {
		var args Args
		if err := json.Unmarshal(raw, &args); err != nil {
			return Result{}, fmt.Errorf("arguments: %w", err)
		}
		return run(args)
	}
}

// Declare is called by the code that "wharf ext build" writes: it says what the
// manifest declares, hook points and tools, before anything is registered.
func Declare(names ...string) bool {
	declared = append([]string{}, names...)
	return true
}

// judge makes a handler of a function from a payload to a verdict.
func judge[P any](h func(P) Verdict) func([]byte) ([]byte, error) {
	return func(payload []byte) ([]byte, error) {
		var p P
		if err := json.Unmarshal(payload, &p); err != nil {
			return nil, fmt.Errorf("payload: %w", err)
		}
		return answerWith(h(p))
	}
}

// watch makes a handler of a function that only looks on.
func watch[P any](h func(P)) func([]byte) ([]byte, error) {
	return judge(func(p P) Verdict { h(p); return Verdict{} })
}

// hear makes a handler of a function that is given plain text.
func hear(h func([]byte)) func([]byte) ([]byte, error) {
	return func(payload []byte) ([]byte, error) { h(payload); return nil, nil }
}

// answerWith encodes a verdict; no opinion is no answer.
func answerWith(v Verdict) ([]byte, error) {
	if reflect.ValueOf(v).IsZero() {
		return nil, nil
	}
	return json.Marshal(v)
}

func register(point string, h func([]byte) ([]byte, error)) {
	check("hook", point)
	handlers[point] = h
}

// check stops an extension whose code and manifest do not fit.
func check(kind, name string) {
	switch _, again := handlers[name]; {
	case again || tools[name] != nil:
		panic(fmt.Sprintf("wharf: there are two handlers for %s %s", kind, name))
	case declared == nil || slices.Contains(declared, name):
	case kind == "tool":
		panic(fmt.Sprintf("wharf: the code has a tool %s, and extension.toml has no [[tools]] of that name", name))
	default:
		panic(fmt.Sprintf("wharf: the code handles %s, and extension.toml has no [hooks.%s]", name, name))
	}
}

// handle answers at a hook point.
func handle(point string, payload []byte) []byte {
	h := handlers[point]
	if h == nil {
		return failure(fmt.Errorf("no handler for %s is registered: call one of the functions for it in init", point))
	}
	answer, err := h(payload)
	if err != nil {
		return failure(fmt.Errorf("%s: %w", point, err))
	}
	return answer
}

// callTool answers a tool call.
func callTool(payload []byte) []byte {
	var call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(payload, &call); err != nil {
		return failure(fmt.Errorf("payload: %w", err))
	}
	run := tools[call.Name]
	if run == nil {
		return failure(fmt.Errorf("no tool %s is registered, only %s: call wharf.Tool for it in init", call.Name, toolNames()))
	}
	result, err := run(call.Arguments)
	if err != nil {
		return failure(err)
	}
	out := map[string]any{}
	if result.Content != "" || result.Structured == nil {
		out["content"] = result.Content
	}
	if result.Structured != nil {
		out["structured"] = result.Structured
	}
	if result.IsError {
		out["is_error"] = true
	}
	answer, err := json.Marshal(out)
	if err != nil {
		return failure(fmt.Errorf("result: %w", err))
	}
	return answer
}

func toolNames() string {
	names := make([]string, 0, len(tools))
	for name := range tools {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

// failure is the answer of a handler that failed.
func failure(err error) []byte {
	answer, _ := json.Marshal(map[string]string{"error": err.Error()}) // a string always encodes
	return answer
}
