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
	v := verifier{report: Report{Events: len(records)}, old: hasPlain(records)}
	if len(records) == 0 {
		v.report.Problems = append(v.report.Problems, "the log is empty")
	}
	for i, r := range records {
		if r.Seq != int64(i) {
			v.problem(r, "its sequence number should be %d", i)
		}
		v.add(r)
	}
	v.report.Turns = v.state.turns
	return v.report
}

// verifier follows a log.
type verifier struct {
	report  Report
	history History
	state   state
	old     bool  // the log has requests of plainScheme
	plain   plain // what they were made of
}

// hasPlain reports whether a log has requests of plainScheme.
func hasPlain(records []Record) bool {
	for _, r := range records {
		if e, ok := r.Event.(RequestSent); ok && e.Scheme == plainScheme {
			return true
		}
	}
	return false
}

func (v *verifier) problem(r Record, format string, args ...any) {
	v.report.Problems = append(v.report.Problems, fmt.Sprintf("event %d: ", r.Seq)+fmt.Sprintf(format, args...))
}

func (v *verifier) add(r Record) {
	if err := v.state.add(r); err != nil {
		v.problem(r, "%v", err)
	}
	if err := v.history.check(r.Event); err != nil {
		v.problem(r, "%v", err)
	}
	v.history.Add(r)
	if v.old {
		v.plain.add(r.Event)
	}
	switch e := r.Event.(type) {
	case RequestSent:
		v.sent(r, e.Scheme, e.Digest, fmt.Sprintf("the request of step %d was not what the log before it says", e.Step), v.history.Digest)
	case CompactionStarted:
		if e.Prompt != "" {
			v.sent(r, e.Scheme, e.Digest, "the request for a summary was not what the event says", e.digest)
		}
	}
}

// sent compares a request's digest with what the log makes of it.
func (v *verifier) sent(r Record, scheme, digest, differs string, compute func() string) {
	v.report.Requests++
	switch {
	case scheme == plainScheme:
		compute = v.plain.digest
	case scheme != Scheme:
		v.problem(r, "the request's digest has the form %q, this Wharf knows %q", scheme, Scheme)
		return
	}
	if digest != compute() {
		v.problem(r, "%s", differs)
	}
}

// Request returns the request for a summary.
func (e CompactionStarted) Request() (Header, []Message) {
	return Header{Model: e.Model, System: e.System, Parameters: e.Parameters}, []Message{{Role: User, Content: e.Prompt}}
}

func (e CompactionStarted) digest() string { return Digest(e.Request()) }
