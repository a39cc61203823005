package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

const value = `tk-"9f/Ä+42 \x%41`

func known(values ...string) *Scanner {
	s := &Scanner{}
	for i, v := range values {
		s.Add(fmt.Sprintf("T%d", i), v)
	}
	return s
}

func asJSON(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted[1 : len(quoted)-1])
}

// escapeAll escapes each byte as in a URL, or each UTF-16 unit as in JSON.
func escapeAll(text string, inJSON bool) string {
	var b strings.Builder
	if inJSON {
		for _, r := range text {
			fmt.Fprintf(&b, `\u%04X`, r) // none of the tests' is beyond the first plane
		}
		return b.String()
	}
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02x", text[i])
	}
	return b.String()
}

func TestEachFormIsFound(t *testing.T) {
	wrap := func(text string) string { return text[:9] + "\r\n" + text[9:] }
	forms := map[string]string{
		"as it is":                      value,
		"in JSON":                       asJSON(value),
		"in JSON with all escapes":      escapeAll(value, true),
		"in a URL's query":              url.QueryEscape(value),
		"in a URL's path":               url.PathEscape(value),
		"with all bytes escaped":        escapeAll(value, false),
		"with some escaped":             strings.Replace(value, "f", "%66", 1),
		"in a query within a query":     url.QueryEscape(url.QueryEscape(value)),
		"in JSON within JSON":           asJSON(asJSON(value)),
		"in JSON twice, all escaped":    asJSON(escapeAll(value, true)),
		"in JSON thrice":                asJSON(asJSON(asJSON(value))),
		"in a query, and that in JSON":  asJSON(url.QueryEscape(value)),
		"hexadecimal":                   hex.EncodeToString([]byte(value)),
		"hexadecimal in upper case":     strings.ToUpper(hex.EncodeToString([]byte(value))),
		"hexadecimal in both cases":     strings.Replace(hex.EncodeToString([]byte(value)), "d", "D", 1),
		"base64 with a line break":      wrap(base64.StdEncoding.EncodeToString([]byte(value))),
		"the same in JSON":              asJSON(wrap(base64.StdEncoding.EncodeToString([]byte(value)))),
		"hexadecimal with a line break": wrap(hex.EncodeToString([]byte(value))),
		"base64, escaped for a URL":     url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(value))),
	}
	for before := range 6 {
		inner := strings.Repeat("<", before) + value + strings.Repeat(">", before%4)
		forms[fmt.Sprintf("base64 behind %d bytes", before)] = base64.StdEncoding.EncodeToString([]byte(inner))
		forms[fmt.Sprintf("URL base64 behind %d bytes", before)] = base64.RawURLEncoding.EncodeToString([]byte(inner))
	}
	s := known("another-value-of-some-length", value)
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			text := "before " + form + " after"
			if got, found := s.Find(text); got != "T1" || !found {
				t.Errorf("Find(%q) = %q, %v", text, got, found)
			}
			got, found := s.Redact(text)
			if !found || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "[redacted:T1]") {
				t.Errorf("Redact(%q) = %q, %v", text, got, found)
			}
			for cut := range len(form) {
				if _, found := s.Find("before "+form[:cut], form[cut:]); !found {
					t.Errorf("not found when it is cut behind %d bytes", cut)
				}
				parts, _ := s.RedactParts("a "+form[:cut], form[cut:]+" b")
				if left := strings.Join(parts, ""); len(parts) != 2 || holds(s, left) || !strings.HasPrefix(parts[0], "a ") || !strings.HasSuffix(parts[1], " b") {
					t.Errorf("cut behind %d bytes: %q", cut, parts)
				}
				if cut > 0 && strings.HasPrefix(name, "as it is") && s.Partial("before", form[:cut]) != 1 {
					t.Errorf("the first %d bytes are no beginning", cut)
				}
			}
		})
	}
}

func holds(s *Scanner, text string) bool { _, found := s.Find(text); return found }

func TestRedact(t *testing.T) {
	s := known("first-secret-value", "second-secret-value", "secret-value", "secret-value-but-longer", "redacted")
	tests := []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"innocent", "a first secret value", "a first secret value"},
		{"one", "a first-secret-value.", "a [redacted:T0]."},
		{"one that is all", "second-secret-value", "[redacted:T1]"},
		{"two beside each other", "first-secret-valuesecond-secret-value", "[redacted:T0][redacted:T1]"},
		{"the longer of two", "a secret-value-but-longer", "a [redacted:T3]"},
		{"twice", "first-secret-value first-secret-value", "[redacted:T0] [redacted:T0]"},
		{"what was redacted before", "a [redacted:T0].", "a [redacted:T0]."},
		{"a mark of another name holds a value", "[redacted:first-secret-value]", "[[redacted:T4]:[redacted:T0]]"},
		{"another case is another value", "FIRST-SECRET-VALUE", "FIRST-SECRET-VALUE"},
		{"all but its last byte", "first-secret-valu", "first-secret-valu"},
		{"a broken escape", "%6first-secret-value%", "%6[redacted:T0]%"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, found := s.Redact(tt.text)
			if got != tt.want || found != (got != tt.text) {
				t.Errorf("Redact(%q) = %q, %v; want %q", tt.text, got, found, tt.want)
			}
		})
	}
}

func TestNothingIsKnown(t *testing.T) {
	var none *Scanner
	empty := &Scanner{}
	empty.Add("SHORT", "1234567")
	for _, s := range []*Scanner{none, empty} {
		if text, found := s.Redact("1234567"); text != "1234567" || found || s.Knows() || s.Partial("1") != 0 || holds(s, "1234567") {
			t.Errorf("%v finds something", s)
		}
		if parts, found := s.RedactParts("1", "2"); len(parts) != 2 || found {
			t.Errorf("%v finds something in parts", s)
		}
	}
	if n := testing.AllocsPerRun(10, func() { none.Redact("x"); empty.Redact("x") }); n != 0 {
		t.Errorf("%v allocations where nothing is known", n)
	}
}

// How many of the last parts wait for the next one.
func TestPartial(t *testing.T) {
	s := known("first-secret-value")
	for want, parts := range [][]string{{"a", "b"}, {"a", "first-"}, {"first", "-sec"}, {"", "f", "irst", "-sec"}} {
		if got := s.Partial(parts...); got != want {
			t.Errorf("Partial(%q) = %d; want %d", parts, got, want)
		}
	}
	if got := s.Partial("first-secret-value", ""); got != 0 {
		t.Errorf("a whole value: %d", got)
	}
}

func TestMark(t *testing.T) {
	for text, want := range map[string]string{
		"a [redacted:API_KEY] b": "[redacted:API_KEY]", "[redacted: GitHub token]": "", "[redacted:]": "", "": "",
	} {
		if got, found := Mark(text); got != want || found != (want != "") {
			t.Errorf("Mark(%q) = %q, %v", text, got, found)
		}
	}
}

// Redacted text holds no value in any form, and stays as it is.
func TestRedactedTextHoldsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringN(8, 20, 60), 1, 3).Draw(t, "values")
		s := known(values...)
		var text strings.Builder
		for range rapid.IntRange(0, 4).Draw(t, "pieces") {
			v := rapid.SampledFrom(values).Draw(t, "value")
			text.WriteString(rapid.SampledFrom([]string{
				"", "[redacted:T0]", "%", `\`, v, v[:len(v)/2], asJSON(v), url.QueryEscape(v), hex.EncodeToString([]byte(v)),
				base64.StdEncoding.EncodeToString([]byte("x" + v)),
			}).Draw(t, "form"))
		}
		once, _ := s.Redact(text.String())
		if holds(s, once) {
			t.Fatalf("%q is left of %q", once, text.String())
		}
		for _, v := range values {
			if len(v) >= minValue && !strings.Contains("[redacted:T0]", v) && strings.Contains(once, v) {
				t.Fatalf("%q is in %q", v, once)
			}
		}
		if twice, _ := s.Redact(once); twice != once {
			t.Fatalf("%q becomes %q", once, twice)
		}
	})
}

func FuzzScanner(f *testing.F) {
	f.Add("first-secret-value", `a first-secret-value %66irst-secret-value`, 5)
	f.Add("12345678", `MTIzNDU2Nzg=\u0031`, 9)
	f.Add("ÄÖÜäöüßß", `\u00c4\u00d6`, 7)
	f.Fuzz(func(t *testing.T, v, text string, cut int) {
		s := known(v)
		cut = min(max(cut, 0), len(text))
		once, found := s.Redact(text)
		if holds(s, text) != found || found && holds(s, once) {
			t.Errorf("Redact(%q) = %q, %v", text, once, found)
		}
		parts, foundInParts := s.RedactParts(text[:cut], text[cut:])
		if foundInParts != found || found && strings.Join(parts, "") != once {
			t.Errorf("in parts: %q, %v; as one text: %q, %v", parts, foundInParts, once, found)
		}
		s.Partial(text)
	})
}

func TestHammerScanner(t *testing.T) {
	s := &Scanner{}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			v := fmt.Sprintf("value-number-%d", i)
			s.Add(fmt.Sprintf("T%d", i), v)
			if got, _ := s.Redact("x " + v); got != fmt.Sprintf("x [redacted:T%d]", i) {
				t.Errorf("Redact = %q", got)
			}
		})
	}
	wait.Wait()
	if n := len(s.known.Load().marks); n != 8 {
		t.Errorf("%d values are known; want 8", n)
	}
}

func BenchmarkRedact(b *testing.B) {
	for _, values := range []int{0, 1, 8} {
		s := &Scanner{}
		for i := range values {
			s.Add(fmt.Sprintf("T%d", i), fmt.Sprintf("sk-%d-0123456789abcdefghijklmnopqrstuvwxyz", i))
		}
		for _, size := range []int{260, 1 << 20} {
			text := strings.Repeat(`{"decision":"deny","reason":"no\nnot at all %20"} `, size/50+1)[:size]
			b.Run(fmt.Sprintf("values=%d/bytes=%d", values, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					s.Redact(text)
				}
			})
		}
	}
}
