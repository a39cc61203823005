// Package exttest tries extensions out: it calls one handler and tells what it
// did, and it runs the test cases that an extension's author wrote.
//
// A case is a few calls of an extension's handlers in one session, what the world
// answers to the operations of the guest, and what the guest is to answer, log
// and try. The guest runs on the real host: each operation passes the checks that
// it passes in life, and only what lies behind them (the network, the workspace,
// the agent, the clock) is the case's. So what a test refuses, life refuses.
//
// docs/extensions/testing.md describes the format of cases.
package exttest

import (
	"bytes"
	"encoding/json"
	"slices"
)

// decode reads JSON with its numbers as they are written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	return value, err
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
