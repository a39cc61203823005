package capability

import (
	"errors"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wharf-agent/wharf/engine/egress"
)

// everything asks for each key in the form in which it is printed.
const everything = `http = ["GET https://api.example.com/v1/*", "* https://*.example.com:8443/"]
secrets = [{ name = "EXAMPLE_TOKEN", host = "api.example.com", header = "Authorization", format = "Bearer {}" }]
fs = [{ path = "notes", mode = "read" }, { path = "out/report", mode = "write" }]
kv = "1MiB"
exec = ["gofmt *"]
tools = ["read_file", "grep"]
session = "read"
llm = { tokens = 20000 }
env = ["LANG"]
events = true
approve = true`

func parse(text string) (Set, error) {
	var table map[string]any
	if _, err := toml.Decode(text, &table); err != nil {
		return Set{}, err
	}
	return FromTable(table)
}

func mustParse(t testing.TB, text string) Set {
	t.Helper()
	s, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryKeyIsPrintedAsItIsRead(t *testing.T) {
	if got := mustParse(t, everything).String(); got != everything {
		t.Errorf("printed:\n%s\nwant:\n%s", got, everything)
	}
	if !mustParse(t, "").Empty() {
		t.Error("an empty table is not Empty")
	}
}

func TestRefused(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"an unknown key", `kvs = "1MiB"`, "kvs: unknown capability: there are http, secrets, fs, kv, exec, tools, session, llm, env, events, approve"},
		{"a size without a unit", `kv = "100"`, `kv: "100" is no size: write a number with B, KiB, MiB or GiB, such as "16MiB"`},
		{"a size of nothing", `kv = "0MiB"`, `kv: "0MiB" is no size: write a number with B, KiB, MiB or GiB, such as "16MiB"`},
		{"a size that overflows", `kv = "9999999999GiB"`, `kv: "9999999999GiB" is no size: write a number with B, KiB, MiB or GiB, such as "16MiB"`},
		{"a size that is a number", `kv = 5`, `kv: it is no size: write kv = "1MiB"`},
		{"a host without a scheme", `http = ["GET api.example.com/"]`, `http: "GET api.example.com/" is no pattern: write "METHOD https://host/path"; the method may be *, the path may end in *`},
		{"a star inside a path", `http = ["GET https://a.example/*/b"]`, `http: "GET https://a.example/*/b": * may stand only at the end of the path`},
		{"a dot segment", `http = ["GET https://a.example/v1/../x"]`, `http: "GET https://a.example/v1/../x": the path has a dot segment`},
		{"an escaped path", `http = ["GET https://a.example/%2e%2e/"]`, `http: "GET https://a.example/%2e%2e/": the path has characters that a path pattern must not have`},
		{"a star inside a host", `http = ["GET https://a.*.example/"]`, `http: "GET https://a.*.example/": "a.*.example" is no host: write it in lower case; *. may stand before it`},
		{"a user in the host", `http = ["GET https://a@b.example/"]`, `http: "GET https://a@b.example/": "a@b.example" is no host: write it in lower case; *. may stand before it`},
		{"a port that is none", `http = ["GET https://a.example:99999/"]`, `http: "GET https://a.example:99999/": "99999" is no port`},
		{"a path out of the workspace", `fs = [{ path = "../x", mode = "read" }]`, `fs: path "../x": write a clean path below the workspace, without .. in it`},
		{"an absolute path", `fs = [{ path = "/etc", mode = "read" }]`, `fs: path "/etc": write a clean path below the workspace, without .. in it`},
		{"an unknown mode", `fs = [{ path = "x", mode = "exec" }]`, `fs: mode "exec" is neither read nor write`},
		{"a folder without a mode", `fs = [{ path = "x" }]`, `fs: an item has no mode: write fs = [{ path = "notes", mode = "read" }]`},
		{"a secret without a place", `secrets = [{ name = "T", host = "a.example", header = "X-T", format = "Bearer" }]`, `secrets: format "Bearer" needs one {}, where the value goes`},
		{"an unknown key of a secret", `secrets = [{ name = "T", hosts = "a.example" }]`, `secrets: an item has the unknown key "hosts", or no string in it: write secrets = [{ name = "TOKEN", host = "api.example.com", header = "Authorization", format = "Bearer {}" }]`},
		{"a session mode", `session = "write"`, `session: write is no mode: write session = "read"`},
		{"no tokens", `llm = { tokens = 0 }`, `llm: it is no budget: write llm = { tokens = 20000 }`},
		{"the same twice", `env = ["A", "A"]`, `env: A is listed twice`},
		{"a glob over variables", `env = ["A*"]`, `env: "A*" is no name of a variable`},
		{"a word for a switch", `approve = "yes"`, `approve: yes is neither true nor false: write approve = true`},
		{"a text for a list", `exec = "ls"`, `exec: it is no list: write exec = ["gofmt *"]`},
		{"an empty pattern", `exec = [""]`, `exec: "" is empty or has control characters`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(tt.text)
			var key *KeyError
			if !errors.As(err, &key) || err.Error() != tt.want {
				t.Errorf("FromTable(%s):\n got %v\nwant %s", tt.text, err, tt.want)
			}
		})
	}
}

func TestIntersect(t *testing.T) {
	all := mustParse(t, everything)
	tests := []struct{ name, a, b, want string }{
		{"with itself nothing is lost", everything, everything, everything},
		{"with nothing nothing is left", everything, "", ""},
		{"the smaller size counts", `kv = "1MiB"`, `kv = "64KiB"`, `kv = "64KiB"`},
		{"the smaller budget counts", `llm = { tokens = 5 }`, `llm = { tokens = 9 }`, `llm = { tokens = 5 }`},
		{"the weaker mode counts", `fs = [{ path = "a", mode = "write" }]`, `fs = [{ path = "a", mode = "read" }]`, `fs = [{ path = "a", mode = "read" }]`},
		{"another folder is no match", `fs = [{ path = "a", mode = "read" }]`, `fs = [{ path = "b", mode = "read" }]`, ``},
		{"a folder in a folder", `fs = [{ path = "a", mode = "write" }]`, `fs = [{ path = "a/b", mode = "read" }]`, `fs = [{ path = "a/b", mode = "read" }]`},
		{"a folder in one that is only read", `fs = [{ path = ".", mode = "read" }]`, `fs = [{ path = "a", mode = "write" }]`, `fs = [{ path = "a", mode = "read" }]`},
		{"a name that only begins the same", `fs = [{ path = "a", mode = "read" }]`, `fs = [{ path = "ab", mode = "read" }]`, ``},
		{"a command within a pattern", `exec = ["gofmt *"]`, `exec = ["gofmt -l *", "go *"]`, `exec = ["gofmt -l *"]`},
		{"patterns that only overlap", `exec = ["gofmt *"]`, `exec = ["* -l"]`, ``},
		{"only items in both", `env = ["A", "B"]`, `env = ["B", "C"]`, `env = ["B"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := mustParse(t, tt.a), mustParse(t, tt.b)
			if got := a.Intersect(b).String(); got != tt.want {
				t.Errorf("a ∩ b = %s; want %s", got, tt.want)
			}
			if diff := cmp.Diff(a.Intersect(b), b.Intersect(a), cmpopts.EquateComparable(egress.Pattern{})); diff != "" {
				t.Errorf("a ∩ b differs from b ∩ a:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(all, all.Intersect(all), cmpopts.EquateComparable(egress.Pattern{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseWords(t *testing.T) {
	asked := mustParse(t, everything)
	tests := []struct {
		name  string
		words []string
		want  string // what counts, or the error
	}{
		{"nothing by default", nil, ""},
		{"none", []string{"none"}, ""},
		{"all", []string{"all"}, everything},
		{"a key, as asked for", []string{"kv"}, `kv = "1MiB"`},
		{"two keys", []string{"env", "kv"}, "kv = \"1MiB\"\nenv = [\"LANG\"]"},
		{"all with another", []string{"kv", "all"}, `error: grant "all": it stands alone: leave out the other grants`},
		{"an unknown one", []string{"disk"}, `error: grant "disk": no such capability: there are all, none, http, secrets, fs, kv, exec, tools, session, llm, env, events, approve`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := ParseWords(tt.words)
			got := g.Effective("x", asked).String()
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want {
				t.Errorf("ParseWords(%q) counts as\n%s\nwant\n%s", tt.words, got, tt.want)
			}
		})
	}
}

// Each key can be granted alone, and then it is the only one that counts.
func TestEachKeyAlone(t *testing.T) {
	asked := mustParse(t, everything)
	for _, key := range Keys {
		g, err := ParseWords([]string{key})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := g.Effective("x", asked).String(), asked.Line(key); got != want {
			t.Errorf("--grant %s counts as %q; want %q", key, got, want)
		}
	}
}

func TestParseValue(t *testing.T) {
	asked := mustParse(t, `kv = "1MiB"`)
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{"all", "all", `kv = "1MiB"`},
		{"none", "none", ""},
		{"less than was asked for", map[string]any{"kv": "1KiB"}, `kv = "1KiB"`},
		{"more than was asked for", map[string]any{"kv": "1GiB", "events": true}, `kv = "1MiB"`},
		{"a word that is none", "some", `error: grant: some is neither "all", "none" nor a table like [capabilities]`},
		{"a bad table", map[string]any{"kv": 1}, `error: grant: kv: it is no size: write kv = "1MiB"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := ParseValue(tt.value)
			got := g.Effective("x", asked).String()
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want {
				t.Errorf("ParseValue(%v) counts as %q; want %q", tt.value, got, tt.want)
			}
		})
	}
}

func must(n Need, err error) Need {
	if err != nil {
		panic(err)
	}
	return n
}

func request(method, address string) Need {
	u, err := egress.ParseURL(address)
	if err != nil {
		panic(err)
	}
	return HTTP(method, u)
}

// A refusal names the line that would allow it.
func TestAllow(t *testing.T) {
	tests := []struct {
		name  string
		asked string
		grant Grant
		need  Need
		want  string
	}{
		{"no need", "", Grant{}, Need{}, ""},
		{"granted", `kv = "1MiB"`, All(), KV("a"), ""},
		{"a need that none of the functions made", `env = ["A"]`, All(), Need{Key: "env", Target: "A"}, `capability not granted: env: the manifest does not ask for it: add  to env under [capabilities], and grant it`},
		{"a file in a folder", `fs = [{ path = "notes", mode = "read" }]`, All(), must(File("notes/./today.md", false)), ""},
		{"a file that would be written", `fs = [{ path = "notes", mode = "read" }]`, All(), must(File("notes/a", true)), `capability not granted: fs: the manifest does not ask for it: add { path = "notes/a", mode = "write" } to fs under [capabilities], and grant it`},
		{"a command", `exec = ["gofmt *"]`, All(), must(Exec("gofmt  -l 'a b.go'")), ""},
		{"a command with a quoted star", "", All(), must(Exec("find . -name '*.go'")), `capability not granted: exec: the manifest does not ask for it: add exec = ["find . -name '*.go'"] under [capabilities], and grant it`},
		{"a command of which less was granted", `exec = ["gofmt *"]`, Only(Set{Exec: []string{"gofmt -l *"}}), must(Exec("gofmt -w a.go")), `capability not granted: exec: the user did not grant it: add --grant exec after --ext, or grant = { exec = ["gofmt -w a.go"] } under [extensions.notes]`},
		{"a tool", `tools = ["grep"]`, All(), must(Tool("exec")), `capability not granted: tools: the manifest does not ask for it: add "exec" to tools under [capabilities], and grant it`},
		{"a variable", `env = ["LANG"]`, Grant{}, must(Env("LANG")), `capability not granted: env: the user did not grant it: add --grant env after --ext, or grant = { env = ["LANG"] } under [extensions.notes]`},
		{"a request", `http = ["GET https://a.example/x"]`, All(), request("POST", "https://a.example/x?key=1"), `capability not granted: http: the manifest does not ask for it: add "POST https://a.example/x" to http under [capabilities], and grant it`},
		{"a request whose path is no pattern", "", All(), request("GET", "https://a.example/x*y"), `capability not granted: http: the manifest does not ask for it: add http = ["GET https://a.example/*"] under [capabilities], and grant it`},
		{"a request within a pattern", `http = ["* https://a.example/*"]`, All(), request("GET", "https://a.example/x*y"), ""},
		{"tokens", `llm = { tokens = 5 }`, Grant{}, LLM("m"), `capability not granted: llm: the user did not grant it: add --grant llm after --ext, or grant = { llm = { tokens = 5 } } under [extensions.notes]`},
		{"events", "", All(), Events("x"), `capability not granted: events: the manifest does not ask for it: add events = true under [capabilities], and grant it`},
		{"the session", `session = "read"`, All(), Session(), ""},
		{"not asked for", "", All(), KV("a"), `capability not granted: kv: the manifest does not ask for it: add kv = "1MiB" under [capabilities], and grant it`},
		{"not granted", `kv = "1MiB"`, Grant{}, KV("a"), `capability not granted: kv: the user did not grant it: add --grant kv after --ext, or grant = { kv = "1MiB" } under [extensions.notes]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.grant.Effective("notes", mustParse(t, tt.asked)).Allow(tt.need)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Allow = %v; want nil", err)
			case tt.want != "" && (!errors.Is(err, ErrNotGranted) || err.Error() != tt.want):
				t.Errorf("Allow:\n got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestRemedied(t *testing.T) {
	e := Grant{}.Effective("notes", mustParse(t, `kv = "1MiB"`)).Remedied(func(key, line string) string { return key + " by " + line })
	if err, want := e.Allow(KV("a")), `capability not granted: kv: the user did not grant it: kv by kv = "1MiB"`; !errors.Is(err, ErrNotGranted) || err.Error() != want {
		t.Errorf("Allow:\n got %v\nwant %s", err, want)
	}
	if err, want := e.Allow(Session()), `capability not granted: session: the manifest does not ask for it: add session = "read" under [capabilities], and grant it`; err.Error() != want {
		t.Errorf("Allow:\n got %v\nwant %s", err, want)
	}
}

// What is accepted can be printed, and reads as the same.
func FuzzFromTable(f *testing.F) {
	f.Add(everything)
	f.Add(`http = ["GET http://[::1]:8080/"]`)
	f.Add(`exec = ["a \"b\" \\ c"]`)
	f.Fuzz(func(t *testing.T, text string) {
		var table map[string]any
		if _, err := toml.Decode(text, &table); err != nil {
			t.Skip()
		}
		s, err := FromTable(table)
		if err != nil {
			var key *KeyError
			if !errors.As(err, &key) {
				t.Fatalf("error %v is no KeyError", err)
			}
			return
		}
		again := mustParse(t, s.String())
		if again.String() != s.String() {
			t.Errorf("printed:\n%s\nread again:\n%s", s, again)
		}
	})
}
