package cli

import "testing"

// Hooks are told how a session comes about.
func TestSource(t *testing.T) {
	for want, p := range map[string]plan{"new": {}, "resume": {resume: "x"}, "fork": {resume: "x", fork: true}} {
		if got := p.source(); got != want {
			t.Errorf("source of %q, forked: %t, is %q; want %q", p.resume, p.fork, got, want)
		}
	}
}
