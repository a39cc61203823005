package session

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrNotFound reports a session that does not exist.
var ErrNotFound = errors.New("no such session")

// Store is the folder that holds the sessions, one folder each.
type Store struct {
	dir     string
	sync    Sync
	version string
}

// The files in a session's folder, and how the name of one begins that is not
// a session yet.
const (
	logName  = "log.jsonl"
	lockName = "lock"
	halfMade = ".new-"
)

// NewStore returns the store in dir, which is made when the first session is.
// version is Wharf's own, for the logs it starts; sync is for all of them.
func NewStore(dir, version string, sync Sync) (*Store, error) {
	switch sync {
	case "":
		sync = SyncBatch
	case SyncAlways, SyncBatch, SyncNever:
	default:
		return nil, fmt.Errorf("log.sync %q: not one of always, batch, never", sync)
	}
	return &Store{dir: dir, sync: sync, version: version}, nil
}

// Create starts a session whose workspace is cwd. observe, unless nil, is
// called with each record once it is written, in order; it must not use the
// log.
func (s *Store) Create(cwd string, observe func(Record)) (*Log, error) {
	return s.start(Started{ID: newID(time.Now()), Cwd: cwd}, nil, observe)
}

// start makes a session of its first event and of the lines that follow it.
// That happens aside, and the folder gets its name once all is in it: whoever
// is killed in between, no session is half there.
func (s *Store) start(first Started, rest []byte, observe func(Record)) (*Log, error) {
	first.Versions = Versions{Wharf: s.version}
	aside := filepath.Join(s.dir, halfMade+string(first.ID))
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return nil, err
	}
	l, err := s.fill(aside, first, rest)
	if err == nil {
		l.path, l.fresh = filepath.Join(s.dir, string(first.ID), logName), true
		if err = os.Rename(aside, filepath.Dir(l.path)); err != nil {
			l.Close()
		}
	}
	if err != nil { // nothing half-made stays
		return nil, errors.Join(err, os.RemoveAll(aside))
	}
	if observe != nil {
		observe(l.first)
		l.observe = observe
	}
	return l, nil
}

// fill writes a session's log in dir and opens it.
func (s *Store) fill(dir string, first Started, rest []byte) (*Log, error) {
	l, _, err := s.open(first.ID, dir, os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	content, err := Encode(Record{Time: time.Now(), Event: first})
	if err == nil {
		content = append(content, rest...)
		_, err = l.file.Write(content)
	}
	if err == nil {
		err = l.load(content)
	}
	if err == nil && s.sync != SyncNever && len(rest) > 0 {
		err = l.file.Sync() // what was durable is so in its copy
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("start session %s: %w", first.ID, err)
	}
	return l, nil
}

// sweep removes what a killed process was making a session of. What is younger
// than an hour may still become one.
func (s *Store) sweep(entry fs.DirEntry) {
	if !strings.HasPrefix(entry.Name(), halfMade) {
		return
	}
	if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
		_ = os.RemoveAll(filepath.Join(s.dir, entry.Name())) // the next one tries again
	}
}

// newID returns a name that sorts by time and does not collide.
func newID(now time.Time) ID {
	var b [4]byte
	rand.Read(b[:])
	return ID(now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:]))
}

// valid reports whether id can be a session's name: up to 64 letters, digits,
// _ and -, of which it starts with neither of the last two.
func (id ID) valid() bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return id != "" && len(id) <= 64 && strings.Trim(string(id), letters+"_-") == "" && strings.Contains(letters, string(id[:1]))
}

// path returns where the log of a session is that exists. An id comes from a
// command line, so it must not lead out of the store.
func (s *Store) path(id ID) (string, error) {
	if !id.valid() {
		return "", fmt.Errorf("session %q: %w: that is no session's name; see \"wharf session list\"", id, ErrNotFound)
	}
	dir := filepath.Join(s.dir, string(id))
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("session %s: %w: see \"wharf session list\"", id, ErrNotFound)
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("session %s: %s is no folder: a session's own folder must stand there, and no link to it", id, dir)
	}
	return filepath.Join(dir, logName), nil
}

// Resume opens an existing session for appending, and repairs what a crash
// left behind: a torn last line is cut off, calls without a result get one,
// and an open turn ends as interrupted. observe is as in Create; what was in
// the log already is not shown to it.
func (s *Store) Resume(id ID, observe func(Record)) (*Log, error) {
	path, err := s.path(id)
	if err != nil {
		return nil, err
	}
	l, content, err := s.open(id, filepath.Dir(path), 0)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	l.observe = observe
	if err := l.load(content); err != nil {
		l.Close()
		return nil, fmt.Errorf("resume session %s: %w", id, err)
	}
	return l, nil
}

// open locks the session in dir, opens its log and reads it.
func (s *Store) open(id ID, dir string, flag int) (*Log, []byte, error) {
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, logName)
	file, err := openRegular(path, os.O_RDWR|os.O_APPEND|flag)
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	content, err := readAll(file)
	if err != nil {
		file.Close()
		lock.Close()
		return nil, nil, err
	}
	return &Log{id: id, path: path, sync: s.sync, file: file, lock: lock}, content, nil
}

// load takes in what stands in the log, and repairs it.
func (l *Log) load(content []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	records, whole, err := parse(content)
	if err != nil {
		return err
	}
	if err := l.state.follow(records); err != nil {
		return err
	}
	for _, r := range records {
		if err := l.history.check(r.Event); err != nil {
			return fmt.Errorf("line %d: %w: %w", r.Seq+1, ErrCorrupt, err)
		}
		l.history.Add(r)
	}
	if torn := len(content) - whole; torn > 0 {
		if err := l.file.Truncate(int64(whole)); err != nil {
			return err
		}
		l.repaired = append(l.repaired, fmt.Sprintf("cut off a torn last line of %d bytes", torn))
	}
	l.first = records[0]
	l.cwd = records[0].Event.(Started).Cwd
	l.size, l.seq = int64(whole), int64(len(records))
	return l.repairLocked()
}

func (l *Log) repairLocked() error {
	// A repair event comes first, so the results' sequence numbers start one later.
	events := l.state.repair(l.seq + 1)
	if len(events) > 0 {
		l.repaired = append(l.repaired, "closed a turn that was interrupted")
	}
	if len(l.repaired) == 0 {
		return nil
	}
	for _, e := range append([]Event{Repaired{What: strings.Join(l.repaired, "; ")}}, events...) {
		if _, err := l.appendLocked(e); err != nil {
			return err
		}
	}
	return nil
}
