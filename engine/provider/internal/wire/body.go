package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Body returns a request's body: what an SDK makes of params, and then the fields,
// which go before those of the same name in params. Equal requests give equal
// bytes; the SDKs' own way with fields that they do not know gives them in any
// order.
func Body(params any, fields map[string]any) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, Invalid("the request cannot be encoded: "+err.Error(), "report this as a bug")
	}
	names := slices.Sorted(maps.Keys(fields))
	if slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(body, Marshal(name)) }) {
		if body, err = without(body, names); err != nil {
			return nil, err
		}
	}
	out := bytes.TrimSuffix(body, []byte("}"))
	for _, name := range names {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, Marshal(name)...), ':'), Marshal(fields[name])...)
	}
	return append(out, '}'), nil
}

// without returns an object without the fields of some names.
func without(object []byte, names []string) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, Invalid("the request cannot be encoded: "+err.Error(), "report this as a bug")
	}
	for _, name := range names {
		delete(all, name)
	}
	return Marshal(all), nil
}
