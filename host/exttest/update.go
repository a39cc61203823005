package exttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/wharf-agent/wharf/host"
)

// edit puts a text in the place of a part of a file.
type edit struct {
	start, end int
	text       string
}

// Update returns the file with what came in the place of what its cases expect,
// and all else as it was. Results are those of [Runner.Run] for cases of f.
func (f *File) Update(results []Result, m *host.Manifest) (string, error) {
	var edits []edit
	for _, r := range results {
		for _, e := range r.steps {
			want, err := e.step.want(e.key)
			if err != nil {
				return "", err
			}
			if !reflect.DeepEqual(want, e.got) {
				edits = append(edits, f.edit(e))
			}
		}
	}
	slices.Reverse(edits) // from the end, so that places stay true; what is added at one place, in its order
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(b.start-a.start, b.end-a.end) })
	text := f.layout.text
	for _, e := range edits {
		text = text[:e.start] + e.text + text[e.end:]
	}
	if _, err := parseFile(f.Name, text, m); err != nil {
		return "", fmt.Errorf("%s: it cannot be updated, and is left as it was: %w", f.Name, err)
	}
	return text, nil
}

// edit brings one key up to date.
func (f *File) edit(e expectation) edit {
	path := join(e.step.path, e.key)
	at, written := f.layout.find(path)
	gone := e.got == nil && (e.key == "fails" || e.key == "verdict" || e.key == "result")
	switch {
	case written && gone:
		return edit{at.start, at.end, ""}
	case written && at.value != [2]int{}:
		return edit{at.value[0], at.value[1], tomlValue(e.got)}
	case written: // a table of its own: its keys go with it
		end := at.end
		for _, p := range f.layout.places {
			if strings.HasPrefix(p.path, path+".") && p.start >= at.start {
				end = max(end, p.end)
			}
		}
		return edit{at.start, end, f.asTable(e, path)}
	}
	end, indent := f.endOf(e.step)
	return edit{end, end, f.lineBreak(end) + indent + e.key + " = " + tomlValue(e.got) + "\n"}
}

// asTable writes a value as a table with a header, as it was before.
func (f *File) asTable(e expectation, path string) string {
	header := "[" + index.ReplaceAllString(path, "") + "]\n"
	fields, _ := e.got.(map[string]any)
	for _, key := range sortedKeys(fields) {
		header += tomlKey(key) + " = " + tomlValue(fields[key]) + "\n"
	}
	return header
}

// endOf returns where a step's own keys end, and how they are indented.
func (f *File) endOf(s *Step) (int, string) {
	end, indent := 0, ""
	for _, p := range f.layout.places {
		if table := p.path[:max(strings.LastIndexByte(p.path, '.'), 0)]; p.path == s.path || table == s.path && p.value != [2]int{} {
			end = p.end
			line := f.layout.text[p.start:p.end]
			indent = line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		}
	}
	return end, indent
}

// lineBreak is what must stand in front of a line that is added at a place.
func (f *File) lineBreak(at int) string {
	if at > 0 && f.layout.text[at-1] != '\n' {
		return "\n"
	}
	return ""
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return tomlString(key)
}

// tomlValue writes a value that came. What TOML cannot say is JSON in a string.
func tomlValue(value any) string {
	if hasNull(value) {
		raw, err := encode(value)
		if err != nil {
			return `""`
		}
		return tomlString(string(raw))
	}
	switch v := value.(type) {
	case literal:
		return string(v)
	case table:
		fields := make([]string, len(v))
		for i, f := range v {
			fields[i] = tomlKey(f.key) + " = " + tomlValue(f.value)
		}
		return "{ " + strings.Join(fields, ", ") + " }"
	case string:
		return tomlString(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return fmt.Sprintf("%.1f", v)
		}
		raw, _ := json.Marshal(v) // it came as JSON
		if text := string(raw); strings.ContainsAny(text, ".e") {
			return text
		}
		return fmt.Sprintf("%e", v)
	case []any:
		return tomlList(v)
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		var fields []string
		for _, key := range order(v) {
			fields = append(fields, tomlKey(key)+" = "+tomlValue(v[key]))
		}
		return "{ " + strings.Join(fields, ", ") + " }"
	default:
		return fmt.Sprint(v)
	}
}

// order lists the keys of a table; those of a verdict as ABI.md has them.
func order(table map[string]any) []string {
	keys := sortedKeys(table)
	rank := func(key string) int {
		if i := slices.Index([]string{"decision", "reason", "name", "content", "is_error", "code"}, key); i >= 0 {
			return i
		}
		return len("last")*len(keys) + 6
	}
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

func tomlList(list []any) string {
	if len(list) == 0 {
		return "[]"
	}
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = tomlValue(item)
	}
	if one := "[" + strings.Join(items, ", ") + "]"; len(one) <= 100 {
		return one
	}
	return "[\n  " + strings.Join(items, ",\n  ") + ",\n]"
}

// tomlString quotes a text: plainly where it has quotes or backslashes itself.
func tomlString(text string) string {
	odd := strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	if !odd && strings.ContainsAny(text, `"\`) && !strings.Contains(text, "'") {
		return "'" + text + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, hasNull)
	case map[string]any:
		for _, item := range v {
			if hasNull(item) {
				return true
			}
		}
	}
	return false
}
