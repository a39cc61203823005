package extensions_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host"
)

// query calls the tool.
func query(t *testing.T, s *host.Session, query, input string) tool.Result {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"query": query, "input": input})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Tools()[0].Run(t.Context(), tool.Call{Name: "json_query", Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A stock Go guest with a large library loads, runs and is ended like any other.
func TestJSONQuery(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		missing(t, "go", "get Go from https://go.dev/dl")
	}
	if exec.CommandContext(t.Context(), "go", "-C", "json-query", "list", "-deps", "github.com/itchyny/gojq").Run() != nil {
		missing(t, "gojq", "cd extensions/json-query && go mod download")
	}
	manifest, err := os.ReadFile("json-query/extension.toml")
	if err != nil {
		t.Fatal(err)
	}
	wasm := rebuild(t, "json-query")
	s := join(t, wasm, host.Options{})
	for _, line := range lines(t, "json-query/testdata/cases.txt") {
		parts := strings.SplitN(line, " => ", 3)
		if len(parts) != 3 {
			t.Fatalf("no case: %q", line)
		}
		got, want := query(t, s, parts[0], parts[1]), parts[2]
		text := strings.TrimSuffix(got.Content, "\n")
		if got.IsError {
			text = "error: " + text
		}
		if text != want {
			t.Errorf("%s of %s\ngot  %s\nwant %s", parts[0], parts[1], text, want)
		}
	}
	short, err := host.EmbedManifest(wasm, strings.Replace(string(manifest), `timeout = "5s"`, `timeout = "300ms"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	endsInTime(t, join(t, short, host.Options{}))
	if got := query(t, s, "[1] | until(length > 1e9; . + .) | length", "null"); !strings.Contains(got.Content, "out of memory") || !strings.HasSuffix(got.Content, ": the limit memory is 64MiB") {
		t.Errorf("a query that takes all memory: %+v", got)
	}
	if got := query(t, s, "range(1e12)", "null"); got.Content != "the results have more than 256 KiB: narrow the query" {
		t.Errorf("a query with results without end: %.200s", got.Content)
	}
}

// endsInTime checks that queries without end, end.
func endsInTime(t *testing.T, s *host.Session) {
	t.Helper()
	for _, endless := range []string{"def f: f; f", "[range(1e12)] | length", "last(range(1e12))", "[limit(3; repeat(empty))]", "reduce range(1e12) as $i (0; . + $i)"} {
		begin := time.Now()
		got := query(t, s, endless, "null")
		if got.Code != tool.TimedOut || !strings.HasSuffix(got.Content, "no answer in time: it ran for 300ms: make it faster, or raise its timeout in the manifest") {
			t.Errorf("%s: %+v", endless, got)
		}
		if took := time.Since(begin); took > 2*time.Second { // with the start of an instance
			t.Errorf("%s took %v", endless, took)
		}
	}
}
