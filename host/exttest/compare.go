package exttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/rogpeppe/go-internal/diff"
)

// normalize brings an expected answer into the form of decoded JSON. A string
// holds JSON itself, for what TOML cannot say.
func normalize(value any) (any, error) {
	raw, isText := value.(string)
	if !isText {
		encoded, err := encodeTOML(value)
		if err != nil {
			return nil, err
		}
		raw = string(encoded)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.UseNumber()
	var decoded any
	if err := d.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("it is no JSON: there is more behind it")
	}
	return plain(decoded), nil
}

// plain has numbers that are equal look alike.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = plain(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			if whole := math.Trunc(f); whole == f && math.Abs(f) < 1<<53 {
				return int64(f)
			}
			return f
		}
		return string(v)
	}
	return value
}

// difference shows how what came differs from what was expected, line by line;
// empty if it does not.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	d := diff.Diff("want", shown(want), "got", shown(got))
	if _, body, ok := bytes.Cut(d, []byte("\n@@")); ok { // the names are said already
		if _, lines, ok := bytes.Cut(body, []byte("@@\n")); ok {
			return string(lines)
		}
	}
	return string(d)
}

// shown is a value as lines.
func shown(value any) []byte {
	if value == nil {
		return []byte("nothing\n")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return []byte(err.Error() + "\n")
	}
	return b.Bytes()
}
