package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codeBlock returns the README's only code block of that language which
// contains mark.
func codeBlock(t *testing.T, language, mark string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], mark) {
			found = append(found, m[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("README.md has %d blocks of %s with %q, want 1", len(found), language, mark)
	}
	return found[0]
}

// The README's hook builds as it stands there, with Go alone, and denies.
func TestReadmeHook(t *testing.T) {
	work := t.TempDir()
	home := t.TempDir()
	ext := filepath.Join(work, "house-rules")
	for name, content := range map[string]string{
		"house-rules/main.go":        codeBlock(t, "go", "BeforeExecuteTool"),
		"house-rules/extension.toml": codeBlock(t, "toml", "house-rules\""),
		"model.jsonl": `{"calls":[{"name":"exec","arguments":{"command":"git push origin main"}}]}` + "\n" +
			`{"text":"Not pushed.","expect":{"last_contains":"denied by extension \"house-rules\": pushing is the user's"}}` + "\n",
	} {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	wharf := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "wharf", args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "HOME="+home, "GOFLAGS=-race", "GOPROXY=off", "GOCACHE="+strings.TrimSpace(string(cache)))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("wharf %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	wharf("ext", "build", ext)
	if out := wharf("ext", "inspect", filepath.Join(ext, "house-rules.wasm")); !strings.Contains(out, "(only for exec), and may answer; if it has not answered within 1s, or fails, the answer is no") {
		t.Errorf("ext inspect:\n%s", out)
	}
	out := wharf("run", "--script", "model.jsonl", "--ext", "house-rules/house-rules.wasm", "Push my work.")
	if !strings.HasSuffix(out, "Not pushed.\n") {
		t.Errorf("the run ended with\n%s", out)
	}
}
