package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// manifest is that of a guard as it is used here; what is added stands in its
// [capabilities].
func manifest(name, version, asks string) string {
	return fmt.Sprintf("name = %q\nversion = %q\nabi = 1\nrole = \"guard\"\n[hooks.before_execute_tool]\n[capabilities]\n%s\n", name, version, asks)
}

// module returns a module of that manifest.
func module(t testing.TB, name, version, asks string) []byte {
	t.Helper()
	wasm, err := host.EmbedManifest(extensions.NoRM, manifest(name, version, asks))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func candidate(t testing.TB, name, version, asks string) Candidate {
	t.Helper()
	c, err := newCandidate("/src/"+name+".wasm", module(t, name, version, asks))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func set(t testing.TB, text string) capability.Set {
	t.Helper()
	var table map[string]any
	if _, err := toml.Decode(text, &table); err != nil {
		t.Fatal(err)
	}
	s, err := capability.FromTable(table)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// install installs a candidate, and grants it all that is new.
func install(t testing.TB, s *Store, c Candidate) Entry {
	t.Helper()
	p, err := s.Propose(c, Trust{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Accept(p, p.Kept.Plus(p.New))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// state is all that is in a store's folder, by its name.
func state(t testing.TB, s *Store) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == guardName {
			return err
		}
		text, err := os.ReadFile(path)
		files[d.Name()] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestInstalledIsWhatIsRead(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "data"))
	if modules, err := s.Read(); len(modules) != 0 || err != nil {
		t.Errorf("an empty store has %d modules, %v", len(modules), err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading made the folder")
	}
	c := candidate(t, "one", "1.0.0", `kv = "1MiB"`)
	e := install(t, s, c)
	install(t, s, candidate(t, "two", "1.0.0", ""))
	modules, err := s.Read()
	if err != nil || len(modules) != 2 {
		t.Fatal(len(modules), err)
	}
	m := modules[0]
	if m.Err != nil || string(m.Wasm) != string(c.Wasm) || m.Granted.String() != `kv = "1MiB"` || !m.Guard || m.Name != e.Name {
		t.Errorf("what is read is another: %+v", m.Entry)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
	if err := s.Remove("one", false); err != nil {
		t.Fatal(err)
	}
	if left := state(t, s); len(left) != 2 { // the lock and the other module
		t.Errorf("after a removal there are %d files", len(left))
	}
	const want = `extension "one": it is not installed: wharf ext list shows what is`
	if err := s.Remove("one", false); !errors.Is(err, ErrNotInstalled) || err.Error() != want {
		t.Errorf("a second removal: %v", err)
	}
	if _, err := s.SetGrants("one", nil); err == nil || err.Error() != want {
		t.Errorf("a grant to nobody: %v", err)
	}
}

// A module that is not the one that was installed is not given out, and what is known
// of it comes from the lock.
func TestChangedModules(t *testing.T) {
	s := New(t.TempDir())
	e := install(t, s, candidate(t, "one", "1.0.0", ""))
	good, err := os.ReadFile(s.path(e.Digest))
	if err != nil {
		t.Fatal(err)
	}
	other := module(t, "one", "1.0.0", `exec = ["*"]`)
	tests := []struct {
		name string
		harm func() error
		want string
	}{
		{
			"one bit more", func() error { return os.WriteFile(s.path(e.Digest), append(good, 0), 0o600) },
			"its file has the digest sha256:" + digestOf(append(good, 0)) + ", and sha256:" + e.Digest + " was installed: it was changed, or the disk is damaged",
		},
		{
			"another module", func() error { return os.WriteFile(s.path(e.Digest), other, 0o600) },
			"its file has the digest sha256:" + digestOf(other) + ", and sha256:" + e.Digest + " was installed: it was changed, or the disk is damaged",
		},
		{
			"no file", func() error { return os.Remove(s.path(e.Digest)) },
			"its file is not in the store (" + s.path(e.Digest) + "): it was deleted, or wharf.lock comes from elsewhere",
		},
		{"a folder", func() error { return os.Mkdir(s.path(e.Digest), 0o700) }, "it is no regular file: name a .wasm file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.harm(); err != nil {
				t.Fatal(err)
			}
			modules, err := s.Read()
			if err != nil || len(modules) != 1 || modules[0].Wasm != nil {
				t.Fatalf("it is given out: %v", err)
			}
			m := modules[0]
			if m.Err == nil || m.Err.Error() != tt.want || m.Verify() == nil {
				t.Errorf("error\n%v\nwant\n%s", m.Err, tt.want)
			}
			failure := m.Failure()
			if failure.Guard() == nil || failure.Error() != `load extension "one": `+tt.want+": wharf ext install /src/one.wasm" {
				t.Errorf("failure: %v, guard %v", failure, failure.Guard())
			}
			if _, err := s.SetGrants("one", func(e Entry, _ capability.Set) capability.Set { return e.Granted }); err == nil {
				t.Error("grants of a damaged extension were changed")
			}
		})
	}
	if err := os.Remove(s.path(e.Digest)); err != nil {
		t.Fatal(err)
	}
	install(t, s, candidate(t, "one", "1.0.0", "")) // which mends it
	if modules, _ := s.Read(); modules[0].Err != nil {
		t.Error(modules[0].Err)
	}
}

// A guard must not be gone because the lock is.
func TestLostLocks(t *testing.T) {
	s := New(t.TempDir())
	install(t, s, candidate(t, "one", "1.0.0", ""))
	if err := os.Remove(s.LockFile()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("read %s: it is gone, and the modules that it named are still in %s/extensions: put it back, or delete that folder", s.LockFile(), s.dir)
	if _, err := s.Read(); err == nil || err.Error() != want {
		t.Errorf("Read: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, modulesName)); err != nil {
		t.Fatal(err)
	}
	install(t, s, candidate(t, "one", "1.0.0", ""))
	if err := s.Remove("one", false); err != nil {
		t.Fatal(err)
	}
	if modules, err := s.Read(); err != nil || len(modules) != 0 {
		t.Errorf("with nothing installed any more: %d, %v", len(modules), err)
	}
}

// Where others may write, anybody could have granted anything.
func TestFoldersOfOthers(t *testing.T) {
	s := New(t.TempDir())
	install(t, s, candidate(t, "one", "1.0.0", ""))
	if err := os.Chmod(s.dir, 0o770); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("read %s: others may write to the folder %q: chmod go-w, once it holds nothing of theirs", s.LockFile(), s.dir)
	if _, err := s.Read(); err == nil || err.Error() != want {
		t.Errorf("Read: %v", err)
	}
	if err := s.Remove("one", false); err == nil || err.Error() != want {
		t.Errorf("Remove: %v", err)
	}
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.Chmod(s.LockFile(), 0o666)); err != nil {
		t.Fatal(err)
	}
	want = fmt.Sprintf("read %s: others may write to it: chmod go-w, once it says nothing of theirs", s.LockFile())
	if _, err := s.Read(); err == nil || err.Error() != want {
		t.Errorf("Read with a lock that others may write: %v", err)
	}
}

func TestGrants(t *testing.T) {
	s := New(t.TempDir())
	p, err := s.Propose(candidate(t, "one", "1.0.0", "kv = \"1MiB\"\nenv = [\"A\", \"B\"]"), Trust{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Accept(p, set(t, "env = [\"A\", \"C\"]\nevents = true"))
	if err != nil || e.Granted.String() != `env = ["A"]` {
		t.Errorf("granted %q, %v: more than it asks for", e.Granted, err)
	}
	steps := []struct {
		name string
		next func(Entry, capability.Set) capability.Set
		want string
	}{
		{"what it does not ask for", func(e Entry, _ capability.Set) capability.Set { return e.Granted.Plus(set(t, "approve = true")) }, `env = ["A"]`},
		{"all", func(_ Entry, asked capability.Set) capability.Set { return asked }, "kv = \"1MiB\"\nenv = [\"A\", \"B\"]"},
		{"a key less", func(e Entry, _ capability.Set) capability.Set { return e.Granted.Without("env") }, `kv = "1MiB"`},
		{"nothing", func(Entry, capability.Set) capability.Set { return capability.Set{} }, ""},
	}
	for _, step := range steps {
		got, err := s.SetGrants("one", step.next)
		now, findErr := s.Find("one")
		if err != nil || findErr != nil || got.String() != step.want || now.Granted.String() != step.want {
			t.Errorf("%s: %q, %v, %v; want %q", step.name, got, err, findErr, step.want)
		}
	}
}

// An upgrade proposes what is new, and keeps what was granted and what was not.
func TestUpgrades(t *testing.T) {
	const asked = "http = [\"GET https://a.example/*\"]\nkv = \"1MiB\""
	tests := []struct {
		name, asks, more, granted string
	}{
		{"nothing new", asked, "", `kv = "1MiB"`},
		{"less", `kv = "64KiB"`, "", `kv = "64KiB"`},
		{"a new key", asked + "\nenv = [\"A\"]", `env = ["A"]`, "kv = \"1MiB\"\nenv = [\"A\"]"},
		{"a larger size", strings.Replace(asked, "1MiB", "2MiB", 1), `kv = "2MiB"`, `kv = "2MiB"`},
		{"a wider pattern", strings.Replace(asked, "GET", "*", 1), `http = ["* https://a.example/*"]`, "http = [\"* https://a.example/*\"]\nkv = \"1MiB\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(t.TempDir())
			p, err := s.Propose(candidate(t, "one", "1.0.0", asked), Trust{})
			if err == nil {
				_, err = s.Accept(p, set(t, `kv = "1MiB"`))
			}
			if err != nil {
				t.Fatal(err)
			}
			before := state(t, s)
			c := candidate(t, "one", "1.1.0", tt.asks)
			if p, err = s.Propose(c, Trust{}); err != nil || p.New.String() != tt.more || p.Old.Version != "1.0.0" || p.Older() {
				t.Fatalf("proposed in addition %q, %v; want %q", p.New, err, tt.more)
			}
			if after := state(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("a proposal changed something")
			}
			if e := install(t, s, c); e.Granted.String() != tt.granted {
				t.Errorf("granted %q; want %q", e.Granted, tt.granted)
			}
			if len(state(t, s)) != 2 {
				t.Error("the old module is still there")
			}
		})
	}
}

func TestOlder(t *testing.T) {
	tests := []struct {
		was, now string
		older    bool
	}{
		{"1.0.0", "0.9.0", true},
		{"0.10.0", "0.9.9", true},
		{"1.0.0", "1.0.0-rc.1", true},
		{"1.0.0", "1.0.0", false},
		{"0.9.0", "0.10.0", false},
		{"2026-11-30", "2025", false},
	}
	for _, tt := range tests {
		s := New(t.TempDir())
		install(t, s, candidate(t, "one", tt.was, ""))
		p, err := s.Propose(candidate(t, "one", tt.now, ""), Trust{})
		if err != nil || p.Older() != tt.older {
			t.Errorf("%s after %s: older %v, %v", tt.now, tt.was, p.Older(), err)
		}
	}
}

// What was shown to somebody is what they get: a proposal that somebody else overtook is
// refused.
func TestOvertakenProposals(t *testing.T) {
	overtake := map[string]func(*Store) error{
		"an installation": func(s *Store) error { install(t, s, candidate(t, "one", "2.0.0", "")); return nil },
		"a removal":       func(s *Store) error { return s.Remove("one", false) },
		"a change of grant": func(s *Store) error {
			_, err := s.SetGrants("one", func(Entry, capability.Set) capability.Set { return capability.Set{} })
			return err
		},
	}
	for name, by := range overtake {
		t.Run("by "+name, func(t *testing.T) {
			s := New(t.TempDir())
			install(t, s, candidate(t, "one", "1.0.0", `kv = "1MiB"`))
			p, err := s.Propose(candidate(t, "one", "1.1.0", `kv = "1MiB"`), Trust{})
			if err == nil {
				err = by(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			before := state(t, s)
			if _, err := s.Accept(p, p.Kept); !errors.Is(err, ErrChanged) || err.Error() != `install extension "one": another wharf changed that meanwhile: try again` {
				t.Errorf("Accept: %v", err)
			}
			if after := state(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("it changed something")
			}
		})
	}
}

// Many at once lose nothing, and who reads meanwhile finds each module whole.
func TestHammerInstalls(t *testing.T) {
	s := New(t.TempDir())
	var work, reading sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				modules, err := New(s.dir).Read()
				for _, m := range modules {
					err = errors.Join(err, m.Err)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 8 {
		name := fmt.Sprintf("ext-%d", n)
		first, second := candidate(t, name, "1.0.0", ""), candidate(t, name, "1.1.0", "")
		work.Go(func() {
			own := New(s.dir)
			for _, c := range []Candidate{first, second} {
				p, err := own.Propose(c, Trust{})
				if err == nil {
					_, err = own.Accept(p, p.New)
				}
				if err != nil {
					t.Error(err)
				}
			}
			if n%2 == 0 {
				if err := own.Remove(name, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	close(stop)
	reading.Wait()
	entries, err := s.List()
	if err != nil || len(entries) != 4 || len(state(t, s)) != 5 {
		t.Errorf("%d extensions in %d files, %v", len(entries), len(state(t, s)), err)
	}
}
