package capability

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	want := []string{
		"send GET requests to https://api.example.com/v1/*",
		"send any requests to https://*.example.org/",
		"have the secret TOKEN put into the header Authorization of requests to api.example.com, without ever seeing it",
		"read files in notes of the workspace",
		"read and write files in out of the workspace, under your rules for writing",
		"keep up to 1MiB of its own between sessions",
		"run commands such as gofmt *, in the sandbox and under your rules",
		"run any command, in the sandbox and under your rules",
		"call the tools read_file, grep, under your rules, as the model does",
		"read the conversation",
		"ask the model itself, for up to 20000 tokens a session",
		"read the environment variable LANG",
		"write events into the session's log",
		"answer yes in your place where you would be asked about a call, though never against a rule",
	}
	got := mustParse(t, `
http = ["GET https://api.example.com/v1/*", "* https://*.example.org/"]
secrets = [{ name = "TOKEN", host = "api.example.com", header = "Authorization", format = "Bearer {}" }]
fs = [{ path = "notes", mode = "read" }, { path = "out", mode = "write" }]
kv = "1MiB"
exec = ["gofmt *", "*"]
tools = ["read_file", "grep"]
session = "read"
llm = { tokens = 20000 }
env = ["LANG"]
events = true
approve = true
`).Words()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each key says something: what is not said cannot be refused.
func TestWordsForEachKey(t *testing.T) {
	all := mustParse(t, everything)
	for _, key := range Keys {
		var alone Set
		alone.take(key, all)
		if len(alone.Words()) == 0 || strings.Contains(strings.Join(alone.Words(), ""), "%!") {
			t.Errorf("%s: %q", key, alone.Words())
		}
	}
}
