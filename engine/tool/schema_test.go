package tool

import (
	"fmt"
	"strings"
	"testing"
)

// fanOut is a schema that the tool's author can write in a few lines, and that
// takes 2 to the power of n steps to look at anything.
func fanOut(n int, draft, leaf string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{%s"type":"object","allOf":[{"$ref":"#/definitions/a0"}],"definitions":{`, draft)
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{"anyOf":[{"not":{"$ref":"#/definitions/a%d"}},{"not":{"$ref":"#/definitions/a%[2]d"}}]},`, i, i+1)
	}
	fmt.Fprintf(&b, `"a%d":%s}}`, n, leaf)
	return b.String()
}

// A schema cannot hold up the engine, however it is written; a plain one takes
// arguments of any size that a model writes.
func TestSchemaSteps(t *testing.T) {
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	const recursive = `{"type":"object","allOf":[{"additionalProperties":{"$ref":"#"}},{"additionalProperties":{"$ref":"#"}}]}`
	list := `{"type":"object","properties":{"of":{"type":"array","items":{"type":"integer","format":"int32"}}}}`
	tests := []struct{ name, schema, arguments, want string }{
		{"references that fan out", fanOut(60, "", `{"type":"object"}`), `{}`, errSteps.Error()},
		{"references that fan out in an older draft", fanOut(60, draft7, `{"type":"object"}`), `{}`, errSteps.Error()},
		{"references that fan out to what never fits", fanOut(60, draft7, `{"type":"string"}`), `{}`, errSteps.Error()},
		{"references that fan out to nothing", fanOut(60, "", `false`), `{}`, errSteps.Error()},
		{"nested arguments that fan out", recursive, strings.Repeat(`{"a":`, 60) + "{}" + strings.Repeat("}", 60), errSteps.Error()},
		{"a few references", fanOut(4, "", `{"type":"object"}`), `{}`, ""},
		{"a long list", list, `{"of":[` + strings.Repeat("1,", 150_000) + "1]}", ""},
		{"a format that is none here", list, `{"of":[1]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &Registry{}
			if err := r.Add(named{"x", tt.schema}); err != nil {
				t.Fatal(err)
			}
			_, err := r.check("x", tt.arguments)
			if got := fmt.Sprint(err); got != tt.want && !(err == nil && tt.want == "") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDynamicReferencesAreRefused(t *testing.T) {
	const want = "it has a $dynamicRef or $recursiveRef: write a $ref"
	for _, schema := range []string{
		`{"type":"object","$dynamicAnchor":"a","properties":{"x":{"$dynamicRef":"#a"}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"x":{"$recursiveRef":"#"}}}`,
	} {
		if _, err := CompileSchema([]byte(schema)); err == nil || err.Error() != want {
			t.Errorf("CompileSchema(%s): %v; want %s", schema, err, want)
		}
	}
}

// A number of a few characters can be larger than any memory.
func TestHugeNumbers(t *testing.T) {
	for _, number := range []string{"1e-99999999", "1E+999999999", "-1e99999999999999999999"} {
		if _, err := CompileSchema([]byte(`{"type":"object","properties":{"n":{"multipleOf":` + number + `}}}`)); err == nil || !strings.HasPrefix(err.Error(), "a number has the exponent ") {
			t.Errorf("a schema with %s: %v", number, err)
		}
		r := &Registry{}
		if err := r.Add(named{"x", `{"type":"object","properties":{"n":{"minimum":1e-3}}}`}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.check("x", `{"n":`+number+`,"o":[1,2e300],"m":{"n":[`+number+`]}}`); err == nil || !strings.HasPrefix(err.Error(), "a number has the exponent ") {
			t.Errorf("arguments with %s: %v", number, err)
		}
	}
}
