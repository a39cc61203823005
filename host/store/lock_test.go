package store

import (
	"os"
	"strings"
	"testing"
)

// whole is a lock with all that can stand in one.
const whole = `# What "wharf ext install" installed, and what it may reach.
# Change it with wharf ext install, remove, grant and revoke.
version = 1

[[extension]]
name = "one"
version = "1.0.0"
source = "https://ext.example/one.wasm"
digest = "sha256:0621baced649ec183d4a0a3795273819bbf0553d50cfcbc4258c3a17433860b1"
abi = 1
role = "guard"
hooks = ["before_execute_tool", "on_finally"]
signer = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
signature = "untrusted comment: x\nRWQ\n"

[extension.grants]
http = ["GET https://api.example.com/v1/*"]
fs = [{ path = "notes", mode = "read" }]
kv = "1MiB"

[[extension]]
name = "two"
version = "2"
source = "/home/me/two.wasm"
digest = "sha256:1621baced649ec183d4a0a3795273819bbf0553d50cfcbc4258c3a17433860b1"
abi = "extism"
role = "observer"
hooks = []

[[key]]
name = "one"
from = "https://ext.example"
key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
`

func TestLocksAreWrittenAsTheyAreRead(t *testing.T) {
	l, err := parseLock(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.String(); got != whole {
		t.Errorf("written:\n%s\nread:\n%s", got, whole)
	}
}

// A lock that is damaged or made up is refused as a whole: it may have had a guard.
func TestRefusedLocks(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("the lock has no %q", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	tests := []struct{ name, text, want string }{
		{"a later version", change("version = 1", "version = 2"), "it is of version 2, and this wharf reads version 1: use the wharf that wrote it"},
		{"a version that is a text", change("version = 1", `version = "1"`), `it is of version 1, and this wharf reads version 1: use the wharf that wrote it`},
		{"no version", change("version = 1\n", ""), "it has no version: it was damaged"},
		{"nothing", "", "it has no version: it was damaged"},
		{"no TOML", "version = 1\n[[extension", `line 2: expected '.' or ']' to end table name, but got '\x00' instead`},
		{"an unknown key", change("role = \"guard\"", "role = \"guard\"\nsigned = true"), `unknown key "extension.signed": it was damaged, or a newer wharf wrote it`},
		{"a name that leads away", change(`"one"`, `"../one"`), `extension "../one": name "../one": give it one of up to 64 characters a-z, 0-9 and -`},
		{"a digest that leads away", change("sha256:0621", "sha256:../x"), `extension "one": digest "sha256:../xbaced649ec183d4a0a3795273819bbf0553d50cfcbc4258c3a17433860b1" is none: it is sha256: and 64 digits a-f, 0-9`},
		{"an unknown role", change(`"guard"`, `"god"`), `extension "one": role "god": it is guard or observer`},
		{"an unknown point", change("on_finally", "on_nothing"), `extension "one": unknown hook point "on_nothing": a newer wharf wrote it`},
		{"another ABI", change("abi = 1", "abi = 2"), `extension "one": abi 2: it is 1 or "extism"`},
		{"no source", change(`source = "https://ext.example/one.wasm"`, ""), `extension "one": it has no source`},
		{"a version that is none", change(`"1.0.0"`, `"1 0"`), `extension "one": version "1 0" is none`},
		{"a signature without signer", change("signer = ", "# "), `extension "one": signer and signature belong together`},
		{"a signer that is none", change("signer = \"RWQ", "signer = \"XXX"), `extension "one": signer: it is no public key of minisign's: it is 56 characters that begin with RW, or the file with them (minisign.pub)`},
		{"a grant that is none", change(`kv = "1MiB"`, `kv = "much"`), `extension "one": grants: kv: "much" is no size: write a number with B, KiB, MiB or GiB, such as "16MiB"`},
		{"an unknown grant", change(`kv = "1MiB"`, `everything = true`), `extension "one": grants: everything: unknown capability: there are http, secrets, fs, kv, exec, tools, session, llm, env, events, approve`},
		{"one name twice", change(`"two"`, `"one"`), `extension "one": it is there twice`},
		{"one key twice", whole + whole[strings.Index(whole, "[[key]]"):], `key of "one": it is there twice`},
		{"a key of a name that leads away", strings.Replace(whole, "[[key]]\nname = \"one", "[[key]]\nname = \"../one", 1), `key of "../one": name "../one": give it one of up to 64 characters a-z, 0-9 and -`},
		{"nests", "version = 1\nx = " + strings.Repeat("[", 100), "line 2: it is nested deeper than 64 levels"},
		{"no end", strings.Repeat("#", maxLock+1), "it has more than 1048576 bytes: it was damaged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(t.TempDir())
			if err := os.WriteFile(s.LockFile(), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := s.Read()
			if want := "read " + s.LockFile() + ": " + tt.want; err == nil || err.Error() != want {
				t.Errorf("Read:\n got %v\nwant %s", err, want)
			}
			if err := s.Remove("one", false); err == nil {
				t.Error("it was changed")
			}
			if text, _ := os.ReadFile(s.LockFile()); string(text) != tt.text {
				t.Error("it was written anew")
			}
		})
	}
}

func TestPins(t *testing.T) {
	l, err := parseLock(whole)
	if err != nil {
		t.Fatal(err)
	}
	key := l.pinned("one", "https://ext.example")
	if key.IsZero() || !l.pinned("one", "https://other.example").IsZero() || !l.pinned("two", "https://ext.example").IsZero() {
		t.Error("keys are not pinned for a name and where it comes from")
	}
	l.pin(pin{"one", "https://other.example", key})
	l.pin(pin{"one", "https://other.example", key})
	if len(l.pins) != 2 {
		t.Errorf("%d keys, of which one was pinned twice", len(l.pins))
	}
	if !l.forget("one") || l.forget("one") || len(l.pins) != 0 {
		t.Error("keys are not forgotten")
	}
}

// What is read can be written, and reads as the same.
func FuzzParseLock(f *testing.F) {
	f.Add(whole)
	f.Add("version = 1\n")
	f.Add("version = 1\n[[extension]]\nname = \"\\u0000\"\n[extension.grants]\nsecrets = [{}]\n")
	f.Add("version = 1\nextension = [{grants = {fs = [{ path = \"a\\\"b\", mode = \"write\" }]}}]")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseLock(text)
		if err != nil {
			return
		}
		once := l.String()
		again, err := parseLock(once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if twice := again.String(); twice != once {
			t.Errorf("written:\n%s\nread and written again:\n%s", once, twice)
		}
	})
}
