package guestsdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine/tool"
	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
)

// found is what an SDK's reader says of the key k of an object.
type found struct {
	Raw     string
	Text    *string
	Integer int64
	Bits    int64 // of the number
	Items   int   // of a list; keys and values of an object
	Bool    bool
}

// reader joins a session of a guest that reads with the SDK of a language.
func reader(t *testing.T, language string) *host.Session {
	t.Helper()
	needLanguage(t, language)
	dir := t.TempDir()
	for _, from := range []string{"testdata/reader/extension.toml", filepath.Join("testdata/reader", language)} {
		var err error
		if strings.HasSuffix(from, ".toml") {
			err = os.WriteFile(filepath.Join(dir, build.ManifestFile), []byte(read(t, from)), 0o600)
		} else {
			err = os.CopyFS(dir, os.DirFS(from))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := build.Extension(t.Context(), build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := join(t, r.Wasm)
	return s
}

// ask has the guest read a text.
func ask(ctx context.Context, t rapid.TB, s *host.Session, text string) (f found) {
	arguments, err := json.Marshal(map[string]string{"json": text})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	got, err := s.Tools()[0].Run(ctx, tool.Call{Name: "read", Arguments: arguments})
	if err == nil && !got.IsError {
		err = json.Unmarshal([]byte(got.Content), &f)
	}
	if err != nil || got.IsError {
		t.Fatalf("%q: %+v, %v", text, got, err)
	}
	return f
}

// The readers in C and Zig find what Go finds, and read within the bounds of what
// is no JSON.
func TestReaders(t *testing.T) {
	for _, language := range []string{"c", "zig"} {
		t.Run(language, func(t *testing.T) {
			s := reader(t, language)
			t.Run("what Go finds", func(t *testing.T) { findsWhatGoFinds(t, s, language == "zig") })
			t.Run("hostile text", func(t *testing.T) { readsHostileText(t, s) })
		})
	}
}

func findsWhatGoFinds(t *testing.T, s *host.Session, wholePairsOnly bool) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		text := object.Draw(t, "text")
		if wholePairsOnly { // Zig's scanner refuses half a pair, which the host never hands out
			text = wholePairs.Replace(text)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("the generator made %q: %v", text, err)
		}
		got := ask(ctx, t, s, text)
		if got.Raw != string(want["k"]) {
			t.Fatalf("%s: k is %s, and should be %s", text, got.Raw, want["k"])
		}
		compare(t, got, want["k"])
	})
}

// compare checks what was found against what Go makes of the value.
func compare(t *rapid.T, got found, raw json.RawMessage) {
	var value any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if len(raw) > 0 {
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	}
	want := found{Raw: string(raw)}
	switch v := value.(type) {
	case string:
		want.Text = &v
	case bool:
		want.Bool = v
	case []any:
		want.Items = len(v)
	case map[string]any:
		want.Items = got.Items // a key may be there twice
	case json.Number:
		number, _ := strconv.ParseFloat(v.String(), 64)
		if f := math.Float64frombits(uint64(got.Bits)); math.Abs(f-number) > math.Abs(number)*1e-13+1e-300 && f != number {
			t.Fatalf("%s is read as %v", raw, f)
		}
		if n, err := v.Int64(); err == nil && n != got.Integer {
			t.Fatalf("%s is read as %d", raw, got.Integer)
		}
		want.Integer, want.Bits = got.Integer, got.Bits
	}
	got.Bits, want.Bits = 0, 0
	if fmt.Sprint(got.Text == nil, got.Bool, got.Items, got.Integer) != fmt.Sprint(want.Text == nil, want.Bool, want.Items, want.Integer) ||
		got.Text != nil && *got.Text != *want.Text {
		t.Fatalf("%s is read as %+v, and should be %+v", raw, got, want)
	}
}

func readsHostileText(t *testing.T, s *host.Session) {
	ctx := t.Context()
	for _, text := range []string{
		"", "{", `{"k"`, `{"k":`, `{"k":"`, `{"k":"\`, `{"k":"\u`, `{"k":"\u12`, `{"k":"\ud800\u`, `{"k":[`, `{"k":-`, `{"k":1e`, `{"k":1e+`, `{"k":.}`,
		`{"k":99999999999999999999}`, `{"k":1e999999999999}`, `{"k":0.` + strings.Repeat("0", 5000) + `1}`, `{"k":` + strings.Repeat("9", 5000) + `}`,
		`{"k":` + strings.Repeat("[", 10_000), strings.Repeat(`{"k":`, 10_000), `{"k":]}`, `{k:1}`, "\x00", `{"k" "k":1}`, `[{"k":1}]`, `"k"`,
	} {
		ask(ctx, t, s, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(object.Draw(t, "text"))
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text[at] = rapid.SampledFrom([]byte(`{}[]",:\u0-+.e k`)).Draw(t, "byte")
		}
		ask(ctx, t, s, string(text[:rapid.IntRange(0, len(text)).Draw(t, "length")]))
	})
}

// object generates an object in which the key k often is, written in many ways.
var object = rapid.Custom(func(t *rapid.T) string {
	var b strings.Builder
	b.WriteString(blank.Draw(t, "blank") + "{")
	for i := range rapid.IntRange(0, 5).Draw(t, "members") {
		if i > 0 {
			b.WriteString(blank.Draw(t, "blank") + ",")
		}
		key := rapid.SampledFrom([]string{`"k"`, `"\u006b"`, `"\u006B"`, `"kk"`, `""`, `"\"k"`, `"K"`, `"\\"`, `"ä"`}).Draw(t, "key")
		b.WriteString(blank.Draw(t, "blank") + key + blank.Draw(t, "blank") + ":" + blank.Draw(t, "blank") + value(3).Draw(t, "value"))
	}
	b.WriteString(blank.Draw(t, "blank") + "}")
	return b.String()
})

var blank = rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n "})

// value generates the text of a value.
func value(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		most := 5
		if depth == 0 {
			most = 3
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
		case 1:
			return rapid.StringMatching(`-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
		case 2:
			return strconv.FormatInt(rapid.Int64().Draw(t, "integer"), 10)
		case 3:
			return `"` + strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "parts"), "") + `"`
		case 4:
			return "[" + blank.Draw(t, "blank") + strings.Join(rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "items"), blank.Draw(t, "blank")+","+blank.Draw(t, "blank")) + blank.Draw(t, "blank") + "]"
		default:
			return `{"k":` + value(depth-1).Draw(t, "inner") + `}`
		}
	})
}

var wholePairs = strings.NewReplacer(`\ud83d\ude42`, `\ud83d\ude42`, `\ud83d`, "x", `\ude42`, "x")

// part generates a piece of a string.
var part = rapid.SampledFrom([]string{
	"a", "ä", "🙂", "{", "}", "]", ",", ":", " ", `\"`, `\\`, `\/`, `\n`, `\t`, `\r`, `\b`, `\f`, `\u0000`, `\u00e4`, `\u20AC`, `\ud83d\ude42`, `\ud83d`, `\ude42`, `\ud83dx`, `\ud83d\u0041`,
})
