// Package conformance is the contract between host and guests as data: what a
// guest does, and what the host makes of it.
//
// Each [Vector] gives a guest a script and says what must come of it. Every SDK
// has a guest that obeys such scripts, and all of them must pass every vector on
// the real host.
package conformance

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.json
var files embed.FS

// Vector is one case. It has either a point or a tool.
type Vector struct {
	Name    string          `json:"name"`
	Point   string          `json:"point"`
	Tool    string          `json:"tool"`
	Payload json.RawMessage `json:"payload"` // of a point with JSON; the script comes to it as session_id
	Do      string          `json:"do"`      // the script, one instruction a line
	Grant   string          `json:"grant"`   // "none": nothing that the guest asks for; else all

	// What must come of it. In texts, … stands for anything.
	Answer  json.RawMessage `json:"answer"`  // of a hook; absent: no opinion
	Failure string          `json:"failure"` // of a hook
	Result  json.RawMessage `json:"result"`  // of a tool: {"content","is_error","code"}
	Logged  [][2]string     `json:"logged"`  // level and text
}

// The instructions of a script:
//
//	none                no opinion
//	answer JSON         answers exactly that
//	log LEVEL TEXT      logs a text
//	operate OP REQUEST  runs a host operation, and logs its status and response
//	read KEY            logs the JSON of one key of the payload; of a tool, it is the content
//	spin, trap          never ends; traps

// Vectors returns all vectors, in the order of the files' names.
func Vectors() ([]Vector, error) {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return nil, err
	}
	var all []Vector
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		var some []Vector
		if err := d.Decode(&some); err != nil {
			return nil, fmt.Errorf("conformance vectors %s: %w", name, err)
		}
		all = append(all, some...)
	}
	return all, nil
}
