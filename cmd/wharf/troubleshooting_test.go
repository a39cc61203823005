package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each message that troubleshooting.md explains is one that the program has.
func TestTroubleshootingKnowsTheMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/extensions/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, dir := range []string{"../../cmd", "../../engine", "../../host"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	source := strings.ReplaceAll(code.String(), `\"`, `"`)
	messages := regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(string(page), -1)
	if len(messages) < 20 {
		t.Errorf("the page explains %d messages", len(messages))
	}
	for _, m := range messages {
		for _, part := range regexp.MustCompile("…|: ").Split(m[1], -1) { // a cause may come from elsewhere
			if part = strings.Trim(part, " :"); len(part) > 3 && !strings.Contains(source, part) {
				t.Errorf("no message has %q, which stands in %q", part, m[1])
			}
		}
	}
}
