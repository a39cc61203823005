package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// takeAway moves what is there of protected paths that were not there into quarantine.
// It moves what lies in the folder itself and follows no link: one that a command put in the
// place of a folder would have it take away, and show to commands, what is the user's.
func (s *Sandbox) takeAway(absent []string) (notes []string) {
	for _, path := range absent {
		rel, err := filepath.Rel(s.cfg.Workspace, path)
		if err != nil {
			continue
		}
		to, err := s.moveAway(path, rel)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			notes = append(notes, fmt.Sprintf("the command made %s, which is protected, and it could not be moved away: %v: look at it before you use anything here", rel, err))
		default:
			notes = append(notes, fmt.Sprintf("the command made %s, which is protected: it was moved to %s. Ask for approval instead of working around it", rel, to))
		}
	}
	return notes
}

// moveAway moves a path into quarantine, and returns where to. Where that cannot be, as on
// another disk, or where a file has the folder's name, it gets a name that means nothing.
func (s *Sandbox) moveAway(path, rel string) (to string, err error) {
	dir, err := openFree("/", filepath.Dir(path))
	if err != nil {
		return "", fs.ErrNotExist // what a link leads to is not what was made
	}
	defer func() { _ = dir.Close() }()
	name := filepath.Base(path)
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return "", fs.ErrNotExist
	}
	stamp := time.Now().UTC().Format("20060102-150405.000000000") // no two are the same
	away := stamp + "-" + strings.ReplaceAll(rel, "/", "-")
	if quarantine, err := s.openQuarantine(); err == nil {
		err = unix.Renameat(int(dir.Fd()), name, int(quarantine.Fd()), away)
		_ = quarantine.Close()
		if err == nil {
			return filepath.Join(".wharf", "quarantine", away), nil
		}
	}
	away = "quarantine-" + stamp + "-" + name
	if err := unix.Renameat(int(dir.Fd()), name, int(dir.Fd()), away); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(rel), away), nil
}

// openQuarantine opens the folder of what was taken away, which is made if it is not there.
func (s *Sandbox) openQuarantine() (*os.File, error) {
	workspace, err := openFree("/", s.cfg.Workspace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = workspace.Close() }()
	own, err := makeFree(workspace, ".wharf", 0o755)
	if err != nil {
		return nil, err
	}
	defer func() { _ = own.Close() }()
	return makeFree(own, "quarantine", 0o700)
}
