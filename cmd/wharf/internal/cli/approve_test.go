package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/permission"
)

// What may be meant as a yes is asked again, and never taken for one.
func TestUnclearAnswers(t *testing.T) {
	for _, line := range []string{"?", "help", "ok", "OK", "yes please", "yes, but use sudo", "sure", "y!", "go ahead"} {
		if !unclear(line, "echo") || readAnswer(line, "echo").Allowed {
			t.Errorf("%q is taken as it is", line)
		}
	}
	for _, line := range []string{"s", "a", "always"} {
		if !unclear(line, "") || unclear(line, "echo") {
			t.Errorf("%q is unclear only where it is not on offer", line)
		}
	}
	for _, line := range []string{"", "y", "YES", "n", "no", "use cat", "gofmt it first", "yesterday's file", "knot"} {
		if unclear(line, "") {
			t.Errorf("%q is asked about again", line)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	yes := func(scope permission.Scope) permission.Answer { return permission.Answer{Allowed: true, Scope: scope} }
	tests := []struct {
		line, rule string
		want       permission.Answer
	}{
		{"y", "", yes(permission.Once)},
		{"YES", "exec(ls)", yes(permission.Once)},
		{"s", "exec(ls)", yes(permission.Session)},
		{"always", "exec(ls)", yes(permission.Project)},
		{"a", "", permission.Answer{}}, // there is nothing that it could stand for
		{"session", "", permission.Answer{Message: "session"}},
		{"", "exec(ls)", permission.Answer{}},
		{"n", "exec(ls)", permission.Answer{}},
		{"yes please", "exec(ls)", permission.Answer{Message: "yes please"}},
		{"use the staging server", "", permission.Answer{Message: "use the staging server"}},
	}
	for _, tt := range tests {
		if got := readAnswer(tt.line, tt.rule); got != tt.want {
			t.Errorf("readAnswer(%q, %q) = %+v; want %+v", tt.line, tt.rule, got, tt.want)
		}
	}
}

// typing is a keyboard, with what is typed into the returned writer.
func typing(t *testing.T) (*keyboard, io.WriteCloser) {
	t.Helper()
	in, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	return openKeyboard(in), typed
}

func questionOf(tool, arguments string) permission.Question {
	return permission.Question{
		Call: permission.Call{Tool: tool, Arguments: []byte(arguments)}, Why: `the rule "ask it" asks`, Rule: "exec(make)",
	}
}

// The question shows what will happen, and nothing in it can drive the terminal.
func TestQuestion(t *testing.T) {
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const choice = "  y yes · s yes to exec(make) in this session · a yes to it always in this project · n no, or say why not: "
	tests := []struct {
		name string
		q    permission.Question
		want string
	}{
		{"a command", questionOf("exec", `{"command":"make\nrm \u001b[2Jx"}`), "? exec, since the rule \"ask it\"\n    make\n    rm \uFFFD[2Jx\n" + choice},
		{"a new text", questionOf("write_file", `{"path":"a.txt","content":"one\n2\nthree\n"}`), "? write_file, since the rule \"ask it\"\n    a.txt\n    @@ -1,3 +1,3 @@\n     one\n    -two\n    +2\n     three\n" + choice},
		{"a change", questionOf("edit_file", `{"path":"a.txt","old_text":"two","new_text":"2"}`), "? edit_file, since the rule \"ask it\"\n    a.txt\n    @@ -1,1 +1,1 @@\n    -two\n    \\ No newline at end of file\n    +2\n    \\ No newline at end of file\n" + choice},
		{"a patch", questionOf("apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: a\n*** End Patch"}`), "? apply_patch, since the rule \"ask it\"\n    *** Begin Patch\n    *** Delete File: a\n    *** End Patch\n" + choice},
		{"a path", questionOf("read_file", `{"path":".env"}`), "? read_file, since the rule \"ask it\"\n    .env\n" + choice},
		{"a command that is kept", questionOf("exec", `{"command":"make serve","keep":true}`), "? exec, since the rule \"ask it\"\n    make serve\n    kept running beyond this turn\n" + choice},
		{"a command elsewhere", questionOf("exec", `{"command":"make","dir":"sub"}`), "? exec, since the rule \"ask it\"\n    make\n    in the folder sub\n" + choice},
		{
			"what blanks would move out of sight", questionOf("exec", `{"command":"rm x;`+strings.Repeat(" ", 90)+`ls"}`),
			"? exec, since the rule \"ask it\"\n    rm x; … 90 blanks … ls\n" + choice,
		},
		{
			"what lines would move out of sight", questionOf("exec", `{"command":"rm x`+strings.Repeat(`\n`, 100)+`ls"}`),
			"? exec, since the rule \"ask it\"\n    rm x\n" + strings.Repeat("    \n", 19) + "    … 61 lines left out here …\n" + strings.Repeat("    \n", 19) + "    ls\n" + choice,
		},
		{
			"a long line", questionOf("exec", `{"command":"`+strings.Repeat("a", 72)+"b"+strings.Repeat("界", 35)+`c\n↪"}`),
			"? exec, since the rule \"ask it\"\n    " + strings.Repeat("a", 72) + "\n    ↪ b" + strings.Repeat("界", 34) + "\n    ↪ 界c\n    ↪\n" + choice,
		},
		{
			"a line of more than a screen", questionOf("exec", `{"command":"`+strings.Repeat("a", 72+19*70)+strings.Repeat("b", 9*70)+strings.Repeat("c", 20*70)+`"}`),
			"? exec, since the rule \"ask it\"\n    " + strings.Repeat("a", 72) + "\n" + strings.Repeat("    ↪ "+strings.Repeat("a", 70)+"\n", 19) +
				"    … 9 lines left out here …\n" + strings.Repeat("    ↪ "+strings.Repeat("c", 70)+"\n", 20) + choice,
		},
		{"a line of tabs", questionOf("exec", `{"command":"x`+strings.Repeat(`\t`, 9)+`y"}`), "? exec, since the rule \"ask it\"\n    x\t\t\t\t\t\t\t\t\n    ↪ \ty\n" + choice},
		{"a folder that would be lines", questionOf("exec", `{"command":"make","dir":"a\n    rm x"}`), "? exec, since the rule \"ask it\"\n    make\n    in the folder \"a\\n    rm x\"\n" + choice},
		{"a file that would be lines", questionOf("read_file", `{"path":"a\nb"}`), "? read_file, since the rule \"ask it\"\n    \"a\\nb\"\n" + choice},
		{"a change to one", questionOf("edit_file", `{"path":"a\n@@\n+y","old_text":"two\n","new_text":"2\n"}`), "? edit_file, since the rule \"ask it\"\n    \"a\\n@@\\n+y\"\n    @@ -1,1 +1,1 @@\n    -two\n    +2\n" + choice},
		{
			"what is typed", questionOf("write_stdin", `{"session_id":"exec-1","text":"ls\r\nrm x\n\tü\u0003\u001b\u007f\u202e"}`),
			"? write_stdin, since the rule \"ask it\"\n    in the session exec-1\n    ls[Return][Enter]\n    rm x[Enter]\n    [Tab]ü[Ctrl-C][Esc][Backspace][U+202E]\n" + choice,
		},
		{"what is typed last", questionOf("write_stdin", `{"session_id":"a\nb","text":"y\n","close":true}`), "? write_stdin, since the rule \"ask it\"\n    in the session \"a\\nb\"\n    y[Enter]\n    whose input ends then\n" + choice},
		{"a session to be ended", questionOf("write_stdin", `{"session_id":"exec-1","kill":true}`), "? write_stdin, since the rule \"ask it\"\n    in the session exec-1\n    which is ended\n" + choice},
		{"a tool that names its argument command", questionOf("deploy", `{"command":"ls","really":"rm x"}`), "? deploy, since the rule \"ask it\"\n    {\"command\":\"ls\",\"really\":\"rm x\"}\n" + choice},
		{"anything else", questionOf("mail", `{"to":"me"}`), "? mail, since the rule \"ask it\"\n    {\"to\":\"me\"}\n" + choice},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := &asker{workspace: workspace}
			if diff := cmp.Diff(tt.want, printable(a.question(tt.q))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A yes that cannot be remembered for the project counts for the session.
func TestApproveAlways(t *testing.T) {
	keys, typed := typing(t)
	var out strings.Builder
	a := &asker{keys: keys, out: &out, remember: func(string) error { return errors.New("the disk is full") }}
	go func() { _, _ = io.WriteString(typed, "a\n") }()
	answer, err := a.Approve(t.Context(), questionOf("exec", `{"command":"make"}`))
	if want := (permission.Answer{Allowed: true, Scope: permission.Session}); err != nil || answer != want {
		t.Errorf("Approve = %+v, %v; want %+v", answer, err, want)
	}
	if !strings.HasSuffix(out.String(), "wharf: it is allowed for this session alone: the disk is full\n") {
		t.Errorf("it said %q", out.String())
	}
}

// Who does not answer any more takes no line from whoever asks next.
func TestLinesAreNotLost(t *testing.T) {
	keys, typed := typing(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keys.line(ctx); err == nil {
		t.Fatal("a line came out of nothing")
	}
	go func() {
		_, _ = io.WriteString(typed, "first\r\nsec")
		_, _ = io.WriteString(typed, "ond\n")
		_ = typed.Close()
	}()
	for _, want := range []string{"first", "second"} {
		if got, err := keys.line(t.Context()); err != nil || got != want {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
	}
	for range 2 {
		if _, err := keys.line(t.Context()); err == nil || err.Error() != "the input ended" {
			t.Errorf("at the end: %v", err)
		}
	}
}

// Several processes remember at once, and nothing is lost.
func TestRemember(t *testing.T) {
	f, workspace := folders{state: t.TempDir()}, "/work"
	var all sync.WaitGroup
	var want []string
	for i := range 20 {
		rule := fmt.Sprintf("exec(make t%02d)", i)
		want = append(want, rule)
		all.Go(func() {
			for range 2 {
				if err := remember(f, workspace, rule); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	r, err := readRemembered(f, workspace)
	slices.Sort(r.Allow)
	if diff := cmp.Diff(want, r.Allow); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := forget(f, workspace, want[3]); err != nil {
		t.Error(err)
	}
	if r, _ := readRemembered(f, workspace); slices.Contains(r.Allow, want[3]) || len(r.Allow) != 19 {
		t.Errorf("after forget: %q", r.Allow)
	}
	if err := forget(f, workspace, "exec(x)"); err == nil || err.Error() != `permissions revoke: "exec(x)" was not allowed in /work: wharf permissions list shows what was` {
		t.Errorf("forget what was not remembered: %v", err)
	}
	if r, _ := readRemembered(f, "/elsewhere"); len(r.Allow) > 0 {
		t.Errorf("another workspace has %q", r.Allow)
	}
	if err := os.WriteFile(r.path, []byte("allow = 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := remember(f, workspace, "exec(x)"); err == nil || !strings.Contains(err.Error(), "delete it to be asked again") {
		t.Errorf("a damaged file: %v", err)
	}
}
