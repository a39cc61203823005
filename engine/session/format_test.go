package session

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "add a log of the event types that none in testdata/format has")

// Law 6: a log of any format there was can be read, says the same when it is
// written again, and holds; and there is a log of each type.
func TestFormats(t *testing.T) {
	seals := readSeals(t)
	paths, err := filepath.Glob("testdata/format/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	missing := maps.Clone(decoders)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, r := range readFormat(t, path, seals[filepath.Base(path)]) {
				delete(missing, r.Type())
			}
		})
	}
	if len(missing) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(missing))
	if !*update {
		t.Fatalf("no log in testdata/format has %s: leave those that are there as they are, and see testdata/format/README.md", strings.Join(names, ", "))
	}
	addFormat(t, fmt.Sprintf("%02d.jsonl", len(paths)+1))
}

// readFormat returns the events of one of these logs.
func readFormat(t *testing.T, path, seal string) []Record {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != seal {
		t.Errorf("the SHA-256 is %s, and the seal %q: this file must not change", sum, seal)
	}
	records, whole, err := parse(content)
	if err != nil || whole != len(content) {
		t.Fatalf("parse: %d of %d bytes, %v", whole, len(content), err)
	}
	if report := Verify(records); len(report.Problems) > 0 {
		t.Errorf("it does not hold: %v", report.Problems)
	}
	var again bytes.Buffer
	for _, r := range records {
		line, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		again.Write(line)
	}
	if !bytes.Equal(again.Bytes(), content) {
		t.Errorf("written again it is\n%s, and was\n%s", again.Bytes(), content)
	}
	return records
}

func readSeals(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile("testdata/format/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	seals := map[string]string{}
	for line := range strings.Lines(string(content)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS has the line %q", line)
		}
		seals[name] = sum
	}
	return seals
}

// addFormat writes a log of the examples of all types, of which some need others
// before them, and seals it.
func addFormat(t *testing.T, name string) {
	t.Helper()
	store := testStore(t)
	path, err := store.path(writeAll(t, store, everyKind))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(filepath.Join("testdata/format", name), content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	seals, err := os.OpenFile("testdata/format/SHA256SUMS", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer seals.Close()
	if _, err := fmt.Fprintf(seals, "%x  %s\n", sha256.Sum256(content), name); err != nil {
		t.Fatal(err)
	}
}
