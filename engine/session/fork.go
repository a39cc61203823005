package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrBoundary reports a fork at a place that is no end of a turn.
var ErrBoundary = errors.New("no boundary of a turn")

// Fork starts a session with a copy of what another one holds up to the end of
// a turn: at counts turns from 1, and 0 means all of it. The first line is the
// fork's own, all others are the original's byte for byte; the original is only
// read, also while another process writes it, and may be damaged after that
// turn. Its workspace is cwd, or the original's if that is empty. observe is as
// in Create; of what was copied it sees nothing.
func (s *Store) Fork(from ID, at int, cwd string, observe func(Record)) (*Log, error) {
	content, err := s.content(from)
	if err != nil {
		return nil, err
	}
	records, _, err := parse(content)
	cut, turn, err := boundary(records, at, err)
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", from, err)
	}
	started := records[0].Event.(Started)
	first := Started{ID: newID(time.Now()), Cwd: cmp.Or(cwd, started.Cwd), ForkedFrom: from, ForkedAt: turn}
	return s.start(first, lines(content, 1, cut), observe)
}

// boundary returns how many records a fork at a turn copies, and which turn they
// end with. damage is why there are no more records.
func boundary(records []Record, at int, damage error) (n, turn int, err error) {
	var state state
	ends := []int{0} // by turn, how many records there are up to its end
	for i, r := range records {
		if err := state.add(r); err != nil {
			damage = fmt.Errorf("line %d: %w: %w", i+1, ErrCorrupt, err)
			break
		}
		if e, ok := r.Event.(TurnEnded); ok && e.Turn == len(ends) {
			ends = append(ends, i+1)
		}
	}
	whole := len(ends) - 1
	switch {
	case at > 0 && at <= whole:
		return ends[at], at, nil
	case damage != nil:
		return 0, 0, fmt.Errorf("%w: %s", damage, before(whole))
	case len(records) == 0:
		return 0, 0, errEmpty
	case state.turn != 0 && (at == 0 || at == state.turn):
		return 0, 0, fmt.Errorf("%w: turn %d is open: %s", ErrBoundary, state.turn, before(whole))
	case at != 0:
		return 0, 0, fmt.Errorf("%w: there is no turn %d: %s", ErrBoundary, at, before(whole))
	}
	return len(records), whole, nil
}

// before says which turns a session can be forked at.
func before(whole int) string {
	switch whole {
	case 0:
		return "no turn before that has ended"
	case 1:
		return "it can be forked at turn 1: see \"wharf session fork --help\""
	}
	return fmt.Sprintf("it can be forked at turns 1 to %d: see \"wharf session fork --help\"", whole)
}

// lines returns the lines of content from one number up to before another,
// counted from 0.
func lines(content []byte, from, to int) []byte {
	start, end := 0, 0
	for n := range to {
		if n == from {
			start = end
		}
		end += bytes.IndexByte(content[end:], '\n') + 1
	}
	if from >= to {
		return nil
	}
	return content[start:end]
}
