package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/host/hosttest"
)

// codeBlock returns the README's only code block of that language which
// contains mark.
func codeBlock(t *testing.T, language, mark string) string {
	t.Helper()
	return codeBlockOf(t, "README.md", language, mark)
}

// codeBlockOf is codeBlock for any page.
func codeBlockOf(t *testing.T, page, language, mark string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
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
		t.Fatalf("%s has %d blocks of %s with %q, want 1", page, len(found), language, mark)
	}
	return found[0]
}

// The README's hook builds as it stands there, with Go alone, and denies. So do
// the commands around it, in their order.
func TestReadmeHook(t *testing.T) {
	work := t.TempDir()
	ext := filepath.Join(work, "house-rules")
	wharf := runner(t, work)
	wharf("ext", "new", "house-rules")
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
	block, _, _ := strings.Cut(codeBlock(t, "sh", "ext check house-rules"), "bin/wharf run ")
	block = strings.ReplaceAll(block, "bin/wharf", "wharf")
	told := runnerOf(t, work, "sh")("-ec", block)
	for _, want := range []string{"2 cases passed", "it can be loaded, with 0 warnings", `{"decision":"deny",`} {
		if !strings.Contains(told, want) {
			t.Errorf("the README's commands do not say %q:\n%s", want, told)
		}
	}
	if out := wharf("ext", "inspect", filepath.Join(ext, "house-rules.wasm")); !strings.Contains(out, "(only for exec), and may answer; if it has not answered within 1s, or fails, the answer is no") {
		t.Errorf("ext inspect:\n%s", out)
	}
	out := wharf("run", "--script", "model.jsonl", "--ext", "house-rules/house-rules.wasm", "Push my work.")
	if !strings.HasSuffix(out, "Not pushed.\n") {
		t.Errorf("the run ended with\n%s", out)
	}
}

// runner returns what runs wharf in a folder, with a home of its own, and wants
// it to succeed.
func runner(t *testing.T, work string) func(args ...string) string {
	t.Helper()
	return runnerOf(t, work, "wharf")
}

// runnerOf is runner for any program.
func runnerOf(t *testing.T, work, program string) func(args ...string) string {
	t.Helper()
	home := t.TempDir()
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "HOME="+home, "GOFLAGS=-race", "GOPROXY=off", "GOCACHE="+strings.TrimSpace(string(cache)), "WHARF_TEST_COMPILER="+compiler)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
}

// The example of docs/extensions/testing.md builds and passes as it stands there.
func TestTestingExample(t *testing.T) {
	const page = "docs/extensions/testing.md"
	work := t.TempDir()
	for name, content := range map[string]string{
		"weather/main.go":               codeBlockOf(t, page, "go", "weather"),
		"weather/extension.toml":        codeBlockOf(t, page, "toml", `name = "weather"`+"\n"+"version"),
		"weather/testdata/weather.toml": codeBlockOf(t, page, "toml", "[[case]]"),
	} {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out := runner(t, work)("ext", "test", "weather"); out != "weather: 3 cases passed\n" {
		t.Errorf("ext test:\n%s", out)
	}
}
