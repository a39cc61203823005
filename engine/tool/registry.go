package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/wharf-agent/wharf/engine/session"
)

// Registry holds the tools of a session in the order in which they were
// added, which is the order that the model sees: a stable prompt can be cached.
// It is filled before it is used and safe for concurrent reading.
type Registry struct {
	entries []entry
	byName  map[string]int
}

type entry struct {
	tool   Tool
	schema *Schema
}

// Add adds a tool. Its schema must be one, and its name must be new: nothing
// is shadowed.
func (r *Registry) Add(t Tool) error {
	spec := t.Spec()
	if _, taken := r.byName[spec.Name]; taken {
		return fmt.Errorf("add tool %q: there is a tool of that name already", spec.Name)
	}
	schema, err := CompileSchema(spec.InputSchema)
	if err != nil {
		return fmt.Errorf("add tool %q: input schema: %w", spec.Name, err)
	}
	if r.byName == nil {
		r.byName = map[string]int{}
	}
	r.byName[spec.Name] = len(r.entries)
	r.entries = append(r.entries, entry{t, schema})
	return nil
}

// EndTurn tells each [TurnEnder] that a turn has ended.
func (r *Registry) EndTurn(ctx context.Context) {
	for _, e := range r.entries {
		if t, ok := e.tool.(TurnEnder); ok {
			t.EndTurn(ctx)
		}
	}
}

// Close closes the tools that can be closed, in the order in which they were added. No
// tool may be used after it.
func (r *Registry) Close() error {
	var failures []error
	for _, e := range r.entries {
		if t, ok := e.tool.(io.Closer); ok {
			failures = append(failures, t.Close())
		}
	}
	return errors.Join(failures...)
}

// Specs returns what the model is told of each tool.
func (r *Registry) Specs() []session.Tool {
	specs := make([]session.Tool, len(r.entries))
	for i, e := range r.entries {
		specs[i] = e.tool.Spec().Tool
	}
	return specs
}

// Lookup finds the tool of that name. If there is none, the result says so and
// names the nearest.
func (r *Registry) Lookup(name string) (Tool, *Result) {
	if i, ok := r.byName[name]; ok {
		return r.entries[i].tool, nil
	}
	text := fmt.Sprintf("there is no tool %q", clip(name))
	known := make([]string, len(r.entries))
	for i, e := range r.entries {
		known[i] = e.tool.Spec().Name
	}
	if near := Nearest(name, known); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return nil, &Result{Content: text, IsError: true, Code: UnknownTool}
}

// clip cuts a name that a model made up to what is worth repeating.
func clip(name string) string {
	const longest = 100
	if len(name) <= longest {
		return name
	}
	return strings.ToValidUTF8(name[:longest], "") + "…"
}

// Check checks raw arguments against the tool's schema and returns them in one
// canonical form, in which no key stands twice: a guard and the tool must not
// read different values. Empty arguments are an empty object. If they do not
// meet the schema, the result names the field.
func (r *Registry) Check(name, raw string) (json.RawMessage, *Result) {
	args, err := r.check(name, raw)
	if err != nil {
		return nil, &Result{
			Content: fmt.Sprintf("the arguments of %s do not fit: %v", name, err), IsError: true, Code: InvalidArgs,
		}
	}
	return args, nil
}

func (r *Registry) check(name, raw string) (json.RawMessage, error) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(raw), &whole); err != nil {
		return nil, fmt.Errorf("they are no JSON: %w", err)
	}
	if nesting(whole) > maxNesting {
		return nil, fmt.Errorf("they are nested more than %d deep", maxNesting)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(whole))
	if err != nil {
		return nil, err
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, errors.New("they must be a JSON object")
	}
	i, ok := r.byName[name]
	if !ok {
		return nil, errors.New("there is no such tool")
	}
	if err := r.entries[i].schema.Validate(value); err != nil {
		return nil, describe(err)
	}
	var canonical bytes.Buffer
	enc := json.NewEncoder(&canonical)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(canonical.Bytes(), []byte("\n")), nil
}

// maxNesting bounds how deep arguments may be nested: what wraps them must
// stay within what JSON readers take.
const maxNesting = 500

// nesting returns how deep a JSON value is nested.
func nesting(value []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

var english = message.NewPrinter(language.English)

// describe turns a validation error into one line that names each field.
func describe(err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var lines []string
	collect(invalid, &lines)
	slices.Sort(lines)
	return errors.New(strings.Join(slices.Compact(lines), "; "))
}

func collect(e *jsonschema.ValidationError, lines *[]string) {
	for _, cause := range e.Causes {
		collect(cause, lines)
	}
	if len(e.Causes) > 0 {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		*lines = append(*lines, "missing "+quoteFields(e.InstanceLocation, k.Missing))
	case *kind.AdditionalProperties:
		*lines = append(*lines, "unknown field "+quoteFields(e.InstanceLocation, k.Properties))
	default:
		where := "the object"
		if len(e.InstanceLocation) > 0 {
			where = quoteFields(nil, []string{strings.Join(e.InstanceLocation, ".")})
		}
		*lines = append(*lines, where+": "+e.ErrorKind.LocalizedString(english))
	}
}

func quoteFields(at, names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", strings.Join(append(slices.Clone(at), name), "."))
	}
	return strings.Join(quoted, ", ")
}

// Nearest returns up to three of the known names that name may be a
// misspelling of, the likeliest first.
func Nearest(name string, known []string) []string {
	type scored struct {
		name     string
		distance int
	}
	var near []scored
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); alike(name, k, d) {
			near = append(near, scored{k, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.distance - b.distance })
	names := make([]string, 0, 3)
	for _, s := range near[:min(3, len(near))] {
		names = append(names, s.name)
	}
	return names
}

// alike reports whether name, d changes away from known, may be meant as it.
func alike(name, known string, d int) bool {
	switch {
	case name == "" || known == "":
		return false
	case len(name) > 2 && (strings.Contains(known, name) || strings.Contains(name, known)):
		return true
	case d > max(2, len(known)/3):
		return false
	}
	// Two changes make another word of a short one, unless it begins the same.
	return d <= 1 || len(known) > 5 || strings.EqualFold(name[:1], known[:1])
}

// distance is Levenshtein's, over bytes, of names cut to a sane length.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
