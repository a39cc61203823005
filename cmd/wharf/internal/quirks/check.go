package quirks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Check lists what is wrong with an outcome: against what c expects, and against
// what must hold in every case.
func Check(c Case, o Outcome) []string {
	if len(o.Runs) != len(c.Runs) {
		return []string{fmt.Sprintf("%d runs; want %d", len(o.Runs), len(c.Runs))}
	}
	var found []string
	k := checker{requests: o.Requests, workspace: o.Workspace}
	for i, out := range o.Runs {
		var before *run
		if c.Runs[i].Resume && i > 0 {
			before = &k.runs[i-1]
		}
		r, problems := out.read(c.Runs[i].Signal, before)
		k.runs = append(k.runs, r)
		if ends := c.Runs[i].Ends; ends != "" && ends != "any" && (ends == "error") != r.result.IsError {
			problems = append(problems, fmt.Sprintf("is_error is %t; want the run to end with %s", r.result.IsError, ends))
		}
		if len(r.events) > 0 && !c.Runs[i].Resume && *r.events[0].Seq != 0 {
			problems = append(problems, "the first event of a new session has not the seq 0")
		}
		for _, p := range problems {
			found = append(found, fmt.Sprintf("run %d: %s", i+1, p))
		}
	}
	for i, r := range k.runs {
		for _, p := range r.unanswered() {
			found = append(found, fmt.Sprintf("run %d: %s", i+1, p))
		}
	}
	for i, r := range o.Requests {
		for _, p := range r.Problems() {
			found = append(found, fmt.Sprintf("request %d: %s", i+1, p))
		}
	}
	return append(found, k.expect(c.Expect)...)
}

// checker compares what was seen with what was expected.
type checker struct {
	runs      []run
	requests  []Request
	workspace string
	found     []string
}

func (k *checker) failf(format string, args ...any) {
	k.found = append(k.found, fmt.Sprintf(format, args...))
}

func (k *checker) expect(e Expect) []string {
	k.found = nil
	k.checkEnd(e)
	k.checkTexts(e)
	k.checkCalls(e.Calls)
	if n := len(k.requests); e.Requests != nil && (n < e.Requests[0] || n > e.Requests[1]) {
		k.failf("%d requests; want %d to %d", n, e.Requests[0], e.Requests[1])
	}
	for _, want := range e.Request {
		k.checkRequest(want)
	}
	k.checkEvents(e)
	k.checkTimes(e)
	for _, want := range e.Files {
		k.checkFile(want)
	}
	return append(k.found, k.checkAny(e.AnyOf)...)
}

// checkAny returns nothing if one of the alternatives holds.
func (k *checker) checkAny(alternatives []Expect) []string {
	var all []string
	for i, e := range alternatives {
		other := checker{runs: k.runs, requests: k.requests, workspace: k.workspace}
		found := other.expect(e)
		if len(found) == 0 {
			return nil
		}
		all = append(all, fmt.Sprintf("alternative %d: %s", i+1, strings.Join(found, "; ")))
	}
	return all
}

func (k *checker) last() run { return k.runs[len(k.runs)-1] }

func (k *checker) checkEnd(e Expect) {
	last := k.last()
	if e.Outcome != "" && last.result.IsError != (e.Outcome == "error") {
		k.failf("is_error is %t; want the outcome %s", last.result.IsError, e.Outcome)
	}
	if len(e.Exit) > 0 && !slices.Contains(e.Exit, last.exit) {
		k.failf("exit status %d; want one of %v", last.exit, e.Exit)
	}
	if len(e.Reasons) > 0 && !slices.Contains(e.Reasons, last.reason) {
		k.failf("the turn ended as %q; want one of %q", last.reason, e.Reasons)
	}
}

// checkEvents checks how many events there are, and what results and usage say.
func (k *checker) checkEvents(e Expect) {
	events, codes := map[string]int{}, map[string]bool{}
	for _, r := range k.runs {
		for _, event := range r.events {
			events[event.Type]++
		}
		for _, c := range r.calls {
			for _, result := range c.results {
				codes[result.Code] = true
			}
		}
	}
	for kind, want := range e.Events {
		if events[kind] != want {
			k.failf("%d events of the type %s; want %d", events[kind], kind, want)
		}
	}
	for _, code := range e.Codes {
		if !codes[code] {
			k.failf("no result has the code %s", code)
		}
	}
	if got, want := k.last().result.Usage, e.Usage; want != nil &&
		(len(want.Input) > 0 && !slices.Contains(want.Input, got.Input) || got.Output != want.Output || got.Cached != want.Cached) {
		k.failf("the usage is %+v; want %+v", got, *want)
	}
}

// checkTimes checks how long things took.
func (k *checker) checkTimes(e Expect) {
	for _, want := range e.Waits {
		first, ok := k.request(want.After)
		next, ok2 := k.request(want.After + 1)
		if wait := next.Came.Sub(first.Came).Milliseconds(); ok && ok2 && (wait < int64(want.MinMS) || wait > int64(want.MaxMS)) {
			k.failf("%d ms between request %d and the next; want %d to %d", wait, want.After, want.MinMS, want.MaxMS)
		}
	}
	if took := k.last().took.Seconds(); e.MaxS > 0 && took > e.MaxS {
		k.failf("the last run took %.1f s; want at most %.1f", took, e.MaxS)
	}
}

func (k *checker) checkTexts(e Expect) {
	text := k.last().result.Result
	if e.Text != nil && strings.TrimSpace(text) != *e.Text {
		k.failf("the text is %q; want %q", text, *e.Text)
	}
	k.has("the text", text, e.TextHas, e.TextLacks)
	k.has("stderr and the text", k.last().stderr+"\n"+text, e.Told, nil)
	if e.ToldRE != "" {
		if pattern, err := regexp.Compile(e.ToldRE); err != nil || !pattern.MatchString(k.last().stderr) {
			k.failf("stderr does not match %s: %q", e.ToldRE, k.last().stderr)
		}
	}
	for _, want := range e.LogHas {
		if !k.logged(want) {
			k.failf("no event has %q", want)
		}
	}
	for _, lacking := range e.LogLacks {
		if k.logged(lacking) {
			k.failf("an event has %q", lacking)
		}
	}
}

func (k *checker) has(what, text string, has, lacks []string) {
	for _, want := range has {
		if !strings.Contains(text, want) {
			k.failf("%s lacks %q: %q", what, want, text)
		}
	}
	for _, lacking := range lacks {
		if strings.Contains(text, lacking) {
			k.failf("%s has %q: %q", what, lacking, text)
		}
	}
}

func (k *checker) logged(text string) bool {
	found := false
	for _, r := range k.runs {
		r.strings(func(s string) { found = found || strings.Contains(s, text) })
	}
	return found
}

func (k *checker) checkCalls(want []CallExpect) {
	if want == nil {
		return
	}
	var made []madeCall
	for _, r := range k.runs {
		made = append(made, r.calls...)
	}
	if len(made) != len(want) {
		k.failf("%d calls (%+v); want %d", len(made), made, len(want))
		return
	}
	for i, w := range want {
		k.checkCall(w, made[i].Name, made[i].Arguments)
		for _, r := range made[i].results {
			if w.Result != "" && r.IsError != (w.Result == "error") {
				k.failf("the result of %s is %q, is_error %t; want %s", w.Name, r.Content, r.IsError, w.Result)
			}
			if w.Code != "" && r.Code != w.Code {
				k.failf("the result of %s has the code %q; want %q", w.Name, r.Code, w.Code)
			}
			k.has("the result of "+w.Name, r.Content, w.Has, w.Lacks)
		}
	}
}

func (k *checker) checkCall(want CallExpect, name, args string) {
	if name != want.Name || want.Args != nil && !sameJSON(want.Args, []byte(args)) {
		k.failf("the call is %s %s; want %s %s", name, args, want.Name, want.Args)
	}
}

func (k *checker) request(n int) (Request, bool) {
	if n == -1 {
		n = len(k.requests)
	}
	if n < 1 || n > len(k.requests) {
		k.failf("there is no request %d", n)
		return Request{}, false
	}
	return k.requests[n-1], true
}

func (k *checker) checkRequest(want RequestExpect) {
	r, ok := k.request(want.N)
	if !ok {
		return
	}
	k.checkSentCalls(want, r)
	ids := r.ids()
	if unique := slices.Compact(slices.Sorted(slices.Values(ids))); want.UniqueIDs && len(unique) != len(ids) {
		k.failf("request %d: the ids %q are not unique", want.N, ids)
	}
	k.checkReasoning(want, r)
	if want.NoCalls && len(ids) > 0 {
		k.failf("request %d has calls: %q", want.N, ids)
	}
	if want.SameIDsAs != 0 {
		if earlier, ok := k.request(want.SameIDsAs); ok && !slices.Equal(earlier.ids(), ids) {
			k.failf("request %d has the ids %q; want %q", want.N, ids, earlier.ids())
		}
	}
	if want.SameAs != 0 {
		if other, ok := k.request(want.SameAs); ok && !reflect.DeepEqual(other.messages, r.messages) {
			k.failf("the messages of request %d are not those of request %d", want.N, want.SameAs)
		}
	}
	if want.Smaller != 0 {
		if other, ok := k.request(want.Smaller); ok && len(r.Body) >= len(other.Body) {
			k.failf("request %d has %d bytes, and is not smaller than request %d with %d", want.N, len(r.Body), want.Smaller, len(other.Body))
		}
	}
	if n := r.maxTokens(); want.MaxTokens != 0 && (n <= 0 || n > want.MaxTokens) {
		k.failf("request %d asks for %d tokens; want at most %d", want.N, n, want.MaxTokens)
	}
	for _, text := range want.Has {
		if !r.says(text) {
			k.failf("no message of request %d has %q", want.N, text)
		}
	}
	for _, text := range want.Lacks {
		if r.says(text) {
			k.failf("a message of request %d has %q", want.N, text)
		}
	}
}

func (k *checker) checkSentCalls(want RequestExpect, r Request) {
	sent, answers := r.lastCalls()
	if want.Calls != nil {
		if len(sent) != len(want.Calls) {
			k.failf("request %d: %d calls in the last message that has some; want %d", want.N, len(sent), len(want.Calls))
			return
		}
		for i, w := range want.Calls {
			k.checkCall(w, sent[i].Function.Name, sent[i].arguments())
			k.has(fmt.Sprintf("the answer to %s in request %d", w.Name, want.N), answers[sent[i].ID], w.Has, w.Lacks)
		}
	}
	for name, value := range want.CallExtra {
		if len(sent) == 0 || !sameJSON(sent[len(sent)-1].fields[name], value) {
			k.failf("request %d: the last call lacks %s %s", want.N, name, value)
		}
	}
}

func (k *checker) checkFile(want FileExpect) {
	b, err := os.ReadFile(filepath.Join(k.workspace, filepath.FromSlash(want.Path)))
	switch {
	case want.Absent:
		if !errors.Is(err, fs.ErrNotExist) {
			k.failf("%s exists", want.Path)
		}
	case err != nil:
		k.failf("%v", err)
	case want.Equals != nil && string(b) != *want.Equals:
		k.failf("%s is %q; want %q", want.Path, b, *want.Equals)
	case want.Size != nil && int64(len(b)) != *want.Size:
		k.failf("%s has %d bytes; want %d", want.Path, len(b), *want.Size)
	}
}

func (k *checker) checkReasoning(want RequestExpect, r Request) {
	last := ""
	for _, m := range r.messages {
		var text string
		_ = json.Unmarshal(m.Reasoning, &text) // absent, it stays empty
		if want.Reasoning == "-" && text != "" {
			k.failf("request %d has the reasoning %q; want none", want.N, text)
		}
		if len(m.Calls) > 0 {
			last = text
		}
	}
	if want.Reasoning != "" && want.Reasoning != "-" && last != want.Reasoning {
		k.failf("request %d has the reasoning %q; want %q", want.N, last, want.Reasoning)
	}
}
