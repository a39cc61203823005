package tool

import "testing"

func TestParseAnswer(t *testing.T) {
	schema, err := CompileSchema([]byte(`{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, answer, want, err string }{
		{"an object", ` {"size": 3} `, `{"size": 3}`, ""},
		{"in a code block", "```json\n{\"size\":3}\n```", `{"size":3}`, ""},
		{"in one without a language", "```{\"size\":3}```", `{"size":3}`, ""},
		{"with a remark", `Here: {"size":3}`, "", "it is not one JSON value and nothing else: invalid character 'H' looking for beginning of value"},
		{"two of them", `{"size":3}{"size":3}`, "", "it is not one JSON value and nothing else: invalid character '{' after top-level value"},
		{"a field that is missing", `{}`, "", `missing "size"`},
		{"a field of another type", `{"size":"3"}`, "", `"size": got string, want integer`},
		{"a list", `[3]`, "", "it must be a JSON object"},
		{"nothing", "", "", "it is not one JSON value and nothing else: unexpected end of JSON input"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := schema.Parse(tt.answer)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if string(got) != tt.want || text != tt.err {
				t.Errorf("Parse(%q) = %s, %q; want %s, %q", tt.answer, got, text, tt.want, tt.err)
			}
		})
	}
}
