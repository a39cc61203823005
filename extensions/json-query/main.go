//go:build wasip1

// Command json-query is a tool in Go that carries a large library: it runs a
// query of jq's language over JSON, by github.com/itchyny/gojq.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"

	wharf "github.com/wharf-agent/wharf/guest-sdk/go"
)

// maxOutput leaves room in an answer for what JSON escapes.
const maxOutput = 256 << 10

type arguments struct {
	Query string `json:"query"`
	Input string `json:"input"`
}

func init() {
	wharf.Tool("json_query", func(a arguments) (wharf.Result, error) {
		text, err := run(a.Query, a.Input)
		return wharf.Result{Content: text}, err
	})
}

// run gives each value of input to the query, and returns all results, one a line.
func run(query, input string) (string, error) {
	parsed, err := gojq.Parse(query)
	if err != nil {
		return "", fmt.Errorf("read the query: %w", err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return "", fmt.Errorf("read the query: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(input)))
	d.UseNumber()
	var out bytes.Buffer
	for {
		var value any
		if err := d.Decode(&value); errors.Is(err, io.EOF) {
			return out.String(), nil
		} else if err != nil {
			return "", fmt.Errorf("read the input: %w", err)
		}
		if err := results(&out, code.Run(value)); err != nil {
			return "", err
		}
	}
}

// results writes what the query gives for one value.
func results(out *bytes.Buffer, all gojq.Iter) error {
	for {
		value, ok := all.Next()
		if !ok {
			return nil
		}
		if err, failed := value.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return nil
			}
			return fmt.Errorf("run the query: %w", err)
		}
		text, err := gojq.Marshal(value)
		if err != nil {
			return err
		}
		if out.Len()+len(text) >= maxOutput {
			return fmt.Errorf("the results have more than %d KiB: narrow the query", maxOutput>>10)
		}
		out.Write(append(text, '\n'))
	}
}

func main() {}
