package exttest_test

import (
	"path/filepath"
	"testing"

	"github.com/wharf-agent/wharf/host/exttest"
)

// notRecorded are the cases of which a recording cannot come out the same, and why.
var notRecorded = map[string]string{
	"a redirect to elsewhere is refused":              "the answers on the way to the last one are not recorded",
	"arguments that no engine would let through fail": "nothing was called",
}

// What is recorded of a session, comes out as that session did.
func TestTapeMakesTheSameCase(t *testing.T) {
	r := open(t)
	files, err := exttest.ReadDir("testdata/relay/testdata", r.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, c := range f.Cases {
			t.Run(filepath.Base(f.Name)+"/"+c.Name, func(t *testing.T) {
				if why := notRecorded[c.Name]; why != "" {
					t.Log(why)
					return
				}
				text, err := r.Retape(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if _, results := run(t, r, text); failures(results) != "" {
					t.Errorf("the recorded case fails: %s\n%s\n%s", failures(results), results[0].Failures[0].Diff, text)
				}
			})
		}
	}
}
