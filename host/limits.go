package host

import (
	"fmt"
	"time"

	"github.com/wharf-agent/wharf/host/capability"
)

// The limits on a guest. A manifest can set its own time-outs and a smaller
// memory; all others are fixed. Whatever goes over one fails with its name,
// for that call only.
const (
	DefaultHookTimeout   = time.Second
	DefaultStreamTimeout = 50 * time.Millisecond // of a hook that gets raw text
	DefaultToolTimeout   = 30 * time.Second
	DefaultMemory        = capability.Size(64 << 20) // memory: of one instance; also the most
	StartTimeout         = time.Second               // _initialize and the start function together

	limitModule        = 32 << 20 // module: a file
	limitOutput        = 1 << 20  // output: an answer, and a request to a host operation
	limitLog           = 64 << 10 // log: what a call logs, with its standard output and error
	limitLogLines      = 10_000   // log, in lines
	limitLogged        = 64 << 20 // logged: what an extension logs in a session
	limitOperations    = 10_000   // operations: in one call
	limitStack         = 12 << 20 // depth: of calls within each other, in bytes of stack; it is looked at each time the stack has doubled
	limitTableElements = 100_000  // tables: all of a module's together
	limitSections      = 1_000    // sections: of a module
	limitManifest      = 128 << 10
	limitSchema        = 64 << 10 // reading one takes time with the second power of that
	limitAsked         = 200      // entries of each capability: comparing them takes time with the second or third power of that
	maxErrorText       = 1_000    // what an error quotes of a guest
	maxTimeout         = 10 * time.Minute

	limitRead    = 512 << 10 // read: of a file, in one call
	limitWritten = 64 << 20  // written: by an extension in a session
	limitEntries = 10_000    // entries: of a folder
	limitEmitted = 64 << 10  // emitted: the data of one event
	limitEvents  = 100       // events: in one call
	limitSecrets = 8         // in one request
	limitAudited = 64 << 20  // audited: the names, paths, arguments and events of an extension's operations, in a session
	limitTarget  = 2 << 10   // what the audit keeps of those that go over it
)

// The limit code, of one function: compiling cannot be cut short, and takes
// more than in proportion to these.
const (
	limitBody       = 1 << 20
	limitLocals     = 5_000
	limitLoopLocals = 20_000 // local variables times loops within each other
	limitBlocks     = 20_000 // within each other
	limitBranches   = 50_000 // of all tables
)

// The limits on the lists of a module. The compiler reads and checks all of a
// module in this process, which cannot be cut short either, and each instance
// has its own global variables and elements.
const (
	limitItems      = 100_000 // of each list
	limitTypes      = 2_000
	limitTypeValues = 20_000 // parameters and results of all types
	limitValues     = 1_000  // parameters, or results, of one type
	limitGlobals    = 10_000
	limitMoved      = 32 << 20 // values that calls, blocks and branches take and give, counted in the code
)

// Limit is one of the limits that an extension runs under, by the name that an
// error about it has.
type Limit struct{ Name, Value string }

// Limits lists the limits on the extension while it runs.
func (m *Manifest) Limits() []Limit {
	return []Limit{
		{"memory", m.Memory.String() + " an instance"},
		{"output", capability.Size(limitOutput).String() + " an answer or request"},
		{"log", capability.Size(limitLog).String() + " a call"},
		{"operations", fmt.Sprintf("%d a call", limitOperations)},
		{"depth", capability.Size(limitStack).String() + " of calls within each other"},
		{"tables", fmt.Sprintf("%d elements", limitTableElements)},
		{"start", StartTimeout.String()},
	}
}
