package exttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/tool"
)

// filled are the values of keys that a payload may leave out.
var filled = map[string]json.RawMessage{
	"session_id": json.RawMessage(`"trial"`), "turn": json.RawMessage("1"), "step": json.RawMessage("1"),
	"call_id": json.RawMessage(`"call_1"`),
}

// where are the keys that every payload has, in their order.
var where = []hook.Key{{Name: "session_id", Type: hook.Text}, {Name: "turn", Type: hook.Integer}, {Name: "step", Type: hook.Integer}}

// Payload makes the payload that the engine would send to a point: the keys of
// the table, in its order. What says where it happens, and call_id, may be left
// out; all else must be there, and nothing besides.
func Payload(info hook.Info, given map[string]json.RawMessage) ([]byte, error) {
	keys := append(append([]hook.Key{}, where...), info.Keys...)
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.Name
	}
	for _, name := range sortedKeys(given) {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown key %q%s: %s gets %s", name, didYouMean(name, names), info.Point, keyNames(info))
		}
	}
	out := bytes.NewBufferString("{")
	for i, key := range keys {
		value, ok := given[key.Name]
		if !ok {
			value, ok = filled[key.Name]
		}
		if !ok {
			return nil, fmt.Errorf("%q is missing, which is %s: %s gets %s", key.Name, article(key), info.Point, keyNames(info))
		}
		value, err := fit(key, value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "%q:%s", key.Name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// ParsePayload is Payload for the text of a JSON object; for a point whose
// payload is raw text, it is the text.
func ParsePayload(info hook.Info, text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is no UTF-8")
	}
	if info.Raw {
		return text, nil
	}
	var given map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&given); err != nil || given == nil {
		return nil, fmt.Errorf("it is no JSON object: %s gets one with %s", info.Point, keyNames(info))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more behind the JSON object")
	}
	return Payload(info, given)
}

// Asked refuses a payload about a tool about which a session would never ask the
// extension: what came of it would say nothing.
func Asked(info hook.Info, h hook.Handling, payload []byte) error {
	var call struct {
		Tool string `json:"tool"`
	}
	if !info.Has("tool") || json.Unmarshal(payload, &call) != nil || h.Covers(call.Tool) {
		return nil
	}
	return fmt.Errorf("at %s the extension is asked only about %s, and so never about %q", info.Point, strings.Join(h.Tools, ", "), call.Tool)
}

// fit brings a value into one form, in which it has the type of its key.
func fit(key hook.Key, raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("%q: %w", key.Name, err)
	}
	fits := key.Type == hook.Any
	switch v := value.(type) {
	case string:
		fits = fits || key.Type == hook.Text
	case json.Number:
		_, err := v.Int64()
		fits = fits || key.Type == hook.Number || key.Type == hook.Integer && err == nil
	case bool:
		fits = fits || key.Type == hook.Boolean
	case map[string]any:
		fits = fits || key.Type == hook.Object
	case []any:
		fits = fits || key.Type == hook.List
	}
	if !fits {
		return nil, fmt.Errorf("%q must be %s", key.Name, article(key))
	}
	return encode(value)
}

func article(key hook.Key) string {
	switch key.Type {
	case hook.Text:
		return "a string"
	case hook.Integer, hook.Object:
		return "an " + string(key.Type)
	case hook.Any:
		return "any JSON"
	default:
		return "a " + string(key.Type)
	}
}

func keyNames(info hook.Info) string {
	if len(info.Keys) == 0 {
		return "no keys of its own"
	}
	names := make([]string, len(info.Keys))
	for i, key := range info.Keys {
		names[i] = key.Name
	}
	return strings.Join(names, ", ")
}

// didYouMean names what name may be a misspelling of.
func didYouMean(name string, known []string) string {
	if near := tool.Nearest(name, known); len(near) > 0 {
		return ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// encode is JSON with its texts as they are, not escaped for HTML.
func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
