package build

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stale reports whether a file in an extension's folder is missing, or older than
// what [Extension] makes it from.
func Stale(dir, file string) (bool, error) {
	built, err := os.Stat(file)
	if os.IsNotExist(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	newest := time.Time{}
	err = eachSource(dir, func(_ string, info fs.FileInfo) {
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	})
	return newest.After(built.ModTime()), err
}

// State is a text that is another one once something was changed of what
// [Extension] builds from.
func State(dir string) (string, error) {
	var b strings.Builder
	err := eachSource(dir, func(path string, info fs.FileInfo) {
		fmt.Fprintf(&b, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	})
	return b.String(), err
}

// eachSource shows the sources in an extension's folder, and the headers beside
// it, which sources may share. A file that is being replaced may be left out.
func eachSource(dir string, show func(string, fs.FileInfo)) error {
	look := func(path string) error {
		info, err := os.Stat(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			show(path, info)
		}
		return err
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err) && path != dir:
			return nil
		case err != nil:
			return err
		case path != dir && entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(noSources, entry.Name())):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !isSource(entry.Name()):
			return nil
		}
		return look(path)
	})
	if err != nil {
		return err
	}
	shared, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Join(dir, "..")), "*.h"))
	if err != nil {
		return err
	}
	for _, path := range shared {
		if err := look(path); err != nil {
			return err
		}
	}
	return nil
}

// noSources are folders that hold no sources of an extension: its cases, what
// cargo builds, and what npm installs.
var noSources = []string{"testdata", "target", "node_modules"}

// isSource reports whether a build reads a file of that name.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".wasm", ".md":
		return false
	}
	return !strings.HasPrefix(name, ".")
}
