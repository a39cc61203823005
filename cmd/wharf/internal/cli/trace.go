package cli

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/session"
)

// showContext prints what the model saw in a request: of STEP in the last turn that has
// it, or of TURN.STEP.
func showContext(io stdio, records []session.Record, where string, asJSON bool) error {
	turn, step, err := parseStep(where)
	if err != nil {
		return err
	}
	trace, err := governance.TraceRequest(records, turn, step)
	if err != nil {
		return fmt.Errorf("show the context of %s: %w", where, err)
	}
	if asJSON {
		return printJSON(io, trace)
	}
	fmt.Fprintf(io.out, "turn %d, step %d, event %d: %s, about %d tokens, %d of them for the system text and the tools\n\n",
		trace.Turn, trace.Step, trace.Seq, count(len(trace.Messages), "message"), trace.Tokens, trace.Header)
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "EVENT\tROLE\tTOKENS\tBY\tMESSAGE")
	for _, m := range trace.Messages {
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\n", m.Seq, m.Role, m.Tokens, printable(m.By), oneLine(m.Text, 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(trace.Replaced) == 0 {
		_, err := fmt.Fprintln(io.out, "\nnothing was replaced up to here")
		return err
	}
	fmt.Fprintln(io.out, "\nreplaced up to here:")
	for _, r := range trace.Replaced {
		fmt.Fprintf(io.out, "  event %d, %s: %s: %s, the messages from %d tokens to %d\n",
			r.Seq, printable(r.By), r.Why, count(len(r.Targets), "event"), r.Before, r.After)
	}
	return nil
}

// parseStep reads STEP or TURN.STEP; turn is 0 in the first.
func parseStep(where string) (turn, step int, err error) {
	before, after, both := strings.Cut(where, ".")
	if !both {
		before, after = "0", where
	}
	turn, errTurn := strconv.Atoi(before)
	step, errStep := strconv.Atoi(after)
	if errTurn != nil || errStep != nil || step < 1 || turn < 0 || both && turn == 0 {
		return 0, 0, usagef("--context %q: it is STEP or TURN.STEP, such as 3 or 2.3", where)
	}
	return turn, step, nil
}
