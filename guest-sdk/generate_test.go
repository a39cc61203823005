package guestsdk_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
)

//go:generate go test -run ^TestGenerated$ -update

var update = flag.Bool("update", false, "write what is generated from the table of hook points")

type generatedFile struct {
	path     string
	generate func() ([]byte, error)
}

// generated are the files that come from the table of hook points, as a whole or
// in part.
var generated = []generatedFile{
	{"go/points.go", goPoints},
	{"go/README.md", goReadme},
	{"c/wharf.h", cHeader},
	{"c/README.md", cReadme},
	{"rust/src/points.rs", rustPoints},
	{"rust/README.md", rustReadme},
	{"assemblyscript/assembly/points.ts", asPoints},
	{"assemblyscript/README.md", asReadme},
	{"zig/wharf.zig", zigSource},
	{"zig/README.md", zigReadme},
	{hooksPath, hooksPage},
	{capabilitiesPath, capabilitiesPage},
	{toolsPath, toolsPage},
}

// TestGenerated compares the generated files with what the table says now.
func TestGenerated(t *testing.T) {
	for _, l := range tutorials {
		generated = append(generated, generatedFile{"../docs/extensions/" + l.language + ".md", l.page})
	}
	for _, g := range generated {
		path := g.path
		want, err := g.generate()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the table of hook points says (%v): run go generate ./guest-sdk", path, err)
		}
	}
}

// section puts lines in the place of those between two marks of a page.
func section(path string, lines []string) ([]byte, error) {
	return between(path, "<!-- ", " -->", lines)
}

// between does so in a file of another language, which has comments of its own.
func between(path, opening, closing string, lines []string) ([]byte, error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	begin, end := opening+"generated: hook points"+closing+"\n", opening+"end"+closing+"\n"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%s has no marks for what is generated", path)
	}
	return []byte(before + begin + strings.Join(lines, "\n") + "\n" + end + after), nil
}

// readme brings the table of hook points in an SDK's page up to date: how each is
// registered, and the functions by which it may be answered, by what they answer.
func readme(path, how string, register func(hook.Info) string, answers map[string]string) ([]byte, error) {
	lines := []string{"| point | " + how + " | may answer |", "| --- | --- | --- |"}
	for _, info := range hook.Points {
		line := fmt.Sprintf("| `%s` | `%s` | %s |", info.Point, register(info), answersOf(info, answers))
		lines = append(lines, strings.Replace(line, "|  |", "| |", 1))
	}
	return section(path, lines)
}

// answersOf lists the functions by which a point may be answered.
func answersOf(info hook.Info, answers map[string]string) string {
	var all []string
	for _, d := range info.Decisions {
		all = append(all, "`"+answers[string(d)]+"`")
	}
	for _, key := range info.Replace {
		all = append(all, "`"+answers[key]+"`")
	}
	if info.Context {
		all = append(all, "`"+answers["context"]+"`")
	}
	return strings.Join(all, ", ")
}

// camel returns a name such as before_run as BeforeRun.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "id", "ms":
			b.WriteString(strings.ToUpper(word))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// has reports whether a payload has all of these keys.
func has(info hook.Info, names ...string) bool {
	for _, name := range names {
		if !info.Has(name) {
			return false
		}
	}
	return true
}
