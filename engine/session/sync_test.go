package session

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// watchedFile is a log's file that remembers what was done to it, and fails as
// it is told to.
type watchedFile struct {
	file
	done               []string // write, force, cut
	writeErr, forceErr error
	room               int // bytes until writeErr; what fits is written
}

func (w *watchedFile) Write(p []byte) (int, error) {
	w.done = append(w.done, "write")
	if w.writeErr == nil || len(p) <= w.room {
		w.room -= len(p)
		return w.file.Write(p)
	}
	n, _ := w.file.Write(p[:w.room])
	return n, w.writeErr
}

func (w *watchedFile) Sync() error {
	w.done = append(w.done, "force")
	return w.forceErr
}

func (w *watchedFile) Truncate(size int64) error {
	w.done = append(w.done, "cut")
	return w.file.Truncate(size)
}

// watchedLog starts a session whose file is watched.
func watchedLog(t *testing.T, sync Sync) (*Store, *Log, *watchedFile) {
	t.Helper()
	store, err := NewStore(t.TempDir(), "0.1.0", sync)
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &watchedFile{file: log.file}
	log.file = w
	return store, log, w
}

// What log.sync promises: always forces before an effect, batch within 200 ms
// and at the end, never not at all.
func TestSyncForcesAsPromised(t *testing.T) {
	tests := []struct {
		sync                                Sync
		afterFlush, afterDelay, afterClosed string
	}{
		{SyncAlways, "write write force", "write write force", "write write force force"},
		{SyncBatch, "write write", "write write force", "write write force force"},
		{SyncNever, "write write", "write write", "write write"},
	}
	for _, tt := range tests {
		t.Run(string(tt.sync), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, log, w := watchedLog(t, tt.sync)
				check := func(when, want string) {
					t.Helper()
					log.mu.Lock()
					defer log.mu.Unlock()
					if got := strings.Join(w.done, " "); got != want {
						t.Errorf("%s: %s; want %s", when, got, want)
					}
				}
				for _, e := range []Event{TurnStarted{Turn: 1}, StepStarted{Turn: 1, Step: 1}} {
					if _, err := log.Append(e); err != nil {
						t.Fatal(err)
					}
				}
				if err := log.Flush(); err != nil {
					t.Fatal(err)
				}
				check("before an effect", tt.afterFlush)
				time.Sleep(batchDelay) // of the bubble's clock
				synctest.Wait()
				check("after 200 ms", tt.afterDelay)
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				check("at the end", tt.afterClosed)
			})
		})
	}
}

// A disk that does not take what it is forced to take stops the session: nothing
// takes effect from then on, and nothing more is written.
func TestAForceThatFails(t *testing.T) {
	_, log, w := watchedLog(t, SyncAlways)
	w.forceErr = syscall.EIO
	if _, err := log.Append(TurnStarted{Turn: 1}); err != nil {
		t.Fatal(err)
	}
	const want = "force the session's log to the disk: input/output error"
	if err := log.Flush(); err == nil || err.Error() != want {
		t.Errorf("Flush: %v; want %s", err, want)
	}
	if _, err := log.Append(StepStarted{Turn: 1, Step: 1}); err == nil || err.Error() != want {
		t.Errorf("Append: %v; want %s", err, want)
	}
	if err := log.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v; want that it says so once more", err)
	}
}

// However much of a line still fits, nothing of it stays, and the session goes on
// once there is room.
func TestAWriteThatFailsInTheMiddle(t *testing.T) {
	for _, room := range []int{0, 1, 60} {
		store, log, w := watchedLog(t, SyncBatch)
		before := rawLog(t, store, log.ID())
		w.room, w.writeErr = room, syscall.ENOSPC
		const want = "write the session's log: no space left on device: the session can be resumed once that is mended"
		if _, err := log.Append(TurnStarted{Turn: 1}); err == nil || err.Error() != want {
			t.Errorf("Append with room for %d bytes: %v; want %s", room, err, want)
		}
		if err := log.Flush(); err == nil || err.Error() != want {
			t.Errorf("Flush after that: %v; want %s", err, want)
		}
		if after := rawLog(t, store, log.ID()); !slices.Equal(after, before) {
			t.Errorf("with room for %d bytes the log became\n%s", room, after)
		}
		if err := log.Close(); err == nil || err.Error() != want {
			t.Errorf("Close after that: %v; want %s", err, want)
		}
		again, err := store.Resume(log.ID(), nil)
		if err != nil || len(again.Repairs()) > 0 {
			t.Fatalf("Resume: %v, repaired: %v", err, again.Repairs())
		}
		if _, err := again.Append(TurnStarted{Turn: 1}); err != nil {
			t.Error(err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
