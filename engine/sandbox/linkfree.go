package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// spot is a file or folder, told from all others.
type spot struct{ device, inode uint64 }

// spotOf returns what f is, and of what kind.
func spotOf(f *os.File) (spot, uint32, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return spot{}, 0, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return spot{uint64(st.Dev), st.Ino}, st.Mode & unix.S_IFMT, nil
}

// openFree opens an absolute path to be looked at and changed in, below the folder
// root. No part of it may be a link: that is a [linked] error. Commands that run can
// exchange a folder for a link between any two looks at its path; what was opened stays
// what it is.
func openFree(root, path string) (*os.File, error) {
	start, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer func() { _ = unix.Close(start) }()
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if fd, err := unix.Openat2(start, "."+path, how); err == nil {
		return os.NewFile(uintptr(fd), path), nil
	}
	return walkFree(start, path) // which says where the link is, and needs no Linux 5.6
}

// walkFree does the same by a step for each part.
func walkFree(start int, path string) (*os.File, error) {
	fd, err := unix.Dup(start)
	at := ""
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if err != nil || part == "" {
			break
		}
		at += "/" + part
		above := fd
		fd, err = unix.Openat(above, part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		_ = unix.Close(above)
		var st unix.Stat_t
		if err == nil && unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			_ = unix.Close(fd)
			return nil, linked(at)
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// lookFree returns what is at a path of the host, and of what kind.
func lookFree(path string) (spot, uint32, error) {
	f, err := openFree("/", path)
	if err != nil {
		return spot{}, 0, err
	}
	defer func() { _ = f.Close() }()
	return spotOf(f)
}

// readFree reads a regular file of the host that no link leads to, up to limit bytes; more is an
// error. A pipe is not waited for.
func readFree(path string, limit int64) ([]byte, error) {
	f, err := openFree("/", path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, kind, err := spotOf(f); err != nil || kind != unix.S_IFREG {
		return nil, errors.Join(err, errors.New("it is no regular file"))
	}
	in, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("it is larger than %d KiB", limit>>10)
	}
	return text, err
}

// makeFree makes a folder in one that is reached by no link, unless there is something, and
// opens it.
func makeFree(above *os.File, name string, mode uint32) (*os.File, error) {
	_ = unix.Mkdirat(int(above.Fd()), name, mode)
	return walkFree(int(above.Fd()), "/"+name)
}
