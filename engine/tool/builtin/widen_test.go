package builtin

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/tool"
)

func (b *bench) widens(a args) string {
	b.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		b.t.Fatal(err)
	}
	target, _ := b.tools.Lookup("exec")
	w := target.(tool.Widener)
	what := w.Widens(raw)
	if what == "" {
		return ""
	}
	if refusal := w.MayAsk(raw); refusal != "" {
		return "refused: " + refusal
	}
	return what
}

// A command may be asked for with full access only after the sandbox refused it
// something, exactly as it was, and once.
func TestFullAccessIsAskedForOnce(t *testing.T) {
	b := newBench(t, nil)
	const outside = "/sys/devices/system/cpu/online"
	content, err := os.ReadFile(outside)
	if err != nil {
		t.Skip("there is nothing to be seen outside: ", err)
	}
	const unseen = "refused: full access is for a command that the sandbox was seen to refuse something, exactly as it was, and can be asked for once: run it without escalate first, or do it another way"
	command := "cat " + outside
	wide := args{"command": command, "escalate": "I need it"}
	if got := b.widens(wide); got != unseen {
		t.Errorf("before it was refused: %s", got)
	}
	if got := b.call("exec", args{"command": command}); !strings.Contains(got, "the sandbox may have refused this") {
		t.Fatalf("confined: %s", got)
	}
	if got := b.widens(args{"command": command + " ", "escalate": "I need it"}); got != unseen {
		t.Errorf("another command: %s", got)
	}
	if got := b.widens(args{"command": command, "escalate": "I need it", "tty": true}); got != "refused: a command with full access is waited for: leave out yield_ms, tty and keep" {
		t.Errorf("a session: %s", got)
	}
	target, _ := b.tools.Lookup("exec")
	for range 2 { // that it is looked at, as of an extension's call, uses nothing up
		target.(tool.Widener).Widens([]byte(`{"command":"` + command + `","escalate":"mine"}`))
	}
	if got, want := b.widens(wide), `run once with full access to this machine: the sandbox refused it something, and the model says "I need it"`; got != want {
		t.Errorf("after it was refused: %s", got)
	}
	if got := b.call("exec", wide); !strings.HasPrefix(got, string(content)+"[exit status 0; ") || !strings.HasSuffix(got, "\n[sandbox: it ran with full access, this once]") {
		t.Errorf("with full access: %s", got)
	}
	if got := b.widens(wide); got != unseen {
		t.Errorf("a second time: %s", got)
	}
	if got := b.widens(args{"command": "true"}); got != "" {
		t.Errorf("a plain command: %s", got)
	}
}

// recordingBox keeps the commands that it is to run.
type recordingBox struct {
	Runner
	ran []sandbox.Command
}

func (r *recordingBox) Run(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
	r.ran = append(r.ran, c)
	return sandbox.Result{Rung: sandbox.Bubblewrap}, nil
}

func TestHostsForOneCommand(t *testing.T) {
	box := &recordingBox{}
	b := &bench{t: t}
	for _, tl := range Tools(Config{Box: box}) {
		if err := b.tools.Add(tl); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		hosts []string
		want  string
	}{
		{[]string{"pypi.org", "*.go.dev:443"}, "reach pypi.org, *.go.dev:443, which commands otherwise cannot"},
		{[]string{"https://pypi.org"}, `refused: allow_net: "https://pypi.org": write the host alone, without https:// and without a path`},
		{nil, ""},
	} {
		if got := b.widens(args{"command": "true", "allow_net": tt.hosts}); got != tt.want {
			t.Errorf("%v: %s", tt.hosts, got)
		}
	}
	b.want("exec", args{"command": "true", "allow_net": []string{"pypi.org"}}, "[exit status 0; sandbox: bwrap]\n[sandbox: it could reach pypi.org, this once]")
	if len(box.ran) != 1 || len(box.ran[0].Network) != 1 || box.ran[0].Network[0].String() != "pypi.org" || box.ran[0].Profile != "" {
		t.Errorf("it ran %+v", box.ran)
	}
	b.want("exec", args{"command": "true", "allow_net": strings.Split(strings.Repeat("a.example ", 17), " ")[:17]},
		`error: the arguments of exec do not fit: "allow_net": maxItems: got 17, want 16 INVALID_ARGS`)
}
