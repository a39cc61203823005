package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a string of a server's JSON as bytes. Unlike a Go string that
// encoding/json made, it keeps what a server tore apart between two deltas: half
// a UTF-8 sequence as it is, and half a surrogate pair as three bytes in the
// manner of UTF-8. [Repair] and [Joiner] put the halves together.
type Text []byte

// UnmarshalJSON takes a string, null, a number, or a list of parts that have a
// text; anything else is no text and reads as empty.
func (t *Text) UnmarshalJSON(raw []byte) error {
	*t = nil
	switch raw[0] {
	case '"':
		*t = unquote(raw)
	case '[':
		var parts []struct {
			Text Text `json:"text"`
		}
		if json.Unmarshal(raw, &parts) == nil {
			for _, part := range parts {
				*t = append(*t, part.Text...)
			}
		}
	case 'n', 't', 'f', '{':
	default:
		*t = bytes.Clone(raw)
	}
	return nil
}

// Arguments is a call's argument text: a string, or, from some servers, the
// object itself.
type Arguments Text

// UnmarshalJSON takes a string, or any other value but null as its own text.
func (a *Arguments) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '"':
		*a = unquote(raw)
		return nil
	case 'n':
		*a = nil
		return nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, raw)
	*a = compact.Bytes()
	return err
}

// unquote returns the value of a valid JSON string.
func unquote(raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			out = appendUnit(out, hex4(raw[i+1:i+5]))
			i += 4
		default:
			out = append(out, c)
		}
	}
	return out
}

func hex4(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits), 16, 16) // the scanner has checked the digits
	return rune(n)
}

// appendUnit appends a code unit of UTF-16; half a surrogate pair as itself.
func appendUnit(out []byte, unit rune) []byte {
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(out, unit)
	}
	return append(out, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0xbf, 0x80|byte(unit)&0x3f)
}

// surrogateAt returns the surrogate that the first three bytes of b stand for.
func surrogateAt(b []byte) (rune, bool) {
	if len(b) < 3 || b[0] != 0xed || b[1] < 0xa0 || b[1] > 0xbf || b[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), true
}

// endsHigh reports whether b ends with the first half of a surrogate pair.
func endsHigh(b []byte) bool {
	unit, ok := surrogateAt(b[max(len(b)-3, 0):])
	return ok && unit < 0xdc00
}

// Joiner turns the pieces of a text into whole characters.
type Joiner struct{ rest []byte }

// Add returns the whole characters of what is held back and piece together; an
// unfinished character at the end is held back.
func (j *Joiner) Add(piece []byte) string {
	all := append(j.rest, piece...)
	cut := len(all) - unfinished(all)
	j.rest = bytes.Clone(all[cut:])
	return Repair(all[:cut])
}

// Flush returns what is held back, as a replacement character.
func (j *Joiner) Flush() string {
	rest := j.rest
	j.rest = nil
	return Repair(rest)
}

// unfinished counts the bytes at the end of b that the next piece may complete.
func unfinished(b []byte) int {
	if endsHigh(b) {
		return 3
	}
	for n := 1; n <= min(3, len(b)); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Repair joins surrogate pairs and replaces every byte that is part of no
// character.
func Repair(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if high, ok := surrogateAt(b); ok {
			low, _ := surrogateAt(b[3:])
			r := utf16.DecodeRune(high, low)
			out = utf8.AppendRune(out, r)
			if r != utf8.RuneError {
				b = b[3:]
			}
			b = b[3:]
			continue
		}
		r, size := utf8.DecodeRune(b)
		out = utf8.AppendRune(out, r)
		b = b[size:]
	}
	return string(out)
}
