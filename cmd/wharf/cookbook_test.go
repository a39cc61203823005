package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each recipe of the cookbook is a folder that builds and whose cases pass.
func TestCookbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/extensions/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := strings.Split(string(text), "\n## ")[1:]
	if len(recipes) != 12 {
		t.Errorf("there are %d recipes; the page says twelve", len(recipes))
	}
	block := regexp.MustCompile("(?ms)^```(go|toml)\n(.*?)^```$")
	work := t.TempDir()
	for i, recipe := range recipes {
		title, _, _ := strings.Cut(recipe, "\n")
		blocks := block.FindAllStringSubmatch(recipe, -1)
		if len(blocks) != 3 {
			t.Fatalf("%s: it has %d blocks, and not a manifest, a source and cases", title, len(blocks))
		}
		dir := filepath.Join(work, string(rune('a'+i)))
		for j, name := range []string{"extension.toml", "main.go", "testdata/cases.toml"} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(blocks[j][2]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(title, func(t *testing.T) {
			wharf := runner(t, work)
			if out := wharf("ext", "test", dir); !strings.HasSuffix(out, " passed\n") {
				t.Errorf("ext test:\n%s", out)
			}
			if out := wharf("ext", "check", "--strict", dir); !strings.Contains(out, "it can be loaded, with 0 warnings") {
				t.Errorf("ext check:\n%s", out)
			}
		})
	}
}
