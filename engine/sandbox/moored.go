package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bubblewrap finds what it mounts by path, some time after we have looked at it. A command
// that runs in the same workspace can exchange a folder for a link meanwhile, over and over,
// until bubblewrap mounts what the link leads to: any folder of the host, to be written.
// So while the new command waits at the gate, what was mounted is compared with what was seen.

const (
	mountsBuilt = 10 * time.Second // for bubblewrap to be done
	mountsPause = 200 * time.Microsecond
)

// moved says which part of the workspace was changed meanwhile.
func moved(path string) error {
	return fmt.Errorf("%s was changed while the sandbox was built: run the command again when nothing else moves it", path)
}

// moored waits until the process pid has the file view that its command is to have, and
// compares what lies at the paths of seen. A process that has ended is no error: bubblewrap
// says why.
func moored(pid int, seen map[string]spot) error {
	root := "/proc/" + strconv.Itoa(pid) + "/root"
	first := identify(pid)
	for late := time.Now().Add(mountsBuilt); ; time.Sleep(mountsPause) {
		built, err := isBuilt(root)
		switch {
		case !first.lives() || statField(pid, 3) == "Z":
			return nil
		case err != nil:
			return fmt.Errorf("look at the mounts of the sandbox: %w", err)
		case built:
			return mooredAt(root, seen)
		case time.Now().After(late):
			return errors.New("bubblewrap did not build the file view in time")
		}
	}
}

// isBuilt reports whether a root folder is the one that bubblewrap builds, and is done:
// it makes it read-only at the last, and not before it has left the host's.
func isBuilt(root string) (bool, error) {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	var inside, host unix.Stat_t
	var mounted unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &inside), unix.Stat("/", &host), unix.Fstatfs(fd, &mounted)); err != nil {
		return false, err
	}
	return inside.Dev != host.Dev && mounted.Flags&unix.ST_RDONLY != 0, nil
}

// mooredAt compares what lies at the paths of seen, below root, and that it was mounted there.
func mooredAt(root string, seen map[string]spot) error {
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		_, above, err := mountAt(root, filepath.Dir(path))
		if err != nil {
			return moved(path)
		}
		at, mount, err := mountAt(root, path)
		if err != nil || at != seen[path] || mount == above {
			return moved(path)
		}
	}
	return nil
}

// mountAt returns what is at a path below root, and the number of the mount that it is in.
func mountAt(root, path string) (at spot, mount string, err error) {
	f, err := openFree(root, path)
	if err != nil {
		return spot{}, "", err
	}
	defer func() { _ = f.Close() }()
	if at, _, err = spotOf(f); err != nil {
		return spot{}, "", err
	}
	info, err := os.Open("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return spot{}, "", err
	}
	defer func() { _ = info.Close() }()
	for lines := bufio.NewScanner(info); lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), "mnt_id:"); ok {
			return at, strings.TrimSpace(number), nil
		}
	}
	return spot{}, "", errors.New("this kernel does not number mounts")
}
