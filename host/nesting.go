package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// limitNesting bounds how deep a manifest and a schema may be nested. What
// reads them takes time and memory with the second or third power of that.
const limitNesting = 64

// checkNesting refuses a TOML text with deeper brackets, or longer dotted
// keys, before anything else reads it. It returns the line.
func checkNesting(text string) (line int, err error) {
	line = 1
	depth, dots := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '#':
			i += len(until(text[i:], "\n"))
			i--
		case '"', '\'':
			skipped := tomlString(text[i:])
			line += strings.Count(text[i:i+skipped], "\n")
			i += skipped - 1
		case '\n', '=', ',':
			dots = 0
			if c == '\n' {
				line++
			}
		case '[', '{':
			depth++
			dots = 0
		case ']', '}':
			depth--
			dots = 0
		case '.':
			dots++
		}
		if max(depth, dots) > limitNesting {
			return line, fmt.Errorf("it is nested deeper than %d levels", limitNesting)
		}
	}
	return 0, nil
}

// tomlString returns the length of the string that text begins with. One
// without end goes to the end of its line, or of the text; it is an error of
// its own.
func tomlString(text string) int {
	mark := text[:1]
	if strings.HasPrefix(text, strings.Repeat(mark, 3)) {
		mark = text[:3]
	}
	for i := len(mark); i < len(text); i++ {
		switch {
		case text[i] == '\\' && mark[0] == '"':
			i++
		case text[i] == '\n' && len(mark) == 1:
			return i
		case strings.HasPrefix(text[i:], mark):
			for len(mark) == 3 && strings.HasPrefix(text[i+1:], mark) { // """" ends with two quotes inside
				i++
			}
			return i + len(mark)
		}
	}
	return len(text)
}

func until(text, mark string) string {
	before, _, _ := strings.Cut(text, mark)
	return before
}

// checkSchemaNesting does the same for JSON.
func checkSchemaNesting(schema string) error {
	d := json.NewDecoder(bytes.NewReader([]byte(schema)))
	depth := 0
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case token == json.Delim('{'), token == json.Delim('['):
			depth++
		case token == json.Delim('}'), token == json.Delim(']'):
			depth--
		}
		if depth > limitNesting {
			return fmt.Errorf("it is nested deeper than %d levels", limitNesting)
		}
	}
}

// CheckNesting refuses a TOML text that is nested so deeply that reading it could
// take too long, or too much of the stack.
func CheckNesting(text string) error {
	if line, err := checkNesting(text); err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return nil
}
