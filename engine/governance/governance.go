// Package governance decides what a model gets to see of a session.
//
// A history that grows must fit. A [Governor] looks at it before each request and
// says what is to be replaced: results that are too long ([Governor.Results]), results
// of the turn under way and then old messages when the budget is used up
// ([Governor.Fit]), and a summary in the place of the older messages before it comes to that
// ([Governor.Compaction]). It only decides: who asks it writes the decisions to the log as
// session.ContextReplaced, from where they take effect and stay ([session.History]).
// What is merely wrong with a history's structure is mended there, too.
//
// Tokens are those that the server counted in the last request, plus what came since as
// a tokenizer counts it. The work before a request grows with what is new.
package governance

import (
	"cmp"

	"github.com/wharf-agent/wharf/engine/session"
)

// Config says how much a model takes; a zero field means its default.
type Config struct {
	Window     int // tokens of a request and its answer together; 0 means 200,000
	MaxOutput  int // of them, for the answer; 0 means 8,192, or a quarter of Window if that is less
	BlockLimit int // the budget for a request; 0 means Window − MaxOutput − 1,024, or with an answer of half the window if MaxOutput is more; where that is not positive, Fit does nothing
	MaxResult  int // characters of a tool's result; 0 means 16,000

	// Keep keeps the whole of a result that is too long, and returns where the model
	// can read it: [Folder.Keep]. Nil keeps nothing, and results are cut.
	Keep func(seq int64, content string) (path string, err error)
}

// DefaultWindow is the window of a model of which nobody says it.
const DefaultWindow = 200_000

// The constants of governance.
const (
	defaultMaxOutput = 8_192
	defaultMaxResult = 16_000
	margin           = 1_024 // of the budget, for what servers add to a request
	preview          = 1_200 // characters of a result that is kept elsewhere
	smallest         = 500   // characters of a result that is worth replacing
	lowMark          = 0.85  // of the budget, down to which the history is made smaller
	compactAt        = 0.8   // of the window
	compactKeep      = 0.16  // of the window
	compactWorth     = 0.1   // of the window, below which a summary is not worth its request
)

// Governor decides for one session. It remembers how far it has looked, and is not
// for several goroutines.
type Governor struct {
	cfg     Config
	settled int64 // results of the blocks up to this event need not be looked at again
	header  headerWeight
	told    bool    // the window is what somebody says, and no guess
	scale   float64 // what the server counts for a token of ours
	used    count   // the count that scale comes from
}

// New returns the governor of a session.
func New(cfg Config) *Governor {
	told := cfg.Window > 0
	cfg.Window = cmp.Or(cfg.Window, DefaultWindow)
	cfg.MaxOutput = cmp.Or(cfg.MaxOutput, min(defaultMaxOutput, cfg.Window/4))
	cfg.MaxResult = cmp.Or(cfg.MaxResult, defaultMaxResult)
	cfg.BlockLimit = cmp.Or(cfg.BlockLimit, cfg.Window-min(cfg.MaxOutput, cfg.Window/2)-margin)
	return &Governor{cfg: cfg, told: told, scale: 1}
}

// The steps that replace something, as the log names them.
const (
	ByResult     = "result_budget"
	ByInFlight   = "in_flight"
	BySnip       = "snip"
	ByCompaction = "compaction"
)

// exempt is the tool whose results are never kept elsewhere: that is what it is
// read with.
const exempt = "read_file"

// replaceable are the tools whose calls can be made again when a result was left out.
var replaceable = map[string]bool{
	"read_file": true, "exec": true, "grep": true, "find_files": true, "list_dir": true,
	"web_search": true, "web_fetch": true, "list_exec_sessions": true,
}

// turnStart returns the index of the block that opened the last turn, or else of the
// last that a user wrote; -1 if there is none.
func turnStart(blocks []session.Block) int {
	user := -1
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].Opens {
			return i
		}
		if user < 0 && blocks[i].Message.Role == session.User && blocks[i].By == "" {
			user = i
		}
	}
	return user
}

// targets returns the events that show the blocks, in order.
func targets(blocks []session.Block) []int64 {
	var seqs []int64
	for _, b := range blocks {
		seqs = append(seqs, b.Seq)
		for _, r := range b.Results {
			if r.Seq > 0 {
				seqs = append(seqs, r.Seq)
			}
		}
	}
	return sorted(seqs)
}
