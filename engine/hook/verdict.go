package hook

import "encoding/json"

// Decision is the word of a [Verdict].
type Decision string

// The decisions. Which of them a point takes stands in [Points]; no decision
// is no opinion.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
	Ask   Decision = "ask"
	Block Decision = "block"
)

// Verdict is what a hook answers, in JSON. Every field is optional.
type Verdict struct {
	Decision Decision                   `json:"decision"`
	Reason   string                     `json:"reason"`
	Replace  map[string]json.RawMessage `json:"replace"`
	Context  string                     `json:"context"`
	Error    string                     `json:"error"` // the hook's own failure
}
