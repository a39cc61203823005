package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// damaged plants content as the log of the session "damaged", and says what
// resuming it says.
func damaged(t *testing.T, store *Store, content []byte) (*Log, error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(store.dir, "damaged"), 0o700); err != nil {
		t.Fatal(err)
	}
	plant(t, store, "damaged", content)
	return store.Resume("damaged", nil)
}

// Wherever a write stopped, what was whole before it stays, and the session goes on.
func TestCutAtEveryByte(t *testing.T) {
	store := testStore(t)
	whole := rawLog(t, store, writeAll(t, store, everyKind[:18]))
	first := bytes.IndexByte(whole, '\n') + 1
	for n := range len(whole) {
		log, err := damaged(t, store, whole[:n])
		if n < first {
			if err == nil || err.Error() != "resume session damaged: corrupt event: the log is empty" {
				t.Fatalf("cut to %d bytes, Resume: %v; want that the log is empty", n, err)
			}
			if after := rawLog(t, store, "damaged"); !bytes.Equal(after, whole[:n]) {
				t.Fatalf("cut to %d bytes, Resume changed what it refused", n)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut to %d bytes, Resume: %v", n, err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		kept := bytes.LastIndexByte(whole[:n], '\n') + 1
		records, torn, err := store.Read("damaged")
		if report := Verify(records); err != nil || torn > 0 || len(report.Problems) > 0 {
			t.Fatalf("cut to %d bytes, then resumed: %v, %d torn, %v", n, err, torn, report.Problems)
		}
		if !bytes.HasPrefix(rawLog(t, store, "damaged"), whole[:kept]) {
			t.Fatalf("cut to %d bytes, Resume changed what was whole", n)
		}
		if cut := log.Repairs(); (n > kept) != (len(cut) > 0 && strings.HasPrefix(cut[0], fmt.Sprintf("cut off a torn last line of %d bytes", n-kept))) {
			t.Fatalf("cut to %d bytes, repaired: %v", n, cut)
		}
	}
}

// Each kind of damage has one message, which names the line and the cause; what
// is refused stays as it is.
func TestDamageIsNamed(t *testing.T) {
	store := testStore(t)
	whole := rawLog(t, store, writeAll(t, store, everyKind[:18]))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	with := func(n int, instead ...[]byte) []byte { // of a line, counted from 1
		return bytes.Join(slices.Concat(lines[:n-1], instead, lines[n:]), nil)
	}
	change := func(n int, old, new string) []byte {
		return with(n, bytes.Replace(lines[n-1], []byte(old), []byte(new), 1))
	}
	tests := []struct {
		name    string
		content []byte
		want    string
	}{
		{"nothing", nil, "corrupt event: the log is empty"},
		{"NUL bytes alone", make([]byte, 4096), "corrupt event: the log is empty"},
		{"a NUL block in the middle", with(9, append(make([]byte, len(lines[8])-1), '\n')), "line 9: corrupt event: it holds NUL bytes, as a power cut leaves them"},
		{"a missing line", with(6), "line 6: corrupt event: its sequence number is 6"},
		{"a line twice", with(6, lines[5], lines[5]), "line 7: corrupt event: its sequence number is 5"},
		{"an empty line", with(6, []byte("\n")), "line 6: corrupt event: unexpected end of JSON input"},
		{"a line cut in the middle", with(6, append(bytes.Clone(lines[5][:40]), '\n')), "line 6: corrupt event: unexpected end of JSON input"},
		{"two lines in one", with(6, bytes.TrimSpace(lines[5])), "line 6: corrupt event: invalid character '{' after top-level value"},
		{"no first line", with(1), "line 1: corrupt event: its sequence number is 1"},
		{"another event first", []byte(`{"v":1,"seq":0,"time":"2026-11-30T09:00:00.123Z","type":"turn.started","data":{"turn":1,"origin":"user"}}` + "\n"), "line 1: corrupt event: session.started is not the first event, or not the only one"},
		{"a second start", with(2, []byte(strings.Replace(string(lines[0]), `"seq":0`, `"seq":1`, 1))), "line 2: corrupt event: session.started is not the first event, or not the only one"},
		{"a version to come", change(3, `"v":1`, `"v":2`), "line 3: corrupt event: its version is 2, this Wharf reads 1"},
		{"a type to come", change(3, `hook.verdict`, `hook.sang`), `line 3: unknown event type "hook.sang": written by a newer Wharf`},
		{"a key of another type", change(2, `"turn":1`, `"turn":"one"`), "line 2: corrupt event: data of turn.started: json: cannot unmarshal string into Go struct field TurnStarted.turn of type int"},
		{"a turn that ends in a step", bytes.ReplaceAll(with(17), []byte(`"seq":17`), []byte(`"seq":16`)), "line 17: corrupt event: turn 1 ends inside step 1"},
		{"a result for nobody", change(16, `"call_seq":9`, `"call_seq":8`), `line 16: corrupt event: a result of call "c1", which is not waiting for one`},
		{"a file that is no log", []byte("\x7fELF\x02\x01\n"), "line 1: corrupt event: invalid character '\\x7f' looking for beginning of value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log, err := damaged(t, store, tt.content)
			if err == nil {
				log.Close()
			}
			if err == nil || err.Error() != "resume session damaged: "+tt.want {
				t.Errorf("Resume: %v; want %s", err, tt.want)
			}
			if after := rawLog(t, store, "damaged"); !bytes.Equal(after, tt.content) {
				t.Error("Resume changed what it refused")
			}
			list, err := store.List()
			if err != nil {
				t.Fatal(err)
			}
			for _, sum := range list {
				if want := "read session damaged: " + tt.want; sum.ID == "damaged" && sum.Problem != want {
					t.Errorf("its problem in the list is %q; want %s", sum.Problem, want)
				}
			}
		})
	}
}

// What stands in the place of a session's files and is none is refused at once,
// and neither waited for nor written to.
func TestWhatIsNoSession(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	replace := func(name string, with func(path string) error) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			return errors.Join(os.RemoveAll(path), with(path))
		}
	}
	fifo := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	link := func(path string) error { return os.Symlink(victim, path) }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	tests := []struct {
		name   string
		change func(dir string) error
		read   string // what reading says, "" if it works
		resume string
	}{
		{"a FIFO for the log", replace(logName, fifo), "it is a FIFO, and must be a regular file", "it is a FIFO, and must be a regular file"},
		{"a link for the log", replace(logName, link), "it is a link, and must be a regular file", "it is a link, and must be a regular file"},
		{"a folder for the log", replace(logName, folder), "it is a folder, and must be a regular file", "is a directory"},
		{"no log", replace(logName, func(string) error { return nil }), "no such file or directory", "no such file or directory"},
		{"a FIFO for the lock", replace(lockName, fifo), "", "it is a FIFO, and must be a regular file"},
		{"a link for the lock", replace(lockName, link), "", "it is a link, and must be a regular file"},
		{"a file for the folder", func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, "is no folder: a session's own folder must stand there, and no link to it", "is no folder: a session's own folder must stand there, and no link to it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			store := testStore(t)
			id := writeAll(t, store, everyKind)
			if err := tt.change(filepath.Join(store.dir, string(id))); err != nil {
				t.Fatal(err)
			}
			_, _, err := store.Read(id)
			if text := fmt.Sprint(err); (err == nil) != (tt.read == "") || err != nil && !strings.HasSuffix(text, tt.read) {
				t.Errorf("Read: %v; want %q", err, tt.read)
			}
			if log, err := store.Resume(id, nil); err == nil || !strings.HasSuffix(err.Error(), tt.resume) {
				log.Close()
				t.Errorf("Resume: %v; want %q", err, tt.resume)
			}
			if _, err := store.List(); err != nil {
				t.Errorf("List: %v", err)
			}
			if _, _, err := store.Latest("/nowhere"); !errors.Is(err, ErrNotFound) {
				t.Errorf("Latest: %v", err)
			}
			if content, err := os.ReadFile(victim); err != nil || string(content) != "precious" {
				t.Errorf("what the link leads to is now %q, %v", content, err)
			}
		})
	}
}

// FuzzLog takes any bytes as a log: what can be read can be repaired, forked and
// verified, and nothing panics.
func FuzzLog(f *testing.F) {
	for _, name := range []string{"testdata/format/01.jsonl", "testdata/format/02.jsonl"} {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
		f.Add(content[:len(content)*2/3])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		records, whole, err := parse(content)
		if whole > len(content) || bytes.Count(content[:whole], []byte("\n")) != len(records) {
			t.Errorf("%d records in %d of %d bytes", len(records), whole, len(content))
		}
		summarize("x", records)
		Verify(records)
		if n, _, cut := boundary(records, 0, err); cut == nil && n != len(records) {
			t.Errorf("a fork of all of it has %d of %d records", n, len(records))
		}
		var s state
		if err != nil || s.follow(records) != nil {
			return
		}
		for _, e := range s.repair(int64(len(records))) {
			r := Record{Seq: int64(len(records)), Event: e}
			if err := s.add(r); err != nil {
				t.Errorf("repair with %+v: %v", e, err)
			}
			records = append(records, r)
		}
		if len(s.repair(0)) > 0 {
			t.Error("what was repaired is still open")
		}
		if n, _, err := boundary(records, 0, nil); err != nil || n != len(records) {
			t.Errorf("what was repaired cannot be forked: %v", err)
		}
	})
}
