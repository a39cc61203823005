package session

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrNotFound reports a session that does not exist.
var ErrNotFound = errors.New("no such session")

// ErrInUse reports a session that another process has open.
var ErrInUse = errors.New("session in use")

// Store is the folder that holds the sessions, one folder each.
type Store struct {
	dir     string
	sync    Sync
	version string
}

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
	id := newID(time.Now())
	if err := os.MkdirAll(filepath.Join(s.dir, string(id)), 0o700); err != nil {
		return nil, err
	}
	l, err := s.start(id, cwd, observe)
	if err != nil { // nothing half-made stays
		return nil, errors.Join(err, os.RemoveAll(filepath.Join(s.dir, string(id))))
	}
	return l, nil
}

func (s *Store) start(id ID, cwd string, observe func(Record)) (*Log, error) {
	l, err := s.open(id, os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	l.cwd, l.observe = cwd, observe
	if _, err := l.Append(Started{ID: id, Cwd: cwd, Versions: Versions{Wharf: s.version}}); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
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

// path returns where id's log is. An id comes from a command line, so it must
// not lead out of the store.
func (s *Store) path(id ID) (string, error) {
	if !id.valid() {
		return "", fmt.Errorf("session %q: %w: that is no session's name; see \"wharf session list\"", id, ErrNotFound)
	}
	return filepath.Join(s.dir, string(id), "log.jsonl"), nil
}

// Resume opens an existing session for appending, and repairs what a crash
// left behind: a torn last line is cut off, calls without a result get one,
// and an open turn ends as interrupted. observe is as in Create; what was in
// the log already is not shown to it.
func (s *Store) Resume(id ID, observe func(Record)) (*Log, error) {
	l, err := s.open(id, 0)
	if err != nil {
		return nil, err
	}
	l.observe = observe
	if err := l.load(); err != nil {
		l.Close()
		return nil, fmt.Errorf("resume session %s: %w", id, err)
	}
	return l, nil
}

func (s *Store) open(id ID, flag int) (*Log, error) {
	path, err := s.path(id)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(filepath.Dir(path), "lock"))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = ErrNotFound
		}
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|flag, 0o600)
	if err != nil {
		lock.Close()
		if errors.Is(err, os.ErrNotExist) {
			err = ErrNotFound
		}
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	return &Log{id: id, path: path, sync: s.sync, file: file, lock: lock}, nil
}

// lockPatience is how long a lock is waited for: a command that a killed Wharf
// was just starting may hold it for a moment, until its own program begins.
const lockPatience = 300 * time.Millisecond

// lockFile takes the lock that keeps a second process off a session. The
// kernel releases it however this process ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for end := time.Now().Add(lockPatience); err != nil && time.Now().Before(end); {
		time.Sleep(lockPatience / 30)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		return nil, fmt.Errorf("%w by process %s: wait for it or end it", ErrInUse, cmp.Or(strings.TrimSpace(string(holder)), "unknown"))
	}
	if err := f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
		if err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// readAll reads a file from its start, in one piece.
func readAll(f *os.File) ([]byte, error) {
	var content bytes.Buffer
	if info, err := f.Stat(); err == nil {
		content.Grow(int(info.Size()) + bytes.MinRead)
	}
	_, err := content.ReadFrom(f)
	return content.Bytes(), err
}

// load reads the log from the disk and repairs it.
func (l *Log) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	content, err := readAll(l.file)
	if err != nil {
		return err
	}
	records, whole, err := parse(content)
	if err != nil {
		return err
	}
	if torn := len(content) - whole; torn > 0 {
		if err := l.file.Truncate(int64(whole)); err != nil {
			return err
		}
		l.repaired = append(l.repaired, fmt.Sprintf("cut off a torn last line of %d bytes", torn))
	}
	for _, r := range records {
		if err := l.state.add(r); err != nil {
			return fmt.Errorf("%w: event %d: %w", ErrCorrupt, r.Seq, err)
		}
		l.history.Add(r.Event)
	}
	if len(records) == 0 {
		return fmt.Errorf("%w: the log is empty", ErrCorrupt)
	}
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

// Read returns a session's events as they are on disk, without repairing
// anything. torn is the length of a torn last line, which is left out.
func (s *Store) Read(id ID) (records []Record, torn int, err error) {
	path, err := s.path(id)
	if err != nil {
		return nil, 0, err
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("session %s: %w: see \"wharf session list\"", id, ErrNotFound)
	}
	if err != nil {
		return nil, 0, err
	}
	records, whole, err := parse(content)
	if err != nil {
		return records, 0, fmt.Errorf("read session %s: %w", id, err)
	}
	return records, len(content) - whole, nil
}

// parse decodes content's whole lines. What follows the last newline is torn.
func parse(content []byte) (records []Record, whole int, err error) {
	records = make([]Record, 0, len(content)/128) // few lines are shorter
	for whole < len(content) {
		end := bytes.IndexByte(content[whole:], '\n')
		if end < 0 {
			break
		}
		r, err := Decode(content[whole : whole+end])
		if err != nil {
			return records, whole, fmt.Errorf("line %d: %w", len(records)+1, err)
		}
		if r.Seq != int64(len(records)) {
			return records, whole, fmt.Errorf("line %d: %w: its sequence number is %d", len(records)+1, ErrCorrupt, r.Seq)
		}
		if _, first := r.Event.(Started); first != (r.Seq == 0) {
			return records, whole, fmt.Errorf("line %d: %w: session.started is not the first event, or not the only one", len(records)+1, ErrCorrupt)
		}
		records = append(records, r)
		whole += end + 1
	}
	return records, whole, nil
}

// Summary is what a list shows of a session.
type Summary struct {
	ID      ID
	Cwd     string
	Title   string // the first prompt's first line
	Started time.Time
	Active  time.Time // of the last event
	Turns   int
	Reason  Reason // of the last turn; empty while it is open
	Problem string // why the log cannot be read; the rest may be missing then
}

// List returns the sessions, the one that was active last first. A log that cannot be read is
// listed with its problem and harms no other.
func (s *Store) List() ([]Summary, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var list []Summary
	for _, entry := range entries {
		id := ID(entry.Name())
		if !entry.IsDir() || !id.valid() {
			continue
		}
		records, _, err := s.Read(id)
		sum := summarize(id, records)
		if err != nil {
			sum.Problem = err.Error()
		} else if len(records) == 0 {
			sum.Problem = "the log is empty"
		}
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(b.Active.Compare(a.Active), cmp.Compare(b.ID, a.ID))
	})
	return list, nil
}

func summarize(id ID, records []Record) Summary {
	sum := Summary{ID: id}
	for _, r := range records {
		sum.Active = r.Time
		switch e := r.Event.(type) {
		case Started:
			sum.Cwd, sum.Started = e.Cwd, r.Time
		case TurnStarted:
			sum.Turns, sum.Reason = e.Turn, ""
		case UserMessage:
			if sum.Title == "" && e.Origin == "user" {
				sum.Title, _, _ = strings.Cut(strings.TrimSpace(e.Content), "\n")
			}
		case TurnEnded:
			sum.Reason = e.Reason
		}
	}
	return sum
}

// Latest returns the session of the workspace cwd that was written to last, of
// those that can be read. It looks at the first line of each log, and reads
// whole only those of cwd, the latest first.
func (s *Store) Latest(cwd string) (ID, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	type candidate struct {
		id      ID
		written time.Time
	}
	var candidates []candidate
	for _, entry := range entries {
		path := filepath.Join(s.dir, entry.Name(), "log.jsonl")
		info, err := os.Stat(path)
		if err == nil && startedIn(path, cwd) {
			candidates = append(candidates, candidate{ID(entry.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(b.written.Compare(a.written), cmp.Compare(b.id, a.id))
	})
	for _, c := range candidates {
		if records, _, err := s.Read(c.id); err == nil && len(records) > 0 {
			return c.id, nil
		}
	}
	return "", fmt.Errorf("%w of the folder %s: start one with \"wharf run PROMPT\"", ErrNotFound, cwd)
}

// startedIn reports whether the log at path begins with a session of cwd.
func startedIn(path, cwd string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 1<<20)).ReadBytes('\n')
	if err != nil {
		return false
	}
	r, err := Decode(line)
	started, ok := r.Event.(Started)
	return err == nil && ok && started.Cwd == cwd
}
