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
	// Empty is a response with nothing in it.
	Empty struct{}
)
