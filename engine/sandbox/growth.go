package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What a command writes in the folders that are the host's cannot be limited
// beforehand: no quota is an ordinary user's to set. So it is looked at while the
// command runs. The free space of the file systems costs nothing to ask for;
// only where that shrinks, the files are looked at, for others write there too.

// errDisk ends a command that wrote too much.
var errDisk = errors.New("the command wrote more than it may")

// growth is what is known of what a command wrote.
type growth struct {
	dirs   []string
	limit  int64
	began  time.Time
	free   func(dir string) (device uint64, bytes int64, err error)
	before map[uint64]int64 // the most bytes that were free since the beginning, by device

	mu     sync.Mutex
	looked int64 // by how much they had shrunk when the files were looked at
	grown  int64 // at the latest look
}

// mostLooked bounds one look at the files.
const mostLooked = 1_000_000

func (s *Sandbox) newGrowth() *growth {
	g := &growth{dirs: s.writable(), limit: s.cfg.Limits.Disk, began: time.Now(), free: s.freeSpace, before: map[uint64]int64{}}
	if s.cfg.CacheDir != "" {
		g.dirs = append(g.dirs, s.cfg.CacheDir)
	}
	for _, dir := range append(g.dirs, os.TempDir()) { // where the private folders are without bubblewrap
		if device, bytes, err := g.free(dir); err == nil {
			g.before[device] = bytes
		}
	}
	return g
}

// freeSpace returns the file system of a folder and how much is free there.
func freeSpace(dir string) (device uint64, bytes int64, err error) {
	var st unix.Stat_t
	var system unix.Statfs_t
	if err := errors.Join(unix.Stat(dir, &st), unix.Statfs(dir, &system)); err != nil {
		return 0, 0, err
	}
	return st.Dev, int64(system.Bfree) * system.Bsize, nil
}

// watch ends a command, by stop, that writes too much. It returns when the command has ended.
func (g *growth) watch(p *Process, every time.Duration, stop context.CancelCauseFunc) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticks.C:
			if g.exceeded(p.child.process.Pid) {
				stop(errDisk)
				return
			}
		}
	}
}

// exceeded reports whether the command below pid wrote more than it may; 0 is one that has
// ended. Files that it
// only changed count whole, so it never counts for more than the free space shrank.
func (g *growth) exceeded(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	shrunk := int64(0)
	seen := map[uint64]bool{}
	for _, dir := range append(g.dirs, os.TempDir()) {
		device, bytes, err := g.free(dir)
		if err != nil || seen[device] {
			continue
		}
		seen[device] = true
		g.before[device] = max(g.before[device], bytes) // what others free must not hide what is written
		shrunk += g.before[device] - bytes
	}
	if shrunk < g.limit/5 || shrunk < g.looked+g.limit/20 {
		return false
	}
	g.looked = shrunk
	g.grown = min(shrunk, g.written(pid))
	return g.grown >= g.limit
}

// written is how much space those files have that changed since the beginning, and those
// that have no name any more and are held by the processes below pid.
func (g *growth) written(pid int) (sum int64) {
	left := mostLooked
	since := g.began.Add(-time.Second).UnixNano() // clocks of file systems are coarse
	dirs := g.dirs
	if private, err := filepath.Glob(filepath.Join(os.TempDir(), "wharf-run-*")); err == nil {
		dirs = append(dirs[:len(dirs):len(dirs)], private...)
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if left--; left < 0 || sum >= g.limit {
				return fs.SkipAll
			}
			var st unix.Stat_t
			if err == nil && unix.Lstat(path, &st) == nil && st.Ctim.Nano() >= since {
				sum += st.Blocks * 512
			}
			return nil
		})
	}
	if pid == 0 { // it has ended
		return sum
	}
	return sum + unnamed(pid)
}

// unnamed is how much space files have that have no name any more.
func unnamed(pid int) (sum int64) {
	type file struct{ device, inode uint64 }
	counted := map[file]bool{}
	for _, p := range descendants(pid) {
		dir := "/proc/" + strconv.Itoa(p) + "/fd/"
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			info, err := os.Stat(dir + e.Name())
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if one := (file{st.Dev, st.Ino}); ok && st.Nlink == 0 && !counted[one] {
				counted[one] = true
				sum += st.Blocks * 512
			}
		}
	}
	return sum
}

// tell has the result of a command that has ended tell of it, if it wrote much or was
// ended for that.
func (g *growth) tell(res *Result, err error) error {
	if errors.Is(err, errDisk) {
		res.Notes = append(res.Notes, fmt.Sprintf("it was ended at the %d MiB limit on what a command writes (sandbox.limits.disk)", g.limit>>20))
		return nil
	}
	g.exceeded(0)
	g.mu.Lock() // the last look may still be under way
	defer g.mu.Unlock()
	if g.grown >= g.limit/5 {
		res.Notes = append(res.Notes, fmt.Sprintf("it wrote %d MiB; the limit is %d MiB (sandbox.limits.disk)", g.grown>>20, g.limit>>20))
	}
	return err
}
