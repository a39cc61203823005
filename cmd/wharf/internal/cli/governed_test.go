package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/cmd/wharf/internal/quirks"
)

func asReplies(texts ...string) (list []json.RawMessage) {
	for _, text := range texts {
		list = append(list, json.RawMessage(text))
	}
	return list
}

// calling is a reply that calls a tool.
func calling(id, tool, arguments string) string {
	return fmt.Sprintf(`{"chunks":[{"delta":{"tool_calls":[{"index":0,"id":%q,"function":{"name":%q,"arguments":%q}}]}},{"finish":"tool_calls"}]}`, id, tool, arguments)
}

// saying is a reply that is a text.
func saying(text string) string {
	return fmt.Sprintf(`{"chunks":[{"delta":{"content":%q}},{"finish":"stop"}]}`, text)
}

// What a server has in its cache stays good: each request begins, byte for byte, with
// the one before, from step to step, from turn to turn and from process to process.
func TestThePrefixOfRequestsIsStable(t *testing.T) {
	last := "Done."
	outcome := play(t, quirks.Case{
		Runs: []quirks.Run{
			{Prompt: "One <&>.", Replies: asReplies(calling("a", "read_file", `{"path":"a.txt"}`), calling("a", "read_file", `{"path": "b.txt"}`), saying("Half."))},
			{Prompt: "Two.", Resume: true, Replies: asReplies(calling("", "list_dir", `{}`), calling("a", "nobody", `not JSON`), saying("Done."))},
		},
		Expect: quirks.Expect{Outcome: "success", Exit: []int{0}, Text: &last},
	})
	var before []byte
	for i, r := range outcome.Requests {
		var body struct {
			Messages, Tools json.RawMessage
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		now := append(body.Tools, bytes.TrimSuffix(body.Messages, []byte("]"))...)
		if !bytes.HasPrefix(now, before) {
			t.Errorf("request %d does not begin with the one before:\n%s\n%s", i+1, before, now)
		}
		before = now
	}
	if len(outcome.Requests) != 6 {
		t.Errorf("%d requests came; want 6", len(outcome.Requests))
	}
}

// TestVisibleOfGovernance: what was left out, put elsewhere and summarized is in the log,
// and so is the request for the summary, over two processes.
func TestVisibleOfGovernance(t *testing.T) {
	last := "Done."
	lines := strings.Repeat("one line of many, and of no interest\n", 60)
	outcome := play(t, quirks.Case{
		Files: map[string]string{"n.txt": lines},
		Args: []string{
			"--set", "context.window=3390", "--set", "context.block_limit=3290", "--set", "context.max_result=1500",
			// Requests have just the room that is needed, whatever other tools there are: one that
			// is denied is in none.
			"--deny", "exec", "--deny", "write_stdin", "--deny", "list_exec_sessions", "--deny", "write_file", "--deny", "edit_file", "--deny", "apply_patch",
			"--deny", "list_dir", "--deny", "find_files", "--deny", "web_fetch", "--deny", "web_search",
		},
		Runs: []quirks.Run{
			{Prompt: "One.", Replies: asReplies(
				calling("a", "grep", `{"pattern":"line","path":"n.txt"}`), calling("b", "read_file", `{"path":"n.txt"}`),
				calling("c", "read_file", `{"path":"n.txt","limit":59}`), saying("Half."))},
			{Prompt: "Two.", Resume: true, Replies: asReplies(calling("d", "read_file", `{"path":"n.txt","limit":5}`), saying("A summary."), saying("Done."))},
		},
		Expect: quirks.Expect{
			Outcome: "success", Exit: []int{0}, Text: &last, Requests: &[2]int{7, 7},
			LogHas: []string{"result_budget", "compaction", "A summary.", ".wharf/results/"},
		},
	})
	if n := len(outcome.Requests); n == 7 && !bytes.Contains(outcome.Requests[6].Body, []byte("A summary.")) {
		t.Errorf("the last request lacks the summary: %s", outcome.Requests[6].Body)
	}
}
