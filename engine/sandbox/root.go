package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrRefused reports a path that a file tool must not use. Nothing was done.
var ErrRefused = errors.New("refused")

// Root is a folder that in-process file tools may use. Whatever a path says,
// nothing outside the folder is reached: links are followed inside it only.
// Writing additionally spares the protected paths ([Protected]), also when a
// link leads there, and files that have other names (hard links). Only regular
// files are opened, and never one that blocks.
//
// Its methods may be called by several goroutines, while other processes
// change the folder.
type Root struct {
	dir  string // without links
	root *os.Root
	home bool
}

// OpenRoot opens dir, which must be a folder.
func OpenRoot(dir string) (*Root, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Root{dir: dir, root: root, home: LooksLikeHome(dir)}, nil
}

// Dir returns the folder's absolute path, without links.
func (r *Root) Dir() string { return r.dir }

// Close closes the folder. Files that were opened in it stay open.
func (r *Root) Close() error { return r.root.Close() }

// maxLinks is how many links a path may lead through, as in Linux.
const maxLinks = 40

// Resolve returns where name leads, relative to the folder, slash-separated and
// free of links; "." is the folder itself. name is relative to the folder, or
// absolute and inside it. What does not exist yet resolves too.
func (r *Root) Resolve(name string) (string, error) {
	todo, err := r.relative(name)
	if err != nil {
		return "", err
	}
	done, links := ".", 0
	for todo != "" {
		var part string
		part, todo, _ = strings.Cut(todo, "/")
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if done == "." {
				return "", outside(name)
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := r.root.Lstat(next)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return "", fmt.Errorf("%w: %q: too many links", ErrRefused, name)
			}
			target, err := r.root.Readlink(next)
			if err != nil {
				return "", err
			}
			if path.IsAbs(target) {
				if target, err = r.relative(target); err != nil {
					return "", outside(name)
				}
				done = "."
			}
			todo = target + "/" + todo
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", tidy(err, name)
		}
		done = next
	}
	return done, nil
}

// relative returns name relative to the folder, with ".." still in it where
// links could give it another meaning.
func (r *Root) relative(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%w: %q: a path holds no zero byte", ErrRefused, name)
	}
	if !path.IsAbs(name) {
		return name, nil
	}
	rest, ok := strings.CutPrefix(path.Clean(name), r.dir)
	if !ok || rest != "" && rest[0] != '/' {
		return "", outside(name)
	}
	return strings.TrimPrefix(rest, "/"), nil
}

func outside(name string) error {
	return fmt.Errorf("%w: %q is outside the workspace", ErrRefused, name)
}

// Open opens the regular file that name leads to for reading, and returns its
// resolved path too.
func (r *Root) Open(name string) (*os.File, string, error) {
	rel, err := r.Resolve(name)
	if err != nil {
		return nil, "", err
	}
	f, err := r.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, "", tidy(err, name)
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(info, name)
	}
	if err == nil {
		err = r.unmoved(f, rel)
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return f, rel, nil
}

// unmoved makes sure that f is what was resolved as rel: somebody may have put
// a link into the path since.
func (r *Root) unmoved(f *os.File, rel string) error {
	where, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err == nil && where != filepath.Join(r.dir, rel) {
		err = fmt.Errorf("%w: %q changed while it was being opened", ErrRefused, rel)
	}
	return err
}

// Stat returns what name leads to.
func (r *Root) Stat(name string) (fs.FileInfo, string, error) {
	rel, err := r.Resolve(name)
	if err != nil {
		return nil, "", err
	}
	info, err := r.root.Lstat(rel)
	return info, rel, tidy(err, name)
}

// ReadDir lists the folder that name leads to, sorted by name. Links in it are
// listed as links.
func (r *Root) ReadDir(name string) ([]fs.DirEntry, string, error) {
	rel, err := r.Resolve(name)
	if err != nil {
		return nil, "", err
	}
	entries, err := readDir(r.root, rel, r.unmoved)
	return entries, rel, tidy(err, name)
}

// readDir lists the folder rel, sorted by name. What is no folder, or a link, is
// an error; a pipe is not waited for. check is asked about what was opened.
func readDir(root *os.Root, rel string, check func(*os.File, string) error) ([]fs.DirEntry, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if check != nil {
		if err := check(f, rel); err != nil {
			return nil, err
		}
	}
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// Writable reports whether name may be written, and where it leads: the
// resolved path is not protected, and what is there may be replaced.
func (r *Root) Writable(name string) (string, error) {
	rel, err := r.Resolve(name)
	if err != nil {
		return "", err
	}
	if rel == "." {
		return "", fmt.Errorf("%w: %q is the workspace itself", ErrRefused, name)
	}
	if pattern, protected := Protected(rel, r.home); protected {
		return "", fmt.Errorf("%w: %s is protected (%s): trusted programs read it outside the sandbox; ask the user to change it", ErrRefused, rel, pattern)
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

// Write puts content in the place of the file that name leads to, whole or not
// at all, and makes the folders above it. A file that is there keeps its mode;
// a new one is readable by all and writable by its owner. check, unless nil,
// is asked about what is there (nil if nothing is) right before it is replaced;
// its error ends Write with nothing changed.
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
	defer dir.Close()
	mode, err := replaceable(dir, base, name, check)
	if err != nil {
		return "", tidy(err, name)
	}
	return rel, tidy(replace(dir, base, content, mode), name)
}

// openDir opens the folder rel, making what is missing of it, and makes sure
// that it is the one that was resolved.
func (r *Root) openDir(rel string) (*os.Root, error) {
	if err := r.root.MkdirAll(rel, 0o755); err != nil {
		return nil, err
	}
	dir, err := r.root.OpenRoot(rel)
	if err != nil {
		return nil, err
	}
	f, err := dir.Open(".")
	if err != nil {
		dir.Close()
		return nil, err
	}
	defer f.Close()
	if err := r.unmoved(f, rel); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
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

func regular(info fs.FileInfo, name string) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fmt.Errorf("%q is a folder", name)
	default:
		return fmt.Errorf("%w: %q is no regular file", ErrRefused, name)
	}
}

// tidy names the path as the caller did, without the system call's name.
func tidy(err error, name string) error {
	var pathError *fs.PathError
	var linkError *os.LinkError
	switch {
	case errors.As(err, &pathError):
		err = pathError.Err
	case errors.As(err, &linkError):
		err = linkError.Err
	default:
		return err
	}
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%w: %q is no regular file", ErrRefused, name)
	}
	return fmt.Errorf("%q: %w", name, err)
}

// ReadAll reads the regular file that name leads to, up to limit bytes; more
// is an error.
func (r *Root) ReadAll(name string, limit int64) ([]byte, string, error) {
	f, rel, err := r.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%q is larger than %d bytes", name, limit)
	}
	return content, rel, err
}
