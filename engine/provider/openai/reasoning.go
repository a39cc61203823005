package openai

import (
	"encoding/json"

	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
)

// maxDetails is how many pieces of reasoning one reply may keep apart.
const maxDetails = 1000

// reasoning is an entry of the list reasoning_details, or a piece of one.
type reasoning map[string]json.RawMessage

// UnmarshalJSON takes an object; anything else is an empty entry.
func (r *reasoning) UnmarshalJSON(raw []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		fields = nil
	}
	*r = fields
	return nil
}

// detail adds pieces to the entries that they belong to: those of the same type
// and index. Texts are joined, whatever else there is stays as it came first.
func (a *assembler) detail(pieces []reasoning) {
	for _, piece := range pieces {
		if len(piece) == 0 {
			continue
		}
		if n := len(a.details); n > 0 && a.details[n-1].goesOn(piece) {
			a.details[n-1].join(piece)
		} else if n < maxDetails {
			a.details = append(a.details, piece)
		}
	}
}

func (r reasoning) goesOn(piece reasoning) bool {
	id, other := asText(r["id"]), asText(piece["id"])
	return string(r["type"]) == string(piece["type"]) && string(r["index"]) == string(piece["index"]) &&
		(id == "" || other == "" || id == other)
}

func (r reasoning) join(piece reasoning) {
	for name, value := range piece {
		switch name {
		case "text", "summary", "data":
			r[name] = wire.Marshal(asText(r[name]) + asText(value))
		default:
			if old := string(r[name]); old == "" || old == "null" {
				r[name] = value
			}
		}
	}
}

// extra returns how the reasoning came, for the way back.
func (a *assembler) extra() json.RawMessage {
	was := thoughts{Model: a.model, Field: a.thoughts}
	if len(a.details) > 0 {
		was.Details = wire.Marshal(a.details)
	}
	if was.Field == "" && was.Details == nil {
		return nil
	}
	return wire.Marshal(map[string]thoughts{chatAPI: was})
}
