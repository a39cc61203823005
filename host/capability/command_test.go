package capability

import (
	"os/exec"
	"strings"
	"testing"
)

// Whatever may be more than one simple command is refused.
func TestCommandsThatAreNotSimple(t *testing.T) {
	compound := func(r string) string {
		return "the command has '" + r + "', so it may be more than one simple command: call programs one by one, or quote it"
	}
	tests := []struct{ name, command, want string }{
		{"two commands", "ls; rm -r x", compound(";")},
		{"two lines", "ls\nrm -r x", compound(`\n`)},
		{"a carriage return", "ls\r", compound(`\r`)},
		{"one in the background", "ls & rm x", compound("&")},
		{"a pipe", "ls | sh", compound("|")},
		{"a redirection", "ls > x", compound(">")},
		{"an input", "sh < x", compound("<")},
		{"a subshell", "(ls)", compound("(")},
		{"a group", "{ ls; }", compound("{")},
		{"braces", "rm {a,b}", compound("{")},
		{"a variable", "ls $HOME", compound("$")},
		{"a command in a command", "ls `rm x`", compound("`")},
		{"a star", "rm *", compound("*")},
		{"a question mark", "rm ?", compound("?")},
		{"a bracket", "rm [ab]", compound("[")},
		{"a home folder", "ls ~", compound("~")},
		{"a negation", "! ls", compound("!")},
		{"a backslash", `ls \; rm`, compound(`\\`)},
		{"a blank of Unicode's", "ls\u00a0x", compound(`\u00a0`)},
		{"a line of Unicode's", "ls\u2028rm", compound(`\u2028`)},
		{"a zero byte", "ls\x00", compound(`\x00`)},
		{"a comment", "ls #x", "the command has a comment"},
		{"a variable between quotes", `ls "$HOME"`, `the command has '$' between quotes, which is not taken: use single quotes, or leave it out`},
		{"a command between quotes", "ls \"`rm`\"", "the command has '`' between quotes, which is not taken: use single quotes, or leave it out"},
		{"a backslash between quotes", `ls "\""`, `the command has '\\' between quotes, which is not taken: use single quotes, or leave it out`},
		{"a line break between quotes", "ls 'a\nb'", `the command has '\n' between quotes, which is not taken: use single quotes, or leave it out`},
		{"a quote without an end", "ls 'a", "the command has a quote that is not closed"},
		{"an assignment", "A=b ls", "the command begins with an assignment: use env NAME=VALUE"},
		{"an assignment in quotes", "'A=b' ls", "the command begins with an assignment: use env NAME=VALUE"},
		{"a word of the shell's", "if ls", `the command begins with "if", a word of the shell's`},
		{"nothing", " \t ", "the command is empty"},
		{"no program", "'' x", "the program's name is empty"},
		{"no UTF-8", "ls \xff", "the command is not UTF-8"},
		{"too much", "ls " + strings.Repeat("x", maxCommand), "the command has more than 8192 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if n, err := Exec(tt.command); err == nil || err.Error() != tt.want {
				t.Errorf("Exec(%q) = %v, %v\nwant %s", tt.command, n, err, tt.want)
			}
		})
	}
}

func TestPatterns(t *testing.T) {
	tests := []struct {
		name, pattern, command string
		want                   bool
	}{
		{"the same", "go vet", "go vet", true},
		{"the same, quoted", "go vet", `"go"  've't`, true},
		{"more than the same", "go vet", "go vet ./...", false},
		{"a last star: one word", "gofmt *", "gofmt -l", true},
		{"a last star: many", "gofmt *", "gofmt -l a.go 'b c.go'", true},
		{"a last star: none", "gofmt *", "gofmt", false},
		{"another program", "gofmt *", "gofmt2 -l", false},
		{"a star within: one word", "git * --porcelain", "git status --porcelain", true},
		{"a star within: two words", "git * --porcelain", "git -c x=y --porcelain", false},
		{"a prefix", "go test -run=*", "go test -run=TestX", true},
		{"a prefix takes one word", "go test -run=*", "go test -run=TestX -exec=sh", false},
		{"a prefix keeps to its folder", "cat src/*", "cat src/../.env", false},
		{"a star in quotes is a star", "find . -name '*'", "find . -name x", false},
		{"an empty word", "echo *", "echo ''", true},
		{"letters of Unicode's", "echo ä", "echo ä", true},
		{"a path is not looked up", "gofmt *", "/tmp/gofmt -l", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, err := Exec(tt.command)
			if got := (Set{Exec: []string{tt.pattern}}).Covers(n); got != tt.want || err != nil {
				t.Errorf("%q covers %q: %v, %v; want %v", tt.pattern, tt.command, got, err, tt.want)
			}
		})
	}
	for pattern, want := range map[string]string{
		"rm a*b":   `"rm a*b": in a pattern, * may stand only at the end of a word`,
		"rm **":    `"rm **": in a pattern, * may stand only at the end of a word`,
		"rm ../*":  `"rm ../*": in a pattern, no .. may stand before a *: it would lead anywhere`,
		"rm x; ls": `"rm x; ls": the command has ';', so it may be more than one simple command: call programs one by one, or quote it`,
	} {
		if err := checkCommandPattern(pattern); err == nil || err.Error() != want {
			t.Errorf("pattern %q: %v\nwant %s", pattern, err, want)
		}
	}
}

// The words are those that the shell makes of a command, which it shows here
// and does not run.
func TestWordsAreTheShells(t *testing.T) {
	for _, command := range []string{
		"gofmt -l 'a b'", `a "b c"d`, `'a'"b"'c' d`, "a b#c", "a % @ + = , .", "a\tb  \t c ", `a ''`, `a "'" '"'`, "ä ö", "a --x=y:z",
	} {
		words, err := splitCommand(command, false)
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		want := ""
		for _, w := range words {
			want += w.text + "\n"
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+command).CombinedOutput()
		if string(out) != want || err != nil {
			t.Errorf("of %q the shell makes\n%s%v; want\n%s", command, out, err, want)
		}
	}
}

// A command is covered by the pattern that a refusal shows for it, which reads
// as the same words again.
func FuzzCommand(f *testing.F) {
	for _, seed := range []string{"gofmt -l 'a b'", `a "b c"d`, "a=b", "ls $x", "a\\ b", "'a'\"b\"'c'", "a #b", "a b#c", "% @ + =", `a "'"`, "rm a*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if words, err := splitCommand(command, true); err == nil && !commandIncludes(command, command) {
			t.Errorf("the pattern %q, read as %v, does not include itself", command, words)
		}
		n, err := Exec(command)
		if err != nil {
			return
		}
		shown := n.least.Exec[0]
		if strings.ContainsAny(shown, ";&|<>$`\n") && !strings.Contains(shown, "'") {
			t.Errorf("the pattern of %q is %q, which is not quoted", command, shown)
		}
		if !n.least.Covers(n) || checkCommandPattern(shown) != nil {
			t.Errorf("the pattern of %q is %q, which does not cover it", command, shown)
		}
	})
}
