//go:build !wasip1

package wharf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// fresh lets a test register handlers of its own.
func fresh(t *testing.T, names ...string) {
	t.Helper()
	oldHandlers, oldTools, oldDeclared := handlers, tools, declared
	t.Cleanup(func() { handlers, tools, declared, fakeHost, fakeLog = oldHandlers, oldTools, oldDeclared, nil, nil })
	handlers = map[string]func([]byte) ([]byte, error){}
	tools = map[string]func(json.RawMessage) (Result, error){}
	declared = names
}

const callPayload = `{"session_id":"s","turn":2,"step":3,"call_id":"c","tool":"exec","arguments":{"command":"ls","n":1},"result":{"content":"a","is_error":true,"code":"X"}}`

func TestHandlersSeeTheirPayload(t *testing.T) {
	fresh(t)
	var seen []any
	UserPromptSubmit(func(p Text) Verdict { seen = append(seen, p.Text); return Verdict{} })
	BeforeExecuteTool(func(c ToolCall) Verdict {
		seen = append(seen, c.SessionID, c.Turn, c.Step, c.CallID, c.Tool, c.Argument("command"), c.Argument("n"), c.Argument("no"))
		return Verdict{}
	})
	AfterExecuteTool(func(c ToolCall, r ToolResult) Verdict {
		seen = append(seen, c.CallID, r.Content, r.IsError, r.Code)
		return Verdict{}
	})
	FinalizeContent(func(p Text) Verdict { seen = append(seen, p.Text); return Verdict{} })
	OnFinally(func(e End) { seen = append(seen, e.Reason, e.Text) })
	OnStream(func(text []byte) { seen = append(seen, string(text)) })
	for _, step := range []struct{ point, payload string }{
		{"user_prompt_submit", `{"text":"prompt"}`},
		{"before_execute_tool", callPayload},
		{"after_execute_tool", callPayload},
		{"finalize_content", `{"text":"final"}`},
		{"on_finally", `{"reason":"completed","text":"end"}`},
		{"on_stream", "no JSON"},
	} {
		if answer := handle(step.point, []byte(step.payload)); answer != nil {
			t.Errorf("%s answers %s", step.point, answer)
		}
	}
	got, err := json.Marshal(seen)
	want := `["prompt","s",2,3,"c","exec","ls","","","c","a",true,"X","final","completed","end","no JSON"]`
	if err != nil || string(got) != want {
		t.Errorf("seen %s, %v\nwant %s", got, err, want)
	}
}

// A point without a function of its own is handled by its name.
func TestOn(t *testing.T) {
	fresh(t)
	On("turn_stopping", func(payload []byte) Verdict {
		if string(payload) == "{}" {
			return Continue("run the tests")
		}
		return Verdict{}
	})
	if got, want := string(handle("turn_stopping", []byte("{}"))), `{"decision":"continue","message":"run the tests"}`; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	if got := handle("turn_stopping", []byte("{ }")); got != nil {
		t.Errorf("no opinion answers %s", got)
	}
}

func TestVerdicts(t *testing.T) {
	tests := []struct {
		verdict Verdict
		want    string
	}{
		{Verdict{}, ""},
		{Allow("fine"), `{"decision":"allow","reason":"fine"}`},
		{Deny("no"), `{"decision":"deny","reason":"no"}`},
		{Ask("sure?"), `{"decision":"ask","reason":"sure?"}`},
		{Block("stop"), `{"decision":"block","reason":"stop"}`},
		{ReplaceText("b"), `{"replace":{"text":"b"}}`},
		{ReplaceArguments(map[string]int{"a": 1}), `{"replace":{"arguments":{"a":1}}}`},
		{ReplaceContent("c"), `{"replace":{"content":"c"}}`},
		{AnswerInPlace("d"), `{"replace":{"result":{"content":"d"}}}`},
		{AddContext("e"), `{"context":"e"}`},
		{Fail(errors.New("f")), `{"error":"f"}`},
		{ReplaceArguments(func() {}), `{"error":"before_execute_tool: json: unsupported type: func()"}`},
	}
	for _, tt := range tests {
		fresh(t)
		BeforeExecuteTool(func(ToolCall) Verdict { return tt.verdict })
		if got := string(handle("before_execute_tool", []byte(callPayload))); got != tt.want {
			t.Errorf("%+v answers %s; want %s", tt.verdict, got, tt.want)
		}
	}
}

func TestHandleFails(t *testing.T) {
	fresh(t)
	want := `{"error":"no handler for on_finally is registered: call one of the functions for it in init"}`
	if got := string(handle("on_finally", nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	FinalizeContent(func(Text) Verdict { return Verdict{} })
	if got := string(handle("finalize_content", []byte("{"))); got != `{"error":"finalize_content: payload: unexpected end of JSON input"}` {
		t.Error(got)
	}
}

func TestTool(t *testing.T) {
	fresh(t)
	type arguments struct{ Do string }
	Tool("t", func(a arguments) (Result, error) {
		switch a.Do {
		case "fail":
			return Result{}, errors.New("did not work")
		case "structured":
			return Result{Structured: []int{1}}, nil
		case "both":
			return Result{Content: "c", Structured: []int{1}, IsError: true}, nil
		case "odd":
			return Result{Structured: func() {}}, nil
		default:
			return Result{Content: a.Do}, nil
		}
	})
	tests := []struct{ payload, want string }{
		{`{"name":"t","arguments":{"do":"x"},"call_id":"c"}`, `{"content":"x"}`},
		{`{"name":"t","arguments":{}}`, `{"content":""}`},
		{`{"name":"t","arguments":{"do":"fail"}}`, `{"error":"did not work"}`},
		{`{"name":"t","arguments":{"do":"structured"}}`, `{"structured":[1]}`},
		{`{"name":"t","arguments":{"do":"both"}}`, `{"content":"c","is_error":true,"structured":[1]}`},
		{`{"name":"t","arguments":{"do":"odd"}}`, `{"error":"result: json: unsupported type: func()"}`},
		{`{"name":"t","arguments":{"do":1}}`, `{"error":"arguments: json: cannot unmarshal number into Go struct field arguments.Do of type string"}`},
		{`{"name":"u","arguments":{}}`, `{"error":"no tool u is registered, only t: call wharf.Tool for it in init"}`},
		{`{`, `{"error":"payload: unexpected end of JSON input"}`},
	}
	for _, tt := range tests {
		if got := string(callTool([]byte(tt.payload))); got != tt.want {
			t.Errorf("%s answers %s; want %s", tt.payload, got, tt.want)
		}
	}
}

// Code and manifest that do not fit stop the extension.
func TestRegistrationThatDoesNotFit(t *testing.T) {
	tests := []struct {
		name     string
		declared []string
		register func()
		want     string
	}{
		{"a hook that is not declared", []string{"on_finally"}, func() { OnStream(func([]byte) {}) }, "wharf: the code handles on_stream, and extension.toml has no [hooks.on_stream]"},
		{"a tool that is not declared", []string{"a"}, func() { Tool("b", func(struct{}) (Result, error) { return Result{}, nil }) }, "wharf: the code has a tool b, and extension.toml has no [[tools]] of that name"},
		{"two handlers", nil, func() { OnStream(func([]byte) {}); OnStream(func([]byte) {}) }, "wharf: there are two handlers for hook on_stream"},
		{"what is declared", []string{"on_stream"}, func() { OnStream(func([]byte) {}) }, ""},
		{"built by hand, without a declaration", nil, func() { OnStream(func([]byte) {}) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fresh(t)
			if tt.declared != nil {
				Declare(tt.declared...)
			}
			defer func() {
				got, _ := recover().(string)
				if got != tt.want {
					t.Errorf("panic %q; want %q", got, tt.want)
				}
			}()
			tt.register()
		})
	}
}

func TestHostOperations(t *testing.T) {
	fresh(t)
	var asked []string
	answers := map[string]string{
		"config.get": `{"value":["a"]}`, "kv.get": `{"value":null}`, "kv.list": `{"keys":["k"]}`, "kv.set": `{}`, "kv.delete": `{}`,
	}
	fakeHost = func(op string, request []byte) (uint32, []byte) {
		asked = append(asked, op+" "+string(request))
		return 0, []byte(answers[op])
	}
	var list []string
	if ok, err := Config("c", &list); !ok || err != nil || len(list) != 1 {
		t.Errorf("Config = %t, %v, %v", ok, err, list)
	}
	var n int
	if ok, err := Config("c", &n); ok || err == nil || !strings.HasPrefix(err.Error(), `config.get "c": json: cannot unmarshal`) {
		t.Errorf("Config into another type = %t, %v", ok, err)
	}
	if ok, err := KVGet("k", &n); ok || err != nil {
		t.Errorf("KVGet = %t, %v", ok, err)
	}
	if keys, err := KVList("p"); err != nil || len(keys) != 1 {
		t.Errorf("KVList = %v, %v", keys, err)
	}
	if err := errors.Join(KVSet("k", []int{1}), KVDelete("k")); err != nil {
		t.Error(err)
	}
	want := `config.get {"key":"c"};config.get {"key":"c"};kv.get {"key":"k"};kv.list {"prefix":"p"};kv.set {"key":"k","value":[1]};kv.delete {"key":"k"}`
	if got := strings.Join(asked, ";"); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
	if err := KVSet("k", func() {}); err == nil || err.Error() != "kv.set: json: unsupported type: func()" {
		t.Errorf("KVSet of what JSON cannot hold: %v", err)
	}
}

func TestHostOperationsFail(t *testing.T) {
	fresh(t)
	var failed *Error
	if err := KVDelete("k"); !errors.As(err, &failed) || err.Error() != "kv.delete: there is no host: this is no guest" {
		t.Errorf("without a host: %v", err)
	}
	fakeHost = func(string, []byte) (uint32, []byte) { return 1, []byte(`{"code":"NOT_GRANTED","message":"grant it"}`) }
	if err := KVDelete("k"); !errors.As(err, &failed) || *failed != (Error{"kv.delete", "NOT_GRANTED", "grant it"}) {
		t.Errorf("refused: %v", err)
	}
	fakeHost = func(string, []byte) (uint32, []byte) { return 3, nil }
	if err := KVDelete("k"); err == nil || err.Error() != "kv.delete: status 3: unexpected end of JSON input" {
		t.Errorf("a response that is none: %v", err)
	}
}

func TestLogf(t *testing.T) {
	fresh(t)
	Logf(Info, "dropped without a host")
	var got string
	fakeLog = func(level uint32, text string) { got = text + string(rune('0'+level)) }
	if Logf(Severe, "a %d", 1); got != "a 13" {
		t.Errorf("logged %q", got)
	}
}

func TestHTTP(t *testing.T) {
	fresh(t)
	answers := []string{
		`{"status":200,"headers":{"x-a":"b"},"body":"hello","url":"https://a.example/"}`,
		`{"status":404,"headers":{},"body_base64":"/wA=","url":"https://a.example/x"}`,
	}
	var asked []string
	fakeHost = func(op string, request []byte) (uint32, []byte) {
		asked = append(asked, op+" "+string(request))
		return 0, []byte(answers[len(asked)-1])
	}
	r, err := HTTP(HTTPRequest{URL: "https://a.example/"})
	if err != nil || r.Status != 200 || r.Headers["x-a"] != "b" || string(r.Body) != "hello" || r.URL != "https://a.example/" {
		t.Errorf("HTTP = %+v, %v", r, err)
	}
	r, err = HTTP(HTTPRequest{
		Method: "POST", URL: "https://a.example/x", Headers: map[string]string{"X-A": "b"}, Body: []byte{0xff, 0}, Secrets: []string{"T"},
	})
	if err != nil || r.Status != 404 || string(r.Body) != "\xff\x00" {
		t.Errorf("HTTP = %+v, %v", r, err)
	}
	want := `http.fetch {"headers":null,"method":"GET","secrets":null,"url":"https://a.example/"};` +
		`http.fetch {"body_base64":"/wA=","headers":{"X-A":"b"},"method":"POST","secrets":["T"],"url":"https://a.example/x"}`
	if got := strings.Join(asked, ";"); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
	fakeHost = func(string, []byte) (uint32, []byte) { return 1, []byte(`{"code":"NOT_GRANTED","message":"grant it"}`) }
	var failed *Error
	if _, err := HTTP(HTTPRequest{URL: "https://a.example/"}); !errors.As(err, &failed) || failed.Code != "NOT_GRANTED" {
		t.Errorf("refused: %v", err)
	}
}

// Functions that only look on are shown what there is, and have no opinion.
func TestWatchers(t *testing.T) {
	fresh(t)
	var saw []string
	see := func(format string, args ...any) { saw = append(saw, fmt.Sprintf(format, args...)) }
	EmitReasoningEnd(func(p EmitReasoningEndPayload) { see("reasoned %t in turn %d", p.Resuming, p.Turn) })
	OnStreamEnd(func(p OnStreamEndPayload) { see("streamed %t", p.Resuming) })
	OnProviderToolEvent(func(p OnProviderToolEventPayload) { see("event %s", p.Event) })
	AfterIteration(func(p AfterIterationPayload) { see("%s %s", p.Calls[0].Tool, p.Calls[0].Result.Content) })
	AfterCompact(func(p AfterCompactPayload) { see("in short %s", p.Summary) })
	Notification(func(p NotificationPayload) { see("%s %s", p.Kind, p.Text) })
	AfterRun(func(p AfterRunPayload) { see("%s for %d tokens", p.Text, p.Usage.OutputTokens) })
	OnError(func(p OnErrorPayload) { see("broken: %s", p.Error) })
	OnFinally(func(e End) { see("%s %s", e.Reason, e.Text) })
	SessionEnd(func(p SessionEndPayload) { see("left: %s", p.Reason) })
	for _, call := range []struct{ point, payload string }{
		{"emit_reasoning_end", `{"turn":3,"resuming":true}`},
		{"on_stream_end", `{"resuming":false}`},
		{"on_provider_tool_event", `{"event":{"type":"search"}}`},
		{"after_iteration", `{"calls":[{"tool":"exec","result":{"content":"ok"}}]}`},
		{"after_compact", `{"summary":"all is well"}`},
		{"notification", `{"kind":"retry","text":"busy"}`},
		{"after_run", `{"text":"done","usage":{"output_tokens":7}}`},
		{"on_error", `{"error":"it broke"}`},
		{"on_finally", `{"reason":"completed","text":"done"}`},
		{"session_end", `{"reason":"exit"}`},
	} {
		if answer := handle(call.point, []byte(call.payload)); len(answer) != 0 {
			t.Errorf("%s answers %s", call.point, answer)
		}
	}
	want := []string{
		"reasoned true in turn 3", "streamed false", `event {"type":"search"}`, "exec ok", "in short all is well", "retry busy",
		"done for 7 tokens", "broken: it broke", "completed done", "left: exit",
	}
	if got := strings.Join(saw, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("saw\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
