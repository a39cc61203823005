package governance_test

import (
	"bytes"
	"testing"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/session"
)

// FuzzLog reads bytes as a log, whatever they are: what would be sent is legal for a strict
// server, before governance and after it, and governing again changes nothing.
func FuzzLog(f *testing.F) {
	l := newLog("go")
	l.call("exec", words(300))
	l.add(session.AssistantMessage{Text: "half", Calls: []session.Call{{ID: "a", Name: "x"}, {ID: "a", Name: ""}}})
	l.add(session.ContextReplaced{Targets: []int64{4}, By: "x", Content: "gone"}, session.UserMessage{Content: "again", Delivery: "turn"})
	l.call("grep", words(300))
	var seed []byte
	for _, r := range l.records {
		line, err := session.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		seed = append(seed, line...)
	}
	f.Add(seed, uint16(1_000), uint16(500))
	f.Fuzz(func(t *testing.T, content []byte, window, budget uint16) {
		l := &log{}
		for line := range bytes.Lines(content) {
			if r, err := session.Decode(bytes.TrimSuffix(line, []byte("\n"))); err == nil {
				l.add(r.Event)
			}
		}
		if why := illegal(l.history.Messages()); why != "" {
			t.Fatalf("before governance: %s", why)
		}
		g := governance.New(governance.Config{Window: int(window), BlockLimit: int(budget), MaxResult: 100})
		steps, err := govern(g, l)
		if err != nil {
			t.Fatalf("%v: %v", steps, err)
		}
		if why := illegal(l.history.Messages()); why != "" {
			t.Fatalf("after %v: %s", steps, why)
		}
		if again, err := govern(g, l); len(again) > 0 || err != nil {
			t.Fatalf("after %v once more: %v, %v", steps, again, err)
		}
	})
}
