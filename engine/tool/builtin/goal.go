package builtin

import (
	"context"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/tool"
)

type goalArgs struct {
	Status string `json:"status"`
	Note   string `json:"note"`
}

// updateGoal is how the model says that a turn's goal is reached. It only acknowledges:
// the engine, which has the goal, takes the word from the call (engine.GoalTool).
func updateGoal() tool.Tool {
	return define("update_goal",
		"Say that the goal of this turn is reached, once you have checked that it is, or that you give it up, and why. The turn ends with the answer that you give next.",
		`"properties":{
			"status":{"type":"string","enum":["reached","given_up"]},
			"note":{"type":"string","minLength":1,"maxLength":4000,"description":"how you checked it, or what stands in the way"}
		},"required":["status","note"]`,
		permission.Reads, 0,
		func(_ context.Context, a goalArgs) (tool.Result, error) {
			if a.Status == "reached" {
				return text("noted: the goal is reached; now answer"), nil
			}
			return text("noted: the goal is given up; now answer: what was done, and what is left"), nil
		})
}
