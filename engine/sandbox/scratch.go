package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"
)

// scratchPath returns a new name for the private folders of one run: in the
// user's folder for temporary files, unless commands can write that one.
func (s *Sandbox) scratchPath() string {
	parent := os.TempDir()
	if real, err := filepath.EvalSymlinks(parent); err == nil {
		parent = real
	}
	cache := s.cfg.CacheDir
	if !filepath.IsAbs(parent) || within(parent, s.cfg.Workspace) || cache != "" && within(parent, cache) {
		parent = "/tmp"
	}
	return filepath.Join(parent, "wharf-run-"+randomName())
}

// makeScratch makes the private folders of one run, for their owner alone.
func makeScratch(dir, gitConfig string) error {
	for _, sub := range []string{"", "tmp", "home", "home/.cache"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return fmt.Errorf("make the private folders of the run: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(dir, "home", ".gitconfig"), []byte(gitConfig), 0o600)
}

// tidied is how long the removal of private folders may take: who outlived the
// run may still be filling them.
const tidied = time.Minute

// removeScratch removes the private folders, if there are any, whatever the
// command made of them. It follows no link.
func removeScratch(dir string) {
	err := os.Chmod(dir, 0o700) // the command may have taken the rights to its own folders
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), tidied)
		err = empty(ctx, root)
		cancel()
		err = errors.Join(err, root.Close())
	}
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil {
		slog.Warn("the temporary folder of a command could not be removed", "folder", dir, "error", err)
	}
}

// empty removes all that is in root. A folder in a folder is moved to the top
// before it is looked into, so that no depth costs more than another.
func empty(ctx context.Context, root *os.Root) error {
	moved := 0
	for folders := []string{"."}; len(folders) > 0; folders = folders[1:] {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		dir := folders[0]
		entries, err := readDir(root, dir, nil)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if !e.IsDir() {
				err = root.Remove(name)
			} else if err = root.Chmod(name, 0o700); err == nil {
				folders = append(folders, strconv.Itoa(moved))
				err = root.Rename(name, strconv.Itoa(moved))
				moved++
			}
			if err != nil {
				return err
			}
		}
		if dir != "." {
			err = root.Remove(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
