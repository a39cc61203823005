// Package extensions holds the extensions that come with wharf. They are
// written in C against the bare ABI; each folder has its sources, its manifest
// and the module that "wharf ext build" makes of them.
package extensions

import _ "embed" // for the modules

// The modules, ready to be loaded.
var (
	//go:embed no-rm/no-rm.wasm
	NoRM []byte // a guard: refuses recursive deletes
	//go:embed redact/redact.wasm
	Redact []byte // masks tokens in the final answer
	//go:embed count-words/count-words.wasm
	CountWords []byte // the tool count_words
)
