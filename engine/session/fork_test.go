package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// twoTurns is a session of two turns, a line of an extension after each.
func twoTurns() []Event {
	events := longSession(2)
	line := ExtensionLogged{Extension: "x", Level: "info", Text: "between turns"}
	return append(events, line)
}

// rawLog returns a session's log as it is on the disk.
func rawLog(t *testing.T, store *Store, id ID) []byte {
	t.Helper()
	path, err := store.path(id)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// plant puts content in the place of a session's log.
func plant(t *testing.T, store *Store, id ID, content []byte) {
	t.Helper()
	path, err := store.path(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fork forks a session and returns the fork's id and log.
func fork(t *testing.T, store *Store, from ID, at int) (ID, []byte) {
	t.Helper()
	log, err := store.Fork(from, at, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return log.ID(), rawLog(t, store, log.ID())
}

func TestForkCopiesUpToATurn(t *testing.T) {
	store := testStore(t)
	from := writeAll(t, store, longSession(2))
	before := rawLog(t, store, from)
	all := bytes.SplitAfter(before, []byte("\n"))
	tests := []struct {
		name        string
		at, copied  int
		turn, goOn  int
		wantRequest int
	}{
		{"the first turn", 1, 1 + eventsPerTurn, 1, 2, 3},
		{"the last turn", 2, 1 + 2*eventsPerTurn, 2, 3, 6},
		{"all of it", 0, 1 + 2*eventsPerTurn, 2, 3, 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, content := fork(t, store, from, tt.at)
			first, rest, _ := bytes.Cut(content, []byte("\n"))
			if want := bytes.Join(all[1:tt.copied], nil); !bytes.Equal(rest, want) {
				t.Errorf("the copy is\n%s, want\n%s", rest, want)
			}
			r, err := Decode(first)
			want := Started{ID: id, Cwd: "/home/u/calc", ForkedFrom: from, ForkedAt: tt.turn, Versions: Versions{Wharf: "0.1.0"}}
			if err != nil || r.Event != Event(want) || r.Seq != 0 {
				t.Errorf("the first event is %+v, %v; want %+v", r, err, want)
			}
			log, err := store.Resume(id, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			if len(log.Repairs()) > 0 || log.Turns()+1 != tt.goOn {
				t.Errorf("the fork goes on with turn %d, repaired: %v", log.Turns()+1, log.Repairs())
			}
		})
	}
	if !bytes.Equal(rawLog(t, store, from), before) {
		t.Error("the original changed")
	}
}

// What a log holds after its last turn belongs to the whole of it, and not to
// the turn; a fork of a fork is one too.
func TestForkOfAFork(t *testing.T) {
	store := testStore(t)
	from := writeAll(t, store, twoTurns())
	child, whole := fork(t, store, from, 0)
	grandchild, cut := fork(t, store, child, 2)
	if !bytes.Contains(whole, []byte("between turns")) || bytes.Contains(cut, []byte("between turns")) {
		t.Errorf("the whole is\n%s, the cut\n%s", whole, cut)
	}
	started, err := store.started(grandchild)
	if err != nil || started.ForkedFrom != child || started.ForkedAt != 2 {
		t.Errorf("the fork of a fork starts with %+v, %v", started, err)
	}
}

func TestForkRefuses(t *testing.T) {
	store := testStore(t)
	open := append(longSession(2), TurnStarted{Turn: 3, Origin: "user"})
	whole := rawLog(t, store, writeAll(t, store, open))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	damaged := bytes.Replace(whole, []byte(`"turn":2,"step":3}`), []byte(`"turn":2,"step":`), 1)
	const help = `: see "wharf session fork --help"`
	tests := []struct {
		name    string
		content []byte
		at      int
		want    string // "" means that it is forked
	}{
		{"an open turn at the end", whole, 0, "no boundary of a turn: turn 3 is open: it can be forked at turns 1 to 2" + help},
		{"an open turn by its number", whole, 3, "no boundary of a turn: turn 3 is open: it can be forked at turns 1 to 2" + help},
		{"a turn that is not there", whole, 4, "no boundary of a turn: there is no turn 4: it can be forked at turns 1 to 2" + help},
		{"a turn before the first", whole, -1, "no boundary of a turn: there is no turn -1: it can be forked at turns 1 to 2" + help},
		{"nothing to fork", nil, 0, "corrupt event: the log is empty"},
		{"a first turn that is open", bytes.Join(lines[:3], nil), 0, "no boundary of a turn: turn 1 is open: no turn before that has ended"},
		{"the end of what is damaged", damaged, 0, "line 37: corrupt event: invalid character '}' looking for beginning of value: it can be forked at turn 1" + help},
		{"the turn before the damage", damaged, 1, ""},
		{"a turn before a torn line", append(bytes.Clone(whole), `{"v":1`...), 2, ""},
		{"all of a torn log without an open turn", append(bytes.Join(lines[:1+2*eventsPerTurn], nil), "\x00\x00"...), 0, ""},
		{"an event out of place", bytes.Join([][]byte{lines[0], bytes.Replace(lines[1], []byte(`"turn":1`), []byte(`"turn":7`), 1)}, nil), 0, "line 2: corrupt event: turn 7 follows turn 0: no turn before that has ended"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := ID(fmt.Sprintf("from-%d", i))
			if err := os.MkdirAll(filepath.Join(store.dir, string(id)), 0o700); err != nil {
				t.Fatal(err)
			}
			plant(t, store, id, tt.content)
			log, err := store.Fork(id, tt.at, "", nil)
			if err == nil {
				log.Close()
			}
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Fork(%d): %v; want a fork", tt.at, err)
			case tt.want != "" && (err == nil || err.Error() != "fork session "+string(id)+": "+tt.want):
				t.Errorf("Fork(%d): %v; want %s", tt.at, err, tt.want)
			}
		})
	}
}

// Reading needs no lock, so a session can be forked while it is in use; and a
// fork has what its maker does next.
func TestForkOfASessionInUse(t *testing.T) {
	store := testStore(t)
	original, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer original.Close()
	var seen []string
	log, err := store.Fork(original.ID(), 0, "/elsewhere", func(r Record) { seen = append(seen, r.Type()) })
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Append(TurnStarted{Turn: 1, Origin: "user"}); err != nil {
		t.Error(err)
	}
	if log.Cwd() != "/elsewhere" || strings.Join(seen, " ") != "session.started turn.started" {
		t.Errorf("the fork works in %s, and was seen to do %v", log.Cwd(), seen)
	}
}

// What a killed process left half made is no session, and goes away in time.
func TestHalfMadeSessions(t *testing.T) {
	store := testStore(t)
	old, fresh := filepath.Join(store.dir, halfMade+"old"), filepath.Join(store.dir, halfMade+"fresh")
	for _, dir := range []string{old, fresh} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	hour := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, hour, hour); err != nil {
		t.Fatal(err)
	}
	list, err := store.List()
	if err != nil || len(list) > 0 {
		t.Errorf("List = %v, %v; want no session", list, err)
	}
	if left, _ := filepath.Glob(filepath.Join(store.dir, halfMade+"*")); len(left) != 1 || left[0] != fresh {
		t.Errorf("what is left is %v; want %s", left, fresh)
	}
	if _, _, err := store.Read(ID(halfMade + "fresh")); !errors.Is(err, ErrNotFound) {
		t.Errorf("Read of one: %v", err)
	}
}

func TestChildrenAreLinkedBothWays(t *testing.T) {
	store := testStore(t)
	parent, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	child, err := store.CreateChild(parent, "c1", "look around", nil)
	if err != nil {
		t.Fatal(err)
	}
	if child.Cwd() != "/w" {
		t.Errorf("the child works in %s; want its parent's /w", child.Cwd())
	}
	check := func(id ID, want ...string) {
		t.Helper()
		records, _, err := store.Read(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := store.VerifyLinks(records); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("links of %s: %q; want %q", id, got, want)
		}
	}
	check(parent.ID())
	check(child.ID())
	if err := errors.Join(child.Close(), parent.Close()); err != nil {
		t.Fatal(err)
	}
	if id, _, err := store.Latest("/w"); err != nil || id != parent.ID() {
		t.Errorf("Latest = %s, %v; want the parent", id, err)
	}

	stranger := writeAll(t, store, longSession(1))
	first := fmt.Sprintf(`"parent":%q`, parent.ID())
	plant(t, store, child.ID(), bytes.Replace(rawLog(t, store, child.ID()), []byte(first), fmt.Appendf(nil, `"parent":%q`, stranger), 1))
	check(parent.ID(), fmt.Sprintf("event 1: the session %s is named as a subagent, and names the parent %q", child.ID(), stranger))
	check(child.ID(), fmt.Sprintf("event 0: the session %s is named as its parent, and does not name it", stranger))

	// A crash ends the child too; one that never took a step may be missing.
	if err := os.RemoveAll(filepath.Join(store.dir, string(child.ID()))); err != nil {
		t.Fatal(err)
	}
	check(parent.ID(), fmt.Sprintf(`event 1: the subagent's session: session %s: no such session: see "wharf session list"`, child.ID()))
	again, err := store.Resume(parent.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	records, _, _ := store.Read(parent.ID())
	want := SubagentEnded{Session: child.ID(), Reason: Interrupted, Error: processEnded}
	if last := records[len(records)-1].Event; last != Event(want) {
		t.Errorf("the crash of the parent ends the child as %+v; want %+v", last, want)
	}
	check(parent.ID())
	copied, _ := fork(t, store, parent.ID(), 0)
	check(copied)
}
