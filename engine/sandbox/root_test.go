package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// yard is a workspace beside a folder that must stay as it is.
type yard struct {
	*Root
	dir, canary string
}

func newYard(t *testing.T) yard {
	t.Helper()
	top := t.TempDir()
	y := yard{dir: filepath.Join(top, "ws"), canary: filepath.Join(top, "outside", "canary")}
	for _, dir := range []string{y.dir, filepath.Dir(y.canary), filepath.Join(y.dir, ".git", "hooks"), filepath.Join(y.dir, "sub")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	y.put(t, y.canary, "canary")
	y.put(t, filepath.Join(y.dir, "a.txt"), "alpha")
	y.put(t, filepath.Join(y.dir, ".git/config"), "[core]")
	y.link(t, "../outside/canary", "out")
	y.link(t, y.canary, "abs")
	y.link(t, ".git/hooks", "hooks")
	y.link(t, "../a.txt", "sub/in")
	y.link(t, "loop", "loop")
	y.link(t, ".git/config", "conf")
	y.link(t, "missing", "dangling")
	if err := syscall.Mkfifo(filepath.Join(y.dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(y.canary, filepath.Join(y.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	root, err := OpenRoot(y.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		root.Close()
		if got, err := os.ReadFile(y.canary); err != nil || string(got) != "canary" {
			t.Errorf("the canary outside was touched: %q, %v", got, err)
		}
	})
	y.Root = root
	return y
}

func (y yard) put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (y yard) link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(y.dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestRootReads(t *testing.T) {
	y := newYard(t)
	for _, name := range []string{"a.txt", "./a.txt", "sub/../a.txt", "sub/in", filepath.Join(y.dir, "a.txt")} {
		got, rel, err := y.ReadAll(name, 100)
		if err != nil || string(got) != "alpha" || rel != "a.txt" {
			t.Errorf("ReadAll(%q) = %q, %q, %v; want alpha of a.txt", name, got, rel, err)
		}
	}
	refused := map[string]string{
		"../outside/canary": `refused: "../outside/canary" is outside the workspace`,
		y.canary:            `refused: "` + y.canary + `" is outside the workspace`,
		"/etc/passwd":       `refused: "/etc/passwd" is outside the workspace`,
		y.dir + "x":         `refused: "` + y.dir + `x" is outside the workspace`,
		"out":               `refused: "out" is outside the workspace`,
		"abs":               `refused: "abs" is outside the workspace`,
		"loop":              `refused: "loop": too many links`,
		"fifo":              `refused: "fifo" is no regular file`,
		"a\x00b":            `refused: "a\x00b": a path holds no zero byte`,
		"sub":               `"sub" is a folder`,
		"nowhere":           `"nowhere": no such file or directory`,
		"a.txt/x":           `"a.txt/x": not a directory`,
	}
	for name, want := range refused {
		if _, _, err := y.ReadAll(name, 100); err == nil || err.Error() != want {
			t.Errorf("ReadAll(%q): %v; want %s", name, err, want)
		}
	}
	if _, _, err := y.ReadAll("a.txt", 4); err == nil || err.Error() != `"a.txt" is larger than 4 bytes` {
		t.Errorf("ReadAll of a large file: %v", err)
	}
}

func TestRootLists(t *testing.T) {
	y := newYard(t)
	entries, rel, err := y.ReadDir("sub/../sub")
	if len(entries) != 1 || rel != "sub" || err != nil || entries[0].Name() != "in" {
		t.Errorf("ReadDir = %v, %q, %v; want the link in sub", entries, rel, err)
	}
	for name, want := range map[string]string{
		"fifo": `"fifo": not a directory`, "a.txt": `"a.txt": not a directory`, "nowhere": `"nowhere": no such file or directory`,
		"out": `refused: "out" is outside the workspace`, "..": `refused: ".." is outside the workspace`,
	} {
		if _, _, err := y.ReadDir(name); err == nil || err.Error() != want {
			t.Errorf("ReadDir(%q): %v; want %s", name, err, want)
		}
	}
}

func TestRootWrites(t *testing.T) {
	y := newYard(t)
	for name, want := range map[string]string{"new/deep/file": "new/deep/file", "a.txt": "a.txt", "sub/in": "a.txt", "dangling": "missing"} {
		rel, err := y.Write(name, []byte("written by "+name), nil)
		got, _ := os.ReadFile(filepath.Join(y.dir, want))
		if err != nil || rel != want || string(got) != "written by "+name {
			t.Errorf("Write(%q) = %q, %v and holds %q; want %q", name, rel, err, got, want)
		}
	}
	for _, name := range []string{
		"../outside/canary", y.canary, "out", "abs", "fifo", "hard", ".", "hooks/pre-commit", ".git/hooks/pre-commit", "conf",
		".GIT/config", ".git", "deep/er/.git/config", ".wharf/x", ".envrc", ".claude/settings.json", "loop",
	} {
		if _, err := y.Write(name, []byte("harm"), nil); !errors.Is(err, ErrRefused) {
			t.Errorf("Write(%q): %v; want a refusal", name, err)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(y.dir, ".git/config")); string(got) != "[core]" {
		t.Errorf(".git/config was changed to %q", got)
	}
	left, _ := filepath.Glob(filepath.Join(y.dir, "*.tmp"))
	hidden, _ := filepath.Glob(filepath.Join(y.dir, ".wharf-*"))
	if len(left)+len(hidden) > 0 {
		t.Errorf("temporary files were left: %v %v", left, hidden)
	}
}

func TestRootWriteKeepsModeAndAsks(t *testing.T) {
	y := newYard(t)
	path := filepath.Join(y.dir, "run.sh")
	y.put(t, path, "old")
	if err := os.Chmod(path, 0o750); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	if _, err := y.Write("run.sh", []byte("new"), func(*os.File) error { return no }); !errors.Is(err, no) {
		t.Errorf("Write with a check that refuses: %v", err)
	}
	if _, err := y.Write("run.sh", []byte("new"), nil); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode after Write: %v, %v; want 0750", info.Mode(), err)
	}
}

// A folder that is swapped for a link between the look and the leap is noticed.
func TestRootOpenDirNoticesASwap(t *testing.T) {
	y := newYard(t)
	if _, err := y.openDir("hooks"); err == nil || !strings.Contains(err.Error(), "changed while it was being opened") {
		t.Errorf("openDir through a link: %v; want a refusal", err)
	}
}

func FuzzRootResolve(f *testing.F) {
	for _, seed := range []string{"a.txt", "../x", "sub/../../x", "loop/a", "out", "/etc/passwd", "hooks/../config", strings.Repeat("../", 50)} {
		f.Add(seed)
	}
	dir := f.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.Symlink("..", filepath.Join(dir, "sub/up")), os.Symlink("../..", filepath.Join(dir, "sub/out"))); err != nil {
		f.Fatal(err)
	}
	root, err := OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		rel, err := root.Resolve(name)
		if err == nil && rel != "." && !filepath.IsLocal(rel) {
			t.Errorf("Resolve(%q) = %q, which leaves the folder", name, rel)
		}
	})
}

func TestRootRemovesAndRenames(t *testing.T) {
	y := newYard(t)
	for name, want := range map[string]string{
		"out":         `refused: "out" is outside the workspace`,
		"conf":        "refused: .git/config is protected (.git/config): trusted programs read it outside the sandbox; ask the user to change it",
		"hard":        `refused: "hard" has 2 names (hard links), and the others may be elsewhere: copy it first`,
		"fifo":        `refused: "fifo" is no regular file`,
		"sub":         `"sub" is a folder`,
		"missing":     `"missing": no such file or directory`,
		"no/such/dir": `"no/such/dir": no such file or directory`,
		".":           `refused: "." is the workspace itself`,
	} {
		if _, err := y.Remove(name, nil); err == nil || err.Error() != want {
			t.Errorf("Remove(%q): %v, want %s", name, err, want)
		}
		if err := y.Rename(name, "new"); err == nil || err.Error() != want {
			t.Errorf("Rename(%q): %v, want %s", name, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(y.dir, "no")); err == nil {
		t.Error("a folder was made to remove something in it")
	}
	for to, want := range map[string]string{
		"../x":         `refused: "../x" is outside the workspace`,
		"hooks/x":      "refused: .git/hooks/x is protected (.git/hooks): trusted programs read it outside the sandbox; ask the user to change it",
		"sub":          `"sub" is a folder`,
		"a.txt":        `"a.txt": file exists`,
		".mcp.json":    "refused: .mcp.json is protected (.mcp.json): trusted programs read it outside the sandbox; ask the user to change it",
		"a.txt/inside": `"a.txt/inside": not a directory`,
	} {
		if err := y.Rename("a.txt", to); err == nil || err.Error() != want {
			t.Errorf("Rename to %q: %v, want %s", to, err, want)
		}
	}
	if _, err := y.Remove("a.txt", func(*os.File) error { return errors.New("no") }); err == nil || err.Error() != "no" {
		t.Errorf("Remove against its check: %v", err)
	}
	if err := y.Rename("sub/in", "deep/er/b.txt"); err != nil { // what the link leads to
		t.Fatal(err)
	}
	if rel, err := y.Remove("deep/er/b.txt", nil); err != nil || rel != "deep/er/b.txt" {
		t.Errorf("Remove: %q, %v", rel, err)
	}
	if _, err := os.Lstat(filepath.Join(y.dir, "a.txt")); err == nil {
		t.Error("a.txt is still there")
	}
}

func TestRootRefusesPathsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	r, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = r.Write(strings.Repeat("d/", 3000)+"x", nil, nil)
	want := `refused: "` + strings.Repeat("d/", 30) + `"… is a longer path than Linux has`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v: %v", left, err)
	}
}

// What fails leaves no folder that was made for it, and no other is taken.
func TestRootLeavesNoFolders(t *testing.T) {
	y := newYard(t)
	if err := os.Mkdir(filepath.Join(y.dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	no := func(*os.File) error { return errors.New("the disk is full") }
	for _, name := range []string{"made/x", "made/by/it/x", "empty/made/by/it/x"} {
		if _, err := y.Write(name, nil, no); err == nil || err.Error() != "the disk is full" {
			t.Errorf("Write(%q): %v", name, err)
		}
		long := path.Join(path.Dir(name), strings.Repeat("x", 256)) // no file can have that name
		if err := y.Rename("a.txt", long); err == nil || err.Error() != fmt.Sprintf("%q: file name too long", long) {
			t.Errorf("Rename to %q: %v", long, err)
		}
	}
	meanwhile := func(*os.File) error {
		return errors.Join(os.WriteFile(filepath.Join(y.dir, "shared/theirs"), nil, 0o600), errors.New("the disk is full"))
	}
	if _, err := y.Write("shared/mine/x", nil, meanwhile); err == nil || err.Error() != "the disk is full" {
		t.Error(err)
	}
	moved := func(*os.File) error { // what has its name by then is no matter of this write's
		return errors.Join(os.Rename(filepath.Join(y.dir, "gone"), filepath.Join(y.dir, "aside")),
			os.Symlink("empty", filepath.Join(y.dir, "gone")), os.Mkdir(filepath.Join(y.dir, "empty/mine"), 0o755), errors.New("the disk is full"))
	}
	if _, err := y.Write("gone/mine/x", nil, moved); err == nil || err.Error() != "the disk is full" {
		t.Error(err)
	}
	for name, want := range map[string]bool{
		"made": false, "empty": true, "empty/made": false, "shared/theirs": true, "shared/mine": false,
		"empty/mine": true, "gone": true, "aside": true, "aside/mine": false,
	} {
		if _, err := os.Lstat(filepath.Join(y.dir, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
}

func TestRootRemovesEmptyFolders(t *testing.T) {
	y := newYard(t)
	if err := os.Mkdir(filepath.Join(y.dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"out":     `refused: "out" is outside the workspace`,
		"a.txt":   `"a.txt": not a directory`,
		"hooks":   "refused: .git/hooks is protected (.git/hooks): trusted programs read it outside the sandbox; ask the user to change it",
		"sub":     `"sub": directory not empty`,
		"missing": `"missing": no such file or directory`,
		".":       `refused: "." is the workspace itself`,
	} {
		if err := y.RemoveDir(name); err == nil || err.Error() != want {
			t.Errorf("RemoveDir(%q): %v, want %s", name, err, want)
		}
	}
	if err := y.RemoveDir("empty"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(y.dir, "empty")); err == nil {
		t.Error("it is still there")
	}
}
