package exttest

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/extensions/testing.md describes every key that a case may have.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/extensions/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for table, form := range forms {
		for _, key := range keysOf(reflect.TypeOf(form)) {
			if key == "case" || key == "step" { // of which it is full
				continue
			}
			if !strings.Contains(string(page), "`"+key+"`") && !strings.Contains(string(page), "`[[case."+key+"]]`") && !strings.Contains(string(page), "`"+key+" = ") {
				t.Errorf("the page does not tell of %s in the table %q", key, table)
			}
		}
	}
}
