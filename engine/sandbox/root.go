package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrRefused reports a path that a file tool must not use. Nothing was done.
var ErrRefused = errors.New("refused")

// Root is a folder that in-process file tools may use. Whatever a path says,
// nothing outside the folder is reached: links are followed inside it only.
// Writing additionally spares the protected paths ([Protected], and what the
// configuration of a repository has git run or read), also when a
// link leads there, and files that have other names (hard links). Only regular
// files are opened, and never one that blocks.
//
// Its methods may be called by several goroutines, while other processes
// change the folder.
type Root struct {
	dir  string // without links
	root *os.Root
	home bool

	homes []string // what "~" may be in git's configuration
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
	return &Root{dir: dir, root: root, home: LooksLikeHome(dir), homes: homeFolders()}, nil
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
	if len(r.dir)+len(done)+2 > unix.PathMax { // or folders would be made on the way to what cannot be
		return "", fmt.Errorf("%w: %.60q… is a longer path than Linux has", ErrRefused, name)
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
	var systemError *os.SyscallError
	switch {
	case errors.As(err, &pathError):
		err = pathError.Err
	case errors.As(err, &linkError):
		err = linkError.Err
	case errors.As(err, &systemError):
		err = systemError.Err
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
