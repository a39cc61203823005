package cli

import (
	"bytes"
	"encoding/json"
	"io"
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
	file, err := os.Open(path)
	if err != nil {
		return nil, usagef("--output-schema: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSchema+1))
	if err != nil {
		return nil, usagef("--output-schema: %w", err)
	}
	if len(text) > maxSchema {
		return nil, usagef("--output-schema %q: it is longer than %d bytes, which are the most", path, maxSchema)
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
