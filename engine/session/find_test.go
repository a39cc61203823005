package session

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	store := testStore(t)
	for _, name := range []string{"20261130-090000-0a1b2c3d", "20261130-090000-0a1b2c3e", "20261201-090000-0a1b2c3d", ".new-20270101-090000-00000000"} {
		if err := os.MkdirAll(filepath.Join(store.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(store.dir, "2030")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store.dir, "20311130-090000-0a1b2c3d"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ about, name, want, problem string }{
		{"a whole name", "20261130-090000-0a1b2c3d", "20261130-090000-0a1b2c3d", ""},
		{"a beginning", "20261201", "20261201-090000-0a1b2c3d", ""},
		{"an end", "c3e", "20261130-090000-0a1b2c3e", ""},
		{"a beginning of two", "20261130", "", `session "20261130": there are 2 whose names begin or end so: 20261130-090000-0a1b2c3e, 20261130-090000-0a1b2c3d: write more of it`},
		{"an end of two", "0a1b2c3d", "", `session "0a1b2c3d": there are 2 whose names begin or end so: 20261201-090000-0a1b2c3d, 20261130-090000-0a1b2c3d: write more of it`},
		{"a middle", "090000", "", `session 090000: no such session: see "wharf session list"`},
		{"one that is being made", "2027", "", `session 2027: no such session: see "wharf session list"`},
		{"a file", "2031", "", `session 2031: no such session: see "wharf session list"`},
		{"nothing", "", "", `session "": no such session: that is no session's name; see "wharf session list"`},
		{"a way out", "../2026", "", `session "../2026": no such session: that is no session's name; see "wharf session list"`},
		{"a part of a hidden name", ".new", "", `session ".new": no such session: that is no session's name; see "wharf session list"`},
		{"a link", "2030", "", "session 2030: " + filepath.Join(store.dir, "2030") + " is no folder: a session's own folder must stand there, and no link to it"},
	} {
		id, err := store.Find(tt.name)
		problem := ""
		if err != nil {
			problem, id = err.Error(), ""
		}
		if string(id) != tt.want || problem != tt.problem {
			t.Errorf("%s: Find(%q) = %q, %q; want %q, %q", tt.about, tt.name, id, problem, tt.want, tt.problem)
		}
	}
}

func TestManyAreNamedInPart(t *testing.T) {
	store := testStore(t)
	for _, last := range "1234567" {
		if err := os.MkdirAll(filepath.Join(store.dir, "a"+string(last)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, err := store.Find("a")
	if want := `session "a": there are 7 whose names begin or end so: a7, a6, a5, a4, a3, …: write more of it`; err == nil || err.Error() != want {
		t.Errorf("Find said %v, want %s", err, want)
	}
}
