package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/wharf-agent/wharf/cmd/wharf/internal/quirks"
	"github.com/wharf-agent/wharf/host/build"
)

// object is JSON as a stranger reads it: nothing of Wharf's own code has a part
// in rebuilding a request.
type object = map[string]any

// checkVisible compares each request that a server got with what the logs below
// home say: what is visible is logged, and what is logged is visible.
func checkVisible(t *testing.T, home string, got []quirks.Request) {
	t.Helper()
	var want []object
	logs, err := filepath.Glob(filepath.Join(home, "state/wharf/sessions/*/log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(logs, func(a, b string) int { // names sort by the second only
		return strings.Compare(firstTime(t, a), firstTime(t, b))
	})
	for _, path := range logs {
		want = append(want, rebuild(t, path)...)
	}
	if len(got) != len(want) {
		t.Errorf("the server got %d requests, the log has %d", len(got), len(want))
		return
	}
	for i, r := range got {
		var body object
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], body); diff != "" {
			t.Errorf("request %d is not what the log says (-log +request):\n%s", i+1, diff)
		}
	}
}

func events(t *testing.T, path string) (list []object) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var e object
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func firstTime(t *testing.T, path string) string {
	t.Helper()
	at, _ := events(t, path)[0]["time"].(string)
	return at
}

// shown is a message of a request, and the event that it comes from.
type shown struct {
	seq     float64
	message object
	images  []any // of a result
}

// rebuild returns the body of each request that a log says was sent.
func rebuild(t *testing.T, path string) (bodies []object) {
	t.Helper()
	var header object
	var messages []shown
	for _, e := range events(t, path) {
		data, _ := e["data"].(object)
		show := func(m object) {
			images, _ := data["images"].([]any)
			messages = append(messages, shown{e["seq"].(float64), m, images})
		}
		switch e["type"] {
		case "request.header":
			header = data
		case "user.message":
			if strings.TrimSpace(data["content"].(string)) != "" {
				show(object{"role": "user", "content": data["content"]})
			}
		case "assistant.message":
			if m := assistant(data); m != nil {
				show(m)
			}
		case "tool.result":
			content := data["content"]
			if strings.TrimSpace(content.(string)) == "" {
				content = "(no output)"
			}
			show(object{"role": "tool", "tool_call_id": data["call_id"], "content": content})
		case "context.replaced":
			messages = replaced(messages, e["seq"].(float64), data)
		case "request.sent":
			bodies = append(bodies, request(header, withImages(messages)))
		case "compaction.started":
			if data["prompt"] != nil {
				bodies = append(bodies, request(data, []any{object{"role": "user", "content": data["prompt"]}}))
			}
		case "extension.asked":
			body := object{
				"model": data["model"], "stream": true, "stream_options": object{"include_usage": true},
				"messages": []any{object{"role": "user", "content": data["prompt"]}},
			}
			parameters, _ := data["parameters"].(object)
			maps.Copy(body, parameters)
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// replaced returns the messages as they are after a replacement: of results the
// content, of all else the whole, with one message in the place of the first.
func replaced(messages []shown, seq float64, data object) (after []shown) {
	target := func(m shown) bool { return slices.Contains(data["targets"].([]any), any(m.seq)) }
	results := !slices.ContainsFunc(messages, func(m shown) bool { return target(m) && m.message["role"] != "tool" })
	first := true
	for _, m := range messages {
		switch {
		case !target(m):
			after = append(after, m)
		case results:
			m.message, m.images = maps.Clone(m.message), nil
			m.message["content"] = data["content"]
			after = append(after, m)
		case first && data["content"] != "":
			after = append(after, shown{seq, object{"role": "user", "content": data["content"]}, nil})
			first = false
		}
	}
	return after
}

// withImages returns the messages as they go out: the images of results stand in a
// message behind them, since those take text alone.
func withImages(messages []shown) (all []any) {
	var parts []any
	for i, m := range messages {
		all = append(all, m.message)
		for _, item := range m.images {
			image, _ := item.(object)
			url := fmt.Sprintf("data:%s;base64,%s", image["media_type"], image["data"])
			parts = append(parts, object{"type": "image_url", "image_url": object{"url": url}})
		}
		if parts != nil && (i+1 == len(messages) || messages[i+1].message["role"] != "tool") {
			note := object{"type": "text", "text": "(These images are what the calls above gave.)"}
			all = append(all, object{"role": "user", "content": append([]any{note}, parts...)})
			parts = nil
		}
	}
	return all
}

func request(header object, messages []any) object {
	body := object{
		"model": header["model"], "stream": true, "stream_options": object{"include_usage": true},
		"messages": append([]any{object{"role": "system", "content": header["system"]}}, messages...),
	}
	var tools []any
	list, _ := header["tools"].([]any)
	for _, item := range list {
		tool, _ := item.(object)
		tools = append(tools, object{"type": "function", "function": object{
			"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"],
		}})
	}
	if tools != nil {
		body["tools"] = tools
	}
	parameters, _ := header["parameters"].(object)
	maps.Copy(body, parameters)
	return body
}

func assistant(data object) object {
	text, _ := data["text"].(string)
	calls, _ := data["calls"].([]any)
	if strings.TrimSpace(text) == "" && calls == nil {
		return nil
	}
	m := object{"role": "assistant", "content": nil}
	if text != "" {
		m["content"] = text
	}
	var sent []any
	for _, item := range calls {
		call, _ := item.(object)
		one := object{"id": call["call_id"], "type": "function", "function": object{
			"name": call["name"], "arguments": sentArguments(call["arguments"].(string)),
		}}
		extra, _ := call["extra"].(object)
		for key, value := range extra {
			one[key] = value
		}
		sent = append(sent, one)
	}
	if sent != nil {
		m["tool_calls"] = sent
	}
	return m
}

// sentArguments is what goes back for arguments as the model sent them: broken
// ones are wrapped, so that servers take them.
func sentArguments(raw string) string {
	var fields object
	switch {
	case strings.TrimSpace(raw) == "":
		return "{}"
	case json.Unmarshal([]byte(raw), &fields) == nil && fields != nil:
		return raw
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object{"_invalid_arguments": raw}); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// TestVisibleOverRuns follows one session over a denied call, broken arguments,
// empty replies, a reply that breaks off, and three processes.
func TestVisibleOverRuns(t *testing.T) {
	replies := func(texts ...string) (list []json.RawMessage) {
		for _, text := range texts {
			list = append(list, json.RawMessage(text))
		}
		return list
	}
	last := "Done."
	play(t, quirks.Case{
		Args: []string{"--sandbox", "read-only"},
		Runs: []quirks.Run{
			{Prompt: "One <&> \u2028.", Replies: replies(
				`{"chunks":[{"delta":{"content":"Hm.","tool_calls":[{"index":0,"id":"a","function":{"name":"write_file","arguments":"{\"path\":\"x\",\"content\":\"y\"}"}},{"index":1,"id":"a","extra_content":{"sig":"<s>"},"function":{"name":"list_dir","arguments":"not JSON"}},{"index":2,"function":{"name":"nobody","arguments":""}}]}},{"finish":"tool_calls"}]}`,
				`{"chunks":[{"finish":"stop"}]}`, `{"chunks":[{"delta":{"content":" "}},{"finish":"stop"}]}`, `{"chunks":[{"finish":"stop"}]}`,
				`{"chunks":[{"delta":{"content":"Recovered."}},{"finish":"stop"}]}`)},
			{Prompt: "Two", Resume: true, Replies: replies(`{"chunks":[{"delta":{"content":"half \ud800"}}],"end":"reset"}`)},
			{Prompt: "Three", Resume: true, Replies: replies(`{"chunks":[{"delta":{"content":"Done."}},{"finish":"stop"}]}`)},
		},
		Expect: quirks.Expect{Outcome: "success", Exit: []int{0}, Text: &last},
	})
}

// TestVisibleOfExtensions: what an extension asks the model is in the log too.
func TestVisibleOfExtensions(t *testing.T) {
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatal("wat2wasm is missing: apt install wabt")
		}
		t.Skip("wat2wasm is missing: apt install wabt")
	}
	script, err := txtar.ParseFile("../../testdata/script/ext_operations.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range script.Files {
		if name, ok := strings.CutPrefix(f.Name, "relay/"); ok {
			if err := os.WriteFile(filepath.Join(dir, name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	built, err := build.Extension(t.Context(), build.Config{Dir: dir, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	call := `{"chunks":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"relay","arguments":"{\"op\":\"llm.complete\",\"request\":{\"prompt\":\"Is <it> polite?\",\"max_tokens\":9}}"}}]}},{"finish":"tool_calls"}]}`
	last := "Done."
	outcome := play(t, quirks.Case{
		Args: []string{"--ext", built.Path, "--grant", "llm", "--set", "parameters.temperature=0"},
		Runs: []quirks.Run{{Prompt: "Ask.", Replies: []json.RawMessage{
			json.RawMessage(call), json.RawMessage(`{"chunks":[{"delta":{"content":"It is."}},{"finish":"stop"}]}`),
			json.RawMessage(`{"chunks":[{"delta":{"content":"Done."}},{"finish":"stop"}]}`),
		}}},
		Expect: quirks.Expect{Outcome: "success", Exit: []int{0}, Text: &last},
	})
	if len(outcome.Requests) != 3 || !bytes.Contains(outcome.Requests[2].Body, []byte("It is.")) {
		t.Errorf("%d requests came; want 3, and the answer in the last", len(outcome.Requests))
	}
}
