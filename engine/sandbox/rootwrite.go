package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// Writable reports whether name may be written, and where it leads: the
// resolved path is not protected, and what is there may be replaced.
func (r *Root) Writable(name string) (string, error) {
	rel, err := r.unprotected(name)
	if err != nil {
		return "", err
	}
	info, err := r.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return rel, nil
	}
	if err == nil {
		err = sole(info, name)
	}
	return rel, tidy(err, name)
}

// unprotected returns where name leads, if that may be changed.
func (r *Root) unprotected(name string) (string, error) {
	rel, err := r.Resolve(name)
	if err != nil {
		return "", err
	}
	if rel == "." {
		return "", fmt.Errorf("%w: %q is the workspace itself", ErrRefused, name)
	}
	if pattern, protected := r.protected(rel); protected {
		return "", fmt.Errorf("%w: %s is protected (%s): trusted programs read it outside the sandbox; ask the user to change it", ErrRefused, rel, pattern)
	}
	return rel, nil
}

// Write puts content in the place of the file that name leads to, whole or not
// at all, and makes the folders above it, which go again if it fails. A file that
// is there keeps its mode; a new one is readable by all and writable by its owner.
// check, unless nil, is asked about what is there (nil if nothing is) right before
// it is replaced; its error ends Write with nothing changed.
func (r *Root) Write(name string, content []byte, check func(old *os.File) error) (string, error) {
	rel, err := r.Writable(name)
	if err != nil {
		return "", err
	}
	parent, base := path.Split(rel)
	dir, err := r.openDir(path.Clean(parent))
	if err != nil {
		return "", tidy(err, name)
	}
	mode, err := replaceable(dir.Root, base, name, check)
	if err == nil {
		err = replace(dir.Root, base, content, mode)
	}
	dir.close(err == nil)
	return rel, tidy(err, name)
}

// Remove removes the file that name leads to. check is asked about it right before, as
// in Write.
func (r *Root) Remove(name string, check func(old *os.File) error) (string, error) {
	rel, err := r.Writable(name)
	if err != nil {
		return "", err
	}
	dir, base, err := r.parent(rel)
	if err != nil {
		return "", tidy(err, name)
	}
	defer dir.close(false)
	if err := there(dir.Root, base, name, check); err != nil {
		return "", tidy(err, name)
	}
	return rel, tidy(dir.Remove(base), name)
}

// RemoveDir removes the folder that name leads to, if it is empty. It removes nothing
// else, whatever takes the folder's place meanwhile.
func (r *Root) RemoveDir(name string) error {
	rel, err := r.unprotected(name)
	if err != nil {
		return err
	}
	dir, base, err := r.parent(rel)
	if err != nil {
		return tidy(err, name)
	}
	defer dir.close(false)
	return tidy(rmdir(dir.Root, base), name)
}

// Rename gives the file that name leads to another name, at which there must be nothing,
// and makes the folders above it, which go again if it fails.
func (r *Root) Rename(name, to string) error {
	rel, err := r.Writable(name)
	if err != nil {
		return err
	}
	relTo, err := r.Writable(to)
	if err != nil {
		return err
	}
	from, base, err := r.parent(rel)
	if err != nil {
		return tidy(err, name)
	}
	defer from.close(false)
	if err := there(from.Root, base, name, nil); err != nil {
		return tidy(err, name)
	}
	parent, newBase := path.Split(relTo)
	into, err := r.openDir(path.Clean(parent))
	if err != nil {
		return tidy(err, to)
	}
	err = renameNew(from.Root, base, into.Root, newBase)
	into.close(err == nil)
	return tidy(err, to)
}

// parent opens the folder of rel.
func (r *Root) parent(rel string) (*openFolder, string, error) {
	parent, base := path.Split(rel)
	if _, err := r.root.Lstat(rel); err != nil {
		return nil, "", err // and no folder is made for it
	}
	dir, err := r.openDir(path.Clean(parent))
	return dir, base, err
}

// there makes sure that base in dir is a file that may be replaced.
func there(dir *os.Root, base, name string, check func(*os.File) error) error {
	_, err := replaceable(dir, base, name, func(old *os.File) error {
		if old == nil {
			return &fs.PathError{Op: "open", Path: base, Err: fs.ErrNotExist}
		}
		if check != nil {
			return check(old)
		}
		return nil
	})
	return err
}

// renameNew renames a file, unless something has the new name.
func renameNew(from *os.Root, base string, into *os.Root, newBase string) error {
	source, err := from.Open(".")
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := into.Open(".")
	if err != nil {
		return err
	}
	defer target.Close()
	err = unix.Renameat2(int(source.Fd()), base, int(target.Fd()), newBase, unix.RENAME_NOREPLACE)
	return os.NewSyscallError("rename", err)
}

// replaceable reports whether base in dir may be replaced, and the mode that
// its successor gets.
func replaceable(dir *os.Root, base, name string, check func(*os.File) error) (fs.FileMode, error) {
	old, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if check != nil {
			err = check(nil)
		} else {
			err = nil
		}
		return 0o644, err
	}
	if err != nil {
		return 0, err
	}
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		return 0, err
	}
	if err := sole(info, name); err != nil {
		return 0, err
	}
	if check != nil {
		if err := check(old); err != nil {
			return 0, err
		}
	}
	return info.Mode().Perm(), nil
}

// replace writes content beside base and renames it into place.
func replace(dir *os.Root, base string, content []byte, mode fs.FileMode) error {
	temp := fmt.Sprintf(".wharf-%08x.tmp", rand.Uint32())
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(temp, base)
	}
	if err != nil {
		dir.Remove(temp)
	}
	return err
}

// sole reports whether a file is a regular one with one name.
func sole(info fs.FileInfo, name string) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
		return fmt.Errorf("%w: %q has %d names (hard links), and the others may be elsewhere: copy it first", ErrRefused, name, st.Nlink)
	}
	return regular(info, name)
}
