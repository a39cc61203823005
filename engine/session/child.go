package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// CreateChild starts the session of a subagent that works for parent, in
// parent's workspace, and says so in parent's log before it is there. Whoever
// runs it appends [SubagentEnded] there when it is done. call is the call that
// asked for it, or empty; observe is as in Create.
func (s *Store) CreateChild(parent *Log, call CallID, task string, observe func(Record)) (*Log, error) {
	id := newID(time.Now())
	if _, err := parent.Append(SubagentStarted{Session: id, CallID: call, Task: task}); err != nil {
		return nil, err
	}
	l, err := s.start(Started{ID: id, Cwd: parent.Cwd(), Parent: parent.ID()}, nil, observe)
	if err != nil {
		_, told := parent.Append(SubagentEnded{Session: id, Reason: ToolError, Error: err.Error()})
		return nil, errors.Join(err, told)
	}
	return l, nil
}

// VerifyLinks checks that a session and those that it names know of each other:
// its subagents, and the session that it is a subagent of. It returns the
// problems that it finds. What a fork copied speaks of the original's subagents,
// and a subagent that the process did not live to start is missed by nobody.
func (s *Store) VerifyLinks(records []Record) []string {
	if len(records) == 0 {
		return nil
	}
	var problems []string
	first, ok := records[0].Event.(Started)
	if ok && first.Parent != "" && !s.names(first.Parent, first.ID) {
		problems = append(problems, fmt.Sprintf("event 0: the session %s is named as its parent, and does not name it", first.Parent))
	}
	idle := map[ID]bool{} // subagents that ended without a step
	for _, r := range records {
		if e, ok := r.Event.(SubagentEnded); ok && e.Steps == 0 {
			idle[e.Session] = true
		}
	}
	turn := 0
	for _, r := range records {
		switch e := r.Event.(type) {
		case TurnStarted:
			turn = e.Turn
		case SubagentStarted:
			copied := first.ForkedFrom != "" && turn <= first.ForkedAt
			if problem := s.checkChild(first.ID, e.Session, idle[e.Session]); problem != "" && !copied {
				problems = append(problems, fmt.Sprintf("event %d: %s", r.Seq, problem))
			}
		}
	}
	return problems
}

// checkChild says what is wrong with a session that is named as a subagent's.
// It may be missing if it never took a step.
func (s *Store) checkChild(parent, child ID, idle bool) string {
	started, err := s.started(child)
	switch {
	case idle && errors.Is(err, ErrNotFound):
		return ""
	case err != nil:
		return fmt.Sprintf("the subagent's session: %v", err)
	case started.Parent != parent:
		return fmt.Sprintf("the session %s is named as a subagent, and names the parent %q", child, started.Parent)
	}
	return ""
}

// names reports whether a session says that another is its subagent.
func (s *Store) names(parent, child ID) bool {
	records, _, _ := s.Read(parent) // as far as it can be read
	for _, r := range records {
		if e, ok := r.Event.(SubagentStarted); ok && e.Session == child {
			return true
		}
	}
	return false
}

// started returns how a session begins.
func (s *Store) started(id ID) (Started, error) {
	records, _, err := s.Read(id)
	if len(records) == 0 {
		return Started{}, cmp.Or(err, errEmpty)
	}
	return records[0].Event.(Started), nil
}
