package exttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
)

// payloadOf makes the payload of a hook: a table is completed and checked, a
// string is sent as it is.
func payloadOf(info hook.Info, value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return []byte(v), nil
	case nil:
		value = map[string]any{}
	case map[string]any:
	default:
		return nil, errors.New("write a table with its keys, or a string to be sent as it is")
	}
	if info.Raw {
		return nil, fmt.Errorf("%s gets plain text: write a string", info.Point)
	}
	raw, err := encodeTOML(value)
	if err != nil {
		return nil, err
	}
	return ParsePayload(info, raw)
}

// arguments makes the arguments of a tool.
func (p *parser) arguments(form stepForm) ([]byte, error) {
	switch v := form.Arguments.(type) {
	case string:
		return []byte(v), nil
	case nil:
		return []byte("{}"), nil
	case map[string]any:
		return encodeTOML(v)
	default:
		return nil, errors.New("write a table, or a string with them as the model wrote them")
	}
}

// encodeTOML makes JSON of a value of TOML, which has more kinds of them.
func encodeTOML(value any) (json.RawMessage, error) {
	if err := checkJSON(value); err != nil {
		return nil, err
	}
	return encode(value)
}

func checkJSON(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if err := checkJSON(v[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkJSON(item); err != nil {
				return err
			}
		}
	case []map[string]any:
		for _, item := range v {
			if err := checkJSON(item); err != nil {
				return err
			}
		}
	case time.Time:
		return errors.New("JSON has no dates: write a string")
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("JSON has no such number")
		}
	}
	return nil
}
