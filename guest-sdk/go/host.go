package wharf

import (
	"encoding/json"
	"fmt"
)

// Error is an operation that the host did not do.
type Error struct {
	Operation string
	Code      string // NOT_GRANTED, DENIED, BAD_REQUEST, FAILED, OVER_LIMIT or UNKNOWN_OPERATION
	Message   string // says what to do
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Config decodes one value of the user's configuration, from
// [extensions.NAME.config], into a pointer. It reports whether there is one.
func Config(key string, into any) (bool, error) { return getValue("config.get", key, into) }

// KVGet decodes what [KVSet] kept under key into a pointer. It reports whether
// there is anything. The manifest must ask for kv, and the user grant it.
func KVGet(key string, into any) (bool, error) { return getValue("kv.get", key, into) }

// KVSet keeps a value that JSON can hold, for this and later sessions.
func KVSet(key string, value any) error {
	return operate("kv.set", map[string]any{"key": key, "value": value}, nil)
}

// KVDelete takes a key away; it is no error if there was none.
func KVDelete(key string) error {
	return operate("kv.delete", map[string]any{"key": key}, nil)
}

// KVList returns the keys that begin with prefix, sorted.
func KVList(prefix string) ([]string, error) {
	var out struct {
		Keys []string `json:"keys"`
	}
	err := operate("kv.list", map[string]any{"prefix": prefix}, &out)
	return out.Keys, err
}

// HTTPRequest is a request that the host makes for the extension. The zero
// Method is GET.
type HTTPRequest struct {
	Method  string
	URL     string
	Headers map[string]string
	Body    []byte
	Secrets []string // names of secrets that the manifest binds to the URL's host
}

// HTTPResponse is the answer to an [HTTPRequest].
type HTTPResponse struct {
	Status  int
	Headers map[string]string // by name in lower case
	Body    []byte
	URL     string // of the last hop, where there were redirects
}

// HTTP makes a request. The manifest must ask for http, and the user grant it;
// a status such as 404 is no error.
func HTTP(r HTTPRequest) (HTTPResponse, error) {
	if r.Method == "" {
		r.Method = "GET"
	}
	request := map[string]any{"method": r.Method, "url": r.URL, "headers": r.Headers, "secrets": r.Secrets}
	if len(r.Body) > 0 {
		request["body_base64"] = r.Body
	}
	var out struct {
		Status     int               `json:"status"`
		Headers    map[string]string `json:"headers"`
		Body       string            `json:"body"`
		BodyBase64 []byte            `json:"body_base64"`
		URL        string            `json:"url"`
	}
	if err := operate("http.fetch", request, &out); err != nil {
		return HTTPResponse{}, err
	}
	if out.BodyBase64 == nil {
		out.BodyBase64 = []byte(out.Body)
	}
	return HTTPResponse{out.Status, out.Headers, out.BodyBase64, out.URL}, nil
}

// Level is how grave a log line is.
type Level uint32

// The levels.
const (
	Debug Level = iota
	Info
	Warning
	Severe
)

// Logf writes a line to the session's log.
func Logf(level Level, format string, args ...any) {
	hostLog(uint32(level), fmt.Appendf(nil, format, args...))
}

func getValue(op, key string, into any) (bool, error) {
	var out struct {
		Value json.RawMessage `json:"value"`
	}
	if err := operate(op, map[string]any{"key": key}, &out); err != nil {
		return false, err
	}
	if len(out.Value) == 0 || string(out.Value) == "null" {
		return false, nil
	}
	if err := json.Unmarshal(out.Value, into); err != nil {
		return false, fmt.Errorf("%s %q: %w", op, key, err)
	}
	return true, nil
}

// operate runs a host operation.
func operate(op string, request, into any) error {
	raw, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	status, response := hostCall(op, raw)
	if status != 0 {
		e := &Error{Operation: op}
		if err := json.Unmarshal(response, e); err != nil {
			return fmt.Errorf("%s: status %d: %w", op, status, err)
		}
		return e
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(response, into)
}
