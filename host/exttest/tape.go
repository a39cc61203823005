package exttest

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/abi"
)

// Tape records what an extension meets in a session of the engine, to make a case
// of it: how its handlers were called and what they answered, and what the world
// answered to them. It is safe for concurrent use.
type Tape struct {
	mu      sync.Mutex
	secrets *secret.Store
	begun   table             // of the case, as the session began
	seen    map[string]table  // what guests saw of the world since, by its key in the case
	steps   []table           // the calls
	answers []answer          // of the world
	written map[string]bool   // files that the extension wrote
	sized   map[string]bool   // files of which no more than the size is known
	told    []json.RawMessage // the messages that it was told last
}

// answer is one that a case gives once: a [[case.http]], say.
type answer struct {
	kind   string
	fields table
}

// NewTape begins a recording, before the session of an extension does. config is
// that of the extension's [host.Options]; the values of secrets never get into a
// case.
func NewTape(ctx context.Context, ext *host.Extension, config map[string]any, secrets *secret.Store) (*Tape, error) {
	t := &Tape{secrets: secrets, seen: map[string]table{}, written: map[string]bool{}, sized: map[string]bool{}}
	t.begun.put("now", literal(time.Now().UTC().Format(time.RFC3339)))
	asked, granted := ext.Manifest.Capabilities, ext.Granted.Set
	switch {
	case granted.Includes(asked):
	case granted.Empty():
		t.begun.put("grant", "none")
	default:
		t.begun.put("grant", literal("{ "+strings.ReplaceAll(granted.String(), "\n", ", ")+" }"))
	}
	t.begun.put("config", config)
	kept, err := ext.Kept(ctx)
	if err != nil {
		return nil, err
	}
	var values table
	for _, key := range sortedKeys(kept) {
		values = append(values, field{key, valueOf(kept[key])})
	}
	t.begun.put("kept", values)
	return t, nil
}

// Take notes a call. It is for a [host.SessionConfig].
func (t *Tape) Take(c host.Taped) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.Operation == "":
		t.steps = append(t.steps, stepOf(c))
	case c.Status == abi.OK:
		t.answered(c)
	default:
		t.failed(c)
	}
}

// stepOf makes a step of a call of a handler.
func stepOf(c host.Taped) table {
	var s table
	var got map[string]any
	var key string
	err := c.Err
	if c.Tool != "" {
		key, got = "result", resultOf(c.Result)
		s.put("tool", c.Tool)
		s.put("arguments", valueOf(c.In))
	} else {
		key = "verdict"
		s.put("hook", string(c.Point))
		s.put("payload", payloadSeen(c))
		if err == nil {
			got, err = answerOf(c.Point, c.Out)
		}
	}
	if err != nil {
		s.put("fails", err.Error())
	} else if got != nil {
		s.put(key, plain(got))
	}
	return s
}

// payloadSeen is a hook's payload without what is another in each session. What
// TOML cannot say stays JSON as it is, and whole.
func payloadSeen(c host.Taped) any {
	if info, _ := hook.Lookup(c.Point); info.Raw {
		return string(c.In)
	}
	value := valueOf(c.In)
	if fields, ok := value.(map[string]any); ok && !hasNull(value) {
		delete(fields, "session_id")
	}
	return value
}

// answered notes what the world answered.
func (t *Tape) answered(c host.Taped) {
	switch c.Operation {
	case "http.fetch":
		t.fetched(read[abi.HTTPRequest](c.In), read[abi.HTTPResponse](c.Out))
	case "exec.run":
		out := read[abi.ExecResponse](c.Out)
		t.answer("exec").put("command", read[abi.ExecRequest](c.In).Command).
			put("exit", out.Exit).put("stdout", out.Stdout).put("stderr", out.Stderr)
	case "tool.call":
		in, out := read[abi.ToolCallRequest](c.In), read[abi.ToolCallResponse](c.Out)
		t.answer("tool_call").put("name", in.Name).put("arguments", valueOf(in.Arguments)).
			put("content", out.Content).put("is_error", out.IsError).put("code", out.Code)
	case "llm.complete":
		out := read[abi.CompleteResponse](c.Out)
		t.answer("llm").put("prompt", read[abi.CompleteRequest](c.In).Prompt).put("text", out.Text).
			put("input_tokens", out.Usage.InputTokens).put("output_tokens", out.Usage.OutputTokens)
	case "env.get":
		if value := read[abi.EnvResponse](c.Out).Value; value != nil {
			t.see("env", read[abi.EnvRequest](c.In).Name, *value)
		}
	case "session.info":
		i := read[abi.SessionInfo](c.Out)
		t.seen["session"] = *new(table).put("id", i.ID).put("cwd", i.Cwd).put("model", i.Model).put("turn", i.Turn)
	case "session.messages":
		t.told = read[abi.MessagesResponse](c.Out).Messages
	case "fs.read":
		if out := read[abi.ReadResponse](c.Out); out.Content != nil {
			t.file(read[abi.ReadRequest](c.In).Path, *out.Content)
		}
	case "fs.list":
		for _, entry := range read[abi.ListResponse](c.Out).Entries {
			if entry.Kind == "file" {
				t.file(read[abi.PathRequest](c.In).Path+"/"+entry.Name, "")
			}
		}
	case "fs.stat":
		if out := read[abi.StatResponse](c.Out); strings.HasPrefix(out.Mode, "-") {
			t.size(read[abi.PathRequest](c.In).Path, out.Size)
		}
	case "fs.write":
		t.written[read[abi.WriteRequest](c.In).Path] = true
	}
}

func (t *Tape) fetched(in abi.HTTPRequest, out abi.HTTPResponse) {
	a := t.answer("http")
	if in.Method != "GET" {
		a.put("method", in.Method)
	}
	a.put("url", in.URL)
	if out.Status != 200 {
		a.put("status", out.Status)
	}
	var headers table
	for _, name := range sortedKeys(out.Headers) {
		switch name {
		case "connection", "content-length", "date", "transfer-encoding": // of the way it came
		default:
			headers.put(name, out.Headers[name])
		}
	}
	a.put("headers", headers)
	if out.Body != nil {
		a.put("body", *out.Body)
	}
	for _, name := range in.Secrets {
		t.see("secrets", name, "not-the-real-"+name)
	}
}

// file notes what a file of the workspace held before the extension wrote it.
func (t *Tape) file(path, content string) {
	if !t.written[path] {
		t.see("files", strings.TrimPrefix(path, "./"), content)
	}
}

// mostSized bounds a file of which only the size is known.
const mostSized = 64 << 10

// size notes a file of which no more is known, and is made up of x.
func (t *Tape) size(path string, size int64) {
	name := strings.TrimPrefix(path, "./")
	if i := t.seen["files"].find(name); size > mostSized || i >= 0 && t.seen["files"][i].value != "" {
		return
	}
	t.file(path, strings.Repeat("x", int(size)))
	t.sized[name] = true
}

// see notes an entry of the world, once.
func (t *Tape) see(key, name, value string) {
	entries := t.seen[key]
	if i := entries.find(name); i < 0 {
		entries = append(entries, field{name, value})
	} else if entries[i].value == "" || key == "files" && t.sized[name] && value != "" { // a name that was listed, or looked at, and is read now
		entries[i].value = value
		delete(t.sized, name)
	}
	t.seen[key] = entries
}

// answer begins an answer.
func (t *Tape) answer(kind string) *table {
	t.answers = append(t.answers, answer{kind: kind})
	return &t.answers[len(t.answers)-1].fields
}

// failed notes how an operation failed, unless it will do so by itself.
func (t *Tape) failed(c host.Taped) {
	out := read[abi.ErrorResponse](c.Out)
	reason := strings.TrimPrefix(strings.TrimPrefix(out.Message, c.Operation+": "), "over a limit: ")
	if out.Code != abi.Denied && c.Status != abi.Failed && c.Status != abi.OverLimit {
		return // what is not granted, or no request
	}
	f := t.answer("fault").put("operation", c.Operation).put("target", c.Target)
	switch {
	case reason == host.NoAnswer:
		f.put("code", host.TimedOut)
		return
	case out.Code != abi.Failed.Code():
		f.put("code", out.Code)
	}
	f.put("message", reason)
}

// read decodes what the host has checked or written itself.
func read[T any](raw []byte) T {
	var value T
	_ = json.Unmarshal(raw, &value)
	return value
}

// valueOf decodes JSON; what is none is a text.
func valueOf(raw []byte) any {
	value, err := decode(raw)
	if err != nil {
		return string(raw)
	}
	return plain(value)
}
