package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// compileOutput compiles the schema that answers must meet, if there is one.
func (c Config) compileOutput() (*tool.Schema, error) {
	if c.Options.OutputSchema == nil {
		return nil, nil
	}
	schema, err := tool.CompileSchema(c.Options.OutputSchema)
	if err != nil {
		return nil, fmt.Errorf("engine: the output schema: %w", err)
	}
	return schema, nil
}

// meet holds a final answer to the output schema. The first that does not meet it
// is asked for again; with the second the turn ends, and says what is wrong.
func (t *turn) meet(ctx context.Context, r reply) (again bool, err error) {
	t.limit = nil
	if t.schema == nil || t.replay.masked(t) {
		return false, nil
	}
	_, wrong := t.schema.Parse(t.whole(r.Text))
	switch {
	case wrong == nil:
		return false, nil
	case t.unmet:
		t.limit = &endError{session.ModelError, fmt.Errorf("the answer does not meet the output schema, asked for a second time: %w", wrong)}
		return false, nil
	}
	t.unmet, t.parts = true, nil
	if _, err := t.keep(ctx, r); err != nil {
		return false, err
	}
	return true, t.record(session.UserMessage{Content: "Your answer does not meet the JSON Schema that was asked for: " +
		wrong.Error() + ". Answer again, with one JSON object that meets it and nothing else.", Origin: "engine", Delivery: "step"})
}

// answered says what is wrong with the turn's answer: nil if it is whole and, as
// the last hook left it, meets the output schema.
func (t *turn) answered() error {
	if t.limit != nil || t.unreached() != nil || t.schema == nil {
		return cmp.Or(t.limit, t.unreached())
	}
	value, wrong := t.schema.Parse(t.text)
	if wrong != nil {
		return &endError{session.ModelError, fmt.Errorf("the answer does not meet the output schema: %w", wrong)}
	}
	t.output = value
	return nil
}
