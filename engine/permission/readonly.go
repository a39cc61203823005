package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// readers are the programs that only look, whatever their arguments are.
var readers = words(`
	: arch b2sum base32 base64 basename cat cd cksum cmp column comm cut df dirname du echo egrep expand false fgrep fold
	getconf grep groups head hexdump id join jq ls lscpu lsblk md5sum nl nproc od paste printenv ps pwd readlink realpath
	rev seq sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat strings sum tac tail tr true tsort type uname unexpand
	uptime wc whereis which whoami`)

// readersUnless are the programs that only look without some options: what begins so.
var readersUnless = map[string][]string{
	"date": {"-s", "--set"},
	"diff": {"--output"},
	"fd":   {"-x", "-X", "--exec"},
	"file": {"-C", "--compile"},
	"find": {"-delete", "-fprint", "-fls"},
	"rg":   {"--pre", "--hostname-bin"},
	"sort": {"-o", "--output", "--compress-program"},
	"tree": {"-o", "-R"},
}

// gitReaders are the commands of git that only look, and gitOptions what has even
// these write a file or run a program.
var (
	gitReaders = words(`blame cat-file count-objects describe diff grep log ls-files ls-tree merge-base name-rev rev-list rev-parse shortlog show status`)
	gitOptions = []string{"--output", "--ext-diff", "--textconv", "-O", "--open-files-in-pager"}
)

func words(text string) []string { return strings.Fields(text) }

// reads reports whether a command is known to change nothing.
func (c simpleCommand) reads() bool {
	if len(c.words) == 0 || c.words[0].kind != known {
		return false
	}
	name := c.words[0].text
	if dir := path.Dir(name); dir == "/bin" || dir == "/usr/bin" {
		name = path.Base(name)
	}
	if slices.Contains(readers, name) {
		return true
	}
	refused, conditional := readersUnless[name]
	arguments := c.words[1:]
	switch {
	case name == "env" && len(arguments) == 0 && !c.more:
		return true
	case name == "git":
		for len(arguments) > 0 && arguments[0].text == "--no-pager" {
			arguments = arguments[1:]
		}
		if len(arguments) == 0 || arguments[0].kind != known || !slices.Contains(gitReaders, arguments[0].text) {
			return false
		}
		refused = gitOptions
	case name == "[" || name == "test" || name == "printf":
		return c.onlyTests()
	case name == "date": // another operand is a time to set
		conditional = !c.more && !slices.ContainsFunc(arguments, func(w word) bool { return isNumeral(w.text) })
	case name == "uniq": // a second name is a file that it writes
		conditional = len(operands(arguments, "fsw")) < 2
	}
	if name != "git" && !conditional {
		return false
	}
	return !c.more && !slices.ContainsFunc(arguments, func(w word) bool {
		return w.kind != known || slices.ContainsFunc(refused, func(option string) bool { return hasOption(w.text, option) })
	})
}

// onlyTests reports whether test and printf do no more than their names say: in bash,
// some of their options evaluate a name.
func (c simpleCommand) onlyTests() bool {
	arguments := c.words[1:]
	if c.words[0].text == "printf" {
		return len(arguments) > 0 && !strings.HasPrefix(arguments[0].text, "-v")
	}
	return !slices.ContainsFunc(arguments, func(w word) bool { return w.text == "-v" || w.text == "-R" || hidesCommand(w) })
}

// operators are those of test that stand between two words.
var operators = words("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o ]")

// mayEvaluate reports whether the unknown words of test and printf may be options that
// evaluate a name.
func (c simpleCommand) mayEvaluate() bool {
	for i, w := range c.words[1:] {
		last := i+2 == len(c.words)
		if w.kind == many && !w.glob || w.kind == one && (c.words[0].text == "printf" && i == 0 || !last && !slices.Contains(operators, c.words[i+2].text)) {
			return true
		}
	}
	return false
}

func isNumeral(text string) bool { return text != "" && strings.Trim(text, "0123456789.") == "" }

// hasOption reports whether a word is an option, is short for it, or has it among its
// letters.
func hasOption(text, option string) bool {
	if strings.HasPrefix(text, option) {
		return true
	}
	if name, _, _ := strings.Cut(text, "="); strings.HasPrefix(option, "--") && len(name) > 2 && strings.HasPrefix(option, name) {
		return true
	}
	return len(option) == 2 && option[0] == '-' && isOption(text) && text[0] == '-' && strings.Contains(text, option[1:])
}

// harmless are the variables that change nothing of what a program does that
// a rule could be about.
var (
	harmless  = words(`CI CLICOLOR COLUMNS FORCE_COLOR LANG LANGUAGE LINES NO_COLOR TERM TZ GOOS GOARCH CGO_ENABLED RUST_BACKTRACE RUST_LOG NODE_ENV`)
	lowerCase = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// setsHarmless reports whether a command sets none but harmless variables. Those in
// small letters are a script's own, unless a program gets them, or has them from before:
// http_proxy, npm_config_script_shell.
func (c simpleCommand) setsHarmless() bool {
	return !slices.ContainsFunc(c.sets, func(name string) bool {
		own := len(c.words) == 0 && lowerCase.MatchString(name) && !strings.Contains(name, "proxy") && !strings.HasPrefix(name, "npm_")
		return !own && !slices.Contains(harmless, name) && !strings.HasPrefix(name, "LC_")
	})
}
