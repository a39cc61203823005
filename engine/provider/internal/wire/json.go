package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode"

	"github.com/wharf-agent/wharf/engine/session"
)

// IsObject reports whether b is one JSON object. Only what JSON calls white space
// may stand around it: a server takes no other.
func IsObject(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) && json.Valid(b)
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

// maxValues is how many values JSON of a server may hold: what is made of them in
// memory has many times their bytes.
const maxValues = 250_000

// crowded reports whether JSON holds more values than that.
func crowded(text []byte) bool {
	n, quoted := 0, false
	for i := 0; i < len(text) && len(text) > maxValues; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n > maxValues
}

// Count is a number that a server may also write as a string or a fraction; what
// cannot be one reads as 0, and what is beyond all measure as the largest.
type Count int64

// maxCount is so large that no sum of counts comes near the end of an int64.
const maxCount = 1 << 50

// UnmarshalJSON never fails.
func (c *Count) UnmarshalJSON(raw []byte) error {
	*c = 0
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if n > 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
		*c = Count(min(n, maxCount))
	}
	return nil
}

// SendableID returns the id of a call as an API takes it that wants letters, digits,
// _ and -, and at most so many of them. Another API may have given it a form of its
// own; what stands in its place is the same for every request.
func SendableID(id session.CallID, longest int) string {
	if name := SendableName(string(id)); name == string(id) && len(id) <= longest && id != "" {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
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
