package quirks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A run as it should be: one call, its result, a final text.
const goodRun = `{"v":1,"seq":0,"type":"session.started","data":{"id":"s"}}
{"v":1,"seq":1,"type":"tool.call","data":{"call_id":"a","name":"read_file","arguments":"{\"path\":\"a.txt\"}"}}
{"v":1,"seq":2,"type":"tool.result","data":{"call_id":"a","call_seq":1,"content":"ALPHA-7"}}
{"v":1,"seq":3,"type":"turn.ended","data":{"reason":"completed"}}
{"type":"result","is_error":false,"result":"The end.","stop_reason":"completed","usage":{"input_tokens":7,"output_tokens":2}}
`

const goodRequest = `{"max_tokens":100,"messages":[{"role":"user","content":"hi"},
 {"role":"assistant","tool_calls":[{"id":"a","sig":"S","function":{"name":"read_file","arguments":"{\"path\":\"a.txt\"}"}}]},
 {"role":"tool","tool_call_id":"a","content":"ALPHA-7"}]}`

const goodExpect = `{"calls":[{"name":"read_file","args":{"path":"a.txt"},"result":"ok","has":["ALPHA"],"lacks":["BRAVO"]}],
 "outcome":"success","exit":[0],"reasons":["completed"],"text":"The end.","text_has":["end"],"text_lacks":["x"],"told":["The end"],
 "log_has":["ALPHA-7"],"log_lacks":["BRAVO"],"requests":[2,2],
 "request":[{"n":2,"calls":[{"name":"read_file","args":{"path":"a.txt"},"has":["ALPHA-7"]}],"unique_ids":true,"same_ids_as":1,
  "call_extra":{"sig":"S"},"same_as":1,"max_tokens":100,"has":["hi"],"lacks":["bye"]}],
 "told_re":"^$","events":{"tool.call":1,"goal":0},"codes":[""],"usage":{"input":[3,7],"output":2},"waits":[{"after":1,"min_ms":0,"max_ms":60000}],"max_s":5,
 "files":[{"path":"f","equals":"F","size":1},{"path":"g","absent":true}],
 "any_of":[{"exit":[9]},{"exit":[0]}]}`

func parseExpect(t *testing.T, text string) Expect {
	t.Helper()
	var e Expect
	if err := strict([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func goodOutcome(t *testing.T) Outcome {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("F"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := parseRequest([]byte(goodRequest))
	return Outcome{Runs: []RunOutcome{{Stdout: []byte(goodRun), Took: time.Second}}, Workspace: dir, Requests: []Request{r, r}}
}

func TestCheckTakesWhatIsRight(t *testing.T) {
	c := Case{Runs: []Run{{}}, Expect: parseExpect(t, goodExpect)}
	if got := Check(c, goodOutcome(t)); len(got) != 0 {
		t.Errorf("Check = %q; want nothing", got)
	}
}

// Each change to a good outcome, or to what is expected of it, is found.
func TestCheckFinds(t *testing.T) {
	tests := []struct{ name, in, old, new, want string }{
		{"a line that is no JSON", "run", `{"v":1,"seq":0`, `x{"v":1,"seq":0`, "is no JSON object"},
		{"a hole in the numbers", "run", `"seq":3`, `"seq":4`, "its seq does not follow"},
		{"a new session that starts in the middle", "run", `{"v":1,"seq":0,"type":"session.started","data":{"id":"s"}}` + "\n", "", "has not the seq 0"},
		{"no result object", "run", `"type":"result"`, `"type":"other"`, "has the type \"other\""},
		{"another line after the result object", "run", `"output_tokens":2}}`, `"output_tokens":2}}` + "\n{}", "has the type \"result\""},
		{"an exit status that does not fit", "run", `"reason":"completed"`, `"reason":"blocked"`, `turn.ended says "blocked"`},
		{"a reason that nobody knows", "run", `completed`, `done`, `turn.ended says "done"`},
		{"a call without result", "run", `"call_seq":1`, `"call_seq":0`, `the call "a" of read_file has 0 results`},
		{"a result without call", "run", `"call_seq":1`, `"call_seq":7`, "answers no call of this run"},
		{"an event that cannot be read", "run", `"reason":"completed"`, `"reason":1`, "the turn.ended at seq 3 cannot be read"},
		{"a request that a strict server refuses", "request", `"tool_call_id":"a"`, `"tool_call_id":"b"`, `request 1: message 2: answers no open call: "b"`},
		{"another tool", "run", `"name":"read_file"`, `"name":"exec"`, "the call is exec"},
		{"other arguments", "expect", `"args":{"path":"a.txt"},"result"`, `"args":{"path":"b.txt"},"result"`, "the call is read_file"},
		{"more calls", "expect", `"calls":[{"name":"read_file","args":{"path":"a.txt"},"result"`, `"calls":[{},{"name":"read_file","args":{"path":"a.txt"},"result"`, "1 calls"},
		{"an error result", "run", `"content":"ALPHA-7"`, `"is_error":true,"content":"ALPHA-7"`, "is_error true; want ok"},
		{"a code", "expect", `"result":"ok"`, `"code":"DENIED"`, `has the code ""; want "DENIED"`},
		{"a result that lacks something", "expect", `["ALPHA"]`, `["CHARLIE"]`, `the result of read_file lacks "CHARLIE"`},
		{"a result that has too much", "expect", `"lacks":["BRAVO"]`, `"lacks":["ALPHA"]`, `the result of read_file has "ALPHA"`},
		{"the outcome", "expect", `"success"`, `"error"`, "want the outcome error"},
		{"the exit status", "expect", `"exit":[0],"reasons"`, `"exit":[1,3],"reasons"`, "exit status 0; want one of [1 3]"},
		{"the reason", "expect", `["completed"]`, `["blocked"]`, `the turn ended as "completed"`},
		{"the text", "expect", `"text":"The end."`, `"text":"The"`, `the text is "The end."`},
		{"what the text should have", "expect", `"text_has":["end"]`, `"text_has":["zz"]`, `the text lacks "zz"`},
		{"what the text should lack", "expect", `"text_lacks":["x"]`, `"text_lacks":["end"]`, `the text has "end"`},
		{"what the user should be told", "expect", `"told":["The end"]`, `"told":["why"]`, `stderr and the text lacks "why"`},
		{"what the log should have", "expect", `"log_has":["ALPHA-7"]`, `"log_has":["zz"]`, `no event has "zz"`},
		{"what the log should lack", "expect", `"log_lacks":["BRAVO"]`, `"log_lacks":["PHA"]`, `an event has "PHA"`},
		{"the number of requests", "expect", `"requests":[2,2]`, `"requests":[3,4]`, "2 requests; want 3 to 4"},
		{"a request that was not made", "expect", `"n":2`, `"n":3`, "there is no request 3"},
		{"calls of a request", "expect", `"calls":[{"name":"read_file","args":{"path":"a.txt"},"has"`, `"calls":[{"name":"exec","has"`, "the call is read_file"},
		{"answers in a request", "expect", `"has":["ALPHA-7"]}],"unique`, `"has":["zz"]}],"unique`, `the answer to read_file in request 2 lacks "zz"`},
		{"no calls", "expect", `"unique_ids":true`, `"no_calls":true`, `request 2 has calls`},
		{"extra fields", "expect", `{"sig":"S"}`, `{"sig":"T"}`, `the last call lacks sig "T"`},
		{"text of a request", "expect", `"has":["hi"]`, `"has":["bye"]`, `no message of request 2 has "bye"`},
		{"text that a request should lack", "expect", `"lacks":["bye"]`, `"lacks":["hi"]`, `a message of request 2 has "hi"`},
		{"a pattern of stderr", "expect", `"told_re":"^$"`, `"told_re":"why"`, "stderr does not match why"},
		{"the number of events", "expect", `"tool.call":1`, `"tool.call":2`, "1 events of the type tool.call; want 2"},
		{"a code that no result has", "expect", `"codes":[""]`, `"codes":["REPEATED"]`, "no result has the code REPEATED"},
		{"the usage", "expect", `"input":[3,7]`, `"input":[3]`, "the usage is {Input:7 Output:2 Cached:0}"},
		{"a wait that is too short", "expect", `"min_ms":0`, `"min_ms":9000`, "ms between request 1 and the next; want 9000 to 60000"},
		{"a run that takes too long", "expect", `"max_s":5`, `"max_s":0.5`, "the last run took 1.0 s"},
		{"a request that is not smaller", "expect", `"same_as":1`, `"smaller_than":1`, "and is not smaller than request 1"},
		{"a request that asks for too many tokens", "expect", `"max_tokens":100`, `"max_tokens":99`, "request 2 asks for 100 tokens; want at most 99"},
		{"a file's text", "expect", `"equals":"F"`, `"equals":"G"`, `f is "F"; want "G"`},
		{"a file's size", "expect", `"size":1`, `"size":2`, `f has 1 bytes; want 2`},
		{"a file that should be absent", "expect", `"path":"g"`, `"path":"f"`, "f exists"},
		{"a file that is absent", "expect", `"path":"f"`, `"path":"h"`, "no such file"},
		{"no alternative", "expect", `{"exit":[0]}]`, `{"exit":[8]}]`, "alternative 2: exit status 0; want one of [8]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, expect := goodOutcome(t), goodExpect
			texts := map[string]string{"run": goodRun, "request": goodRequest, "expect": goodExpect}
			changed := strings.ReplaceAll(texts[tt.in], tt.old, tt.new)
			if changed == texts[tt.in] {
				t.Fatalf("%q is not in the %s", tt.old, tt.in)
			}
			switch tt.in {
			case "run":
				o.Runs[0].Stdout = []byte(changed)
			case "request":
				o.Requests[0] = parseRequest([]byte(changed))
			default:
				expect = changed
			}
			got := Check(Case{Runs: []Run{{}}, Expect: parseExpect(t, expect)}, o)
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tt.want) }) {
				t.Errorf("Check = %q; want something with %q", got, tt.want)
			}
		})
	}
}

func TestCheckFindsWhatStderrTells(t *testing.T) {
	failed := strings.NewReplacer("completed", "model_error", `"is_error":false`, `"is_error":true`).Replace(goodRun)
	tests := []struct {
		name, stderr string
		want         []string
	}{
		{"an error with its reason", "wharf: no server", nil},
		{"an error that says nothing", " \n", []string{"run 1: an error, and nothing on stderr"}},
		{"a crash", "panic: x", []string{"run 1: a crash: panic: x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Outcome{Runs: []RunOutcome{{Stdout: []byte(failed), Stderr: []byte(tt.stderr), Exit: 1}}}
			if got := Check(Case{Runs: []Run{{}}}, o); !slices.Equal(got, tt.want) {
				t.Errorf("Check = %q; want %q", got, tt.want)
			}
		})
	}
}

func TestCheckFindsChangedIDs(t *testing.T) {
	o := goodOutcome(t)
	o.Requests[1] = parseRequest([]byte(strings.ReplaceAll(goodRequest, `"a"`, `"b"`)))
	twice := strings.TrimSuffix(goodRequest, "]}") + "," + strings.SplitN(goodRequest, "\n", 2)[1]
	o.Requests = append(o.Requests, parseRequest([]byte(twice)))
	var e Expect
	if err := json.Unmarshal([]byte(`{"request":[{"n":2,"same_ids_as":1},{"n":-1,"unique_ids":true}]}`), &e); err != nil {
		t.Fatal(err)
	}
	want := []string{`request 2 has the ids ["b"]; want ["a"]`, `request -1: the ids ["a" "a"] are not unique`}
	if got := Check(Case{Runs: []Run{{}}, Expect: e}, o); !slices.Equal(got, want) {
		t.Errorf("Check = %q\nwant %q", got, want)
	}
}

// What one run left open the next may close; a run that was killed need not have a
// result object, nor a whole last line.
func TestCheckOfRunsThatWereSignalled(t *testing.T) {
	const cut = `{"v":1,"seq":0,"type":"session.started","data":{"id":"s"}}
{"v":1,"seq":1,"type":"tool.call","data":{"call_id":"a","name":"exec","arguments":"{}"}}
{"v":1,"se`
	const next = `{"v":1,"seq":2,"type":"tool.result","data":{"call_id":"a","call_seq":1,"content":"?","is_error":true,"code":"TOOL_OUTCOME_UNKNOWN"}}
{"v":1,"seq":3,"type":"turn.ended","data":{"reason":"completed"}}
{"type":"result","is_error":false,"result":"ok","stop_reason":"completed"}
`
	c := Case{Runs: []Run{{Signal: &Signal{Name: "KILL"}}, {Resume: true}}}
	o := Outcome{Runs: []RunOutcome{{Stdout: []byte(cut), Exit: 137}, {Stdout: []byte(next)}}}
	if got := Check(c, o); len(got) != 0 {
		t.Errorf("Check = %q; want nothing", got)
	}
	c.Runs[1].Resume = false
	if got := strings.Join(Check(c, o), "\n"); !strings.Contains(got, "answers no call of this run") || !strings.Contains(got, `run 1: the call "a" of exec has 0 results`) {
		t.Errorf("Check of another session = %q", got)
	}
	c.Runs[0].Signal = nil
	if got := strings.Join(Check(c, o), "\n"); !strings.Contains(got, "run 1: stdout line 3 is no JSON object") {
		t.Errorf("Check without a signal = %q", got)
	}
}
