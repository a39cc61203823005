package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wharf-agent/wharf/host"
)

// This file holds what is done to the disk.

// The names in a store's folder.
const (
	lockName    = "wharf.lock"
	modulesName = "extensions"
	guardName   = ".lock"     // of the kernel's lock, in the folder of modules
	newPrefix   = ".new-"     // of a file that is not whole yet
	moduleEnd   = ".wasm"     // of a module's file
	maxLock     = 1 << 20     // bytes of wharf.lock
	patience    = time.Minute // how long another process is waited for
)

// step is called at each step of a change, with what was just done. Tests end the
// process there, or have the step fail.
var step = func(string) error { return nil }

// path returns where the module with that digest is.
func (s *Store) path(digest string) string {
	return filepath.Join(s.dir, modulesName, digest+moduleEnd)
}

// writeModule writes a module, unless it is there already.
func (s *Store) writeModule(digest string, wasm []byte) error {
	if _, err := s.module(digest); err == nil {
		return nil
	}
	if err := writeFile(s.path(digest), wasm); err != nil {
		return fmt.Errorf("store the extension: %w", err)
	}
	return step("module")
}

func (s *Store) writeLock(l lock) error {
	text := l.String()
	if len(text) > maxLock {
		return fmt.Errorf("write %s: it would have %d bytes, and may have %d: grant or install less", s.LockFile(), len(text), maxLock)
	}
	if _, err := parseLock(text); err != nil {
		return fmt.Errorf("write %s: it could not be read again: %w", s.LockFile(), err)
	}
	if err := writeFile(s.LockFile(), []byte(text)); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return step("lock")
}

// readLock reads wharf.lock. Without one, nothing is installed. Whoever could write to
// the folder could grant what they like.
func (s *Store) readLock() (lock, error) {
	if err := host.CheckPrivate(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return lock{}, fmt.Errorf("read %s: %w", s.LockFile(), err)
	}
	text, err := host.ReadFile(s.LockFile())
	if errors.Is(err, fs.ErrNotExist) {
		if !s.hasModules() {
			return lock{}, nil
		}
		text, err = host.ReadFile(s.LockFile()) // somebody may have installed the first one just now
	}
	if info, bad := os.Stat(s.LockFile()); bad == nil && err == nil && info.Mode().Perm()&0o022 != 0 {
		err = errors.New("others may write to it: chmod go-w, once it says nothing of theirs")
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("it is gone, and the modules that it named are still in %s: put it back, or delete that folder", filepath.Join(s.dir, modulesName))
	}
	if err != nil {
		return lock{}, fmt.Errorf("read %s: %w", s.LockFile(), err)
	}
	l, err := parseLock(string(text))
	if err != nil {
		return lock{}, fmt.Errorf("read %s: %w", s.LockFile(), err)
	}
	return l, nil
}

// hasModules reports whether there are modules. They never are before there is a lock.
func (s *Store) hasModules() bool {
	files, _ := os.ReadDir(filepath.Join(s.dir, modulesName))
	return slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), moduleEnd) })
}

// writeFile writes a file whole and durably, or not at all.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, newPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // once it is renamed there is none of that name
	_, err = f.Write(data)
	err = errors.Join(err, step("written "+filepath.Ext(path)))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// sweep removes the modules that the lock does not name, and files that are not
// whole. What cannot be removed is left to the next one.
func (s *Store) sweep(l lock) {
	wanted := map[string]bool{}
	for _, e := range l.entries {
		wanted[e.Digest+moduleEnd] = true
	}
	for _, dir := range []string{s.dir, filepath.Join(s.dir, modulesName)} {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			name := f.Name()
			module := dir != s.dir && strings.HasSuffix(name, moduleEnd)
			if strings.HasPrefix(name, newPrefix) || module && !wanted[name] {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
	}
}

// lockAlone makes the store's folders, and keeps everybody else off until unlock is
// called, or this process ends.
func (s *Store) lockAlone() (unlock func(), err error) {
	dir := filepath.Join(s.dir, modulesName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return flock(filepath.Join(dir, guardName), os.O_CREATE|os.O_RDWR, syscall.LOCK_EX)
}

// lockShared keeps those off who would change something. Where nothing was ever
// installed, there is nothing to be kept off.
func (s *Store) lockShared() (unlock func(), err error) {
	unlock, err = flock(filepath.Join(s.dir, modulesName, guardName), os.O_RDONLY, syscall.LOCK_SH)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	return unlock, err
}

func flock(path string, flag, how int) (unlock func(), err error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if (err != syscall.EWOULDBLOCK && err != syscall.EINTR) || time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w: end the other wharf that installs something, and try again", path, err)
		}
	}
}
