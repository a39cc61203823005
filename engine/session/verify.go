package session

import "fmt"

// Report is what [Verify] found.
type Report struct {
	Events, Turns, Requests int
	Problems                []string // each names the event by its sequence number; empty if the log holds
}

// Verify checks a whole log: that its events follow each other as they must,
// and that each request had the digest that its history gives. An open turn at
// the end is no problem: the session may be running.
func Verify(records []Record) Report {
	var (
		report  = Report{Events: len(records)}
		history History
		state   state
	)
	problem := func(r Record, format string, args ...any) {
		report.Problems = append(report.Problems, fmt.Sprintf("event %d: ", r.Seq)+fmt.Sprintf(format, args...))
	}
	if len(records) == 0 {
		report.Problems = append(report.Problems, "the log is empty")
	}
	for i, r := range records {
		if r.Seq != int64(i) {
			problem(r, "its sequence number should be %d", i)
		}
		if err := state.add(r); err != nil {
			problem(r, "%v", err)
		}
		history.Add(r.Event)
		if e, ok := r.Event.(RequestSent); ok {
			report.Requests++
			switch {
			case e.Scheme != Scheme:
				problem(r, "the request's digest has the form %q, this Wharf knows %q", e.Scheme, Scheme)
			case e.Digest != history.Digest():
				problem(r, "the request of step %d was not what the log before it says", e.Step)
			}
		}
	}
	report.Turns = state.turns
	return report
}
