package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

var update = flag.Bool("update-security", false, "write the list of attempts into docs/security.md")

const securityPage = "../../docs/security.md"

func readSecurityPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each test that the page names is there.
func TestSecurityPageNamesTests(t *testing.T) {
	out, err := exec.Command("grep", "-rhoE", "--include=*_test.go", `^func (Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*`, "../..").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		there[strings.TrimSpace(strings.TrimPrefix(line, "func "))] = true
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`").FindAllStringSubmatch(readSecurityPage(t), -1)
	for _, m := range regexp.MustCompile("`([a-z_]+\\.txtar)`").FindAllStringSubmatch(readSecurityPage(t), -1) {
		if _, err := os.Stat("testdata/script/" + m[1]); err != nil {
			t.Error(err)
		}
	}
	if len(named) < 60 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, name := range named {
		if !there[name[1]] {
			t.Errorf("there is no %s", name[1])
		}
	}
}

// attempts is the page's list of what TestContainment tries.
func attempts() string {
	var b strings.Builder
	b.WriteString("| what must be refused | tried | not held under Landlock |\n| --- | --- | --- |\n")
	for _, threat := range threats() {
		var tried, open []string
		lines := 0
		for _, r := range threat.rows {
			if r.gap != "" && !slices.Contains(open, r.gap) {
				open = append(open, r.gap)
			}
			if r.name == r.line {
				lines++
				continue
			}
			tried = append(tried, r.name)
		}
		if lines > 0 {
			tried = append(tried, fmt.Sprintf("%d lines of [sandboxtest.go](../engine/sandbox/sandboxtest/sandboxtest.go)", lines))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", threat.name, strings.Join(tried, "; "), strings.Join(open, "; "))
	}
	return b.String()
}

// The page lists what the suite tries, word for word; -update-security writes it.
func TestSecurityPageListsAttempts(t *testing.T) {
	const begin, end = "<!-- attempts: written by the test -->\n", "<!-- end of attempts -->"
	page := readSecurityPage(t)
	before, rest, found := strings.Cut(page, begin)
	list, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the page has no place for the attempts")
	}
	if list == attempts() {
		return
	}
	if !*update {
		t.Fatalf("the page lists other attempts than the suite has: run go test ./cmd/wharf -run TestSecurityPage -update-security\n%s", attempts())
	}
	if err := os.WriteFile(securityPage, []byte(before+begin+attempts()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The page, wharf doctor and the suite know the same gaps of Landlock.
func TestGapsOfLandlockAgree(t *testing.T) {
	if !isThere(t, "unshare") || !isThere(t, "setpriv") {
		t.Skip("unshare and setpriv are needed: apt install util-linux")
	}
	documented := map[string]bool{}
	_, table, _ := strings.Cut(readSecurityPage(t), "## What Landlock cannot hold\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatch(table, -1)[2:] { // behind its head
		documented[strings.Trim(m[1], "`")] = true
	}
	tried := maps.Clone(documented)
	clear(tried)
	for gap := range untried {
		tried[gap] = true
	}
	for _, threat := range threats() {
		for _, r := range threat.rows {
			if r.gap != "" {
				tried[r.gap] = true
			}
		}
	}
	if !maps.Equal(documented, tried) {
		t.Errorf("the page has the gaps %q; the suite has %q", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(tried)))
	}
	s := newStage(t, ordinaryUser(), sandbox.Landlock, nil)
	told := s.output(t, s.wharf(t.Context(), t, "doctor"))
	known := map[string]bool{"truncate": true} // of kernels older than most
	for _, m := range regexp.MustCompile(`(?m)^gap +(.*?):`).FindAllStringSubmatch(told, -1) {
		known[m[1]] = true
	}
	if !maps.Equal(documented, known) {
		t.Errorf("the page has the gaps %q; wharf doctor says\n%s", slices.Sorted(maps.Keys(documented)), told)
	}
}
