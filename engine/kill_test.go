package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// killScript is the model of the kill test: two steps with calls, then a text.
const killScript = `{"text":"first","calls":[{"name":"touch","arguments":{"text":"a"}},{"name":"touch","arguments":{"text":"b"}}]}
{"calls":[{"name":"touch","arguments":{"text":"c"}}]}
{"text":"done"}`

// killedEngine builds an engine on the session in dir, whose tool leaves a line
// in dir/effects, the session's one effect on the world.
func killedEngine(dir string, replies string, observe func(session.Record)) (*engine.Engine, *session.Log, error) {
	store, err := session.NewStore(filepath.Join(dir, "sessions"), "test", session.SyncNever)
	if err != nil {
		return nil, nil, err
	}
	list, err := store.List()
	if err != nil {
		return nil, nil, err
	}
	var log *session.Log
	if len(list) == 0 {
		log, err = store.Create(dir, observe)
	} else {
		log, err = store.Resume(list[0].ID, observe)
	}
	if err != nil {
		return nil, nil, err
	}
	touch := fake("touch", permission.Reads, func(_ context.Context, c tool.Call) (tool.Result, error) {
		f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return tool.Result{}, err
		}
		_, err = fmt.Fprintln(f, c.ID)
		return tool.Result{Content: "touched"}, errors.Join(err, f.Close())
	})
	var tools tool.Registry
	policy, err := permission.New("", "")
	if err := errors.Join(err, tools.Add(touch)); err != nil {
		return nil, nil, err
	}
	parsed, err := script.Parse("script", strings.NewReader(replies))
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.New(engine.Config{Provider: script.New(parsed), Log: log, Tools: &tools, Policy: policy})
	return e, log, err
}

// TestKillChild is not a test: it is the process that the kill test kills,
// once it has written the event after which it is to die.
func TestKillChild(t *testing.T) {
	dir := os.Getenv("WHARF_KILL_DIR")
	if dir == "" {
		t.Skip("only as the child of TestKillAtEveryFlushPoint")
	}
	last, err := strconv.ParseInt(os.Getenv("WHARF_KILL_AFTER"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	e, log, err := killedEngine(dir, killScript, func(r session.Record) {
		if r.Seq == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing happens after the kill
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := e.Turn(t.Context(), engine.Input{Text: "go"}); r.Reason != session.Completed {
		t.Fatalf("the turn ended as %s: %v", r.Reason, r.Err)
	}
	log.Close()
}

// Every event is a flush point. Wherever the process is killed, what was
// written is there, no effect is without its intent on record, and the session
// goes on.
func TestKillAtEveryFlushPoint(t *testing.T) {
	for last := int64(0); ; last++ {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$", "-test.v")
		child.Env = append(os.Environ(), "WHARF_KILL_DIR="+dir, fmt.Sprintf("WHARF_KILL_AFTER=%d", last))
		out, err := child.CombinedOutput()
		if err == nil {
			if last < 15 {
				t.Fatalf("the whole turn took %d events: the child did not do its work\n%s", last, out)
			}
			return
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("kill after event %d: the child ended by itself: %v\n%s", last, err, out)
		}
		afterKill(t, dir, last)
	}
}

func afterKill(t *testing.T, dir string, last int64) {
	t.Helper()
	before := readLog(t, dir)
	if n := int64(bytes.Count(before, []byte("\n"))); n != last+1 {
		t.Errorf("kill after event %d: the log holds %d events", last, n)
	}
	effects, _ := os.ReadFile(filepath.Join(dir, "effects"))
	for id := range strings.FieldsSeq(string(effects)) {
		if !bytes.Contains(before, []byte(`"type":"tool.call","data":{"call_id":"`+id+`"`)) {
			t.Errorf("kill after event %d: call %s had its effect without being on record", last, id)
		}
	}
	e, log, err := killedEngine(dir, `{"text":"went on"}`, nil)
	if err != nil {
		t.Fatalf("kill after event %d: %v", last, err)
	}
	if r := e.Turn(t.Context(), engine.Input{Text: "go on"}); r.Reason != session.Completed || r.Text != "went on" {
		t.Errorf("kill after event %d: the next turn ended as %s: %v", last, r.Reason, r.Err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	after := readLog(t, dir)
	if !bytes.HasPrefix(after, before) {
		t.Errorf("kill after event %d: resuming changed what was written", last)
	}
	var records []session.Record
	results := map[session.CallID]int{}
	for line := range bytes.Lines(after) {
		r, err := session.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
		switch e := r.Event.(type) {
		case session.AssistantMessage:
			for _, c := range e.Calls {
				results[c.ID] += 0
			}
		case session.ToolResult:
			results[e.CallID]++
		}
	}
	for id, n := range results {
		if n != 1 {
			t.Errorf("kill after event %d: call %s has %d results", last, id, n)
		}
	}
	for _, problem := range session.Verify(records).Problems {
		t.Errorf("kill after event %d: %s", last, problem)
	}
}

func readLog(t *testing.T, dir string) []byte {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "sessions", "*", "log.jsonl"))
	if len(paths) != 1 {
		t.Fatalf("%d logs in %s, want 1", len(paths), dir)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return content
}
