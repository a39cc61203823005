package wharf

import (
	"errors"
	"time"
	"unicode/utf8"
)

// What an extension has the agent do is judged like a call of the model's: an
// [Error] with the code DENIED says that other extensions, the permission rules
// or the sandbox refused it.

// CallTool calls a tool of the session. arguments is anything whose JSON is an
// object, or nil for none. A failure of the tool's own is a result with IsError. The manifest
// must ask for the tool under tools, and the user grant it.
func CallTool(name string, arguments any) (ToolResult, error) {
	if arguments == nil {
		arguments = struct{}{}
	}
	var out ToolResult
	err := operate("tool.call", map[string]any{"name": name, "arguments": arguments}, &out)
	return out, err
}

// Output is how a command ended.
type Output struct {
	Exit   int    `json:"exit"` // 0 if it did what it should
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Exec runs one simple command in the session's sandbox: no pipes, variables or
// globs. One that is not done within timeout is ended, and an error; 0 means
// the limit of the tool exec. The manifest must ask for exec, and the user grant it.
func Exec(command string, timeout time.Duration) (Output, error) {
	var out Output
	err := operate("exec.run", map[string]any{"command": command, "timeout_ms": (timeout + time.Millisecond - 1).Milliseconds()}, &out)
	return out, err
}

// ReadFile reads a file whole. Paths are relative to the workspace, here and in
// the functions below; the manifest must ask for fs, and the user grant it.
func ReadFile(path string) ([]byte, error) {
	var all []byte
	for {
		part, size, err := ReadFileAt(path, int64(len(all)), 0)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if len(part) == 0 || int64(len(all)) >= size {
			return all, nil
		}
	}
}

// ReadFileAt reads up to limit bytes of a file, 0 for as many as one call
// gives, and tells how large the file is.
func ReadFileAt(path string, offset, limit int64) (part []byte, size int64, err error) {
	var out struct {
		Content string `json:"content"`
		Base64  []byte `json:"content_base64"`
		Size    int64  `json:"size"`
	}
	err = operate("fs.read", map[string]any{"path": path, "offset": offset, "limit": limit}, &out)
	if out.Base64 != nil {
		return out.Base64, out.Size, err
	}
	return []byte(out.Content), out.Size, err
}

// Entry is a name in a folder.
type Entry struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // file, folder, link or other
}

// ListDir lists a folder, sorted by name.
func ListDir(path string) ([]Entry, error) {
	var out struct {
		Entries []Entry `json:"entries"`
	}
	err := operate("fs.list", map[string]any{"path": path}, &out)
	return out.Entries, err
}

// FileInfo describes a file or folder.
type FileInfo struct {
	Size    int64     `json:"size"`
	Mode    string    `json:"mode"` // such as -rw-r--r--
	ModTime time.Time `json:"mtime"`
}

// StatFile describes what a path leads to.
func StatFile(path string) (FileInfo, error) {
	var out FileInfo
	err := operate("fs.stat", map[string]any{"path": path}, &out)
	return out, err
}

// WriteFile puts a text in the place of a file, whole or not at all, and makes
// the folders above it.
func WriteFile(path, content string) error {
	if !utf8.ValidString(content) {
		return errors.New("fs.write: the content is no UTF-8 text")
	}
	return operate("fs.write", map[string]any{"path": path, "content": content}, nil)
}

// Session describes the session that a guest runs in.
type Session struct {
	ID    string `json:"id"`
	Dir   string `json:"cwd"`
	Model string `json:"model"`
	Turn  int    `json:"turn"`
}

// SessionInfo describes the session. The manifest must ask for session, and the
// user grant it.
func SessionInfo() (Session, error) {
	var out Session
	err := operate("session.info", struct{}{}, &out)
	return out, err
}

// Message is a message as the model gets to see it.
type Message struct {
	Role    string        `json:"role"` // user, assistant or tool
	Content string        `json:"content"`
	Calls   []MessageCall `json:"calls"`    // of the assistant
	CallID  string        `json:"call_id"`  // the call that a tool's message answers
	IsError bool          `json:"is_error"` // of a tool's message
}

// MessageCall is a call that the model made.
type MessageCall struct {
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote them, not necessarily JSON
}

// Messages returns the last messages of the session, 0 for all, the oldest
// first; where there is no room for so many, fewer. The manifest must ask for
// session, and the user grant it.
func Messages(last int) ([]Message, error) {
	var out struct {
		Messages []Message `json:"messages"`
	}
	err := operate("session.messages", map[string]any{"last": last}, &out)
	return out.Messages, err
}

// Usage counts tokens.
type Usage struct {
	InputTokens     int64 `json:"input_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	CacheReadTokens int64 `json:"cache_read_input_tokens"` // the part of InputTokens that came out of a cache
	ReasoningTokens int64 `json:"reasoning_tokens"`        // the part of OutputTokens that was reasoning
}

// Complete asks the session's model one question. maxTokens is of the answer; 0
// is 1024. The manifest must ask for llm, and the user grant it.
func Complete(prompt string, maxTokens int64) (string, Usage, error) {
	var out struct {
		Text  string `json:"text"`
		Usage Usage  `json:"usage"`
	}
	err := operate("llm.complete", map[string]any{"prompt": prompt, "max_tokens": maxTokens}, &out)
	return out.Text, out.Usage, err
}

// Env returns a variable of Wharf's environment, and whether it is set. The
// manifest must ask for it under env, and the user grant it.
func Env(name string) (string, bool, error) {
	var out struct {
		Value *string `json:"value"`
	}
	if err := operate("env.get", map[string]any{"name": name}, &out); err != nil || out.Value == nil {
		return "", false, err
	}
	return *out.Value, true, nil
}

// Emit writes an event of the extension's own to the session's log. The
// manifest must ask for events, and the user grant it.
func Emit(name string, data any) error {
	return operate("event.emit", map[string]any{"name": name, "data": data}, nil)
}
