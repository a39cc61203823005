package abi

import "encoding/json"

// ErrorResponse is the response of a host operation that was not OK. Message
// says what to do; where a capability is missing, it names the line that
// would allow the operation.
type ErrorResponse struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ToolRequest is the payload of call_tool.
type ToolRequest struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object that meets the tool's schema
	CallID    string          `json:"call_id"`
}

// ToolResponse is what call_tool answers: a content, a structured result or
// both, or an error.
type ToolResponse struct {
	Content    json.RawMessage `json:"content"` // a string, or an array of MCP content blocks
	Structured json.RawMessage `json:"structured"`
	IsError    bool            `json:"is_error"`
	Error      string          `json:"error"` // the guest's own failure: an error result
}

// ContentBlock is the part of an MCP content block that a model is shown.
type ContentBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// The request and response of http.fetch.
type (
	// HTTPRequest asks for one request, with at most one of the two bodies.
	HTTPRequest struct {
		Method     string            `json:"method"`
		URL        string            `json:"url"`
		Headers    map[string]string `json:"headers"`
		Body       string            `json:"body"`
		BodyBase64 string            `json:"body_base64"`
		Secrets    []string          `json:"secrets"` // names of secrets that go into it
	}
	// HTTPResponse is the answer of the last hop. The body is Body if it is
	// UTF-8, else BodyBase64.
	HTTPResponse struct {
		Status     int               `json:"status"`
		Headers    map[string]string `json:"headers"` // by name in lower case; of several, joined by ", "
		Body       *string           `json:"body,omitempty"`
		BodyBase64 *string           `json:"body_base64,omitempty"`
		URL        string            `json:"url"`
	}
)

// The requests and responses of config.get and the kv operations.
type (
	// KeyRequest asks for one key: config.get, kv.get and kv.delete.
	KeyRequest struct {
		Key string `json:"key"`
	}
	// ValueResponse answers it; the value is null where there is none.
	ValueResponse struct {
		Value json.RawMessage `json:"value"`
	}
	// KVSetRequest sets a key to any JSON value but null.
	KVSetRequest struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	// KVListRequest asks for the keys that begin with Prefix; empty means all.
	KVListRequest struct {
		Prefix string `json:"prefix"`
	}
	// KVListResponse holds them, sorted.
	KVListResponse struct {
		Keys []string `json:"keys"`
	}
	// Empty is a response with nothing in it, or such a request.
	Empty struct{}
)

// The requests and responses of tool.call and exec.run.
type (
	// ToolCallRequest calls a tool.
	ToolCallRequest struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object; absent is an empty one
	}
	// ToolCallResponse is the tool's result. Code is set only where a code applies.
	ToolCallResponse struct {
		Content string `json:"content"`
		IsError bool   `json:"is_error"`
		Code    string `json:"code,omitempty"`
	}
	// ExecRequest runs one simple command.
	ExecRequest struct {
		Command   string `json:"command"`
		TimeoutMS int64  `json:"timeout_ms"` // 0: the tool's own limit
	}
	// ExecResponse is how the command ended.
	ExecResponse struct {
		Exit   int    `json:"exit"`
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}
)

// The requests and responses of the fs operations. Paths are relative to the
// workspace.
type (
	// PathRequest names a file or folder: fs.list and fs.stat.
	PathRequest struct {
		Path string `json:"path"`
	}
	// ReadRequest reads a part of a file.
	ReadRequest struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		Limit  int64  `json:"limit"` // in bytes; 0: as much as one call gives
	}
	// ReadResponse holds it: as text, or in base64 if it is none.
	ReadResponse struct {
		Content       *string `json:"content,omitempty"`
		ContentBase64 *[]byte `json:"content_base64,omitempty"`
		Size          int64   `json:"size"` // of the whole file
	}
	// ListResponse is what is in a folder, sorted by name.
	ListResponse struct {
		Entries []Entry `json:"entries"`
	}
	// Entry is one name in a folder.
	Entry struct {
		Name string `json:"name"`
		Kind string `json:"kind"` // file, folder, link or other
	}
	// StatResponse describes a file or folder.
	StatResponse struct {
		Size  int64  `json:"size"`
		Mode  string `json:"mode"`  // such as -rw-r--r--
		MTime string `json:"mtime"` // RFC 3339, UTC
	}
	// WriteRequest replaces a file, or makes it.
	WriteRequest struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
)

// The requests and responses of env.get, event.emit, the session operations
// and llm.complete.
type (
	// EnvRequest asks for a variable.
	EnvRequest struct {
		Name string `json:"name"`
	}
	// EnvResponse answers it; the value is null if it is not set.
	EnvResponse struct {
		Value *string `json:"value"`
	}
	// EmitRequest writes an event to the session's log.
	EmitRequest struct {
		Name string          `json:"name"`
		Data json.RawMessage `json:"data"` // any JSON; absent is null
	}
	// SessionInfo describes the session.
	SessionInfo struct {
		ID    string `json:"id"`
		Cwd   string `json:"cwd"`
		Model string `json:"model"`
		Turn  int    `json:"turn"`
	}
	// MessagesRequest asks for the last messages; 0 is all.
	MessagesRequest struct {
		Last int `json:"last"`
	}
	// MessagesResponse holds them, the oldest first.
	MessagesResponse struct {
		Messages []json.RawMessage `json:"messages"`          // of [Message]
		Dropped  int               `json:"dropped,omitempty"` // older ones, for which there was no room
	}
	// Message is a message as the model gets to see it.
	Message struct {
		Role    string        `json:"role"` // user, assistant or tool
		Content string        `json:"content"`
		Calls   []MessageCall `json:"calls,omitempty"`    // of the assistant
		CallID  string        `json:"call_id,omitempty"`  // the call that a tool's message answers
		IsError bool          `json:"is_error,omitempty"` // of a tool's message
	}
	// MessageCall is a call that the model made.
	MessageCall struct {
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // as the model wrote them
	}
	// CompleteRequest asks the model one question.
	CompleteRequest struct {
		Prompt    string `json:"prompt"`
		MaxTokens int64  `json:"max_tokens"` // of the answer; 0 is 1024
	}
	// CompleteResponse is its answer.
	CompleteResponse struct {
		Text  string `json:"text"`
		Usage Usage  `json:"usage"`
	}
	// Usage counts tokens.
	Usage struct {
		InputTokens  int64 `json:"input_tokens"`
		OutputTokens int64 `json:"output_tokens"`
	}
)
