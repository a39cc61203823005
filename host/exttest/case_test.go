package exttest_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/exttest"
)

// manifest is that of the relay.
func manifest(t testing.TB) *host.Manifest {
	t.Helper()
	text, err := os.ReadFile("testdata/relay/extension.toml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := host.ParseManifest(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A mistake in a case is one message, with its line.
func TestParseFileRefuses(t *testing.T) {
	const head = "[[case]]\nname = \"a\"\n"
	const call = head + "hook = \"on_error\"\npayload = { error = \"x\" }\n"
	tests := []struct{ name, text, want string }{
		{"nothing", "", "x.toml: it has no [[case]]"},
		{"no TOML", "[[case]\n", "x.toml: line 2: expected end of table array name delimiter ']', but got '\\n' instead"},
		{"a value of the wrong type", head + "env = 3\n", "x.toml: line 3: env must be a table"},
		{"nested without end", "a = " + strings.Repeat("[", 100), "x.toml: line 1: it is nested too deeply"},
		{"an unknown key", call + "verdikt = {}\n", `x.toml: line 5: unknown key "verdikt", did you mean verdict?: docs/extensions/testing.md has them all`},
		{"an unknown key of an answer", call + "[[case.http]]\nurl = \"https://a/\"\n[[case.exec]]\ncommand = \"x\"\nexit_code = 1\n", `x.toml: line 9: unknown key "exit_code", did you mean exit?: docs/extensions/testing.md has them all`},
		{"no name", "[[case]]\nhook = \"on_error\"\n", "x.toml: line 1: the case has no name: say what it shows, as a sentence"},
		{"two of one name", call + "\n" + call, `x.toml: line 7: there are two cases of the name "a", the other in line 1: rename one`},
		{"no call", head, "x.toml: line 1: the case calls nothing: give it hook and payload, or tool and arguments, or [[case.step]] with them"},
		{"a call and steps", call + "[[case.step]]\nhook = \"on_error\"\n", "x.toml: line 1: the case has a call of its own and [[case.step]] too: make a step of the first"},
		{"a step of nothing", head + "[[case.step]]\nfails = \"x\"\n", "x.toml: line 3: a step needs a hook or a tool to call"},
		{"two calls in one", call + "tool = \"relay\"\n", "x.toml: line 5: a step calls a hook or a tool: make two of it"},
		{"a tool with a verdict", head + "tool = \"relay\"\nverdict = {}\n", "x.toml: line 3: a tool has arguments and a result; payload and verdict are a hook's"},
		{"a hook with a result", call + "result = {}\n", "x.toml: line 3: a hook has a payload and a verdict; arguments and result are a tool's"},
		{"a failure with a verdict", call + "verdict = {}\nfails = \"x\"\n", "x.toml: line 6: what fails answers nothing: expect one of both"},
		{"an unknown point", head + "hook = \"on_errors\"\n", `x.toml: line 3: the extension does not handle the hook point "on_errors": it handles after_run, on_error`},
		{"a point that it lacks", head + "hook = \"before_run\"\n", `x.toml: line 3: the extension does not handle the hook point "before_run": it handles after_run, on_error`},
		{"a tool that it lacks", head + "tool = \"relais\"\n", `x.toml: line 3: the extension has no tool "relais": it has relay`},
		{"a payload without a key", head + "hook = \"after_run\"\npayload = { text = \"x\" }\n", `x.toml: line 4: payload: "usage" is missing, which is an object: after_run gets text, usage`},
		{"a payload with another key", head + "hook = \"on_error\"\npayload = { error = \"x\", eror = 1 }\n", `x.toml: line 4: payload: unknown key "eror", did you mean error?: on_error gets error`},
		{"a payload with a date", head + "hook = \"on_error\"\npayload = { error = 2026-01-01 }\n", `x.toml: line 4: payload: JSON has no dates: write a string`},
		{"a payload that is none", head + "hook = \"on_error\"\npayload = 3\n", `x.toml: line 4: payload: write a table with its keys, or a string to be sent as it is`},
		{"a verdict that is none", call + "verdict = \"deny\"\n", `x.toml: line 5: verdict: it is no JSON: invalid character 'd' looking for beginning of value`},
		{"a verdict that is a list", call + "verdict = []\n", `x.toml: line 5: verdict: write a table, or a string with a JSON object`},
		{"a grant that is none", "grant = \"some\"\n" + call, `x.toml: line 1: grant: some is neither "all", "none" nor a table like [capabilities]`},
		{"a URL that is none", call + "[[case.http]]\nurl = \"api.example.com\"\n", `x.toml: line 6: url: it does not begin with https://host or http://host`},
		{"a status that is none", call + "[[case.http]]\nurl = \"https://a.example/\"\nstatus = 99\n", `x.toml: line 7: status 99: it is 200 to 599`},
		{"no command", call + "[[case.exec]]\nexit = 1\n", `x.toml: line 5: exec needs the command that it answers`},
		{"no tool", call + "[[case.tool_call]]\ncontent = \"x\"\n", `x.toml: line 5: tool_call needs the name of the tool that it answers for`},
		{"an unknown operation", call + "[[case.fault]]\noperation = \"kv.put\"\n", `x.toml: line 6: there is no operation "kv.put", did you mean kv.get or kv.set?: there are config.get, env.get, event.emit, exec.run, fs.list, fs.read, fs.stat, fs.write, http.fetch, kv.delete, kv.get, kv.list, kv.set, llm.complete, session.info, session.messages, tool.call`},
		{"an unknown code", call + "[[case.fault]]\noperation = \"kv.set\"\ncode = \"NOT_GRANTED\"\n", `x.toml: line 7: code "NOT_GRANTED": it is one of FAILED, OVER_LIMIT, DENIED, TIMEOUT; what is not granted is so by grant`},
	}
	m := manifest(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exttest.ParseFile("x.toml", tt.text, m); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestReadDirNeedsCases(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "testdata")
	_, err := exttest.ReadDir(dir, manifest(t))
	if want := "there are no cases in " + dir + ": write a NAME.toml there, with a [[case]]"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// What is asked for and has no answer fails the case, and so does an answer that
// nobody asks for.
func TestAnswersThatDoNotFit(t *testing.T) {
	tests := []struct{ name, op, request, answers, want string }{
		{"no command", "exec.run", `{ command = "gofmt x" }`, "", `relay: the case has no [[case.exec]] for "gofmt x"`},
		{"no tool", "tool.call", `{ name = "read_file" }`, "", `relay: the case has no [[case.tool_call]] for read_file {}`},
		{"no reply", "llm.complete", `{ prompt = "x" }`, "", `relay: the case has no [[case.llm]] for the prompt "x"`},
		{"no response", "http.fetch", `{ method = "GET", url = "https://api.example.com/x" }`, "", `relay: the case has no [[case.http]] for GET https://api.example.com/x`},
		{
			"another header", "http.fetch", `{ method = "GET", url = "https://api.example.com/x", headers = { A = "1" } }`,
			"[[case.http]]\nurl = \"https://api.example.com/x\"\nsent_headers = { a = \"2\" }\nsent_body = \"b\"\n",
			`relay: GET https://api.example.com/x was sent with the header a = "1", and not "2"` + "\n" +
				`relay: GET https://api.example.com/x was sent with the body "", and not "b"`,
		},
		{
			"nobody asks", "kv.list", `{ prefix = "" }`,
			"[[case.exec]]\ncommand = \"gofmt x\"\ntimes = 2\n[[case.http]]\nurl = \"https://a.example/\"\n[[case.llm]]\n[[case.tool_call]]\nname = \"x\"\n[[case.fault]]\noperation = \"kv.set\"\n",
			"the answer to the command gofmt x was asked for 0 of 2 times\nthe answer to the operation kv.set was asked for 0 of 1 times\n" +
				"the answer to GET https://a.example/ was asked for 0 of 1 times\nthe answer to llm.complete was asked for 0 of 1 times\n" +
				"the answer to a call of x was asked for 0 of 1 times",
		},
	}
	r := open(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, results := run(t, r, "[[case]]\nname = \"a\"\ntool = \"relay\"\narguments = { op = \""+tt.op+"\", request = "+tt.request+" }\n"+tt.answers)
			if got := strings.ReplaceAll(failures(results), "\nrelay: the result is not as expected", ""); strings.TrimPrefix(got, "relay: the result is not as expected\n") != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Files of a case stay in its workspace, and off what is protected there.
func TestFilesStayInTheWorkspace(t *testing.T) {
	r := open(t)
	for name, want := range map[string]string{
		"../canary":   `files: refused: "../canary" is outside the workspace`,
		"/tmp/canary": `files: refused: "/tmp/canary" is outside the workspace`,
		".git/config": "files: refused: .git/config is protected (.git/config): trusted programs read it outside the sandbox; ask the user to change it",
		"notes/../..": `files: refused: "notes/../.." is outside the workspace`,
		"a\\u0000b":   "",
	} {
		_, results := run(t, r, "[[case]]\nname = \"a\"\nhook = \"after_run\"\npayload = \"\"\nfiles = { \""+name+"\" = \"x\" }\n")
		if got := failures(results); want != "" && got != want || got == "" {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

// A case that was not fulfilled shows the difference, and an update writes what
// came without touching the rest; then the case passes.
func TestUpdate(t *testing.T) {
	const before = `# Kept.
[[case]]   # a case
name = "a"
tool = "relay"
arguments = { op = "kv.set", request = { key = "k", value = "it's \"x\"" } }
result = { content = "other" } # why
keeps = { k = 1 } # not true
tries = [
  "kv.get", # two
  "lines",
]

[[case]]
name = "b"
hook = "on_error"
payload = { error = "é" }
verdict = { reason = "none" }
[case.keeps]
"a b" = 1
# The end.`
	const after = `# Kept.
[[case]]   # a case
name = "a"
tool = "relay"
arguments = { op = "kv.set", request = { key = "k", value = "it's \"x\"" } }
result = { content = '{"status":0,"response":{}}' } # why
keeps = { k = "it's \"x\"" } # not true
tries = ["kv.set k"]

[[case]]
name = "b"
hook = "on_error"
payload = { error = "é" }
fails = "no answer in time: it ran for 1s: make it faster, or raise its timeout in the manifest"
[case.keeps]
# The end.`
	r := open(t)
	f, results := run(t, r, before)
	want := "relay: the result is not as expected\nrelay: what it tries is not as expected\nrelay: what it keeps is not as expected\n" +
		"on_error: how it fails is not as expected\non_error: the verdict is not as expected\non_error: what it keeps is not as expected"
	if got := failures(results); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	wantDiff := " {\n-  \"content\": \"other\"\n+  \"content\": \"{\\\"status\\\":0,\\\"response\\\":{}}\"\n }\n"
	if got := results[0].Failures[0].Diff; got != wantDiff {
		t.Errorf("the difference is\n%s", got)
	}
	text, err := f.Update(results, r.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if text != after {
		t.Errorf("updated:\n%s\nwant\n%s", text, after)
	}
	f, results = run(t, r, text)
	if got := failures(results); got != "" {
		t.Errorf("after the update: %s", got)
	}
	if again, err := f.Update(results, r.Manifest); err != nil || again != text {
		t.Errorf("a second update changes it: %v\n%s", err, again)
	}
}

// An answer that is not as expected is shown with what the handler logged and tried, once.
func TestSeen(t *testing.T) {
	_, results := run(t, open(t), `[[case]]
name = "a"
  [[case.step]]
  tool = "relay"
  arguments = { op = "fs.read", request = { path = "secret.txt" } }
  result = { content = "other" }
  tries = []
  [[case.step]]
  tool = "relay"
  arguments = { op = "kv.get", request = { key = "k" } }
  result = { content = "other" }`)
	refused := `it tried fs.read secret.txt (refused): capability not granted: fs: the manifest does not ask for it: add { path = "secret.txt", mode = "read" } to fs under [capabilities], and grant it`
	want := [][]string{{refused}, nil, {"it tried kv.get k"}}
	var got [][]string
	for _, f := range results[0].Failures {
		got = append(got, f.Seen)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("seen\n%q\nwant\n%q", got, want)
	}
}

// No text makes the parser panic, and what it takes has lines in the file.
func FuzzParseFile(f *testing.F) {
	world, err := os.ReadFile("testdata/relay/testdata/world.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(world))
	f.Add("[[case]]\nname='''a'''\n'hook'=\"on_error\"\npayload.error = \"x\"\n[case.verdict]\na=[1,\n2]\n")
	f.Add("grant=[[{}]]\n[[case.step]]\n[case]\n")
	m := manifest(f)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := exttest.ParseFile("x.toml", text, m)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		for _, c := range file.Cases {
			if c.Line < 1 || c.Line > strings.Count(text, "\n")+1 {
				t.Errorf("case %q is in line %d", c.Name, c.Line)
			}
		}
		if same, err := file.Update(nil, m); err != nil || same != text {
			t.Errorf("an update of nothing: %v, %q", err, same)
		}
	})
}
