package exttest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/host/abi"
)

// table is a table of TOML whose keys have an order.
type table []field

type field struct {
	key   string
	value any
}

// literal is a value as TOML has it.
type literal string

// put adds a key, unless its value is what a case takes for granted: nothing.
func (t *table) put(key string, value any) *table {
	if v := reflect.ValueOf(value); v.IsValid() && !v.IsZero() && (v.Kind() != reflect.Map && v.Kind() != reflect.Slice || v.Len() > 0) {
		*t = append(*t, field{key, value})
	}
	return t
}

func (t table) find(key string) int {
	return slices.IndexFunc(t, func(f field) bool { return f.key == key })
}

// maxSteps bounds a case that is recorded: nobody would read a longer one.
const maxSteps = 100

// Case writes what was recorded as a [[case]] of that name. left is how many calls
// did not get into it, because they are too many; a tape without any call has no
// case.
func (t *Tape) Case(name string) (text string, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.steps) == 0 {
		return "", 0
	}
	steps := t.steps[:min(len(t.steps), maxSteps)]
	var b strings.Builder
	b.WriteString("[[case]]\n")
	head := append(table{{"name", name}}, t.begun...)
	for _, key := range []string{"env", "secrets", "files", "session"} {
		head.put(key, t.seen[key])
	}
	head.put("messages", t.messages())
	t.clean(head).write(&b, "")
	for i, step := range steps {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("  [[case.step]]\n")
		t.clean(step).write(&b, "  ")
	}
	for _, a := range t.answers {
		b.WriteString("[[case." + a.kind + "]]\n")
		t.clean(a.fields).write(&b, "")
	}
	return t.redact(b.String()), len(t.steps) - len(steps)
}

// clean returns a table with a mark in the place of each secret's value. It looks into
// every text by itself: a value with a quote in it stands in another form in a file.
func (t *Tape) clean(fields table) table {
	cleaned := make(table, len(fields))
	for i, f := range fields {
		cleaned[i] = field{t.redact(f.key), t.cleanValue(f.value)}
	}
	return cleaned
}

func (t *Tape) cleanValue(value any) any {
	switch v := value.(type) {
	case string:
		return t.redact(v)
	case table:
		return t.clean(v)
	case []any:
		cleaned := make([]any, len(v))
		for i, item := range v {
			cleaned[i] = t.cleanValue(item)
		}
		return cleaned
	case map[string]any:
		cleaned := make(map[string]any, len(v))
		for key, item := range v {
			cleaned[t.redact(key)] = t.cleanValue(item)
		}
		return cleaned
	}
	return value
}

func (t *Tape) redact(text string) string {
	if t.secrets == nil {
		return text
	}
	clean, _ := t.secrets.Scanner().Redact(text)
	return clean
}

// messages are those that session.messages gave, as a case has them.
func (t *Tape) messages() []any {
	var all []any
	for _, raw := range t.told {
		m := read[abi.Message](raw)
		all = append(all, *new(table).put("role", m.Role).put("content", m.Content).put("call_id", m.CallID).put("is_error", m.IsError))
	}
	return all
}

// write writes each key on a line.
func (t table) write(b *strings.Builder, indent string) {
	for _, f := range t {
		b.WriteString(indent + tomlKey(f.key) + " = " + tomlValue(f.value) + "\n")
	}
}
