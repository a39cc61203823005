package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled input schema. It is safe for concurrent use.
type Schema struct {
	schema *jsonschema.Schema

	mu   sync.Mutex
	left int // steps that the running validation may still take
}

// maxSteps bounds how often a validation looks at a value with a schema. A few
// lines whose references fan out again and again would take years of it.
const maxSteps = 200_000

var errSteps = errors.New("the tool's schema is too much work for them: it refers to itself too often")

// CompileSchema reads an input schema. References to other documents are
// refused: nothing is fetched.
func CompileSchema(schema json.RawMessage) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err == nil {
		err = checkNumbers(doc)
	}
	if err == nil && deeper(doc, deepestSchema) {
		err = fmt.Errorf("it is nested more than %d levels deep: define the parts under $defs, and refer to them", deepestSchema)
	}
	if err != nil {
		return nil, err
	}
	object, ok := doc.(map[string]any)
	if !ok || object["type"] != "object" {
		return nil, errors.New(`it must be a JSON object with "type":"object"`)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refuseLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		return nil, err
	}
	s, seen := &Schema{schema: compiled}, map[*jsonschema.Schema]bool{}
	s.count(reflect.ValueOf(compiled), seen)
	for found := range seen {
		if found.DynamicRef != nil || found.RecursiveRef != nil { // where they lead to is found out later
			return nil, errors.New("it has a $dynamicRef or $recursiveRef: write a $ref")
		}
	}
	return s, nil
}

// deepestSchema is how deep a schema may be nested. The library's work grows so fast
// with the depth that a schema of 64 KiB would keep it busy for hours.
const deepestSchema = 200

// deeper reports whether a document is nested more than so many levels deep.
func deeper(doc any, levels int) bool {
	within := func(v any) bool { return deeper(v, levels-1) }
	switch doc := doc.(type) {
	case []any:
		return levels == 0 || slices.ContainsFunc(doc, within)
	case map[string]any:
		return levels == 0 || slices.ContainsFunc(slices.Collect(maps.Values(doc)), within)
	}
	return false
}

type refuseLoader struct{}

func (refuseLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a reference to %q: only references within the schema are followed", url)
}

// largestExponent is more than any number has that fits into 64 bits. The library
// reads numbers as fractions, and panics at one that is too large for that.
const largestExponent = 400

// checkNumbers refuses numbers that the library cannot read.
func checkNumbers(value any) error {
	switch value := value.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		n, err := strconv.Atoi(cmp.Or(exponent, "0"))
		if err != nil || n < -largestExponent || n > largestExponent {
			return fmt.Errorf("a number has the exponent %.20s, and %d is the most", exponent, largestExponent)
		}
	case []any:
		for _, item := range value {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range value {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate checks a value as jsonschema.UnmarshalJSON reads it.
func (s *Schema) Validate(value any) (err error) {
	if err := checkNumbers(value); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = maxSteps
	defer func() {
		if r := recover(); r == errSteps {
			err = errSteps
		} else if r != nil {
			panic(r)
		}
	}()
	return s.schema.Validate(value)
}

// count makes each schema that can be reached from v take a step. The library can be
// stopped in no other way; the format is the first of what it looks at that calls
// out, before any schema within.
func (s *Schema) count(v reflect.Value, seen map[*jsonschema.Schema]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		found, ok := v.Interface().(*jsonschema.Schema)
		if !ok || found == nil || seen[found] {
			return
		}
		seen[found] = true
		for i := range v.Elem().NumField() {
			if v.Elem().Type().Field(i).IsExported() {
				s.count(v.Elem().Field(i), seen)
			}
		}
		found.Format = s.stepping(found.Format)
	case reflect.Interface:
		s.count(v.Elem(), seen)
	case reflect.Slice:
		for i := range v.Len() {
			s.count(v.Index(i), seen)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			s.count(v.MapIndex(key), seen)
		}
	}
}

// stepping is a format that takes a step, and then asks the one that was there.
func (s *Schema) stepping(format *jsonschema.Format) *jsonschema.Format {
	name := "step"
	if format != nil {
		name = format.Name
	}
	return &jsonschema.Format{Name: name, Validate: func(v any) error {
		if s.left--; s.left < 0 {
			panic(errSteps)
		}
		if format == nil {
			return nil
		}
		return format.Validate(v)
	}}
}
