package governance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/session"
)

// What is kept in a [Folder].
const (
	retention  = 7 * 24 * time.Hour
	maxBuckets = 32
)

// resultsDir is where results are kept in a workspace. File tools read there and do not
// write, since .wharf is protected; a command may, so what is there is not trusted.
var resultsDir = []string{".wharf", "results"}

// Folder keeps results that are too long in a workspace, where the model can read
// them: .wharf/results/SESSION, which git ignores. Names are Wharf's own, never a model's,
// and no link is followed. Its sessions' folders go after 7 days, or when there are 32
// newer ones.
type Folder struct {
	workspace string
	session   session.ID
	pruned    bool
	now       func() time.Time
}

// NewFolder returns the folder of a session. It is made when the first result is kept.
func NewFolder(workspace string, id session.ID) *Folder {
	return &Folder{workspace: workspace, session: id, now: time.Now}
}

// Keep writes a result, whole or not at all, and returns its path in the workspace.
// It does not write what is there already.
func (f *Folder) Keep(seq int64, content string) (string, error) {
	name := fmt.Sprintf("%d.txt", seq)
	if json.Valid([]byte(content)) {
		name = fmt.Sprintf("%d.json", seq)
	}
	results, err := f.open()
	if err != nil {
		return "", err
	}
	defer results.Close()
	if !f.pruned {
		f.pruned = true
		f.prune(results)
	}
	bucket, err := step(results, string(f.session))
	if err != nil {
		return "", err
	}
	defer bucket.Close()
	return path.Join(append(slices.Clone(resultsDir), string(f.session), name)...), write(bucket, name, content)
}

// open opens the folder of all sessions, and makes what is missing of it.
func (f *Folder) open() (*os.Root, error) {
	dir, err := os.OpenRoot(f.workspace)
	for _, name := range resultsDir {
		if err != nil {
			return nil, err
		}
		var next *os.Root
		next, err = step(dir, name)
		err = errors.Join(err, dir.Close())
		dir = next
	}
	if err != nil {
		return nil, err
	}
	if err := write(dir, ".gitignore", "*\n"); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// step opens the folder of that name in dir, and makes it if it is not there. A link
// to a folder is none.
func step(dir *os.Root, name string) (*os.Root, error) {
	if err := dir.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	notOurs := fmt.Errorf("open %s: it is no folder of its own", name)
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, notOurs
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, opened) { // it was exchanged meanwhile
		err = notOurs
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// write makes a file of that content, unless there is one of that name.
func write(dir *os.Root, name, content string) error {
	if info, err := dir.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(content)) {
		return nil
	}
	temp := name + ".tmp"
	if err := dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		dir.Remove(temp)
	}
	return err
}

// prune removes what is old. What cannot be removed is left to the next session.
func (f *Folder) prune(results *os.Root) {
	type bucket struct {
		name string
		age  time.Duration
	}
	var buckets []bucket
	for _, info := range list(results) {
		if info.IsDir() && info.Name() != string(f.session) && !strings.HasPrefix(info.Name(), ".") {
			buckets = append(buckets, bucket{info.Name(), f.now().Sub(info.ModTime())})
		}
	}
	slices.SortFunc(buckets, func(a, b bucket) int { return int((a.age - b.age) / time.Second) })
	for i, b := range buckets {
		if b.age > retention || i >= maxBuckets-1 {
			_ = results.RemoveAll(b.name)
		}
	}
	own, err := step(results, string(f.session))
	if err != nil {
		return
	}
	defer own.Close()
	for _, info := range list(own) {
		if f.now().Sub(info.ModTime()) > retention {
			_ = own.Remove(info.Name())
		}
	}
}

// list returns what is in a folder, links as links.
func list(dir *os.Root) (infos []fs.FileInfo) {
	file, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer file.Close()
	names, _ := file.Readdirnames(-1)
	for _, name := range names {
		if info, err := dir.Lstat(name); err == nil {
			infos = append(infos, info)
		}
	}
	return infos
}
