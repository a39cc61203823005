package governance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFolderKeeps(t *testing.T) {
	workspace := t.TempDir()
	f := NewFolder(workspace, "s1")
	for content, want := range map[string]string{"text": ".wharf/results/s1/7.txt", `{"a":1}`: ".wharf/results/s1/7.json"} {
		path, err := f.Keep(7, content)
		if err != nil || path != want {
			t.Fatalf("Keep = %q, %v; want %q", path, err, want)
		}
		if got, err := os.ReadFile(filepath.Join(workspace, path)); err != nil || string(got) != content {
			t.Errorf("%s holds %q, %v; want %q", path, got, err, content)
		}
	}
	if again, err := f.Keep(7, "text"); err != nil || again != ".wharf/results/s1/7.txt" {
		t.Errorf("Keep once more = %q, %v", again, err)
	}
	if ignored, err := os.ReadFile(filepath.Join(workspace, ".wharf/results/.gitignore")); err != nil || string(ignored) != "*\n" {
		t.Errorf(".gitignore holds %q, %v", ignored, err)
	}
}

// A workspace may come from anybody: no link in it leads anywhere.
func TestFolderFollowsNoLinks(t *testing.T) {
	for _, link := range []string{".wharf", ".wharf/results", ".wharf/results/s1"} {
		t.Run(link, func(t *testing.T) {
			workspace := t.TempDir()
			if err := os.MkdirAll(filepath.Join(workspace, "src/results/s1"), 0o700); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(workspace, link)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			target, err := filepath.Rel(filepath.Dir(at), filepath.Join(workspace, "src"))
			if err == nil {
				err = os.Symlink(target, at)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("open %s: it is no folder of its own", filepath.Base(link))
			if _, err := NewFolder(workspace, "s1").Keep(1, "x"); err == nil || err.Error() != want {
				t.Errorf("Keep: %v; want %s", err, want)
			}
			_ = filepath.WalkDir(filepath.Join(workspace, "src"), func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					t.Errorf("%s was written", path)
				}
				return err
			})
		})
	}
}

// A link in a file's place is replaced, and what it leads to stays as it is.
func TestFolderReplacesALink(t *testing.T) {
	workspace := t.TempDir()
	canary := filepath.Join(workspace, "canary")
	if err := os.WriteFile(canary, []byte("tweet"), 0o600); err != nil {
		t.Fatal(err)
	}
	bucket := filepath.Join(workspace, ".wharf/results/s1")
	if err := os.MkdirAll(bucket, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1.txt", "1.txt.tmp"} {
		if err := os.Symlink("../../../canary", filepath.Join(bucket, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewFolder(workspace, "s1").Keep(1, "result"); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(bucket, "1.txt"))
	if left, err := os.ReadFile(canary); err != nil || string(left) != "tweet" || string(got) != "result" {
		t.Errorf("the canary says %q, %v, the file %q", left, err, got)
	}
}

func TestFolderForgets(t *testing.T) {
	workspace, now := t.TempDir(), time.Now()
	results := filepath.Join(workspace, ".wharf/results")
	mine := filepath.Join(results, "mine")
	for i := range 40 {
		dir := filepath.Join(results, fmt.Sprintf("s%02d", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		age := time.Duration(i) * time.Hour
		if i == 5 {
			age = 8 * 24 * time.Hour
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"1.txt": 8 * 24 * time.Hour, "2.txt": time.Hour} {
		path := filepath.Join(mine, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewFolder(workspace, "mine").Keep(3, "x"); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			left = append(left, e.Name())
		}
	}
	if len(left) != 32 || strings.Contains(strings.Join(left, " "), "s05") || strings.Contains(strings.Join(left, " "), "s39") {
		t.Errorf("%d folders are left: %v; want the 31 newest of 7 days, and its own", len(left), left)
	}
	files, err := os.ReadDir(mine)
	if err != nil || len(files) != 2 || files[0].Name() != "2.txt" || files[1].Name() != "3.txt" {
		t.Errorf("its own has %v, %v; want 2.txt and 3.txt", files, err)
	}
}

// What is older than 7 days goes, however little there is.
func TestFolderForgetsWhatIsOld(t *testing.T) {
	workspace, now := t.TempDir(), time.Now()
	results := filepath.Join(workspace, ".wharf/results")
	for name, days := range map[string]int{"old": 8, "new": 6} {
		if err := os.MkdirAll(filepath.Join(results, name), 0o700); err != nil {
			t.Fatal(err)
		}
		at := now.AddDate(0, 0, -days)
		if err := os.Chtimes(filepath.Join(results, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewFolder(workspace, "mine").Keep(1, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(results, "old")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is 8 days old: %v; want it gone", err)
	}
	if _, err := os.Stat(filepath.Join(results, "new")); err != nil {
		t.Errorf("what is 6 days old: %v", err)
	}
}
