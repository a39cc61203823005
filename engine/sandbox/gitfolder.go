package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// isBare reports whether a folder is one that git takes for a repository's own: the .git of one,
// or a repository without a working tree.
func isBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} { // most folders are done with the first
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.IsDir() == (name == "HEAD") {
			return false
		}
	}
	return true
}

// gitFolders returns the folder that a .git is or points to, and the one that it shares its
// configuration with, as other working trees of one repository do.
func gitFolders(git string) (own, common string, err error) {
	info, err := os.Lstat(git)
	if err != nil {
		return "", "", err
	}
	own = git
	if !info.IsDir() {
		line, err := readFree(git, longestPointer)
		to, ok := strings.CutPrefix(string(line), "gitdir:")
		if err != nil || !ok {
			return "", "", errors.Join(err, errors.New("it points to no repository"))
		}
		own = below(filepath.Dir(git), strings.TrimSpace(to))
	}
	switch line, err := readFree(filepath.Join(own, "commondir"), longestPointer); {
	case errors.Is(err, fs.ErrNotExist):
		return own, own, nil
	case err != nil:
		return "", "", err
	default:
		return own, below(own, strings.TrimSpace(string(line))), nil
	}
}

// longestPointer bounds a file that holds a path.
const longestPointer = 8 << 10

// below returns path, which is relative to dir or absolute.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
