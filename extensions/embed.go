// Package extensions holds the extensions that come with wharf. They are
// written with the guest SDKs; each folder has its sources, its manifest
// and the module that "wharf ext build" makes of them.
package extensions

import (
	_ "embed" // for the modules
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The modules, ready to be loaded.
var (
	//go:embed no-rm/no-rm.wasm
	NoRM []byte // a guard: refuses recursive deletes
	//go:embed redact/redact.wasm
	Redact []byte // masks tokens in the final answer
	//go:embed count-words/count-words.wasm
	CountWords []byte // the tool count_words
	//go:embed budget/budget.wasm
	Budget []byte // a guard: stops on tokens, calls or cost
	//go:embed protect-paths/protect-paths.wasm
	ProtectPaths []byte // a guard: keeps writes and commands from protected paths
	//go:embed csv-query/csv-query.wasm
	CSVQuery []byte // the tool csv_query
	//go:embed audit/audit.wasm
	Audit []byte // keeps a line of JSON for each call
	//go:embed footer/footer.wasm
	Footer []byte // puts a footer under the final answer
	//go:embed format-on-write/format-on-write.wasm
	FormatOnWrite []byte // runs formatters on what the model writes
	//go:embed html-to-text/html-to-text.wasm
	HTMLToText []byte // the tool html_to_text
)

var shipped = map[string][]byte{
	"no-rm": NoRM, "redact": Redact, "count-words": CountWords,
	"budget": Budget, "protect-paths": ProtectPaths, "csv-query": CSVQuery,
	"audit": Audit, "html-to-text": HTMLToText,
	"footer": Footer, "format-on-write": FormatOnWrite,
}

// Names returns the shipped extensions' names, sorted.
func Names() []string { return slices.Sorted(maps.Keys(shipped)) }

// Has reports whether there is a shipped extension of that name.
func Has(name string) bool {
	_, ok := shipped[name]
	return ok
}

// Read returns the shipped extension of that name.
func Read(name string) ([]byte, error) {
	wasm, ok := shipped[name]
	if !ok {
		return nil, fmt.Errorf("there is no shipped extension %q: there are %s; a file's path ends in .wasm", name, strings.Join(Names(), ", "))
	}
	return slices.Clone(wasm), nil
}
