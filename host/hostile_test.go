package host

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite what the hostile guests are expected to end in")

// Each guest in testdata/hostile does one thing that it should not. Its first
// lines say what that is and what comes of it: the hook's answer or error, and
// what it logged. A time-out of 200ms holds where they name no other.
func TestHostileGuests(t *testing.T) {
	sources, err := filepath.Glob("testdata/hostile/*.wat")
	if err != nil || len(sources) < 40 {
		t.Fatalf("%d guests, %v", len(sources), err)
	}
	for _, source := range sources {
		t.Run(strings.TrimSuffix(filepath.Base(source), ".wat"), func(t *testing.T) {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			doc, rest, _ := strings.Cut(string(text), "\n;; want: ")
			want, body, _ := strings.Cut(rest, "\n")
			begin := time.Now()
			manifest := leastManifest
			if _, timeout, ok := strings.Cut(doc, "\n;; timeout: "); ok {
				manifest = strings.Replace(manifest, "200ms", timeout, 1)
			}
			got := attempt(t, strings.TrimSuffix(source, ".wat")+".wasm", manifest)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if got == want {
				return
			}
			if *update {
				if err := os.WriteFile(source, []byte(doc+"\n;; want: "+got+"\n"+body), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s\n got %s\nwant %s", doc, got, want)
		})
	}
}

// attempt loads a guest, calls its hook twice, and tells what came of it in one line.
func attempt(t *testing.T, path, manifest string) string {
	t.Helper()
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := shared.LoadBytes(t.Context(), "x.wasm", embed(t, wasm, manifest), Options{})
	if err != nil {
		return err.Error()
	}
	j := &journal{}
	s, err := e.Session(t.Context(), SessionConfig{Record: j.record})
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	first := ask(t, s, "payload")
	logged := ""
	if lines := j.lines(); len(lines) > 200 {
		logged = fmt.Sprintf("; logged %d bytes, which end in %q", len(lines), lines[len(lines)-60:])
	} else if lines != "" {
		logged = fmt.Sprintf("; logged %q", lines)
	}
	if second := ask(t, s, "payload"); second != first { // neither the call nor what it left behind harms the next
		return first + ", and then " + second
	}
	if first == "" {
		first = "no opinion"
	}
	if strings.Contains(first, "\x00") {
		first = fmt.Sprintf("%q", first)
	}
	return first + logged
}
