package quirks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const good = `{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"function":{"name":"list_dir","parameters":{}}}]}`

// ask sends body and returns what came before the connection ended, and how.
func ask(t *testing.T, s *Server, body string) (status int, answer string, err error) {
	t.Helper()
	resp, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func caseOf(replies ...string) Case {
	run := Run{}
	for _, r := range replies {
		run.Replies = append(run.Replies, json.RawMessage(r))
	}
	return Case{Runs: []Run{run}}
}

const done = "data: [DONE]\n\n"

func event1(delta, finish string) string {
	return fmt.Sprintf(`data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"mock","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
}

func TestReplies(t *testing.T) {
	tests := []struct {
		name, reply, request string
		status               int
		want                 string
		broken               bool
	}{
		{
			"chunks in the usual envelope", `{"chunks":[{"delta":{"content":"a"}},{"finish":"stop"}]}`, good, 200,
			event1(`{"content":"a"}`, "null") + event1("{}", `"stop"`) + done, false,
		},
		{
			"an event as it is written, raw bytes, an end mark", `{"chunks":[{"json":{"x":1}},{"raw":":\n\n"},{"done":true}]}`, good, 200,
			"data: {\"x\":1}\n\n:\n\n" + done, false,
		},
		{"a byte a write", `{"chunks":[{"raw":"ž🚀","split":1}]}`, good, 200, "ž🚀" + done, false},
		{"an end in order", `{"chunks":[{"raw":"x"}],"end":"eof"}`, good, 200, "x", false},
		{"a cut", `{"chunks":[{"raw":"x"}],"end":"cut"}`, good, 200, "x", true},
		{"a reset", `{"chunks":[],"end":"reset"}`, good, 200, "", true},
		{"a connection that is dropped", `{"end":"drop"}`, good, 0, "", true},
		{"a body", `{"status":429,"body":"slow down"}`, good, 429, "slow down", false},
		{"a whole answer", `{"completion":{"choices":[{"message":{"content":"a"}}]}}`, `{}`, 200, `{"choices":[{"message":{"content":"a"}}]}`, false},
		{
			"a whole answer to a request for a stream", `{"completion":{"choices":[{"message":{"content":"a"}}]}}`, good, 200,
			"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n" + done, false,
		},
		{"placeholders", `{"body":"{{n}} {{noarg}} {{fill 3}} {{other}}"}`, good, 200, "1 list_dir xxx {{other}}", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, answer, err := ask(t, NewServer(t, caseOf(tt.reply)), tt.request)
			if status != tt.status || answer != tt.want || (err != nil) != tt.broken {
				t.Errorf("answer = %d %q, %v\nwant %d %q, broken %t", status, answer, err, tt.status, tt.want, tt.broken)
			}
		})
	}
}

func TestAStallHoldsTheConnection(t *testing.T) {
	s := NewServer(t, caseOf(`{"end":"stall"}`))
	client := http.Client{Timeout: 200 * time.Millisecond}
	resp, err := client.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, os.ErrDeadlineExceeded) && !os.IsTimeout(err) {
		t.Errorf("read error = %v; want the client's own time-out", err)
	}
}

func TestRepliesComeInOrder(t *testing.T) {
	c := caseOf(`{"body":"one"}`, `{"body":"two","loop":true}`)
	c.Runs = append(c.Runs, Run{Replies: []json.RawMessage{json.RawMessage(`{"body":"three"}`)}})
	c.Guards = []Guard{{When: Condition{Request: 2}, Reply: json.RawMessage(`{"body":"guard"}`), Max: 1}}
	s := NewServer(t, c)
	var got []string
	for i := range 7 {
		if i == 5 {
			s.NextRun()
		}
		_, answer, err := ask(t, s, good)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, answer)
	}
	end := event1(`{"content":"(end of script)"}`, "null") + event1("{}", `"stop"`) + done
	if want := []string{"one", "guard", "two", "two", "two", "three", end}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answers = %q\nwant %q", got, want)
	}
	if n := len(s.Requests()); n != 7 {
		t.Errorf("%d requests on record; want 7", n)
	}
}

func TestConditions(t *testing.T) {
	tests := []struct {
		name, body string
		when       Condition
		want       bool
	}{
		{"a role", `{"messages":[{"role":"developer","content":"x"}]}`, Condition{Role: "developer"}, true},
		{"another role", good, Condition{Role: "developer"}, false},
		{"text parts as a list", `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`, Condition{ArrayContent: true}, true},
		{"text", good, Condition{ArrayContent: true}, false},
		{"reasoning", `{"messages":[{"role":"assistant","reasoning_content":"x"}]}`, Condition{Reasoning: true}, true},
		{"no reasoning beside a call", `{"messages":[{"role":"assistant","tool_calls":[{"id":"1"}]}]}`, Condition{ReasoningMissing: true}, true},
		{"a larger body", good, Condition{GrownBy: 10}, true},
		{"a much larger body", good, Condition{GrownBy: 10000}, false},
		{"a field", good, Condition{ExtraFields: []string{"x", "stream"}}, true},
		{"no such field", good, Condition{ExtraFields: []string{"x"}}, false},
		{"arguments that are an object", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":{}}}]}]}`, Condition{BadArgs: true}, true},
		{"a user after a tool", `{"messages":[{"role":"tool"},{"role":"user"}]}`, Condition{ToolThenUser: true}, true},
		{"the number of the request", good, Condition{Request: 3}, true},
		{"no condition", good, Condition{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.when.holds(parseRequest([]byte(tt.body)), 3, 20); got != tt.want {
				t.Errorf("%+v holds for %s: %t; want %t", tt.when, tt.body, got, tt.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`
	const answer = `{"role":"tool","tool_call_id":"1","content":"x"}`
	const user = `{"role":"user","content":[{"text":"hi"}]}`
	tests := []struct{ name, messages, want string }{
		{"a call, its answer, a user", call + "," + answer + "," + user, "[]"},
		{"one id in two messages", call + "," + answer + "," + call + "," + answer, "[]"},
		{"no messages", "", "[no messages]"},
		{"an unknown role", `{"role":"function","content":"x"}`, `[message 0: unknown role "function"]`},
		{"an empty message", `{"role":"user","content":""}`, "[message 0: empty]"},
		{"no answer", call, `[the call "1" has no answer]`},
		{"a late answer", call + "," + user + "," + answer, `[message 1: stands before the answer to the call "1" message 2: answers no open call: "1"]`},
		{"two answers", call + "," + answer + "," + answer, `[message 2: answers no open call: "1"]`},
		{"an answer to nothing", answer, `[message 0: answers no open call: "1"]`},
		{"an empty id", strings.Replace(call, `"1"`, `""`, 1), `[message 0: call id "" is empty or not unique the call "" has no answer]`},
		{
			"arguments that are no JSON", strings.Replace(call, `"{}"`, `"{"`, 1) + "," + answer,
			`[message 0: call "f" has no name, or arguments that are no string of JSON: "{"]`,
		},
		{
			"arguments that are no string", strings.Replace(call, `"{}"`, `{}`, 1) + "," + answer,
			`[message 0: call "f" has no name, or arguments that are no string of JSON: {}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(parseRequest([]byte(`{"messages":[` + tt.messages + `]}`)).Problems()); got != tt.want {
				t.Errorf("Problems = %s\nwant %s", got, tt.want)
			}
		})
	}
	if got := parseRequest([]byte("{")).Problems(); len(got) != 1 {
		t.Errorf("Problems of a broken body = %q; want one", got)
	}
}

func TestLoad(t *testing.T) {
	cases, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 32 {
		t.Errorf("%d cases; want at least 32", len(cases))
	}
	tests := []struct{ name, file, want string }{
		{"an unknown field", `[{"id":"x","expects":{}}]`, `json: unknown field "expects"`},
		{"an unknown field of a reply", `[{"id":"x","runs":[{"replies":[{"bodies":1}]}]}]`, `load case x: reply 1: json: unknown field "bodies"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("Load error = %v; want its end to be %s", err, tt.want)
			}
		})
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("Load of an empty folder: no error; want one")
	}
}

func TestWriteFiles(t *testing.T) {
	dir := t.TempDir()
	if err := (Case{Files: map[string]string{"d/x": "{{fill 2}}"}}).WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"a.txt": "ALPHA-7\n", "sub/c.txt": "CHARLIE-5\n", "d/x": "xx"} {
		if b, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(b) != want {
			t.Errorf("%s = %q, %v; want %q", path, b, err, want)
		}
	}
}
