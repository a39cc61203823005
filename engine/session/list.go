package session

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Summary is what a list shows of a session.
type Summary struct {
	ID         ID
	Cwd        string
	Title      string // the first prompt's first line
	Parent     ID     // of a subagent's
	ForkedFrom ID     // of a fork
	Started    time.Time
	Active     time.Time // of the last event
	Turns      int
	Reason     Reason // of the last turn; empty while it is open
	Problem    string // why the log cannot be gone on with; the rest may be missing then
}

// List returns the sessions, the one that was active last first. A log that
// cannot be read, or gone on with, is listed with its problem and harms no other.
func (s *Store) List() ([]Summary, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var list []Summary
	for _, entry := range entries {
		id := ID(entry.Name())
		if !entry.IsDir() || !id.valid() {
			s.sweep(entry)
			continue
		}
		records, err := s.check(id)
		sum := summarize(id, records)
		if err != nil {
			sum.Problem = err.Error()
		}
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(b.Active.Compare(a.Active), cmp.Compare(b.ID, a.ID))
	})
	return list, nil
}

// check reads a session's events, and says why it could not be resumed.
func (s *Store) check(id ID) ([]Record, error) {
	records, _, err := s.Read(id)
	if err != nil {
		return records, err
	}
	if err := new(state).follow(records); err != nil {
		return records, fmt.Errorf("read session %s: %w", id, err)
	}
	return records, nil
}

func summarize(id ID, records []Record) Summary {
	sum := Summary{ID: id}
	for _, r := range records {
		sum.Active = r.Time
		switch e := r.Event.(type) {
		case Started:
			sum.Cwd, sum.Parent, sum.ForkedFrom, sum.Started = e.Cwd, e.Parent, e.ForkedFrom, r.Time
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
// those that can be gone on with, leaving out subagents'. skipped says why
// later ones cannot. It looks at the first line of each log, and reads whole
// only those of cwd, the latest first.
func (s *Store) Latest(cwd string) (id ID, skipped []error, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil, err
	}
	type candidate struct {
		id      ID
		written time.Time
	}
	var candidates []candidate
	for _, entry := range entries {
		id := ID(entry.Name())
		if !entry.IsDir() || !id.valid() {
			continue
		}
		path := filepath.Join(s.dir, entry.Name(), logName)
		info, err := os.Lstat(path)
		if err == nil && startedIn(path, cwd) {
			candidates = append(candidates, candidate{id, info.ModTime()})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(b.written.Compare(a.written), cmp.Compare(b.id, a.id))
	})
	for _, c := range candidates {
		if _, err := s.check(c.id); err != nil {
			skipped = append(skipped, err)
			continue
		}
		return c.id, skipped, nil
	}
	return "", skipped, fmt.Errorf("%w of the folder %s: start one with \"wharf run PROMPT\"", ErrNotFound, cwd)
}

// startedIn reports whether the log at path begins with a session of cwd that
// is no subagent's.
func startedIn(path, cwd string) bool {
	f, err := openRegular(path, os.O_RDONLY)
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
	return err == nil && ok && started.Cwd == cwd && started.Parent == ""
}
