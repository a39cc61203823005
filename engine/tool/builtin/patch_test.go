package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wharf-agent/wharf/engine/patch"
	"github.com/wharf-agent/wharf/engine/sandbox"
)

func patchOf(lines ...string) args {
	return args{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
}

func TestApplyPatch(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\ntwo\n", "run.sh": "#!/bin/sh\necho old\n", "gone": "x\n"})
	if err := os.Chmod(filepath.Join(b.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := patchOf("*** Delete File: gone", "*** Add File: new/n", "+hello", "*** Update File: a", "@@", " one", "-two", "+2",
		"*** Update File: run.sh", "*** Move to: bin/run", "-echo old", "+echo new")
	const what = "added new/n (6 bytes)\nchanged a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" +
		"moved run.sh to bin/run\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo old\n+echo new\ndeleted gone"
	p["dry_run"] = true
	b.want("apply_patch", p, "this would be changed:\n"+what)
	if b.content("a") != "one\ntwo\n" {
		t.Error("a dry run changed something")
	}
	p["dry_run"] = false
	b.want("apply_patch", p, what)
	for name, want := range map[string]string{"a": "one\n2\n", "new/n": "hello\n", "bin/run": "#!/bin/sh\necho new\n"} {
		if got := b.content(name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if info, err := os.Stat(filepath.Join(b.dir, "bin/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("what was moved lost its mode: %v, %v", info, err)
	}
	for _, name := range []string{"gone", "run.sh"} {
		if _, err := os.Lstat(filepath.Join(b.dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	b.want("edit_file", args{"path": "a", "old_text": "2", "new_text": "3"},
		"replaced 1 occurrence(s) in a\n@@ -1,2 +1,2 @@\n one\n-2\n+3")
}

// Whatever is wrong with one part of a patch, no other part is done.
func TestApplyPatchAllOrNothing(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n", "b": "two\n", ".git/config": "[core]", ".hidden": "key\n", "seen": "x\n"})
	if err := os.Symlink("b", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(b.dir, "etc")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(b.dir, "a"), filepath.Join(b.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.put("bin", "x\x00y")
	b.call("read_file", args{"path": "seen"})
	b.put("seen", "y\n")
	const protected = " is protected (.git/config): trusted programs read it outside the sandbox; ask the user to change it"
	for _, tt := range []struct{ part, want string }{
		{"*** Update File: nowhere\n-x", `"nowhere": no such file or directory`},
		{"*** Update File: b\n-x", `change 1 of "b": its lines do not stand there: read the file, and copy them exactly`},
		{"*** Add File: link\n+x", `"link" is there already: update it, or take another name`},
		{"*** Update File: b\n*** Move to: a", `"a" has 2 names (hard links), and the others may be elsewhere: copy it first`},
		{"*** Update File: b\n*** Move to: seen", `"seen" is there already: update it, or take another name`},
		{"*** Delete File: .git/config", "refused: .git/config" + protected},
		{"*** Update File: b\n*** Move to: .git/hooks/x", "refused: .git/hooks/x is protected (.git/hooks): trusted programs read it outside the sandbox; ask the user to change it"},
		{"*** Delete File: hard", `refused: "hard" has 2 names (hard links), and the others may be elsewhere: copy it first`},
		{"*** Delete File: fifo", `refused: "fifo" is no regular file`},
		{"*** Delete File: /proc/self/root/etc/hostname", `refused: "/proc/self/root/etc/hostname" is outside the workspace`},
		{"*** Delete File: etc/hostname", `refused: "etc/hostname" is outside the workspace`},
		{"*** Update File: bin\n-x", `"bin" is no text (3 bytes of binary data)`},
		{"*** Update File: .hidden\n-key", `".hidden" is not to be read, and so not to be patched`},
		{"*** Update File: b\n-two\n+[redacted:KEY]", `patch "b": the text holds [redacted:KEY], which stands for a secret: leave the lines with it as they are, and change others by edit_file`},
		{"*** Update File: b\n-two\n*** Delete File: link", `"b" and "link" are the same file: put all changes to it into one part`},
	} {
		got := b.call("apply_patch", patchOf("*** Add File: first", "+x", tt.part))
		want := "error: nothing was changed: " + tt.want
		if strings.HasPrefix(tt.want, `"a" has`) {
			want = "error: nothing was changed: refused: " + tt.want
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", tt.part, got, want)
		}
		if _, err := os.Lstat(filepath.Join(b.dir, "first")); err == nil {
			t.Fatalf("%q: the part before was done", tt.part)
		}
	}
	// What is noticed only when it is done is undone.
	b.want("apply_patch", patchOf("*** Add File: made/by/it/first", "+x", "*** Add File: made/too", "+x", "*** Update File: b", "*** Move to: c/d", "-two", "+2", "*** Update File: seen", "-y"),
		`error: nothing was changed: "seen" changed since it was read: read it again, then change it`)
	for _, name := range []string{"made", "c"} {
		if _, err := os.Lstat(filepath.Join(b.dir, name)); err == nil {
			t.Errorf("%s was not undone", name)
		}
	}
	if got := b.content("b"); got != "two\n" {
		t.Errorf("b holds %q", got)
	}
}

// A patch that is cancelled is done as a whole, or not at all.
func TestApplyPatchIsCancelled(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n"})
	root, err := sandbox.OpenRoot(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := &files{root: root, hidden: func(string) bool { return false }, seen: map[string]digest{}}
	parts, err := patch.Parse(patchOf("*** Add File: new/n", "+x", "*** Update File: a", "-one", "+1")["patch"].(string))
	if err != nil {
		t.Fatal(err)
	}
	all, err := f.prepareAll(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user went away"))
	if _, err := f.prepareAll(ctx, parts); err == nil || err.Error() != "the user went away" {
		t.Errorf("prepareAll: %v", err)
	}
	if err := f.apply(&endsAfter{ctx, 1}, all); err == nil || err.Error() != "nothing was changed: the user went away" {
		t.Errorf("apply: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(b.dir, "new")); err == nil || b.content("a") != "one\n" {
		t.Errorf("it was not undone: %v, a holds %q", err, b.content("a"))
	}
}

// endsAfter is a context that ends when it was asked so often.
type endsAfter struct {
	context.Context
	left int
}

func (e *endsAfter) Err() error {
	if e.left--; e.left >= 0 {
		return nil
	}
	return context.Canceled
}

// A file keeps its line endings and its mode, whatever changes it.
func TestLineEndingsAndModesStay(t *testing.T) {
	b := newBench(t, map[string]string{"dos": "a\r\nb\r\n", "mixed": "a\r\nb\n", "bom": "\ufeffa\nb\n"})
	if err := os.Chmod(filepath.Join(b.dir, "dos"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.call("read_file", args{"path": "dos"})
	b.call("read_file", args{"path": "mixed"})
	b.call("read_file", args{"path": "bom"})
	for _, step := range []struct {
		tool string
		args args
		name string
		want string
	}{
		{"edit_file", args{"path": "dos", "old_text": "a\nb", "new_text": "a\nB"}, "dos", "a\r\nB\r\n"},
		{"apply_patch", patchOf("*** Update File: dos", " a", "+b", " B"), "dos", "a\r\nb\r\nB\r\n"},
		{"write_file", args{"path": "dos", "content": "x\ny\n"}, "dos", "x\r\ny\r\n"},
		{"edit_file", args{"path": "mixed", "old_text": "b\n", "new_text": "B\n"}, "mixed", "a\r\nB\n"},
		{"apply_patch", patchOf("*** Update File: mixed", "-a", "+A"), "mixed", "A\r\nB\n"},
		{"apply_patch", patchOf("*** Update File: bom", "-a", "+A"), "bom", "\ufeffA\nb\n"},
		{"edit_file", args{"path": "bom", "old_text": "\ufeffA\n", "new_text": "a\n"}, "bom", "\ufeffa\nb\n"},
		{"edit_file", args{"path": "bom", "old_text": "a\n", "new_text": "\ufeffA\n"}, "bom", "\ufeffA\nb\n"},
		{"write_file", args{"path": "bom", "content": "x\n"}, "bom", "\ufeffx\n"},
		{"write_file", args{"path": "bom", "content": "\ufeffy\n"}, "bom", "\ufeffy\n"},
	} {
		if got := b.call(step.tool, step.args); strings.HasPrefix(got, "error") {
			t.Errorf("%s: %s", step.tool, got)
		}
		if got := b.content(step.name); got != step.want {
			t.Errorf("%s: %s holds %q, want %q", step.tool, step.name, got, step.want)
		}
	}
	if info, err := os.Stat(filepath.Join(b.dir, "dos")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

// Of a long change only the beginning is shown.
func TestLongChangesAreCut(t *testing.T) {
	b := newBench(t, map[string]string{"a": strings.Repeat("old line\n", 3000)})
	b.call("read_file", args{"path": "a"})
	got := b.call("write_file", args{"path": "a", "content": strings.Repeat("new line\n", 3000)})
	if len(got) > maxDiff+200 || !strings.HasSuffix(got, "\n[… the rest of the change is left out …]") {
		t.Errorf("%d bytes, which end with %q", len(got), got[max(0, len(got)-60):])
	}
}
