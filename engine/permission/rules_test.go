package permission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// policyOf makes a policy of rules, a line each: "deny exec(git push *)".
// asking is a profile that asks about every command, and allows those that only read,
// as all but full-access do.
const asking Profile = "asking"

func init() { table[asking] = table[FullAccess] }

func policyOf(t testing.TB, profile Profile, rules ...string) *Policy {
	t.Helper()
	p, err := New(profile, ApproveAsk)
	if err != nil {
		t.Fatal(err)
	}
	var all []Rule
	for _, text := range rules {
		word, rule, _ := strings.Cut(text, " ")
		verdict := map[string]Verdict{"deny": Deny, "ask": Ask, "allow": Allow}[word]
		r, err := ParseRule(verdict, rule, "test")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return p.WithRules(all, Place{Workspace: "/workspace", Home: "/home/me", Resolve: func(path string) string {
		switch path {
		case "link":
			return "secrets/key"
		case "link2":
			return "/workspace/go.mod"
		}
		return ""
	}})
}

func execCall(command string) Call {
	arguments, _ := json.Marshal(map[string]string{"command": command})
	return Call{Tool: "exec", Effect: Executes, Arguments: arguments}
}

func typed(text string) Call {
	arguments, _ := json.Marshal(map[string]string{"session_id": "exec-1", "text": text})
	return Call{Tool: "write_stdin", Effect: Executes, Arguments: arguments}
}

func execIn(dir, command string) Call {
	arguments, _ := json.Marshal(map[string]string{"command": command, "dir": dir})
	return Call{Tool: "exec", Effect: Executes, Arguments: arguments}
}

func patchCall(parts string) Call {
	raw, _ := json.Marshal(map[string]string{"patch": "*** Begin Patch\n" + parts + "\n*** End Patch"})
	return Call{Tool: "apply_patch", Effect: Writes, Arguments: raw}
}

func fileCall(name string, effect Effect, path string) Call {
	arguments, _ := json.Marshal(map[string]string{"path": path})
	return Call{Tool: name, Effect: effect, Arguments: arguments}
}

// A rule that denies a command denies it however it is written, and what nobody
// can know before is asked about.
func TestDeniedCommands(t *testing.T) {
	p := policyOf(t, WorkspaceWrite, "deny exec(git push *)", "allow exec(git *)")
	tests := map[Verdict][]string{
		Deny: {
			"git push", "git push origin main", "  git   push\torigin", "git pu\\sh", "git 'push'", `g"i"t "push"`, "git \\\npush",
			"/usr/bin/git push", "../../usr/bin/git push", "git -C dir push", "git --no-pager -c a=b push", "GIT_DIR=x git push",
			"ls && git push", "ls; git push", "ls | git push", "ls || git push", "ls & git push", "ls\ngit push", "(git push)", "{ git push; }",
			"! git push", "if true; then git push; fi", "while git push; do :; done", "for x in a; do git push; done", "case x in *) git push;; esac",
			"f() { git push; }; f", "echo $(git push)", "echo `git push`", `echo "$(git push)"`, "X=$(git push)", "cat <(git push)", "cat <<E\n$(git push)\nE",
			"echo ${X:-$(git push)}", "echo $((1 + $(git push)))", "[[ -n $(git push) ]]", "a=($(git push))", "coproc git push",
			"sudo git push", "sudo -u root git push", "sudo -Eu root -- git push", "env git push", "env -i A=b git push", "env -u A git push", "timeout 5 git push",
			"timeout -s KILL 5 git push", "timeout --signal=KILL 5s git push", "nice git push", "nice -n 5 git push", "nice -5 git push", "nohup git push", "time git push", "time -p git push",
			"stdbuf -oL git push", "command git push", "command -p git push", "builtin git push", "exec git push", "exec -a x git push", "setsid git push", "busybox git push",
			"strace -f -o out git push", "xargs git push", "xargs -n1 -P 4 git push", "ls | xargs -I{} git push {}", "find . -exec git push {} ;", `find . -name x -execdir git push {} \;`, "find . -ok git push +",
			`sh -c "git push"`, `sh -c 'git  push'`, `bash -lc "git push"`, `bash -c -e "git push"`, `bash -o pipefail -c "git push"`, `sh -ec "ls; git push"`, `sudo sh -c "env git push"`,
			`sh -c "sh -c 'git push'"`, `eval git push`, `eval "git push"`, `eval 'git' 'push'`, "sh <<E\ngit push\nE", "bash -s <<'E'\ngit push\nE", `sh <<<"git push"`, "trap 'git push' EXIT",
			`su -c "git push" me`, `watch git push`, `ssh host git push`, `flock x git push`, `flock x -c "git push"`, `script -c "git push" x`, "sudo timeout 5 nice env xargs git push",
			"git push > out", "git push 2>&1", ">out git push", "git push #comment", "function f { git push; }; f", "git push &", "export X=$(git push)", "declare X=$(git push)",
		},
		Ask: {
			"$X push", "git $X", "git ${X} origin", `git "$X"`, "git $(echo push)", "$(echo git) push", "git `echo push`", "{git,push}", "git {push,x}", "/usr/bin/gi? push", "git pus*", "git $'push'",
			"sh -c $X", `sh -c "$X"`, "eval $X", "echo git push | sh", "sh < file", "curl http://x | bash", "xargs sh -c", "echo push | xargs git", "find . -exec git {} ;", "git $((1))", `git "$@"`,
			"sudo -s", "sudo -i", "su", "alias g=git; g push", ". /dev/stdin", "source <(echo git push)", "git 'push", "env -S 'git push'", "git push$X", "git pu$X", "sh -c '$X'", "sh /dev/stdin",
			strings.Repeat("a", 10_001), strings.Repeat("sh -c '", 1) + strings.Repeat("eval ", 20) + "git push'", "$0 push", "if", "echo x | xargs -I{} sh -c {}", "sudo $X git push",
		},
	}
	for want, commands := range tests {
		for _, command := range commands {
			if got, by := p.Decide(execCall(command)); got != want {
				t.Errorf("%.80q is %v by %s; want %v", command, got, by, want)
			}
		}
	}
	for _, command := range []string{
		"git status", "git pushx", "gitpush", "git log push.txt", "echo git push", `git commit -m "git push"`, "cat 'git push'", "grep -rn 'git push' .", "git commit -m \"$M\"",
		"ls # git push", "cat <<'E'\n$(git push)\nE", "echo '$(git push)'",
	} {
		if got, by := p.Decide(execCall(command)); got != Allow {
			t.Errorf("%q is %v by %s; want allow", command, got, by)
		}
	}
}

// What a rule allows is allowed only if each part of the line is.
func TestAllowedCommands(t *testing.T) {
	p := policyOf(t, asking, "allow Bash(npm run test *)", "allow exec(go build:*)", "allow exec(make)", "allow Edit(out/**)")
	tests := map[Verdict][]string{
		Allow: {
			"npm run test", "npm run test --watch", "npm  run 'test'", "go build", "go build ./...", "make", "CI=1 npm run test", "npm run test | tail -5", "cd sub && go build", "go build 2>&1",
			"go build > out/log", "go build >/dev/null 2>&1", "timeout 60 go build", "env GOOS=linux go build", "sh -c 'go build && make'", "x=1; echo $x", "ls -la", "cat a | sort | uniq", "git status",
			"git log --oneline -5", "git --no-pager diff", "find . -name '*.go'", "grep -rn x . | wc -l", "ls | xargs cat", "find . -exec cat {} ;", "date", "if make; then ls; fi", "cat $FILE", "env", "make;", "xargs",
		},
		Ask: {
			"npm run testing", "npm run", "npm install", "make all", "go build; rm x", "go build && ./a.out", "go build $(rm x)", "go build > log", "go build > ../out/log", "go build > $X", "LD_PRELOAD=x go build",
			"PATH=. go build", "PATH=.; make", "./make", "/tmp/npm run test", "sudo make", "env -i PATH=. make", "xargs make", "sh -c \"$X\"", "$X", "make $X", "find . -delete", "find . -exec rm {} ;", "sort -o x y",
			"sort -ro x", "git push", "git diff --output=x", "git -c core.pager=x log", "git grep -Ovim x", "rg --pre x y", "date -s x", "uniq a b", "env X", "npm run $X", "sed -i s/a/b/ x", "awk '{}' x", "tee x", "cat x > y",
			"export PATH=.; make", "http_proxy=x go build", "f() { rm x; }; make", "go build &> x", "go build >& x", "ls | sh", "npm run test\nrm x",
		},
	}
	for want, commands := range tests {
		for _, command := range commands {
			got, by := p.Decide(execCall(command))
			if got != want {
				t.Errorf("%q is %v by %s; want %v", command, got, by, want)
			}
		}
	}
}

// Rules about paths see where a call leads, and what a command's text names.
func TestPathRules(t *testing.T) {
	p := policyOf(t, WorkspaceWrite, "deny Read(.env)", "deny Read(secrets/)", "deny Edit(/go.mod)", "deny read_file(~/.ssh/**)", "deny Read(//etc/**)", "ask Write(*.lock)", "allow Edit(src/**)")
	tests := []struct {
		call Call
		want Verdict
	}{
		{fileCall("read_file", Reads, ".env"), Deny},
		{fileCall("read_file", Reads, "a/b/.env"), Deny},
		{fileCall("read_file", Reads, "./x/../.env"), Deny},
		{fileCall("read_file", Reads, "/workspace/.env"), Deny},
		{fileCall("read_file", Reads, ".env.example"), Allow},
		{fileCall("grep", Reads, "secrets/a/b"), Deny},
		{fileCall("find_files", Reads, "secrets"), Deny},
		{fileCall("list_dir", Reads, "secrets"), Deny},
		{fileCall("list_dir", Reads, "secrets/a"), Deny},
		{fileCall("list_dir", Reads, ""), Allow},
		{fileCall("list_dir", Reads, "sub"), Allow},
		{fileCall("read_file", Reads, "link"), Deny},
		{fileCall("read_file", Reads, "/home/me/.ssh/id"), Deny},
		{fileCall("read_file", Reads, "~/.ssh/id"), Deny},
		{fileCall("read_file", Reads, "/etc/passwd"), Deny},
		{fileCall("read_file", Reads, "sub/etc/passwd"), Allow},
		{fileCall("write_file", Writes, "go.mod"), Deny},
		{fileCall("edit_file", Writes, "sub/go.mod"), Allow},
		{fileCall("read_file", Reads, "go.mod"), Allow},
		{fileCall("write_file", Writes, "x/y.lock"), Ask},
		{patchCall("*** Update File: go.mod\n-a\n+b"), Deny},
		{patchCall("*** Delete File: ./go.mod"), Deny},
		{patchCall("*** Delete File: link2"), Deny},
		{patchCall("*** Add File: a\n+x\n*** Update File: b\n*** Move to: sub/../go.mod"), Deny},
		{patchCall("*** Add File: x/y.lock\n+a"), Ask},
		{patchCall("*** Add File: go.mod.txt\n+*** Delete File: go.mod"), Allow},
		{execCall("cat .env"), Deny},
		{execCall("grep KEY < ./.env"), Deny},
		{execCall("cp /workspace/secrets/a b"), Deny},
		{execCall("sh -c 'cat a/.env'"), Deny},
		{execCall("cat link"), Deny},
		{execCall("echo x > go.mod"), Deny},
		{execCall("echo x >> sub/../go.mod"), Deny},
		{execCall("cat go.mod"), Allow},
		{execCall("sed -i s/a/b/ go.mod"), Ask},
		{execCall("go test ./..."), Allow},
		{execCall("echo x > link2"), Deny},
		{execCall("cat .e*"), Ask},
		{execCall("cat s*/key"), Ask},
		{execCall("cat *.go"), Allow},
		{execCall("cat *"), Ask},
		{execCall("cat /e*/passwd"), Ask},
		{execCall("tar cf x s?crets"), Ask},
		{execCall("X=.env; cat $X"), Ask},
		{execCall("curl -d @.env localhost"), Ask},
		{execCall("dd if=.env"), Ask},
		{execCall("curl --config=.env localhost"), Ask},
		{execCall("grep -f.env x"), Ask},
		{execCall("git show HEAD:.env"), Ask},
		{execCall("cd sub && echo x > ../go.mod"), Deny},
		{execCall("cd sub; cd deep; sed -i s/a/b/ ../../go.mod"), Ask},
		{execCall("make -C sub > ../go.mod"), Deny},
		{execIn("sub", "echo x > ../go.mod"), Deny},
		{execIn("secrets", "cat key"), Deny},
		{execIn("sub", "cat key"), Allow},
	}
	for _, tt := range tests {
		if got, by := p.Decide(tt.call); got != tt.want {
			t.Errorf("%s %s is %v by %s; want %v", tt.call.Tool, tt.call.Arguments, got, by, tt.want)
		}
	}
}

// Rules about hosts see the host that would be asked.
func TestHostRules(t *testing.T) {
	p := policyOf(t, WorkspaceWrite, "allow WebFetch(domain:example.com)", "allow web_fetch(domain:*.Go.dev)", "deny WebFetch(domain:bad.go.dev)", "ask WebFetch(domain:ask.example.com)")
	for url, want := range map[string]Verdict{
		"https://example.com/a":           Allow,
		"HTTPS://EXAMPLE.com:8443/":       Allow,
		"https://www.example.com/":        Ask,
		"https://example.com.evil.com/":   Ask,
		"https://evil.com/example.com":    Ask,
		"https://example.com@evil.com/":   Ask,
		"https://evil.com\\@example.com/": Ask,
		"https://pkg.go.dev/":             Allow,
		"https://go.dev/":                 Ask,
		"https://bad.go.dev/":             Deny,
		"https://BAD.go.dev:443/#x":       Deny,
		"https://ask.example.com/":        Ask,
		"no URL":                          Ask,
	} {
		raw, _ := json.Marshal(map[string]string{"url": url})
		c := Call{Tool: "web_fetch", Effect: Network, Arguments: raw}
		if got, by := p.Decide(c); got != want {
			t.Errorf("%q is %v by %s; want %v", url, got, by, want)
		}
	}
	c := Call{Tool: "web_fetch", Effect: Network, Arguments: []byte(`{"url":"https://Docs.Example.org/x"}`)}
	if rule := p.Suggest(c); rule != "web_fetch(domain:docs.example.org)" {
		t.Errorf("a yes for longer is %q", rule)
	}
	for _, bad := range []string{"WebFetch(example.com)", "WebFetch(domain:)", "WebFetch(domain:example.com:443)", "WebFetch(domain:https://x.y)", "WebFetch(domain:*)"} {
		want := fmt.Sprintf("rule %q: write a host as domain:example.com, or domain:*.example.com for its subdomains", bad)
		if _, err := ParseRule(Allow, bad, ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A patch is allowed only if all that it names is.
func TestAllowedPatches(t *testing.T) {
	p := policyOf(t, FullAccess, "allow Edit(src/**)")
	for parts, want := range map[string]Verdict{
		"*** Add File: src/a\n+x":                                            Allow,
		"*** Add File: src/a\n+x\n*** Delete File: b":                        Ask,
		"*** Update File: src/a\n*** Move to: b":                             Ask,
		"*** Update File: src/a\n*** Move to: src/b\n*** Delete File: src/c": Allow,
		"no patch": Ask,
	} {
		if got, by := p.Decide(patchCall(parts)); got != want {
			t.Errorf("%q is %v by %s; want %v", parts, got, by, want)
		}
	}
	if rule := p.Suggest(patchCall("*** Add File: src/a\n+x")); rule != "" {
		t.Errorf("a yes to a patch would be remembered as %q", rule)
	}
}

// Deny comes before ask, ask before allow, and the profile's no before all.
func TestOrderOfRules(t *testing.T) {
	tests := []struct {
		name    string
		profile Profile
		rules   []string
		call    Call
		want    Verdict
		by      string
	}{
		{"no rule speaks", WorkspaceWrite, []string{"deny web_fetch"}, execCall("ls"), Allow, `that it only reads`},
		{"nothing only reads where all can be read", FullAccess, []string{"deny web_fetch"}, execCall("cat ../x"), Ask, `the profile "full-access"`},
		{"nor beside what is allowed", FullAccess, []string{"allow exec(make)"}, execCall("make; cat ../x"), Ask, `the profile "full-access"`},
		{"what is allowed itself", FullAccess, []string{"allow exec(make)"}, execCall("make"), Allow, `the rule "allow exec(make)"`},
		{"deny before allow", WorkspaceWrite, []string{"allow exec(make *)", "deny exec(make *)"}, execCall("make x"), Deny, `the rule "deny exec(make *)"`},
		{"ask before allow", WorkspaceWrite, []string{"allow exec", "ask exec(make *)"}, execCall("make x"), Ask, `the rule "ask exec(make *)"`},
		{"a tool as a whole", WorkspaceWrite, []string{"deny Bash"}, execCall("ls"), Deny, `the rule "deny Bash"`},
		{"what is typed into a program", WorkspaceWrite, []string{"deny exec(make)"}, typed("make\n"), Ask, `the rule "deny exec(make)", which may forbid it: what a program is told cannot be judged,`},
		{"tools of a server", WorkspaceWrite, []string{"deny mcp__git__*"}, Call{Tool: "mcp__git__push", Effect: Network}, Deny, `the rule "deny mcp__git__*"`},
		{"allow opens a question", WorkspaceWrite, []string{"allow mcp__git__*"}, Call{Tool: "mcp__git__push", Effect: Network}, Allow, `the rule "allow mcp__git__*"`},
		{"the profile denies", ReadOnly, []string{"allow Edit"}, fileCall("write_file", Writes, "a"), Deny, `the profile "read-only"`},
		{"what does nobody knows what", WorkspaceWrite, []string{"allow odd"}, Call{Tool: "odd"}, Deny, `the profile "workspace-write"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, by := policyOf(t, tt.profile, tt.rules...).Decide(tt.call); got != tt.want || by != tt.by {
				t.Errorf("Decide = %v by %s; want %v by %s", got, by, tt.want, tt.by)
			}
		})
	}
}

// A question that a rule asks is never answered by the sandbox.
func TestRulesAreNotAnsweredAutomatically(t *testing.T) {
	for rule, want := range map[string]bool{"ask exec(make)": false, "deny exec(make)": false, "deny web_fetch": true} {
		p := policyOf(t, WorkspaceWrite, rule)
		p.approve = ApproveAuto
		if got, _ := p.Answer(execCall("$X")); got != want {
			t.Errorf("%s: $X is approved: %t; want %t", rule, got, want)
		}
	}
}

// A question says what is not known, and why it matters.
// Of what is typed into a program nobody knows what it does: a rule that forbids or asks is
// asked about, and no automatic answer counts. Looking, and the keys that end a program, are free.
func TestTyped(t *testing.T) {
	for _, tt := range []struct {
		rule, text string
		want       Verdict
	}{
		{"deny exec(git push *)", "git push\n", Ask},
		{"deny exec(git push *)", "x", Ask},
		{"deny exec(git push *)", "\n", Ask},
		{"deny exec(git push *)", "\x03x\x03", Ask},
		{"deny exec(git push *)", "\x10", Ask}, // the line before, in shells
		{"deny exec(git push *)", "", Allow},
		{"deny exec(git push *)", "\x03\x04\x1c", Allow},
		{"ask exec(rm *)", "print(1)\n", Ask},
		{"ask exec(rm *)", "", Allow},
		{"ask Bash", "\x03", Ask},
		{"deny Bash", "", Deny},
		{"deny Read(.env)", "cat .env\n", Ask},
		{"deny Read(.env)", "cat .e''nv\n", Ask},
		{"deny Read(.env)", "cat .e*\n", Ask},
		{"deny Read(.env)", "print(open('.env').read())\n", Ask},
		{"deny Read(.env)", "open(\"config/.env\"", Ask},
		{"deny Read(.env)", "print(1)\n", Allow},
		{"deny Edit(*.lock)", "open('a.lock', 'w')\n", Ask},
		{"ask Edit(*.lock)", "echo > a.lock\n", Ask},
		{"allow exec(make)", "make\n", Allow}, // by the profile, as all that is confined
	} {
		p := policyOf(t, WorkspaceWrite, tt.rule)
		p.approve = ApproveAuto
		verdict, by := p.Decide(typed(tt.text))
		if verdict != tt.want {
			t.Errorf("%s: typing %q: %v by %s; want %v", tt.rule, tt.text, verdict, by, tt.want)
		}
		if allowed, why := p.Answer(typed(tt.text)); verdict == Ask && allowed {
			t.Errorf("%s: typing %q was %s", tt.rule, tt.text, why)
		}
	}
	if verdict, _ := policyOf(t, FullAccess).Decide(typed("ls\n")); verdict != Ask {
		t.Errorf("typing under full-access: %v; want ask", verdict)
	}
	if rule := policyOf(t, WorkspaceWrite, "ask Bash").Suggest(typed("ls\n")); rule != "" {
		t.Errorf("a yes to what is typed would be remembered as %q", rule)
	}
}

func TestUnsure(t *testing.T) {
	const (
		words   = "some of its words are not known before it runs"
		names   = "it names such a file, and nobody can tell what it does with it"
		pattern = "it names such a file, or may mean one by a pattern, and nobody can tell what it does with it"
		among   = "it has that command among its words, and another program may run it"
	)
	for _, tt := range []struct{ rule, command, want string }{
		{"exec(git push *)", "git $X", words},
		{"exec(git push *)", "$X push", "its program is not known before it runs"},
		{"exec(git push *)", "echo push | xargs git", words},
		{"exec(git push *)", "perl -e 'system(\"git push\")'", among},
		{"exec(git push *)", "sh -c \"$X\"", "a shell runs what is not known"},
		{"Edit(*.lock)", "echo hi | tee out.lock", names},
		{"Edit(*.lock)", "cp a.lock b", names},
		{"Edit(*.lock)", "cp a.lock $B", names},
		{"Edit(*.lock)", "rm *.lock", pattern},
		{"Read(.env)", "X=.env; cat $X", names},
		{"Read(.env)", "cat .e*", pattern},
		{"Read(.env)", "sh -c \"$X\" .env2; dd if=.env", names},
	} {
		want := `the rule "deny ` + tt.rule + `", which may forbid it: ` + tt.want + ","
		if verdict, by := policyOf(t, WorkspaceWrite, "deny "+tt.rule).Decide(execCall(tt.command)); verdict != Ask || by != want {
			t.Errorf("%s: %v by %s\nwant %s", tt.command, verdict, by, want)
		}
	}
}

func TestHides(t *testing.T) {
	p := policyOf(t, WorkspaceWrite, "deny Bash", "deny Read(.env)", "ask grep")
	for tool, want := range map[string]bool{"exec": true, "write_stdin": true, "read_file": false, "grep": false} {
		if got := p.Hides(tool); got != want {
			t.Errorf("Hides(%s) = %t; want %t", tool, got, want)
		}
	}
}

// What may not be read is not found by a search that begins above it either.
func TestConceals(t *testing.T) {
	p := policyOf(t, WorkspaceWrite, "deny Read(.env)", "deny Read(/secrets/)", "deny Edit(go.mod)", "ask Read(a)")
	for name, want := range map[string]bool{"x/.env": true, "secrets": true, "secrets/a/b": true, "sub/secrets/a": false, "go.mod": false, "a": false} {
		if got := p.Conceals(name); got != want {
			t.Errorf("Conceals(%q) = %t; want %t", name, got, want)
		}
	}
}

// A rule that is about no tool may be misspelt.
func TestMisses(t *testing.T) {
	for text, want := range map[string]string{
		"exce": "exce", "Exec": "Exec", "gerp*": "gerp*", "exec": "", "Bash(git push)": "", "list_dir": "", "web_*": "", "*": "",
		"csv_query": "", "csv_*": "", "csv_qeury": "csv_qeury", "mcp__github__*": "", "TodoWrite": "", "ask_user": "",
	} {
		r, err := ParseRule(Deny, text, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Misses([]string{"csv_query"}); got != want {
			t.Errorf("%s misses %q; want %q", text, got, want)
		}
	}
}

func TestParseRuleRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", `rule "": write it as Tool or Tool(pattern), such as exec(git push *)`},
		{"exec(git", `rule "exec(git": write it as Tool or Tool(pattern), such as exec(git push *)`},
		{"exec()", `rule "exec()": there is no command in it: write the tool alone for all of them`},
		{"Read()", `rule "Read()": that is no pattern of paths: write one such as src/** or *.env`},
		{"Read([)", `rule "Read([)": that is no pattern of paths: write one such as src/** or *.env`},
		{"todo_write(x)", `rule "todo_write(x)": todo_write takes no pattern`},
		{"*", `rule "*": only the tools of a server (mcp__SERVER__*) can be allowed by a pattern: name the tool`},
	}
	for _, tt := range tests {
		if _, err := ParseRule(Allow, tt.text, ""); err == nil || err.Error() != tt.want {
			t.Errorf("ParseRule(%q): %v; want %s", tt.text, err, tt.want)
		}
	}
}

// Nothing that a model writes breaks the judge, and what does not parse is never
// allowed by a rule.
func FuzzDecide(f *testing.F) {
	for _, command := range []string{"git push", "sh -c 'git push'", "cat <<E\n$(git push)\nE", "((", "x=(", "${a[$(b)]}", "\x00", "a\\", "$'\\x'", "case x in", "!#", "[[ a =~ b ]]", "xargs -I", "env -S", "find -exec"} {
		f.Add(command)
	}
	rules := policyOf(f, asking, "deny exec(git push *)", "allow exec(git *)", "allow exec(make)", "deny Read(.env)", "ask Edit(src/**)")
	f.Fuzz(func(t *testing.T, command string) {
		command = strings.ToValidUTF8(command, "?") // as JSON has it
		verdict, by := rules.Decide(execCall(command))
		if by == "" {
			t.Errorf("%q is %v by nothing", command, verdict)
		}
		if l := readLine(command); l.open != "" && verdict == Allow {
			t.Errorf("%q is allowed by %s, and open: %s", command, by, l.open)
		}
		if verdict, by := rules.Decide(typed(command)); verdict != Ask && strings.Trim(command, quietKeys) != "" {
			t.Errorf("typing %q is %v by %s", command, verdict, by)
		}
		for _, c := range readLine(command).commands {
			_ = c.String()
		}
	})
}

// A patch shows lines of the files that it changes, so what is to be asked about or denied
// when it is read is so of a patch, too.
func TestPatchesRead(t *testing.T) {
	for _, tt := range []struct{ rule, parts, want string }{
		{"ask Read(.env)", "*** Update File: .env\n-a\n+b", `ask: the rule "ask Read(.env)"`},
		{"ask Read(.env)", "*** Update File: a\n-a\n+b\n*** Update File: sub/../.env\n*** Move to: b", `ask: the rule "ask Read(.env)"`},
		{"ask Read(.env)", "*** Delete File: .env", `ask: the rule "ask Read(.env)"`},
		{"ask Read(secrets/**)", "*** Update File: link\n-a\n+b", `ask: the rule "ask Read(secrets/**)"`},
		{"ask Read", "*** Update File: a\n-a\n+b", `ask: the rule "ask Read"`},
		{"deny Read(.env)", "*** Update File: .env\n-a\n+b", `deny: the rule "deny Read(.env)"`},
		{"deny Read(.env)", "*** Add File: .env\n+b", `allow: the profile "workspace-write"`},
		{"ask Read", "*** Add File: a\n+b", `allow: the profile "workspace-write"`},
		{"deny Read(.env)", "*** Update File: a\n*** Move to: .env", `allow: the profile "workspace-write"`},
		{"ask Read(.env)", "*** Update File: a\n-.env\n+b", `allow: the profile "workspace-write"`},
	} {
		verdict, by := policyOf(t, WorkspaceWrite, tt.rule, "allow Read(b)").Decide(patchCall(tt.parts))
		if got := verdict.String() + ": " + by; got != tt.want {
			t.Errorf("%s of %q: %s, want %s", tt.rule, tt.parts, got, tt.want)
		}
	}
}
