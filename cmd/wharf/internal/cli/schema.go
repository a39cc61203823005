package cli

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/wharf-agent/wharf/engine/tool"
)

// maxSchema is how many bytes a schema of the answer may have.
const maxSchema = 64 << 10

// readSchema reads the file of --output-schema; none if path is empty.
func readSchema(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--output-schema: %w", err)
	}
	if len(text) > maxSchema {
		return nil, usagef("--output-schema %q: it has %d bytes, and %d is the most", path, len(text), maxSchema)
	}
	if _, err := tool.CompileSchema(text); err != nil {
		return nil, usagef("--output-schema %q: %w", path, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, usagef("--output-schema %q: %w", path, err)
	}
	return compact.Bytes(), nil
}
