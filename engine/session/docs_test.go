package session

import (
	"bytes"
	"os"
	"testing"
)

// docs/events.md has an example of each event, and each is one.
func TestDocsHaveEachEvent(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		r, err := Decode(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if again, err := Encode(r); err != nil || !bytes.Equal(again, line) {
			t.Errorf("the example is\n%s, Wharf writes\n%s", line, again)
		}
		documented[r.Type()] = true
	}
	for kind := range decoders {
		if !documented[kind] {
			t.Errorf("docs/events.md has no example of %s", kind)
		}
	}
}
