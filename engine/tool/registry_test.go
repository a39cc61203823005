package tool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/session"
)

type named struct{ name, schema string }

func (n named) Spec() Spec {
	return Spec{Tool: session.Tool{Name: n.name, InputSchema: json.RawMessage(n.schema)}}
}
func (named) Run(context.Context, Call) (Result, error) { return Result{}, nil }

const objectSchema = `{"type":"object","properties":{"path":{"type":"string"},"options":{"type":"object","properties":{"depth":{"type":"integer"}}}},"required":["path"]}`

func TestCheckNamesTheField(t *testing.T) {
	var r Registry
	if err := r.Add(named{"look", objectSchema}); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, raw, want string }{
		{"a missing field", `{}`, `the arguments of look do not fit: missing "path"`},
		{"no arguments at all", ` `, `the arguments of look do not fit: missing "path"`},
		{"a wrong type", `{"path":1}`, `the arguments of look do not fit: "path": got number, want string`},
		{"a wrong type further in", `{"path":"x","options":{"depth":"deep"}}`, `the arguments of look do not fit: "options.depth": got string, want integer`},
		{"no object", `"path"`, `the arguments of look do not fit: they must be a JSON object`},
		{"null", `null`, `the arguments of look do not fit: they must be a JSON object`},
		{"no JSON", `{'path':'x'}`, `the arguments of look do not fit: they are no JSON: invalid character '\'' looking for beginning of object key string`},
		{"a pit", `{"path":"[[[\"","options":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, `the arguments of look do not fit: they are nested more than 500 deep`},
		{"more than JSON", `{"path":"x"} ok`, `the arguments of look do not fit: they are no JSON: invalid character 'o' after top-level value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, bad := r.Check("look", tt.raw)
			if bad == nil || bad.Content != tt.want || bad.Code != InvalidArgs || !bad.IsError {
				t.Errorf("Check(%s) = %+v; want %s", tt.raw, bad, tt.want)
			}
		})
	}
	for raw, want := range map[string]string{
		`{ "path" : "a && b <c>" }`:             `{"path":"a && b <c>"}`,
		`{"path":"harmless","path":"harmful"}`:  `{"path":"harmful"}`,
		`{"path":"x","n":12345678901234567890}`: `{"n":12345678901234567890,"path":"x"}`,
	} {
		if args, bad := r.Check("look", raw); bad != nil || string(args) != want {
			t.Errorf("Check(%s) = %s, %v; want %s", raw, args, bad, want)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	var r Registry
	if err := r.Add(named{"look", objectSchema}); err != nil {
		t.Fatal(err)
	}
	for schema, want := range map[string]string{
		objectSchema:        `add tool "look": there is a tool of that name already`,
		`{"type":"object"`:  `add tool "other": input schema: unexpected EOF`,
		`{"type":"string"}`: `add tool "other": input schema: it must be a JSON object with "type":"object"`,
	} {
		name := "other"
		if schema == objectSchema {
			name = "look"
		}
		if err := r.Add(named{name, schema}); err == nil || err.Error() != want {
			t.Errorf("Add(%s, %s): %v; want %s", name, schema, err, want)
		}
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		`{"type":"object","required":7}`,
	} {
		if err := r.Add(named{"other", schema}); err == nil {
			t.Errorf("Add took the schema %s", schema)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"read_file", "write_file", "edit_file", "list_dir", "exec"}
	for name, want := range map[string][]string{
		"readfile": {"read_file"}, "Exec": {"exec"}, "exe": {"exec"}, "fil": {"read_file", "edit_file", "write_file"}, "bash": {}, "": {}, "foo": {}, "exce": {"exec"},
	} {
		if got := Nearest(name, known); !slices.Equal(got, want) {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	var r Registry
	if err := r.Add(named{"look", objectSchema}); err != nil {
		f.Fatal(err)
	}
	f.Add(`{"path":"x"}`)
	f.Add(`{"path":"x","path":1}`)
	f.Fuzz(func(t *testing.T, raw string) {
		args, bad := r.Check("look", raw)
		if bad == nil && (!json.Valid(args) || args[0] != '{') {
			t.Errorf("Check(%q) let %q through", raw, args)
		}
	})
}
