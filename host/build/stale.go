package build

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Stale reports whether a file in an extension's folder is missing, or older than
// what [Extension] makes it from. Headers that sources share are looked for
// beside the folder too.
func Stale(dir, file string) (bool, error) {
	built, err := os.Stat(file)
	if os.IsNotExist(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	newest := time.Time{}
	look := func(path string) error {
		info, err := os.Stat(path)
		if err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return err
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case path != dir && entry.IsDir() && (strings.HasPrefix(name, ".") || name == "testdata"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !isSource(name):
			return nil
		}
		return look(path)
	})
	shared, _ := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(filepath.Clean(dir))), "*.h")) // the pattern is a good one
	for _, path := range shared {
		if err == nil {
			err = look(path)
		}
	}
	return newest.After(built.ModTime()), err
}

// isSource reports whether a build reads a file of that name.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".wasm", ".md":
		return false
	}
	return !strings.HasPrefix(name, ".")
}
