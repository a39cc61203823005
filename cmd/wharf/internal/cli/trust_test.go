package cli

import (
	"os"
	"strings"
	"testing"
)

const (
	oneDigest     = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	anotherDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// What was trusted last is kept by its path, and is never taken for what is trusted.
func TestTrustTellsWhatChanged(t *testing.T) {
	home := folders{config: t.TempDir(), state: t.TempDir()}
	first, err := newTrust([]string{oneDigest}, home)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.check("/project/wharf.toml", oneDigest, "a = 1\nb = 2\n"); err != nil {
		t.Fatal(err)
	}
	later, err := newTrust(nil, home)
	if err != nil {
		t.Fatal(err)
	}
	head := "to trust what is in it now, add --trust " + anotherDigest + ", or, for good, to " + home.configFile() +
		" under [trust]: \"/project/wharf.toml\" = \"" + anotherDigest + "\""
	for _, tt := range []struct{ name, path, text, want string }{
		{"what changed", "/project/wharf.toml", "a = 1\nb = 3\n", head + "\nsince it was trusted, this changed:\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3"},
		{"nothing that can be told", "/project/wharf.toml", "a = 1\nb = 2\n", head + "\nit says what it said when you trusted it last"},
		{"another file", "/else/wharf.toml", "a = 1\nb = 2\n", strings.ReplaceAll(head, "/project/", "/else/")},
	} {
		if err := later.check(tt.path, anotherDigest, tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
	long := strings.Repeat("x = 1\n", 200)
	if err := later.check("/project/wharf.toml", anotherDigest, long); !strings.HasSuffix(err.Error(), "\n… and 143 more lines") {
		t.Errorf("a long change ends with %q", err.Error()[len(err.Error())-40:])
	}
}

func TestTrustWithoutAFolderOfItsOwn(t *testing.T) {
	home := folders{config: t.TempDir(), state: "/dev/null/no/folder"}
	tr, err := newTrust([]string{oneDigest}, home)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.check("/project/wharf.toml", oneDigest, "a = 1\n"); err != nil {
		t.Errorf("what is trusted is trusted: %v", err)
	}
	if err := tr.unused(); err != nil {
		t.Error(err)
	}
}

func TestTrustIsForDigestsOnly(t *testing.T) {
	for _, bad := range []string{"", "sha256:", strings.ToUpper(oneDigest), oneDigest + "0", "md5:" + oneDigest[7:], oneDigest[7:]} {
		if _, err := newTrust([]string{bad}, folders{}); err == nil {
			t.Errorf("%q is taken for a digest", bad)
		}
	}
	tr, err := newTrust([]string{oneDigest}, folders{})
	if err != nil {
		t.Fatal(err)
	}
	want := "--trust " + oneDigest + ": nothing here has that digest: look at what changed, or leave it out"
	if err := tr.unused(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// keep leaves nothing half-written beside what it keeps.
func TestTrustKeepsWholeFiles(t *testing.T) {
	home := folders{state: t.TempDir()}
	tr, err := newTrust(nil, home)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		tr.keep("/a", "one\n")
		tr.keep("/a", "two\n")
	}
	entries, err := os.ReadDir(tr.seen)
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %d files: %v", len(entries), err)
	}
}
