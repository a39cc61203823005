// Package quirks replays what servers get wrong, for tests.
//
// A [Case] is a file of testdata: what a Chat Completions server on loopback
// answers in each run of the program, and what must come of it. A [Server] plays
// the server's part and looks at every request as a strict one would. [Check]
// compares an [Outcome], which is all that a user can see of the runs, with what
// the case expects. Nothing here knows how Wharf works inside.
package quirks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Case is a quirk: what a server does, and what should come of it.
type Case struct {
	ID     string            `json:"id"`
	Name   string            `json:"name"`
	Kind   string            `json:"kind"`
	Input  string            `json:"input"`   // what the server does, in words
	Right  string            `json:"right"`   // what should come of it, in words
	Files  map[string]string `json:"files"`   // in the workspace, besides the ones that are always there
	Model  string            `json:"model"`   // "" means mock
	Args   []string          `json:"args"`    // more flags
	LimitS int               `json:"limit_s"` // seconds for one run; 0 means 30
	// Settings that the case needs, by a neutral name; the configuration key is
	// for the product to choose.
	Settings map[string]string `json:"settings"`
	Runs     []Run             `json:"runs"`
	Guards   []Guard           `json:"guards"`
	Expect   Expect            `json:"expect"`
}

// Run is one invocation of the program.
type Run struct {
	Prompt  string            `json:"prompt"`
	Resume  bool              `json:"resume"`  // go on with the last session
	Ends    string            `json:"ends"`    // how it ends, if it is not the last: success, error or any
	Signal  *Signal           `json:"signal"`  // that is sent to it
	Replies []json.RawMessage `json:"replies"` // each a [Reply], with placeholders
}

// Signal is sent to the program so long after a request came or a file appeared.
type Signal struct {
	Name    string `json:"name"`    // INT or KILL
	Request int    `json:"request"` // of the run, from 1 on
	File    string `json:"file"`    // in the workspace
	AfterMS int    `json:"after_ms"`
}

// Reply is one answer of the server. Of Chunks, Body and Completion one is set,
// or none.
type Reply struct {
	Status     int               `json:"status"` // 0 means 200
	Headers    map[string]string `json:"headers"`
	Chunks     []Chunk           `json:"chunks"`
	Body       *string           `json:"body"`       // sent as it is
	Completion json.RawMessage   `json:"completion"` // a whole answer
	Loop       bool              `json:"loop"`       // the same answer for ever
	End        string            `json:"end"`        // "", eof, cut, reset, stall or drop
}

// Chunk is one piece of an event stream.
type Chunk struct {
	Delta   json.RawMessage `json:"delta"`    // an event in the usual envelope
	Finish  string          `json:"finish"`   // likewise
	JSON    json.RawMessage `json:"json"`     // exactly this event
	Raw     string          `json:"raw"`      // these bytes
	Done    bool            `json:"done"`     // the end mark
	PauseMS int             `json:"pause_ms"` // before it
	Split   int             `json:"split"`    // bytes a write; 0 means all at once
}

// Expect says what must hold. What is absent is not checked.
type Expect struct {
	Calls     []CallExpect    `json:"calls"` // exactly these tool.call events, in all runs together
	Outcome   string          `json:"outcome"`
	Exit      []int           `json:"exit"`
	Reasons   []string        `json:"reasons"`
	Text      *string         `json:"text"`
	TextHas   []string        `json:"text_has"`
	TextLacks []string        `json:"text_lacks"`
	Told      []string        `json:"told"`    // on stderr or in the text
	ToldRE    string          `json:"told_re"` // a pattern for stderr
	LogHas    []string        `json:"log_has"`
	LogLacks  []string        `json:"log_lacks"`
	Requests  *[2]int         `json:"requests"`
	Request   []RequestExpect `json:"request"`
	Events    map[string]int  `json:"events"` // how many events of a type there are
	Codes     []string        `json:"codes"`  // that some results have
	Usage     *UsageExpect    `json:"usage"`
	Waits     []WaitExpect    `json:"waits"`
	MaxS      float64         `json:"max_s"` // the last run's seconds, after a signal from that on
	Files     []FileExpect    `json:"files"`
	AnyOf     []Expect        `json:"any_of"`
}

// CallExpect describes a tool call and its result.
type CallExpect struct {
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
	Result string          `json:"result"` // ok or error
	Code   string          `json:"code"`
	Has    []string        `json:"has"`
	Lacks  []string        `json:"lacks"`
}

// RequestExpect describes a model request.
type RequestExpect struct {
	N         int                        `json:"n"`     // counts from 1 over all runs; -1 is the last
	Calls     []CallExpect               `json:"calls"` // of the last assistant message that has some
	NoCalls   bool                       `json:"no_calls"`
	Reasoning string                     `json:"reasoning"`    // of the last message with calls; "-" means that no message has any
	SameAs    int                        `json:"same_as"`      // the request that has the same messages
	Smaller   int                        `json:"smaller_than"` // the request whose body is larger
	MaxTokens int64                      `json:"max_tokens"`   // the most that it asks for
	UniqueIDs bool                       `json:"unique_ids"`
	SameIDsAs int                        `json:"same_ids_as"`
	CallExtra map[string]json.RawMessage `json:"call_extra"` // on the last call
	Has       []string                   `json:"has"`
	Lacks     []string                   `json:"lacks"`
}

// UsageExpect is what the result says was used.
type UsageExpect struct {
	Input  []int64 `json:"input"` // any of them
	Output int64   `json:"output"`
	Cached int64   `json:"cached"`
}

// WaitExpect bounds the time between two requests.
type WaitExpect struct {
	After int `json:"after"` // the n-th request
	MinMS int `json:"min_ms"`
	MaxMS int `json:"max_ms"`
}

// FileExpect describes a file of the workspace.
type FileExpect struct {
	Path   string  `json:"path"`
	Equals *string `json:"equals"`
	Size   *int64  `json:"size"`
	Absent bool    `json:"absent"`
}

// Load reads the cases of every JSON file in dir. A field that this package does
// not know is an error: it would go unchecked.
func Load(dir string) ([]Case, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("load cases from %s: no JSON file there", dir)
	}
	var all []Case
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var cases []Case
		if err := strict(b, &cases); err != nil {
			return nil, fmt.Errorf("load %s: %w", path, err)
		}
		all = append(all, cases...)
	}
	for _, c := range all {
		for _, run := range c.Runs {
			for i, raw := range run.Replies {
				if err := strict(raw, &Reply{}); err != nil {
					return nil, fmt.Errorf("load case %s: reply %d: %w", c.ID, i+1, err)
				}
			}
		}
	}
	return all, nil
}

func strict(b []byte, v any) error {
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	return in.Decode(v)
}

// WriteFiles fills the workspace dir with the case's files and those that are
// always there.
func (c Case) WriteFiles(dir string) error {
	files := map[string]string{"a.txt": "ALPHA-7\n", "b.txt": "BRAVO-3\n", "sub/c.txt": "CHARLIE-5\n"}
	for path, text := range c.Files {
		files[path] = expand(text, nil, 0)
	}
	for path, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
