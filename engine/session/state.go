package session

import (
	"fmt"
	"slices"
)

// state is how far a log has come: what is open and which calls still lack a
// result. [Verify] refuses what it refuses; [Repair] closes what it has open.
type state struct {
	turns, turn int   // turns so far; the open one, or 0
	step        int   // the open step, or 0
	steps       int   // steps so far in the open turn
	usage       Usage // of all that asked a model in it so far
	pending     []pendingCall
	children    []ID // subagents that work
	compacting  bool
	called      map[CallID]bool  // the ids of all calls so far
	extensions  map[string]bool  // those that had a part
	granted     []string         // rules, for this session
	tokens      map[string]int64 // of models, spent or reserved, by extension
	reserved    map[CallID]int64 // of them, for requests that wait for their answers
}

type pendingCall struct {
	Call
	seq int64 // of its tool.call; -1 while there is none
}

// add accounts for the next record and says what is wrong with its place.
func (s *state) add(r Record) error {
	switch e := r.Event.(type) {
	case Started:
		if r.Seq != 0 {
			return fmt.Errorf("a second session.started")
		}
	case TurnStarted:
		return s.startTurn(e)
	case TurnEnded:
		return s.endTurn(e)
	case StepStarted:
		return s.startStep(e)
	case StepEnded:
		if s.step == 0 || e.Step != s.step || e.Turn != s.turn {
			return fmt.Errorf("step %d of turn %d ends, but is not open", e.Step, e.Turn)
		}
		s.step = 0
	case RequestSent:
		if s.step == 0 || e.Step != s.step {
			return fmt.Errorf("a request of step %d outside that step", e.Step)
		}
	case AssistantMessage:
		if s.turn == 0 {
			return fmt.Errorf("an assistant message outside a turn")
		}
		s.usage = s.usage.Add(e.Usage)
		for _, c := range e.Calls {
			if s.called == nil {
				s.called = map[CallID]bool{}
			}
			s.called[c.ID] = true
			s.pending = append(s.pending, pendingCall{Call: c, seq: -1})
		}
	case ToolCall:
		return s.startCall(r.Seq, e)
	case ToolResult:
		return s.endCall(e)
	case SubagentStarted:
		return s.startChild(e)
	case SubagentEnded:
		return s.endChild(e)
	case CompactionStarted:
		if s.compacting {
			return fmt.Errorf("a compaction inside a compaction")
		}
		s.compacting = true
	case CompactionEnded:
		if !s.compacting {
			return fmt.Errorf("a compaction ends that was not started")
		}
		s.compacting = false
		s.usage = s.usage.Add(e.Usage)
	case PermissionGranted:
		if e.Scope == "session" {
			s.granted = append(s.granted, e.Rule)
		}
	default:
		s.addExtension(e)
	}
	if r.Seq == 0 {
		if _, ok := r.Event.(Started); !ok {
			return fmt.Errorf("the first event is %s, not session.started", r.Type())
		}
	}
	return nil
}

// addExtension accounts for what an extension did, if the event is about one.
func (s *state) addExtension(event Event) {
	switch e := event.(type) {
	case HookVerdict:
		s.met(e.Extension)
	case HookFailed:
		s.met(e.Extension)
	case ExtensionUsed:
		s.met(e.Extension)
	case ExtensionLogged:
		s.met(e.Extension)
	case ExtensionEmitted:
		s.met(e.Extension)
	case ExtensionAsked:
		s.spend(e.Extension, e.Reserved)
		s.reserved[e.CallID] = e.Reserved
	case ExtensionAnswered:
		s.usage = s.usage.Add(e.Usage)
		s.spend(e.Extension, e.Tokens-s.reserved[e.CallID])
		delete(s.reserved, e.CallID)
	}
}

// met takes note of an extension that had a part in the session.
func (s *state) met(extension string) {
	if s.extensions == nil {
		s.extensions = map[string]bool{}
	}
	s.extensions[extension] = true
}

// spend counts tokens of an extension.
func (s *state) spend(extension string, tokens int64) {
	s.met(extension)
	if s.tokens == nil {
		s.tokens, s.reserved = map[string]int64{}, map[CallID]int64{}
	}
	s.tokens[extension] += tokens
}

func (s *state) startTurn(e TurnStarted) error {
	if s.turn != 0 {
		return fmt.Errorf("turn %d starts inside turn %d", e.Turn, s.turn)
	}
	if e.Turn != s.turns+1 {
		return fmt.Errorf("turn %d follows turn %d", e.Turn, s.turns)
	}
	s.turns, s.turn, s.steps, s.usage = e.Turn, e.Turn, 0, Usage{}
	return nil
}

func (s *state) endTurn(e TurnEnded) error {
	switch {
	case s.turn == 0 || e.Turn != s.turn:
		return fmt.Errorf("turn %d ends, but is not open", e.Turn)
	case s.step != 0:
		return fmt.Errorf("turn %d ends inside step %d", e.Turn, s.step)
	case len(s.pending) > 0:
		return fmt.Errorf("turn %d ends, but call %q has no result", e.Turn, s.pending[0].ID)
	}
	s.turn = 0
	return nil
}

func (s *state) startStep(e StepStarted) error {
	switch {
	case s.turn == 0 || e.Turn != s.turn:
		return fmt.Errorf("step %d of turn %d starts outside that turn", e.Step, e.Turn)
	case s.step != 0:
		return fmt.Errorf("step %d starts inside step %d", e.Step, s.step)
	case e.Step != s.steps+1:
		return fmt.Errorf("step %d follows step %d", e.Step, s.steps)
	}
	s.step, s.steps = e.Step, e.Step
	return nil
}

func (s *state) startCall(seq int64, e ToolCall) error {
	for i := range s.pending {
		if p := &s.pending[i]; p.ID == e.CallID && p.seq < 0 {
			p.seq = seq
			return nil
		}
	}
	return fmt.Errorf("call %q was not made by an assistant message, or is there twice", e.CallID)
}

func (s *state) endCall(e ToolResult) error {
	for i, p := range s.pending {
		if p.ID == e.CallID && p.seq == e.CallSeq {
			s.pending = append(s.pending[:i:i], s.pending[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("a result of call %q, which is not waiting for one", e.CallID)
}

func (s *state) startChild(e SubagentStarted) error {
	if slices.Contains(s.children, e.Session) {
		return fmt.Errorf("subagent %s starts, but works already", e.Session)
	}
	s.children = append(s.children, e.Session)
	return nil
}

func (s *state) endChild(e SubagentEnded) error {
	i := slices.Index(s.children, e.Session)
	if i < 0 {
		return fmt.Errorf("subagent %s ends, but does not work", e.Session)
	}
	s.children = slices.Delete(s.children, i, i+1)
	return nil
}

// repair returns the events that close what is open.
func (s *state) repair(seq int64) []Event {
	var events []Event
	for _, child := range s.children {
		events = append(events, SubagentEnded{Session: child, Reason: Interrupted, Error: processEnded})
	}
	if s.compacting {
		events = append(events, CompactionEnded{Error: processEnded})
	}
	for _, p := range s.pending {
		content, code := outcomeUnknown, "TOOL_OUTCOME_UNKNOWN"
		callSeq := p.seq
		if callSeq < 0 {
			content, code = notStarted, "TOOL_NOT_STARTED"
			callSeq = seq + int64(len(events))
			events = append(events, ToolCall{CallID: p.ID, Name: p.Name, Arguments: p.Arguments, Step: s.steps})
		}
		events = append(events, ToolResult{
			CallID: p.ID, CallSeq: callSeq, Content: content, IsError: true, Code: code,
		})
	}
	if s.step != 0 {
		events = append(events, StepEnded{Turn: s.turn, Step: s.step})
	}
	if s.turn != 0 {
		events = append(events, TurnEnded{
			Turn: s.turn, Reason: Interrupted, Usage: s.usage, Steps: s.steps,
			Error: processEnded,
		})
	}
	return events
}

const (
	processEnded   = "the process ended before the turn did"
	notStarted     = "The call was not started: Wharf was interrupted before it. It had no effect; make it again if it is still needed."
	outcomeUnknown = "Wharf was interrupted while the call ran: it may have had its effect, in full, in part or not at all. " +
		"Do not repeat it blindly; look at what is there first."
)
