package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/provider/script"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// killScript is the model of a turn that has all that a process can be killed
// in: calls side by side and alone, a request that fails and is sent again, hooks
// that judge a call, add a context and finalize the answer.
const killScript = `{"text":"first","calls":[{"name":"touch","arguments":{"text":"a"}},{"name":"touch","arguments":{"text":"b"}},{"name":"alone","arguments":{"text":"c"}}]}
{"calls":[{"name":"alone","arguments":{"text":"d"}},{"name":"touch","arguments":{"text":"no"}}]}
{"error":{"status":503,"message":"overloaded"}}
{"text":"done"}
`

// killHook has something to say wherever a verdict is written down.
var killHook = hook.Funcs{ID: "judge", Guard: true, On: map[hook.Point]hook.Func{
	hook.UserPromptSubmit: func(context.Context, []byte) (hook.Verdict, error) {
		return hook.Verdict{Context: "a context"}, nil
	},
	hook.BeforeExecuteTool: func(_ context.Context, payload []byte) (hook.Verdict, error) {
		if bytes.Contains(payload, []byte(`"text":"no"`)) {
			return hook.Verdict{Decision: hook.Deny, Reason: "not this one"}, nil
		}
		return hook.Verdict{}, nil
	},
	hook.OnRequestError: func(context.Context, []byte) (hook.Verdict, error) {
		return hook.Verdict{Decision: hook.Retry}, nil
	},
	hook.FinalizeContent: func(context.Context, []byte) (hook.Verdict, error) {
		return hook.Verdict{Replace: map[string]json.RawMessage{"text": json.RawMessage(`"finalized"`)}}, nil
	},
}}

// killedEngine builds an engine on the one session in dir, whose tools leave a
// line in dir/effects, the session's one effect on the world.
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
	touch := func(_ context.Context, c tool.Call) (tool.Result, error) {
		f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return tool.Result{}, err
		}
		_, err = fmt.Fprintln(f, c.ID)
		return tool.Result{Content: "touched"}, errors.Join(err, f.Close())
	}
	beside := fake("touch", permission.Reads, touch).(fakeTool)
	beside.spec.Parallel = true
	var tools tool.Registry
	policy, err := permission.New("", "")
	if err := errors.Join(err, tools.Add(beside), tools.Add(fake("alone", permission.Reads, touch))); err != nil {
		return nil, nil, err
	}
	parsed, err := script.Parse("script", strings.NewReader(replies))
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.New(engine.Config{Provider: script.New(parsed), Log: log, Tools: &tools, Policy: policy, Hooks: []hook.Hook{killHook}})
	return e, log, err
}

// TestKillChild is not a test: it is the process that the tests below kill. It
// runs turns in WHARF_KILL_DIR, and dies after the event WHARF_KILL_AFTER, or
// WHARF_KILL_IN microseconds after it is ready, or has WHARF_KILL_ROOM bytes for
// its log.
func TestKillChild(t *testing.T) {
	dir := os.Getenv("WHARF_KILL_DIR")
	if dir == "" {
		t.Skip("only as the child of the tests that kill it")
	}
	number := func(name string, otherwise int64) int64 {
		n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
		if err != nil {
			return otherwise
		}
		return n
	}
	after, in, room := number("WHARF_KILL_AFTER", -1), number("WHARF_KILL_IN", -1), number("WHARF_KILL_ROOM", -1)
	turns := 1
	if in >= 0 {
		turns = 50
		time.AfterFunc(time.Duration(in)*time.Microsecond, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
	if room >= 0 {
		limitFiles(t, uint64(room))
	}
	synctest.Test(t, func(t *testing.T) { // so that a retry waits for nothing
		runKilled(t, dir, turns, after, room)
	})
}

func runKilled(t *testing.T, dir string, turns int, after, room int64) {
	e, log, err := killedEngine(dir, strings.Repeat(killScript, turns), func(r session.Record) {
		if r.Seq == after {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing happens after the kill
		}
	})
	if room >= 0 && errors.Is(err, syscall.EFBIG) {
		return // not even the session could be started, or repaired
	}
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for range turns {
		r := e.Turn(t.Context(), engine.Input{Text: "go"})
		const full = "write the session's log: write " // and where
		if room >= 0 {
			if text := fmt.Sprint(r.Err); r.Reason == session.Completed || strings.Count(text, full) != 1 || !errors.Is(r.Err, syscall.EFBIG) {
				t.Fatalf("the turn ended as %s: %s", r.Reason, text)
			}
			return
		}
		if r.Reason != session.Completed || r.Text != "finalized" {
			t.Fatalf("the turn ended as %s: %v", r.Reason, r.Err)
		}
	}
}

// limitFiles lets no file of this process grow past a size.
func limitFiles(t *testing.T, size uint64) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) // a failed write, and not the end of the process
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit)
	if err == nil {
		limit.Cur = size
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// killChild runs the child in dir, and reports whether it was killed; otherwise
// it came to its own end.
func killChild(t *testing.T, dir string, env ...string) (killed bool) {
	t.Helper()
	runtime.LockOSThread() // whose end would be taken for this process's
	defer runtime.UnlockOSThread()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$", "-test.v", "-test.timeout=1m")
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Env = append(os.Environ(), "WHARF_KILL_DIR="+dir)
	child.Env = append(child.Env, env...)
	out, err := child.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v: the child ended by itself: %v\n%s", env, err, out)
	}
	return true
}

// Every event is a flush point. Wherever the process is killed, what was
// written is there, no effect is without its intent on record, and the session
// goes on.
func TestKillAtEveryFlushPoint(t *testing.T) {
	events := bytes.Count(wholeTurn(t), []byte("\n"))
	for last := range events {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if !killChild(t, dir, fmt.Sprintf("WHARF_KILL_AFTER=%d", last)) {
				t.Fatal("the child was not killed")
			}
			before := readLog(t, dir)
			if n := bytes.Count(before, []byte("\n")); n != last+1 {
				t.Errorf("the log holds %d events", n)
			}
			checkEffects(t, dir, before)
			goOn(t, dir)
		})
	}
}

// wholeTurn returns the log of a child that nobody kills.
func wholeTurn(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if killChild(t, dir) {
		t.Fatal("somebody killed the child")
	}
	return readLog(t, dir)
}

// besideEachOther returns the sequence number of the event at which two calls
// have started and none has a result.
func besideEachOther(t *testing.T) int {
	t.Helper()
	before, _, found := bytes.Cut(wholeTurn(t), []byte(`"type":"tool.result"`))
	if !found || bytes.Count(before, []byte(`"type":"tool.call"`)) != 2 {
		t.Fatal("the first two calls do not run side by side")
	}
	return bytes.Count(before, []byte("\n")) - 1
}

// A process may be killed again while it repairs what the first kill left.
func TestKillDuringRepair(t *testing.T) {
	killedAt := besideEachOther(t)
	for again := 1; ; again++ {
		dir := t.TempDir()
		killChild(t, dir, fmt.Sprintf("WHARF_KILL_AFTER=%d", killedAt))
		before := readLog(t, dir)
		if err := appendTorn(dir); err != nil {
			t.Fatal(err)
		}
		killChild(t, dir, fmt.Sprintf("WHARF_KILL_AFTER=%d", killedAt+again))
		repaired := readLog(t, dir)
		if !bytes.HasPrefix(repaired, before) {
			t.Fatalf("killed %d events into the repair: what was written changed", again)
		}
		checkEffects(t, dir, repaired)
		goOn(t, dir)
		if bytes.Contains(repaired, []byte(`"type":"turn.started","data":{"turn":2`)) {
			if again != 8 { // what was done, two results, a call and its result, the step's end, the turn's
				t.Errorf("the repair had %d events; want 7", again-1)
			}
			return
		}
	}
}

// A disk that is full ends the turn before the effect, and the session goes on
// once there is room; here a limit stands for the disk.
func TestAFullDiskAtAnyMoment(t *testing.T) {
	whole := len(wholeTurn(t))
	for room := 50; room < whole; room += 400 {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killChild(t, dir, fmt.Sprintf("WHARF_KILL_ROOM=%d", room))
			left, err := os.ReadDir(filepath.Join(dir, "sessions"))
			if err != nil {
				t.Fatal(err)
			}
			if len(left) == 0 {
				return // there was no room for a session
			}
			before := readLog(t, dir)
			if !bytes.HasSuffix(before, []byte("\n")) {
				t.Error("the log ends within a line")
			}
			checkEffects(t, dir, before)
			goOn(t, dir)
		})
	}
}

// The same while a session is repaired.
func TestAFullDiskDuringRepair(t *testing.T) {
	killedAt := besideEachOther(t)
	for more := 0; more < 1200; more += 150 {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killChild(t, dir, fmt.Sprintf("WHARF_KILL_AFTER=%d", killedAt))
			before := readLog(t, dir)
			killChild(t, dir, fmt.Sprintf("WHARF_KILL_ROOM=%d", len(before)+more))
			if now := readLog(t, dir); !bytes.HasPrefix(now, before) || !bytes.HasSuffix(now, []byte("\n")) {
				t.Errorf("the log is\n%s, and was\n%s", now, before)
			}
			checkEffects(t, dir, before)
			goOn(t, dir)
		})
	}
}

// appendTorn leaves the beginning of a line at the end of the log.
func appendTorn(dir string) error {
	paths, _ := filepath.Glob(filepath.Join(dir, "sessions", "[0-9]*", "log.jsonl"))
	f, err := os.OpenFile(paths[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(`{"v":1,"seq":18,"time":"2026-11-30T`)
	return errors.Join(err, f.Close())
}

// Killed at random moments, again and again on the same session, which each time
// is repaired and gone on with.
func TestKillAtRandomMoments(t *testing.T) {
	const sessions, kills = 4, 50
	for n := range sessions {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			dir, last := t.TempDir(), []byte(nil)
			for range kills {
				killChild(t, dir, fmt.Sprintf("WHARF_KILL_IN=%d", rand.IntN(20_000)))
				paths, _ := filepath.Glob(filepath.Join(dir, "sessions", "[0-9]*", "log.jsonl"))
				if len(paths) == 0 {
					continue // it was killed before the session was there
				}
				now := readLog(t, dir)
				if whole := last[:bytes.LastIndexByte(last, '\n')+1]; !bytes.HasPrefix(now, whole) {
					t.Fatal("what was written before a kill changed after it")
				}
				last = now
			}
			t.Logf("%d bytes of log", len(last))
			checkEffects(t, dir, last)
			goOn(t, dir)
		})
	}
}

// checkEffects checks that no effect was there without its intent on record, and
// none twice.
func checkEffects(t *testing.T, dir string, log []byte) {
	t.Helper()
	seen := map[string]bool{}
	for _, id := range effects(dir) {
		if !bytes.Contains(log, []byte(`"type":"tool.call","data":{"call_id":"`+id+`"`)) {
			t.Errorf("call %s had its effect without being on record", id)
		}
		if seen[id] {
			t.Errorf("call %s had its effect twice", id)
		}
		seen[id] = true
	}
}

func effects(dir string) []string {
	content, _ := os.ReadFile(filepath.Join(dir, "effects"))
	return strings.Fields(string(content))
}

// goOn resumes the session, runs a turn, and checks the whole log: each call has
// one result, none that says it was not started had an effect, and it verifies.
func goOn(t *testing.T, dir string) {
	t.Helper()
	before := readLog(t, dir)
	e, log, err := killedEngine(dir, `{"text":"went on"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := e.Turn(t.Context(), engine.Input{Text: "go on"}); r.Reason != session.Completed || r.Text != "finalized" {
		t.Errorf("the next turn ended as %s: %v", r.Reason, r.Err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	after := readLog(t, dir)
	if !bytes.HasPrefix(after, before[:bytes.LastIndexByte(before, '\n')+1]) {
		t.Error("resuming changed what was written")
	}
	records := decodeLog(t, after)
	results := map[session.CallID][]session.ToolResult{}
	for _, r := range records {
		switch e := r.Event.(type) {
		case session.AssistantMessage:
			for _, c := range e.Calls {
				results[c.ID] = nil
			}
		case session.ToolResult:
			results[e.CallID] = append(results[e.CallID], e)
		}
	}
	for id, list := range results {
		if len(list) != 1 {
			t.Errorf("call %s has %d results", id, len(list))
		}
		if had := slices.Contains(effects(dir), string(id)); had && list[0].Code == "TOOL_NOT_STARTED" {
			t.Errorf("call %s had its effect, and the model is told that it had none", id)
		}
	}
	for _, problem := range session.Verify(records).Problems {
		t.Error(problem)
	}
	checkReplay(t, records)
}

func readLog(t *testing.T, dir string) []byte {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "sessions", "[0-9]*", "log.jsonl"))
	if len(paths) != 1 {
		t.Fatalf("%d logs in %s, want 1", len(paths), dir)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// decodeLog returns the events of a log.
func decodeLog(t *testing.T, content []byte) (records []session.Record) {
	t.Helper()
	for line := range bytes.Lines(content) {
		r, err := session.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}
