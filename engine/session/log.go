package session

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Sync says when the log is also forced to the disk, against a power cut.
// Whatever it is, each event has been handed to the operating system before
// Append returns, so a killed process loses nothing.
type Sync string

// The ways of forcing.
const (
	SyncAlways Sync = "always" // at each Flush
	SyncBatch  Sync = "batch"  // within 200 ms; the zero value means this
	SyncNever  Sync = "never"
)

// batchDelay is the longest that SyncBatch leaves an event unforced.
const batchDelay = 200 * time.Millisecond

// ErrClosed reports use of a log after Close.
var ErrClosed = errors.New("log closed")

// Log is one session's log, open for appending by this process alone. Its
// methods may be called by several goroutines.
type Log struct {
	id   ID
	cwd  string
	path string
	sync Sync
	lock *os.File

	mu       sync.Mutex
	file     file
	fresh    bool   // the names that lead to the log have yet to be forced to the disk
	first    Record // session.started
	size     int64  // of what was written whole
	seq      int64  // of the next event
	history  History
	state    state
	observe  func(Record)
	watchers []*func(Record)
	forcing  *time.Timer // SyncBatch: pending, or nil
	failed   error       // what made the log unusable
	repaired []string
}

// file is what a log needs of its file, once it has been read.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
	Sync() error
}

// ID returns the session's name.
func (l *Log) ID() ID { return l.id }

// Path returns where the log is.
func (l *Log) Path() string { return l.path }

// Cwd returns the session's workspace.
func (l *Log) Cwd() string { return l.cwd }

// Repairs says what opening the log had to mend, a sentence each.
func (l *Log) Repairs() []string { return l.repaired }

// Turns returns how many turns the log has seen started.
func (l *Log) Turns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.turns
}

// Extensions returns the names of the extensions that left a trace in the log,
// sorted.
func (l *Log) Extensions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.state.extensions))
}

// Tokens returns how many tokens of models an extension has spent, with those
// that are reserved for a request that was not answered.
func (l *Log) Tokens(extension string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.tokens[extension]
}

// Granted returns the rules that a person allowed for this session.
func (l *Log) Granted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.state.granted)
}

// Called reports whether an assistant message has made a call of that id.
func (l *Log) Called(id CallID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.called[id]
}

// StepOpen reports whether a step has started and not ended.
func (l *Log) StepOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.step != 0
}

// Header returns the header in force.
func (l *Log) Header() Header {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.Header()
}

// Messages returns the messages that the events so far add up to.
func (l *Log) Messages() []Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.Messages()
}

// Digest returns the digest of the request that the events so far add up to.
func (l *Log) Digest() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.Digest()
}

// View shows look the history as it is now. look may not keep what it was shown,
// nor use the log.
func (l *Log) View(look func(*History)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	look(&l.history)
}

// Append writes e to the log and returns its record. What is kept in memory is
// what a reader of the file gets. An event that is out of place is refused; an
// event that could not be written whole leaves no trace.
func (l *Log) Append(e Event) (Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appendLocked(e)
}

func (l *Log) appendLocked(e Event) (Record, error) {
	if l.failed != nil {
		return Record{}, l.failed
	}
	line, err := Encode(Record{Seq: l.seq, Time: time.Now(), Event: e})
	if err != nil {
		return Record{}, err
	}
	r, err := Decode(line)
	if err != nil {
		return Record{}, err
	}
	err = l.history.check(r.Event)
	if err == nil {
		err = l.state.add(r)
	}
	if err != nil {
		return Record{}, fmt.Errorf("append to session %s: %w", l.id, err)
	}
	if err := l.writeLocked(line); err != nil {
		return Record{}, err
	}
	l.seq++
	l.history.Add(r)
	if l.observe != nil {
		l.observe(r)
	}
	for _, watch := range l.watchers {
		(*watch)(r)
	}
	return r, nil
}

// Watch has f called with each record once it is written, in order, until stop is
// called. f must not use the log, and must not wait.
func (l *Log) Watch(f func(Record)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(l.watchers, &f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watchers = slices.DeleteFunc(l.watchers, func(w *func(Record)) bool { return w == &f })
	}
}

// writeLocked hands line to the operating system, whole or not at all. A log
// that could not be written ends here: its state has moved on without it.
func (l *Log) writeLocked(line []byte) error {
	n, err := l.file.Write(line)
	if err == nil {
		l.size += int64(n)
		l.forceLaterLocked()
		return nil
	}
	if n > 0 {
		if cut := l.file.Truncate(l.size); cut != nil {
			err = errors.Join(err, cut)
		}
	}
	l.failed = fmt.Errorf("write the session's log: %w: the session can be resumed once that is mended", err)
	return l.failed
}

func (l *Log) forceLaterLocked() {
	if l.sync != SyncBatch || l.forcing != nil {
		return
	}
	l.forcing = time.AfterFunc(batchDelay, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forcing = nil
		if l.failed == nil {
			l.forceLocked()
		}
	})
}

func (l *Log) forceLocked() {
	err := l.file.Sync()
	if err == nil && l.fresh {
		folder := filepath.Dir(l.path)
		err = errors.Join(syncFolder(folder), syncFolder(filepath.Dir(folder)))
		l.fresh = false
	}
	if err != nil {
		l.failed = fmt.Errorf("force the session's log to the disk: %w", err)
	}
}

// syncFolder forces the names in a folder to the disk.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Flush returns nil if all that was appended is as durable as the log's Sync
// promises. Nothing may take effect before it has.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil && l.sync == SyncAlways {
		l.forceLocked()
	}
	return l.failed
}

// Close forces what is left to the disk (unless Sync is never), and lets
// another process have the session.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.failed, ErrClosed) {
		return nil
	}
	if l.forcing != nil {
		l.forcing.Stop()
		l.forcing = nil
	}
	if l.sync != SyncNever && l.failed == nil {
		l.forceLocked()
	}
	err := errors.Join(l.failed, l.file.Close(), l.lock.Close())
	l.failed = ErrClosed
	return err
}
