package exttest

import (
	"errors"
	"fmt"
	"strings"
)

// place is where a table or key of a file of cases stands.
type place struct {
	path       string // such as case.0.step.1.verdict
	line       int    // counts from 1
	start, end int    // of the line, or lines, with the line break
	value      [2]int // of a key's value; both 0 of a table
}

// layout is where all that is in a file stands. The TOML library does not tell,
// and what an update leaves alone must stay as it is, comments and all.
type layout struct {
	text   string
	places []place
	counts map[string]int // of arrays of tables, by path
}

// The limits of a file of cases.
const (
	maxFile    = 4 << 20
	maxNesting = 64
)

var errNesting = errors.New("it is nested too deeply")

// readLayout finds the tables and keys of a text. What is no TOML, it takes for
// something; the library says what is wrong. The error has the line.
func readLayout(text string) (*layout, error) {
	l := &layout{text: text, counts: map[string]int{}}
	table, line := "", 1
	for at := 0; at < len(text); {
		start := at
		end, equals, err := statement(text, at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		statement := strings.TrimSpace(text[start:end])
		switch {
		case statement == "" || statement[0] == '#':
		case statement[0] == '[':
			table = l.header(statement)
			l.places = append(l.places, place{path: table, line: line, start: start, end: end})
		case equals > 0:
			value := valueSpan(text, equals+1, end)
			path := join(table, keyName(text[start:equals]))
			l.places = append(l.places, place{path: path, line: line, start: start, end: end, value: value})
		}
		line += strings.Count(text[start:end], "\n")
		at = end
	}
	return l, nil
}

// statement returns where what begins at a place ends: behind the end of the line
// on which all its brackets and strings are closed; and where its = is.
func statement(text string, at int) (end, equals int, err error) {
	depth, dots := 0, 0
	for i := at; i < len(text); i++ {
		switch c := text[i]; c {
		case '#':
			i += len(line(text[i:])) - 1
		case '"', '\'':
			i += stringLength(text[i:]) - 1
		case '=':
			if equals == 0 && depth == 0 {
				equals = i
			}
			dots = 0
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '.':
			dots++
		case ',':
			dots = 0
		case '\n':
			dots = 0
			if depth <= 0 {
				return i + 1, equals, nil
			}
		}
		if max(depth, dots) > maxNesting {
			return 0, 0, errNesting
		}
	}
	return len(text), equals, nil
}

// line returns what text has before the end of its first line.
func line(text string) string {
	before, _, _ := strings.Cut(text, "\n")
	return before
}

// stringLength returns the length of the string that text begins with. One
// without an end goes to the end of the line, or of the text.
func stringLength(text string) int {
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
			i += len(mark)
			for n := 0; n < 2 && len(mark) == 3 && i < len(text) && text[i] == mark[0]; n++ { // """" ends with a quote inside
				i++
			}
			return i
		}
	}
	return len(text)
}

// valueSpan returns where a value is, without blanks around it or a comment
// behind it.
func valueSpan(text string, from, end int) [2]int {
	for from < end && (text[from] == ' ' || text[from] == '\t') {
		from++
	}
	last, depth := from, 0
	for i := from; i < end; i++ {
		switch c := text[i]; c {
		case '#':
			if depth == 0 {
				return [2]int{from, last}
			}
			i += len(line(text[i:])) - 1
			continue
		case '"', '\'':
			i = min(i+stringLength(text[i:]), end) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ' ', '\t', '\r', '\n':
			continue
		}
		last = i + 1
	}
	return [2]int{from, last}
}

// header enters a table and returns its path.
func (l *layout) header(statement string) string {
	array := strings.HasPrefix(statement, "[[")
	name, _, _ := strings.Cut(strings.TrimLeft(statement, "["), "]")
	path := ""
	parts := strings.Split(name, ".")
	for i, part := range parts {
		path = join(path, keyName(part))
		if array && i == len(parts)-1 {
			n := l.counts[path]
			l.counts[path]++
			return fmt.Sprintf("%s.%d", path, n)
		}
		if n := l.counts[path]; n > 0 {
			path = fmt.Sprintf("%s.%d", path, n-1)
		}
	}
	return path
}

func join(table, key string) string { return strings.TrimPrefix(table+"."+key, ".") }

// keyName is a key without the quotes and blanks that it may have.
func keyName(key string) string {
	parts := strings.Split(key, ".")
	for i, part := range parts {
		parts[i] = strings.Trim(part, " \t\"'\r")
	}
	return strings.Join(parts, ".")
}

// find returns the place of a path.
func (l *layout) find(path string) (place, bool) {
	for _, p := range l.places {
		if p.path == path {
			return p, true
		}
	}
	return place{}, false
}

// line returns the line of a path, or of the nearest thing around it.
func (l *layout) line(path string) int {
	for ; path != ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
		if p, ok := l.find(path); ok {
			return p.line
		}
	}
	return 1
}
