package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// GoalTool is the name of the tool by which the model says that a goal is reached,
// or that it gives it up. It is offered in a turn with a goal, and refused in any other.
const GoalTool = "update_goal"

// goalRounds is how many rounds a goal has unless the Config says otherwise.
const goalRounds = 12

// goal is how far a turn is with what its input wants it to reach: it goes on, round by
// round, until the model says how it stands with that. Each round may take
// Config.MaxSteps steps. Only a user sets a goal, and it ends with the turn.
type goal struct {
	rounds int // in all
	round  int // that is under way, from 1
	over   bool
	missed bool   // all rounds are used up
	gaveUp string // why the model did; empty: it did not
}

// active reports whether there is something to be reached yet.
func (g *goal) active() bool { return g != nil && !g.over }

// setGoal tells the model that what opened the turn is its goal.
func (t *turn) setGoal() error {
	t.goal = &goal{rounds: t.cfg.GoalRounds, round: 1}
	if err := t.goalChanged("set", ""); err != nil {
		return err
	}
	return t.tell(fmt.Sprintf("What was just asked for is the goal of this turn, which goes on until it is reached, for %d rounds at most. "+
		"When you have checked that it is reached, or when it cannot be, call %s; until then, work on.", t.goal.rounds, GoalTool))
}

func (t *turn) goalChanged(status, note string) error {
	e := session.GoalChanged{Turn: t.number, Status: status, Round: t.goal.round, Rounds: t.goal.rounds, Note: note}
	if status == "set" {
		e.Steps = t.cfg.MaxSteps
	}
	return t.record(e)
}

// pursue keeps the turn going with an answer to a goal that is not reached.
func (t *turn) pursue(ctx context.Context, r reply) (again bool, err error) {
	if !t.goal.active() {
		return false, nil
	}
	if t.goal.round == t.goal.rounds {
		return false, t.missGoal()
	}
	t.parts = nil
	if _, err := t.keep(ctx, r); err != nil {
		return false, err
	}
	t.replay.pursued()
	return true, t.nextRound()
}

// extend begins another round where the steps of one are used up before its goal is
// reached.
func (t *turn) extend() error {
	switch {
	case t.step < t.allowed || !t.goal.active():
		return nil
	case t.goal.round == t.goal.rounds:
		return t.missGoal()
	}
	return t.nextRound()
}

func (t *turn) nextRound() error {
	t.goal.round++
	t.allowed = t.step + t.cfg.MaxSteps
	if err := t.goalChanged("round", ""); err != nil {
		return err
	}
	last := ""
	if t.goal.round == t.goal.rounds {
		last = ", the last one"
	}
	return t.tell(fmt.Sprintf("The goal is not reached yet, as far as you said. This is round %d of %d%s. Go on with it; "+
		"call %s when it is reached, or when it cannot be.", t.goal.round, t.goal.rounds, last, GoalTool))
}

func (t *turn) missGoal() error {
	t.goal.missed = true
	return t.endGoal("ended", "all rounds are used up")
}

// endGoal notes how a goal ended, if there is one yet.
func (t *turn) endGoal(status, note string) error {
	if !t.goal.active() {
		return nil
	}
	t.goal.over = true
	return t.goalChanged(status, note)
}

// unreached is why a turn did not complete whose goal was not reached; nil if that is
// not so. Who waits for it must be able to tell, also where the model answered why.
func (t *turn) unreached() error {
	switch {
	case t.goal == nil, !t.goal.missed && t.goal.gaveUp == "":
		return nil
	case t.goal.gaveUp != "":
		return &endError{session.ModelError, errors.New("the model gave the goal up: " + t.goal.gaveUp)}
	}
	return &endError{session.MaxSteps, fmt.Errorf("the goal was not reached, and its rounds (%d) are used up: raise goal.rounds, or resume the session to go on", t.goal.rounds)}
}

var errNoGoal = errors.New("denied: this turn has no goal, and only the user can give it one")

// refuseGoal refuses a call about a goal that there is not, or that is not the model's.
func (t *turn) refuseGoal(by string, call session.Call) error {
	switch {
	case call.Name != GoalTool || by == "" && t.goal.active():
		return nil
	case t.goal.active():
		return errors.New("denied: only the model says how it stands with the user's goal")
	}
	return errNoGoal
}

// noteGoal takes what the model said of the goal.
func (t *turn) noteGoal(call session.Call, result tool.Result) error {
	if call.Name != GoalTool || result.IsError {
		return nil
	}
	var said struct{ Status, Note string }
	if err := json.Unmarshal([]byte(call.Arguments), &said); err != nil {
		return nil // a hook answered in the tool's place, whatever was called
	}
	if said.Status == "given_up" && t.goal.active() {
		t.goal.gaveUp = cmp.Or(said.Note, "it did not say why")
	}
	return t.endGoal(said.Status, said.Note)
}

// offered returns the tools that the next request is to have.
func (t *turn) offered(tools []session.Tool) []session.Tool {
	if t.goal.active() {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(tl session.Tool) bool { return tl.Name == GoalTool })
}
