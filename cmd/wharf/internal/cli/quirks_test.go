package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/cmd/wharf/internal/cli"
	"github.com/wharf-agent/wharf/cmd/wharf/internal/quirks"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/host"
)

// The test program is also wharf itself, so that a run is a process of its own.
func TestMain(m *testing.M) {
	sandbox.Init()
	host.Init()
	if os.Getenv("WHARF_TEST_AS_WHARF") == "1" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// TestQuirks runs wharf against what servers get wrong.
func TestQuirks(t *testing.T) {
	cases, err := quirks.Load("../quirks/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Kind+"/"+c.ID, func(t *testing.T) {
			t.Parallel()
			play(t, c)
		})
	}
}

// TestServersThatFail: the user is told what happened, and goes on later.
func TestServersThatFail(t *testing.T) {
	tests := []struct{ name, reply, told string }{
		{"it breaks the connection at once", `{"end":"drop"}`, "EOF"},
		{"it resets the connection in the middle", `{"chunks":[{"delta":{"content":"ha"}}],"end":"reset"}`, "the stream ended before the answer was complete"},
		{"it refuses the key", `{"status":401,"body":"{\"error\":{\"message\":\"no such key\"}}"}`, "status 401: no such key: check the key in OPENAI_API_KEY"},
		{"it has had too many requests", `{"status":429,"headers":{"Retry-After":"3600"},"body":"{\"error\":\"slow down\"}"}`, "status 429: slow down"},
		{"it has a fault", `{"status":500,"body":"boom"}`, "status 500: boom"},
		{"it is a web page", `{"headers":{"Content-Type":"text/html"},"body":"<html><title>Sign in</title></html>"}`, "Sign in"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := `{"chunks":[{"delta":{"content":"Back."}},{"finish":"stop"}]}`
			last := "Back."
			outcome := play(t, quirks.Case{
				Runs: []quirks.Run{
					{Prompt: "Hello.", Replies: []json.RawMessage{json.RawMessage(`{"loop":true,` + tt.reply[1:])}},
					{Prompt: "Again.", Resume: true, Replies: []json.RawMessage{json.RawMessage(answer)}},
				},
				Expect: quirks.Expect{Outcome: "success", Exit: []int{0}, Text: &last},
			})
			if first := outcome.Runs[0]; first.Exit != 1 || !bytes.Contains(first.Stderr, []byte(tt.told)) {
				t.Errorf("exit status %d, stderr %q; want 1, and %q", first.Exit, first.Stderr, tt.told)
			}
		})
	}
}

// TestAServerThatHangs is given up after the idle time-out.
func TestAServerThatHangs(t *testing.T) {
	outcome := play(t, quirks.Case{
		Args: []string{"--set", `idle_timeout="300ms"`},
		Runs: []quirks.Run{{Prompt: "Hello.", Replies: []json.RawMessage{json.RawMessage(`{"end":"stall","loop":true}`)}}},
		Expect: quirks.Expect{
			Outcome: "error", Exit: []int{1}, Reasons: []string{"model_error"}, Told: []string{"the server sent nothing for 300ms"},
		},
	})
	if len(outcome.Requests) == 0 {
		t.Error("no request came; want one")
	}
}

// settings are the configuration keys of what cases call by neutral names.
var settings = map[string]string{
	"idle_timeout": "idle_timeout", "context_window": "context.window", "max_output_tokens": "context.max_output",
	"assistant_after_tool": "compat.assistant_after_tool", "tool_role": "compat.tool_role",
	"system_role": "compat.system_role", "reasoning": "compat.reasoning", "stream_usage": "compat.stream_usage", "text_calls": "compat.text_calls",
}

// reshapes reports whether a case's settings have the server get the messages in
// another form than most.
func reshapes(c quirks.Case) bool {
	for name := range c.Settings {
		if strings.HasPrefix(settings[name], "compat.") {
			return true
		}
	}
	return false
}

// play runs a case and reports what is wrong with what came of it.
func play(t *testing.T, c quirks.Case) quirks.Outcome {
	t.Helper()
	p := player{c, quirks.NewServer(t, c), t.TempDir(), t.TempDir()}
	if err := c.WriteFiles(p.workspace); err != nil {
		t.Fatal(err)
	}
	outcome := quirks.Outcome{Workspace: p.workspace}
	for i, r := range c.Runs {
		if i > 0 {
			p.server.NextRun()
		}
		outcome.Runs = append(outcome.Runs, p.wharf(t, r))
	}
	outcome.Requests = p.server.Requests()
	if !reshapes(c) {
		checkVisible(t, p.home, outcome.Requests)
	}
	problems := quirks.Check(c, outcome)
	if len(problems) == 0 {
		return outcome
	}
	for _, r := range outcome.Runs {
		if bytes.Contains(r.Stdout, []byte("SANDBOX_UNAVAILABLE")) && os.Getenv("WHARF_TEST_STRICT") != "1" {
			t.Skip("no command can be confined here: apt install bubblewrap")
		}
		t.Logf("exit status %d\nstdout:\n%sstderr:\n%s", r.Exit, r.Stdout, r.Stderr)
	}
	for _, p := range problems {
		t.Error(p)
	}
	return outcome
}

// player runs a case.
type player struct {
	quirks.Case
	server          *quirks.Server
	home, workspace string
}

func (p player) args(t *testing.T, r quirks.Run) []string {
	t.Helper()
	args := []string{
		"run", "--provider", "openai", "--base-url", p.server.URL, "--model", cmp.Or(p.Model, "mock"), "--output-format", "stream-json",
	}
	if r.Resume {
		args = append(args, "-c")
	}
	for name, value := range p.Settings {
		key, known := settings[name]
		if !known {
			t.Fatalf("there is no setting for %q", name)
		}
		args = append(args, "--set", key+"="+value)
	}
	return append(append(args, p.Args...), r.Prompt)
}

// wharf starts wharf as a process of its own and waits for it.
func (p player) wharf(t *testing.T, r quirks.Run) quirks.RunOutcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	limit := time.Duration(cmp.Or(p.LimitS, 30)) * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second+limit) // the machine may be busy
	defer cancel()
	var stdout, stderr bytes.Buffer
	args := p.args(t, r)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.workspace, &stdout, &stderr, time.Second
	cmd.Env = []string{
		"WHARF_TEST_AS_WHARF=1", "OPENAI_API_KEY=sk-of-the-test", "PATH=" + os.Getenv("PATH"), "HOME=" + p.home,
		"XDG_CONFIG_HOME=" + filepath.Join(p.home, "config"), "XDG_STATE_HOME=" + filepath.Join(p.home, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(p.home, "cache"),
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, signalled := make(chan struct{}), make(chan time.Time, 1)
	go func() {
		signalled <- p.signal(cmd.Process, r.Signal, began, ended)
	}()
	err = cmd.Wait()
	close(ended)
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("wharf %q: %v\n%s", args, err, stderr.Bytes())
	}
	exit := cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit = 128 + int(status.Signal())
	}
	return quirks.RunOutcome{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: exit, Took: time.Since(<-signalled)}
}

// signal sends a run its signal, if it has one, and returns from when on its time counts.
func (p player) signal(process *os.Process, s *quirks.Signal, began time.Time, ended <-chan struct{}) time.Time {
	if s == nil {
		return began
	}
	if s.Request > 0 && !p.server.Await(s.Request, ended) {
		return began
	}
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for s.File != "" {
		if _, err := os.Stat(filepath.Join(p.workspace, s.File)); err == nil {
			break
		}
		select {
		case <-ticks.C:
		case <-ended:
			return began
		}
	}
	select {
	case <-time.After(time.Duration(s.AfterMS) * time.Millisecond):
	case <-ended:
	}
	number := syscall.SIGINT
	if s.Name == "KILL" {
		number = syscall.SIGKILL
	}
	at := time.Now()
	_ = process.Signal(number) // it may have ended
	return at
}
