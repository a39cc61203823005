package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

// A schema that is nested deep is refused at once: to compile it would take hours.
func TestDeepSchemas(t *testing.T) {
	nested := func(levels int) json.RawMessage {
		return json.RawMessage(`{"type":"object",` + strings.Repeat(`"not":{`, levels) + strings.Repeat("}", levels) + "}")
	}
	if _, err := CompileSchema(nested(deepestSchema - 1)); err != nil {
		t.Errorf("CompileSchema of %d levels: %v", deepestSchema, err)
	}
	const want = "it is nested more than 200 levels deep: define the parts under $defs, and refer to them"
	for _, schema := range []json.RawMessage{nested(deepestSchema), nested(8000), json.RawMessage(`{"type":"object","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}")} {
		if _, err := CompileSchema(schema); err == nil || err.Error() != want {
			t.Errorf("CompileSchema of %.30s… = %v; want %s", schema, err, want)
		}
	}
}
