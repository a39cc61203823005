package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/wharf-agent/wharf/engine/session"
)

// IsObject reports whether b is one JSON object.
func IsObject(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

// Marshal encodes v without a way to fail: v is made of what was just read. Letters
// such as < stay as they are.
func Marshal(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.ToValidUTF8(bytes.TrimSpace(out.Bytes()), []byte("\ufffd"))
}

// SendableName returns the name of a call as every server takes it back: one
// that the model made up, with other characters or without end, would make
// servers refuse the session from then on.
func SendableName(raw string) string {
	const longest = 64
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, raw)
	return name[:min(len(name), longest)]
}

// SendableArguments returns arguments that every server takes: the text itself
// if it is a JSON object, else an object that holds the text.
func SendableArguments(raw string) string {
	switch {
	case strings.TrimSpace(raw) == "":
		return "{}"
	case IsObject([]byte(raw)):
		return raw
	}
	return string(Marshal(map[string]string{"_invalid_arguments": raw}))
}

// Base64 returns an image's data as APIs take it.
func Base64(image session.Image) string { return base64.StdEncoding.EncodeToString(image.Data) }

// DataURL returns an image as a URL that holds it.
func DataURL(image session.Image) string {
	return "data:" + image.MediaType + ";base64," + Base64(image)
}
