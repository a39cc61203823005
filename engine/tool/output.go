package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Parse reads a model's answer that is to meet the schema: one JSON value, which may
// stand in a code block. An error says what is wrong with it, for the model.
func (s *Schema) Parse(answer string) (json.RawMessage, error) {
	text := unfenced(answer)
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("it is not one JSON value and nothing else: %w", err)
	}
	if nesting(value) > maxNesting {
		return nil, fmt.Errorf("it is nested more than %d deep", maxNesting)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return nil, err
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, errors.New("it must be a JSON object")
	}
	if err := s.Validate(doc); err != nil {
		return nil, describe(err)
	}
	return value, nil
}

// unfenced returns what stands in a text's only code block, or the text.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "```")
	inner, closed := strings.CutSuffix(inner, "```")
	if !ok || !closed {
		return text
	}
	if language, rest, ok := strings.Cut(inner, "\n"); ok && !strings.ContainsAny(language, "{[\"") {
		inner = rest
	}
	return strings.TrimSpace(inner)
}
