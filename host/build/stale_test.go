package build

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a build reads makes its module stale, and nothing else does.
func TestStale(t *testing.T) {
	early, late := time.Unix(1_000_000, 0), time.Unix(2_000_000, 0)
	tests := []struct {
		name, file string
		want       bool
	}{
		{"a source", "x.c", true},
		{"the manifest", ManifestFile, true},
		{"a source in a folder", "inner/inner.go", true},
		{"a header that sources share", "../shared.h", true},
		{"a test case", "testdata/a.toml", false},
		{"a README", "README.md", false},
		{"what cargo built", "target/debug/x.rs", false},
		{"what npm installed", "node_modules/a/a.ts", false},
		{"another module", "y.wasm", false},
		{"a hidden file", ".x.wasm.1", false},
		{"a file in a hidden folder", ".git/x", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, ManifestFile, manifestText, "x.c", "", "x.wasm", "")
			path := filepath.Join(dir, tt.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			before, err := State(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("changed"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{ManifestFile, "x.c", "x.wasm"} {
				if err := os.Chtimes(filepath.Join(dir, file), early, early); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chtimes(path, late, late); err != nil {
				t.Fatal(err)
			}
			got, err := Stale(dir, filepath.Join(dir, "x.wasm"))
			if err != nil || got != tt.want {
				t.Errorf("Stale = %v, %v; want %v", got, err, tt.want)
			}
			if after, err := State(dir); err != nil || after == before {
				t.Errorf("State is the same: %v\n%s", err, after)
			}
		})
	}
	dir := folder(t)
	if stale, err := Stale(dir, filepath.Join(dir, "x.wasm")); err != nil || !stale {
		t.Errorf("without a module: %v, %v", stale, err)
	}
	if _, err := State(filepath.Join(dir, "nowhere")); !os.IsNotExist(err) {
		t.Errorf("of a folder that is not there: %v", err)
	}
}

// A language says what it needs, and what of that is missing.
func TestMissing(t *testing.T) {
	for _, l := range Languages() {
		missing := l.Missing(t.Context(), []string{"PATH=" + t.TempDir()})
		if len(l.Needs) == 0 || len(missing) != len(l.Needs) {
			t.Errorf("%s needs %v, and of that %v is missing in an empty PATH", l.Name, l.Needs, missing)
		}
		for _, p := range missing {
			if p.Install == "" {
				t.Errorf("nobody says how to install %s", p.Name)
			}
		}
	}
}
