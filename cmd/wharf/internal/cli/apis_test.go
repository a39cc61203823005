package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestAPIs: each API's first reply thinks and calls two tools, and what is opaque of
// it comes back to the server: in the next request, and after the session was resumed
// from its log.
func TestAPIs(t *testing.T) {
	said := map[string]string{
		"responses": `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Done."}]}]}}`,
		"anthropic": `{"type":"message_start","message":{}}` + "\n\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Done."}}` +
			"\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`,
	}
	flags := map[string][]string{
		"responses": {"--provider", "openai", "--set", "api=responses"},
		"anthropic": {"--provider", "anthropic"},
	}
	for name, text := range said {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, err := os.ReadFile("../../../../engine/provider/testdata/replies/" + name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body) // a short one is no JSON, and the test fails
				mu.Lock()
				bodies = append(bodies, string(body))
				first := len(bodies) == 1
				mu.Unlock()
				w.Header().Set("Content-Type", "text/event-stream")
				if first {
					_, _ = w.Write(calls)
					return
				}
				_, _ = io.WriteString(w, "data: "+text+"\n\n")
			}))
			defer server.Close()
			home, workspace := t.TempDir(), t.TempDir()
			run := func(args ...string) string {
				self, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), self, append(append([]string{"run", "--model", "some-model", "--base-url", server.URL}, flags[name]...), args...)...)
				cmd.Dir = workspace
				cmd.Env = []string{"WHARF_TEST_AS_WHARF=1", "PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state")}
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("wharf: %v\n%s", err, stderr.Bytes())
				}
				return strings.TrimSpace(string(out))
			}
			if got := run("look"); got != "Done." {
				t.Errorf("wharf run says %q; want Done.", got)
			}
			if got := run("-c", "again"); got != "Done." {
				t.Errorf("wharf run -c says %q; want Done.", got)
			}
			if len(bodies) != 3 {
				t.Fatalf("%d requests; want 3", len(bodies))
			}
			for i, want := range []bool{false, true, true} {
				if strings.Contains(bodies[i], "OPAQUE+/==") != want {
					t.Errorf("request %d holds what the server attached: %t; want %t\n%s", i+1, !want, want, bodies[i])
				}
			}
		})
	}
}
