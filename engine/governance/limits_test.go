package governance

import (
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/session"
)

// Only what is over the window whatever the tokenizer is counts as too long.
func TestTooLong(t *testing.T) {
	tests := []struct {
		name, prompt string
		window       int
		want         string
	}{
		{"what fits", strings.Repeat("two words ", 100), 1000, ""},
		{"what other tokenizers may make less of", strings.Repeat("two words ", 100), 150, ""},
		{"what no tokenizer makes little enough of", strings.Repeat("two words ", 100), 100, "the request has about 209 tokens, and the model's window is 100, so it is not sent: shorten the prompt, or raise context.window if the model takes more"},
		{"long text of few tokens", strings.Repeat(" ", 6400), 200, ""},
		{"a window that nobody told", strings.Repeat("word ", 500_000), 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h session.History
			h.Add(session.Record{Seq: 1, Event: session.UserMessage{Content: tt.prompt, Origin: "user"}})
			got := ""
			if err := New(Config{Window: tt.window}).TooLong(&h); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("it says %q; want %q", got, tt.want)
			}
		})
	}
}
