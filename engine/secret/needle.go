package secret

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// needle is one form of a value.
type needle struct {
	name string
	text string
	fold bool // the case of letters does not matter
}

// needlesOf returns the forms in which a value is looked for.
func needlesOf(name, value string) []needle {
	all := []needle{{name: name, text: value}, {name: name, text: hex.EncodeToString([]byte(value)), fold: true}}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := inBase64(alphabet, value, before)
			if alphabet == base64.RawURLEncoding && text == inBase64(base64.RawStdEncoding, value, before) {
				continue // the alphabets do not differ in it
			}
			all = append(all, needle{name: name, text: text})
		}
	}
	return all
}

// inBase64 returns the characters that say nothing but value where it stands
// behind that many other bytes, modulo 3.
func inBase64(alphabet *base64.Encoding, value string, before int) string {
	text := alphabet.EncodeToString([]byte("xx"[:before] + value))
	first := (before*8 + 5) / 6           // the first of which no bit is another's
	last := (before + len(value)) * 8 / 6 // behind the last of them
	return text[first:last]
}

// maxEscape bounds an escape: JSON's two for one character.
const maxEscape = 12

// maxDeep bounds what repeated escaping adds to an escape.
const maxDeep = 16

// maxStep bounds the bytes of a text that stand for one byte of a needle: two
// line breaks and the byte itself, each as an escape.
const maxStep = 18 + maxDeep

// begin calls add with each pair of bytes with which a match can begin that
// does not begin with an escape.
func (n needle) begin(add func(first, second byte)) {
	for _, first := range n.cases(n.text[0]) {
		for _, second := range append(n.cases(n.text[1]), '%', '\\', '\n', '\r', '+') {
			add(first, second)
		}
	}
}

// cases returns the letters that count as c.
func (n needle) cases(c byte) []byte {
	if n.fold && c >= 'a' && c <= 'z' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

// match returns where a match that begins at start ends, or 0; open says
// that the text ends before that is known. Each byte of the needle may stand
// there as it is or escaped, so it can go on at several places: all are followed.
func (n needle) match(text string, start int) (end int, open bool) {
	first, open := n.steps(text, start, 0)
	if first == [5]step{} { // nearly always
		return 0, open
	}
	var room [maxRune + 1][4]int
	var at [maxRune + 1]places // where byte i of the needle may stand, at i modulo their number
	for i := range at {
		at[i] = room[i][:0]
	}
	at[0] = append(at[0], start)
	ahead := 0 // the last i for which there is a place
	for i := 0; i < len(n.text) && i <= ahead; i++ {
		now := &at[i%len(at)]
		for _, p := range *now {
			for _, p := range []int{p, skipBreaks(text, p)}[:min(i+1, 2)] {
				steps, more := n.steps(text, p, i)
				open = open || more
				for _, s := range steps {
					if s.bytes > 0 {
						ahead = max(ahead, i+s.bytes)
						at[(i+s.bytes)%len(at)].add(p + s.length)
					}
				}
			}
		}
		*now = (*now)[:0]
	}
	for _, p := range at[len(n.text)%len(at)] {
		end = max(end, p)
	}
	return end, open
}

// places is a set of positions in a text.
type places []int

func (s *places) add(p int) {
	if !slices.Contains(*s, p) {
		*s = append(*s, p)
	}
}

// step is a piece of a text that stands for bytes of a needle.
type step struct{ length, bytes int }

// steps returns how byte i of the needle, and maybe more, can stand at p.
func (n needle) steps(text string, p, i int) (all [5]step, open bool) {
	if p >= len(text) {
		return all, true
	}
	c, want := text[p], n.text[i]
	if n.same(c, want) {
		all[0] = step{1, 1}
	}
	if c != '%' && c != '\\' {
		return all, false
	}
	deeper := deepen(text, p)
	for depth, extra := range [2]int{0, deeper} {
		if letters, length := decode(text, p, extra); length > 0 && n.goesOn(i, letters) {
			all[1+depth] = step{length, len(letters)}
		}
	}
	for depth, escape := range doubled[c] {
		if c == want && strings.HasPrefix(text[p:], escape) {
			all[3+depth] = step{len(escape), 1}
		}
	}
	return all, p+deeper+maxEscape > len(text)
}

// deepen returns how many bytes of an escape at p are there only because it was
// escaped again, once or more often: %252F, or \\/ in JSON.
func deepen(text string, p int) (extra int) {
	again := `\`
	if text[p] == '%' {
		again = "25"
	}
	for strings.HasPrefix(text[p+1+extra:], again) && extra < maxDeep {
		extra += len(again)
	}
	return extra
}

// goesOn reports whether the needle goes on with letters at byte i.
func (n needle) goesOn(i int, letters string) bool {
	return len(letters) == 1 && n.same(letters[0], n.text[i]) || strings.HasPrefix(n.text[i:], letters)
}

func (n needle) same(c, want byte) bool {
	return c == want || c == '+' && want == ' ' || n.fold && c|0x20 == want && want >= 'a'
}

// doubled are the escapes of % and \, escaped again once and twice.
var doubled = map[byte][2]string{'%': {"%2525", "%252525"}, '\\': {`\\\\`, `\\\\\\\\`}}

// maxRune is the most bytes of a needle for which one escape stands.
const maxRune = utf8.UTFMax

// decode returns what the escape of a URL or of JSON at p stands for, and its
// length, which is 0 if there is none. extra bytes behind the first are skipped,
// and count.
func decode(text string, p, extra int) (letters string, length int) {
	at := p + 1 + extra
	if at >= len(text) {
		return "", 0
	}
	if text[p] == '%' {
		code, ok := hexNumber(text, at, 2)
		if !ok {
			return "", 0
		}
		return string([]byte{byte(code)}), extra + 3
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[at]); i >= 0 {
		return "\"\\/\b\f\n\r\t"[i : i+1], extra + 2
	}
	code, ok := hexNumber(text, at+1, 4)
	if text[at] != 'u' || !ok {
		return "", 0
	}
	if !utf16.IsSurrogate(code) {
		return string(code), extra + 6
	}
	low, _ := hexNumber(text, at+7+extra, 4) // a whole character takes two
	return string(utf16.DecodeRune(code, low)), 2*extra + 12
}

// breaks are a line break, and how it is escaped.
var breaks = []string{"\n", "\r", `\n`, `\r`, "%0A", "%0a", "%0D", "%0d"}

// skipBreaks returns the position behind one line break, or two, at p.
func skipBreaks(text string, p int) int {
	for range 2 {
		for _, b := range breaks {
			if strings.HasPrefix(text[min(p, len(text)):], b) {
				p += len(b)
				break
			}
		}
	}
	return p
}

// hexNumber reads a number of so many hexadecimal digits.
func hexNumber(text string, p, digits int) (code rune, ok bool) {
	if p+digits > len(text) {
		return 0, false
	}
	for _, c := range []byte(text[p : p+digits]) {
		switch letter := c | 0x20; {
		case c >= '0' && c <= '9':
			code = code<<4 | rune(c-'0')
		case letter >= 'a' && letter <= 'f':
			code = code<<4 | rune(letter-'a'+10)
		default:
			return 0, false
		}
	}
	return code, true
}
