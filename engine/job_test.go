package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/tool"
)

// job is a tool with something that goes on between its calls, which ends with the turn unless
// it is kept: start, keep, look.
type job struct {
	fakeTool
	runs, kept bool
	out        io.Writer
}

func newJob(out io.Writer) *job {
	j := &job{out: out}
	j.fakeTool = fake("job", permission.Reads, j.do).(fakeTool)
	return j
}

func (j *job) do(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct{ Text string }
	err := json.Unmarshal(c.Arguments, &args)
	if args.Text != "look" {
		j.runs, j.kept = true, args.Text == "keep"
	}
	return tool.Result{Content: map[bool]string{true: "it runs", false: "nothing runs"}[j.runs]}, err
}

func (j *job) Polls(arguments json.RawMessage) bool {
	return j.runs && string(arguments) == `{"text":"look"}`
}

func (j *job) EndTurn(context.Context) {
	if j.runs && !j.kept {
		j.runs = false
		fmt.Fprintln(j.out, "= the job ends")
	}
}
