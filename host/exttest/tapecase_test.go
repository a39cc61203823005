package exttest

import (
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/host"
)

// A secret's value does not get into a case in the form that TOML or JSON gives it.
func TestTapeKeepsSecretsOut(t *testing.T) {
	const value = `tok'"\` + "\u00ad" + `-3f9a8b7c6d5e4f`
	secrets, err := secret.NewStore(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	secrets.Know("TOKEN", value)
	tape := &Tape{secrets: secrets, seen: map[string]table{}, written: map[string]bool{}}
	raw, err := encode(value)
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{
		`{"tool":"exec","arguments":{"command":` + string(raw) + `,"list":[{` + string(raw) + `:1}]}}`,
		`{"tool":"exec","arguments":{"command":` + string(raw) + `,"dir":null}}`, // which is JSON in the case
	} {
		tape.Take(host.Taped{Point: "before_execute_tool", In: []byte(payload)})
	}
	tape.see("env", "NAME", value)
	text, _ := tape.Case("it")
	if strings.Contains(text, "3f9a8b7c") || strings.Count(text, "redacted") != 4 {
		t.Errorf("the case is\n%s", text)
	}
}
