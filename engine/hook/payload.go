package hook

import (
	"bytes"
	"encoding/json"
)

// At says where in a session a hook is asked. It is part of every payload
// that is JSON.
type At struct {
	Session string `json:"session_id"`
	Turn    int    `json:"turn"`
	Step    int    `json:"step"`
}

// Call is a tool call as hooks see it.
type Call struct {
	ID        string          `json:"call_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // an object
}

// Result is a tool's result as hooks see it.
type Result struct {
	Content string `json:"content"`
	IsError bool   `json:"is_error"`
	Code    string `json:"code,omitempty"`
}

// Response is an answer in the model's place.
type Response struct {
	Text string `json:"text"`
}

type textPayload struct {
	At
	Text string `json:"text"`
}

type callPayload struct {
	At
	Call
}

type resultPayload struct {
	At
	Call
	Result Result `json:"result"`
}

type finallyPayload struct {
	At
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// encode returns a payload's JSON with <, > and & as they are: guests that
// look for "&&" in a command should find it.
func encode(payload any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(payload); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
