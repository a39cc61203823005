package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// everyKind has one event of each kind, in an order in which they may stand.
var everyKind = []Event{
	Started{ID: "20261130-090000-0a1b2c3d", Cwd: "/home/u/calc", Versions: Versions{Wharf: "0.1.0"}},
	TurnStarted{Turn: 1, Origin: "user"},
	HookVerdict{Point: "user_prompt_submit", Extension: "style", Replaced: json.RawMessage(`{"text":"make the tests pass"}`)},
	UserMessage{Content: "make the tests pass", Origin: "user", Delivery: "turn"},
	StepStarted{Turn: 1, Step: 1},
	Header{
		System: "You are an agent.", Model: "some-model", Parameters: json.RawMessage(`{"temperature":0}`),
		Tools: []Tool{{Name: "exec", Description: "Run a command.", InputSchema: json.RawMessage(`{"type":"object"}`)}},
	},
	RequestSent{Step: 1, Digest: "", Scheme: Scheme}, // the digest is filled in
	RequestRetried{Attempt: 1, DelayMS: 1000, Cause: "status 503: overloaded"},
	AssistantMessage{
		Text: "I run the tests.", Reasoning: "Tests first.", FinishReason: "tool_calls",
		Calls: []Call{{ID: "c1", Name: "exec", Arguments: `{"command":"go test ./..."}`, Extra: json.RawMessage(`{"signature":"x"}`)}},
		Usage: Usage{InputTokens: 300, OutputTokens: 20, CacheReadTokens: 256, ReasoningTokens: 4},
	},
	ToolCall{CallID: "c1", Name: "exec", Arguments: `{"command":"go test ./..."}`, Step: 1},
	ExtensionUsed{Extension: "style", Operation: "kv.get", Target: "last", Allowed: true},
	ExtensionLogged{Extension: "style", Level: "info", Text: "looked at a call"},
	HookFailed{Point: "before_execute_tool", Extension: "style", CallID: "c1", Failure: "time-out after 20ms", OnFailure: "isolate"},
	ExtensionQuarantined{Extension: "style", Reason: "3 failures in a row, the last: time-out after 20ms"},
	SandboxRefused{CallID: "c1", Reason: "Sandbox unavailable: bubblewrap is not installed."},
	ToolResult{CallID: "c1", CallSeq: 9, Content: "nothing ran <here> & there", IsError: true, Code: "SANDBOX_UNAVAILABLE", DurationMS: 12},
	StepEnded{Turn: 1, Step: 1},
	TurnEnded{Turn: 1, Reason: Cancelled, Usage: Usage{InputTokens: 300, OutputTokens: 20}, Steps: 1, Error: "ended by the signal interrupt"},
	Repaired{What: "cut off a torn last line of 12 bytes"},
	ExtensionUsed{
		Extension: "style", Digest: "3cae68efb8b282cdcd56bd3dede073809aed699c53f95923e04189f1f853d40d", Operation: "tool.call", Target: `grep {"pattern":"x"}`,
		CallID: "style/1", Reason: "denied by extension \"guard\"",
	},
	ExtensionEmitted{Extension: "style", Name: "looked", Data: json.RawMessage(`{"files":3}`)},
	ExtensionAsked{
		Extension: "style", CallID: "style/2", Model: "some-model", Parameters: json.RawMessage(`{"max_tokens":200}`),
		Prompt: "Is this polite?", Reserved: 205,
	},
	ExtensionAnswered{Extension: "style", CallID: "style/2", Text: "Yes.", FinishReason: "stop", Usage: Usage{InputTokens: 6, OutputTokens: 2}, Tokens: 8},
	EgressChecked{Host: "api.example.com", Port: 443, Allowed: true, Rule: "GET https://api.example.com/v1/*"},
	GoalChanged{Turn: 1, Status: "set", Steps: 40, Round: 1, Rounds: 12},
	SubagentStarted{Session: "20261130-090100-0a1b2c3e", CallID: "c2", Task: "Find the test that fails."},
	SubagentEnded{Session: "20261130-090100-0a1b2c3e", Reason: Completed, Usage: Usage{InputTokens: 90, OutputTokens: 9}, Steps: 2},
	ContextReplaced{Targets: []int64{15}, By: "in_flight", Content: "left out"},
	exampleCompaction(),
	ContextReplaced{Targets: []int64{3, 8, 15}, By: "compaction", Content: "The tests were to be made to pass."},
	CompactionEnded{By: "model", Tokens: 20, Usage: Usage{InputTokens: 60, OutputTokens: 9}},
	ApprovalAsked{CallID: "style/3", Tool: "exec", Arguments: `{"command":"make deploy"}`, Reason: `the rule "ask exec(make *)" asks`},
	ApprovalDecided{CallID: "style/3", Allowed: true},
	PermissionGranted{Rule: "exec(make deploy)", Scope: "session"},
}

func exampleCompaction() CompactionStarted {
	e := CompactionStarted{
		Reason: "threshold", Tokens: 900, Messages: 3, From: 3, To: 15, Model: "some-model", System: "You summarize.",
		Parameters: json.RawMessage(`{"temperature":0}`), Prompt: "user: make the tests pass", Scheme: Scheme,
	}
	e.Digest = e.digest()
	return e
}

func testStore(t testing.TB) *Store {
	t.Helper()
	store, err := NewStore(t.TempDir(), "0.1.0", SyncNever)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// writeAll makes a session of the events after the first, filling in digests.
func writeAll(t testing.TB, store *Store, events []Event) ID {
	t.Helper()
	log, err := store.Create("/home/u/calc", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[1:] {
		if sent, ok := e.(RequestSent); ok {
			sent.Digest = log.Digest()
			e = sent
		}
		if _, err := log.Append(e); err != nil {
			t.Fatalf("append %s: %v", e.kind(), err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return log.ID()
}

func TestEveryKindRoundTrips(t *testing.T) {
	seen := map[string]bool{}
	for i, e := range everyKind {
		r := Record{Seq: int64(i), Time: time.Date(2026, 11, 30, 9, 0, 0, 123e6, time.UTC), Event: e}
		line, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(line)
		if err != nil {
			t.Fatalf("Decode(%s): %v", line, err)
		}
		if _, ok := decodeOwn(line); ok == ignorable(e) {
			t.Errorf("%s was read the slow way: %t; only what may be ignored is", r.Type(), !ok)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("%s changed on the way (-wrote +read):\n%s", r.Type(), diff)
		}
		seen[r.Type()] = true
	}
	for kind := range decoders {
		if !seen[kind] {
			t.Errorf("no example of %s", kind)
		}
	}
}

func TestEncodeIsTheContract(t *testing.T) {
	line, err := Encode(Record{Seq: 7, Time: time.Date(2026, 11, 30, 9, 0, 0, 123e6, time.UTC), Event: StepStarted{Turn: 1, Step: 2}})
	want := `{"v":1,"seq":7,"time":"2026-11-30T09:00:00.123Z","type":"step.started","data":{"turn":1,"step":2}}` + "\n"
	if err != nil || string(line) != want {
		t.Errorf("Encode = %s, %v; want %s", line, err, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name, line, want string
	}{
		{"what is no JSON", `{"v":1`, `corrupt event: unexpected end of JSON input`},
		{"another version", `{"v":2,"seq":0,"time":"2026-11-30T09:00:00.123Z","type":"x","data":{}}`, `corrupt event: its version is 2, this Wharf reads 1`},
		{"an event without a time", `{"v":1,"seq":0,"type":"x","data":{}}`, `corrupt event: no time, sequence number, type or data`},
		{"a type that it does not know", `{"v":1,"seq":0,"time":"2026-11-30T09:00:00.123Z","type":"moon.rose","data":{}}`, `unknown event type "moon.rose": written by a newer Wharf`},
		{"null data", `{"v":1,"seq":0,"time":"2026-11-30T09:00:00.123Z","type":"step.ended","data":null}`, `corrupt event: data of step.ended: it is null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Decode([]byte(tt.line)); err == nil || err.Error() != tt.want {
				t.Errorf("Decode: %v; want %s", err, tt.want)
			}
		})
	}
	r, err := Decode([]byte(`{"v":1,"seq":3,"time":"2026-11-30T09:00:00.123Z","type":"moon.rose","ignorable":true,"data":{"a":1}}`))
	if err != nil || r.Type() != "moon.rose" {
		t.Errorf("an ignorable event of an unknown type: %v, %v; want it read", r, err)
	}
}

func FuzzDecode(f *testing.F) {
	for i, e := range everyKind {
		line, err := Encode(Record{Seq: int64(i), Event: e})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"v":1,"seq":0,"time":"2026-11-30T09:00:00.123Z","type":"step.ended","data":{"turn":1} }`))
	f.Add([]byte(`{"v":1,"seq":0,"time":"2026-11-30T09:00:00.123Z","type":"step.ended","data":{},"seq":7}`))
	f.Add([]byte(`{"v":1,"seq":07,"time":"2026-11-30T09:00:00.123Z","type":"step.ended","data":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if own, ok := decodeOwn(line); ok {
			if other, err := decodeAny(line); err != nil || !reflect.DeepEqual(own, other) {
				t.Errorf("read as our own it is %+v, read as any it is %+v, %v", own, other, err)
			}
		}
		r, err := Decode(line)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownType) {
				t.Fatalf("Decode error %v is neither ErrCorrupt nor ErrUnknownType", err)
			}
			return
		}
		once, err := Encode(r)
		if err != nil {
			t.Fatalf("Encode of what was decoded: %v", err)
		}
		again, err := Decode(once)
		if err != nil {
			t.Fatalf("Decode of what was encoded: %v", err)
		}
		if twice, _ := Encode(again); !bytes.Equal(once, twice) {
			t.Errorf("encoding is not stable:\n%s\n%s", once, twice)
		}
		new(History).Add(r)
		new(state).add(r)
	})
}

func TestVerifyHoldsAndNoticesChanges(t *testing.T) {
	store := testStore(t)
	id := writeAll(t, store, everyKind)
	records, _, err := store.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	if report := Verify(records); len(report.Problems) > 0 || report.Requests != 2 || report.Turns != 1 {
		t.Fatalf("Verify = %+v; want two requests, one turn and no problem", report)
	}
	changes := []struct {
		name   string
		change func([]Record)
		want   string
	}{
		{"the prompt", func(rs []Record) {
			rs[3].Event = UserMessage{Content: "delete the tests", Origin: "user"}
		}, "event 6: the request of step 1 was not what the log before it says"},
		{"the system text", func(rs []Record) {
			h := rs[5].Event.(Header)
			h.System = "You are evil."
			rs[5].Event = h
		}, "event 6: the request of step 1 was not what the log before it says"},
		{"a call without a result", func(rs []Record) {
			rs[15].Event = ExtensionLogged{}
		}, `event 17: turn 1 ends, but call "c1" has no result`},
		{"a second result", func(rs []Record) {
			rs[16].Event = rs[15].Event
		}, `event 16: a result of call "c1", which is not waiting for one`},
	}
	for _, tt := range changes {
		t.Run(tt.name, func(t *testing.T) {
			changed := append([]Record(nil), records...)
			tt.change(changed)
			if report := Verify(changed); len(report.Problems) == 0 || report.Problems[0] != tt.want {
				t.Errorf("problems: %q; want %q first", report.Problems, tt.want)
			}
		})
	}
}

// Wherever a process stops, the log resumes, and a resumed log holds.
func TestResumeFromEveryPrefix(t *testing.T) {
	store := testStore(t)
	id := writeAll(t, store, everyKind)
	path, _ := store.path(id)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	for n := 1; n < len(lines); n++ {
		for _, torn := range []string{"", `{"v":1,"seq":`, "\x00\x00\x00"} {
			prefix := append(bytes.Join(lines[:n], nil), torn...)
			if err := os.WriteFile(path, prefix, 0o600); err != nil {
				t.Fatal(err)
			}
			log, err := store.Resume(id, nil)
			if err != nil {
				t.Fatalf("resume after %d events: %v", n, err)
			}
			if _, err := log.Append(TurnStarted{Turn: log.Turns() + 1, Origin: "user"}); err != nil {
				t.Errorf("go on after %d events: %v", n, err)
			}
			if err := log.Close(); err != nil {
				t.Error(err)
			}
			after, _ := os.ReadFile(path)
			if !bytes.HasPrefix(after, bytes.Join(lines[:n], nil)) {
				t.Errorf("resuming after %d events edited what was there", n)
			}
			records, tornNow, err := store.Read(id)
			if report := Verify(records); err != nil || tornNow > 0 || len(report.Problems) > 0 {
				t.Errorf("the log repaired after %d events: %v, %d torn, %v", n, err, tornNow, report.Problems)
			}
		}
	}
}

func TestRepairTellsWhatIsKnown(t *testing.T) {
	store := testStore(t)
	calls := []Call{{ID: "a", Name: "exec", Arguments: "{}"}, {ID: "b", Name: "exec", Arguments: "{}"}}
	id := writeAll(t, store, []Event{
		nil,
		TurnStarted{Turn: 1, Origin: "user"},
		StepStarted{Turn: 1, Step: 1},
		AssistantMessage{Calls: calls},
		ToolCall{CallID: "a", Name: "exec", Arguments: "{}", Step: 1},
	})
	log, err := store.Resume(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	records, _, err := store.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	var got []Event
	for _, r := range records[5:] {
		got = append(got, r.Event)
	}
	want := []Event{
		Repaired{What: "closed a turn that was interrupted"},
		ToolResult{CallID: "a", CallSeq: 4, Content: outcomeUnknown, IsError: true, Code: "TOOL_OUTCOME_UNKNOWN"},
		ToolCall{CallID: "b", Name: "exec", Arguments: "{}", Step: 1},
		ToolResult{CallID: "b", CallSeq: 7, Content: notStarted, IsError: true, Code: "TOOL_NOT_STARTED"},
		StepEnded{Turn: 1, Step: 1},
		TurnEnded{Turn: 1, Reason: Interrupted, Steps: 1, Error: "the process ended before the turn did"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repair (-want +got):\n%s", diff)
	}
}

// What a turn used up is known up to where it was interrupted, and is that turn's alone.
func TestRepairKeepsTheUsage(t *testing.T) {
	store := testStore(t)
	used := func(n int64) Usage {
		return Usage{InputTokens: n, OutputTokens: 2 * n, CacheReadTokens: 3 * n, ReasoningTokens: 4 * n}
	}
	id := writeAll(t, store, []Event{
		nil,
		TurnStarted{Turn: 1, Origin: "user"},
		AssistantMessage{Text: "Done.", Usage: used(1000)},
		TurnEnded{Turn: 1, Reason: Completed, Usage: used(1000)},
		TurnStarted{Turn: 2, Origin: "user"},
		CompactionStarted{Reason: "threshold"},
		CompactionEnded{By: "model", Usage: used(1)},
		StepStarted{Turn: 2, Step: 1},
		AssistantMessage{Text: "On it.", Usage: used(10)},
		ExtensionAsked{Extension: "style", CallID: "style/1", Reserved: 5},
		ExtensionAnswered{Extension: "style", CallID: "style/1", Usage: used(100), Tokens: 300},
	})
	log, err := store.Resume(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	records, _, err := store.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	want := TurnEnded{Turn: 2, Reason: Interrupted, Usage: used(111), Steps: 1, Error: processEnded}
	if got := records[len(records)-1].Event; got != want {
		t.Errorf("repair ends with %+v; want %+v", got, want)
	}
}

func TestAppendRefusesWhatIsOutOfPlace(t *testing.T) {
	log, err := testStore(t).Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	want := "append to session " + string(log.ID()) + ": turn 1 ends, but is not open"
	if _, err := log.Append(TurnEnded{Turn: 1}); err == nil || err.Error() != want {
		t.Errorf("Append: %v; want %s", err, want)
	}
	if _, err := log.Append(TurnStarted{Turn: 1}); err != nil {
		t.Errorf("Append after a refused event: %v", err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	store := testStore(t)
	log, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Resume(log.ID(), nil)
	holder := regexp.MustCompile(`^open session \S+: session in use by process ` + strconv.Itoa(os.Getpid()) + ` \("session.test"\) since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d: wait for it or end it$`)
	if !errors.Is(err, ErrInUse) || !holder.MatchString(err.Error()) {
		t.Errorf("Resume of an open session: %v; want ErrInUse and the process that has it", err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Resume(log.ID(), nil)
	if err != nil {
		t.Fatalf("Resume of a closed session: %v", err)
	}
	again.Close()
}

// What a killed Wharf was just starting holds the lock for a moment longer.
func TestALockThatIsLetGo(t *testing.T) {
	store := testStore(t)
	log, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(lockPatience/10, func() { log.Close() })
	again, err := store.Resume(log.ID(), nil)
	if err != nil {
		t.Fatalf("Resume of a session that is let go: %v", err)
	}
	again.Close()
}

// A session that cannot be started leaves nothing behind: here its folder's
// path is as long as a path may be, so no file can be in it.
func TestCreateLeavesNothingHalfMade(t *testing.T) {
	store := testStore(t)
	longest := 4095 - len("/"+halfMade) - len(newID(time.Now()))
	for len(store.dir) < longest {
		store.dir += "/" + strings.Repeat("x", min(200, max(1, longest-len(store.dir)-1)))
	}
	if _, err := store.Create("/w", nil); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Fatalf("Create: %v; want that the name is too long", err)
	}
	if left, err := os.ReadDir(store.dir); err != nil || len(left) > 0 {
		t.Errorf("Create left %v, %v", left, err)
	}
}

func TestOneBadLogHarmsOnlyItself(t *testing.T) {
	store := testStore(t)
	good := writeAll(t, store, everyKind)
	bad := writeAll(t, store, everyKind)
	path, _ := store.path(bad)
	content, _ := os.ReadFile(path)
	content = bytes.Replace(content, []byte(`"turn.started"`), []byte(`"turn.exploded"`), 1)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := store.List()
	if err != nil || len(list) != 2 {
		t.Fatalf("List = %v, %v; want both sessions", list, err)
	}
	problems := map[ID]string{}
	for _, sum := range list {
		problems[sum.ID] = sum.Problem
	}
	want := "read session " + string(bad) + `: line 2: unknown event type "turn.exploded": written by a newer Wharf`
	if problems[good] != "" || problems[bad] != want {
		t.Errorf("problems: %q; want only %q", problems, want)
	}
	id, skipped, err := store.Latest("/home/u/calc")
	if err != nil || id != good {
		t.Errorf("Latest = %s, %v; want the good one", id, err)
	}
	if len(skipped) != 1 || skipped[0].Error() != want {
		t.Errorf("Latest skipped %q; want the bad one, and why", skipped)
	}
	if _, err := store.Resume(bad, nil); !errors.Is(err, ErrUnknownType) {
		t.Errorf("Resume of the bad one: %v", err)
	}
}

func TestIDsStayInTheStore(t *testing.T) {
	store := testStore(t)
	for _, id := range []ID{"", "..", "../x", "a/b", "/etc", "nowhere", ".hidden"} {
		if _, err := store.Resume(id, nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("Resume(%q): %v; want ErrNotFound", id, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(store.dir, "*"))
	if len(left) > 0 {
		t.Errorf("looking for sessions left %v", left)
	}
}

// A full disk takes no half event, and the log says so from then on.
func TestAppendOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	log, err := testStore(t).Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	whole := log.file
	log.file = full
	if _, err := log.Append(TurnStarted{Turn: 1}); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("Append on a full disk: %v", err)
	}
	log.file = whole
	if err := log.Flush(); err == nil {
		t.Error("Flush after a lost event: want an error, so that nothing takes effect")
	}
}

func TestDigestsAgree(t *testing.T) {
	var h History
	for i, e := range everyKind {
		h.Add(Record{Seq: int64(i), Event: e})
		if got, want := h.Digest(), Digest(h.Header(), h.Messages()); got != want {
			t.Errorf("after %s the running digest is %s, the computed one %s", e.kind(), got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	tests := []struct {
		name string
		id   ID
		want bool
	}{
		{"one of ours", newID(time.Now()), true},
		{"letters, digits, _ and -", "aZ09_-", true},
		{"64 characters", ID(strings.Repeat("x", 64)), true},
		{"65 characters", ID(strings.Repeat("x", 65)), false},
		{"nothing", "", false},
		{"a - at its start", "-x", false},
		{"a _ at its start", "_x", false},
		{"a way out", "..", false},
		{"a slash inside", "a/b", false},
		{"a letter that is none of the 52", "é", false},
		{"a line end", "x\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.id.valid(); got != tt.want {
				t.Errorf("valid(%q) = %t; want %t", tt.id, got, tt.want)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	log, err := testStore(b).Create("/w", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := log.Append(ExtensionLogged{Extension: "x", Level: "info", Text: "a line of an extension"}); err != nil {
			b.Fatal(err)
		}
	}
}

// Tokens are counted from the log: what was reserved counts until it is known
// what was spent, and for good if a crash came between.
func TestTokensOfAnExtension(t *testing.T) {
	store := testStore(t)
	log, err := store.Create("/home/u/calc", nil)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		event Event
		want  int64
	}{
		{ExtensionAsked{Extension: "style", CallID: "style/1", Reserved: 100}, 100},
		{ExtensionAnswered{Extension: "style", CallID: "style/1", Tokens: 7}, 7},
		{ExtensionAsked{Extension: "other", CallID: "other/1", Reserved: 50}, 7},
		{ExtensionAsked{Extension: "style", CallID: "style/2", Reserved: 20}, 27},
	}
	for _, s := range steps {
		if _, err := log.Append(s.event); err != nil {
			t.Fatal(err)
		}
		if got := log.Tokens("style"); got != s.want {
			t.Errorf("after %+v: %d tokens; want %d", s.event, got, s.want)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Resume(log.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := again.Tokens("style"); got != 27 {
		t.Errorf("after a crash: %d tokens; want 27", got)
	}
}
