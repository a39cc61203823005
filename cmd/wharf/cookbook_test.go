package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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
	for _, recipe := range recipes {
		title, _, _ := strings.Cut(recipe, "\n")
		t.Run(title, func(t *testing.T) { tryRecipe(t, recipe) })
	}
}

// The extension that stands for a shell hook does what that does.
func TestFromClaudeCode(t *testing.T) {
	text, err := os.ReadFile("../../docs/extensions/from-claude-code.md")
	if err != nil {
		t.Fatal(err)
	}
	tryRecipe(t, string(text))
}

// plain is wharf as users have it, without the race detector, under which a guest in
// Go takes many times as long.
var plain = sync.OnceValues(func() (string, error) {
	var err error
	if plainDir, err = os.MkdirTemp("", "wharf-plain-"); err != nil {
		return "", err
	}
	path := filepath.Join(plainDir, "wharf")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build wharf: %w\n%s", err, said)
	}
	return path, nil
})

var plainDir string // of that wharf; removed when all tests have ended

var recipeBlock = regexp.MustCompile("(?ms)^```(go|toml)\n(.*?)^```$")

// tryRecipe builds and tests what a text has: a manifest, a source and cases.
func tryRecipe(t *testing.T, text string) {
	t.Helper()
	blocks := recipeBlock.FindAllStringSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("it has %d blocks, and not a manifest, a source and cases", len(blocks))
	}
	work := t.TempDir()
	for i, name := range []string{"extension.toml", "main.go", "testdata/cases.toml"} {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(blocks[i][2]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	wharf := runnerOf(t, work, program)
	if out := wharf("ext", "test"); !strings.HasSuffix(out, " passed\n") {
		t.Errorf("ext test:\n%s", out)
	}
	if out := wharf("ext", "check", "--strict", "."); !strings.Contains(out, "it can be loaded, with 0 warnings") {
		t.Errorf("ext check:\n%s", out)
	}
}
