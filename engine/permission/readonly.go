package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// readers are the programs that only look, whatever their arguments are.
var readers = words(`
	: [ arch b2sum base32 base64 basename cat cd cksum cmp column comm cut df dirname du echo egrep expand false fgrep file fold
	getconf grep groups head hexdump id join jq ls lscpu lsblk md5sum nl nproc od paste printenv printf ps pwd readlink realpath
	rev seq sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat strings sum tac tail test tr true tsort type uname unexpand
	uptime wc whereis which whoami`)

// readersUnless are the programs that only look without some options: what begins so.
var readersUnless = map[string][]string{
	"date": {"-s", "--set"},
	"diff": {"--output"},
	"fd":   {}, // what it runs is judged by itself
	"find": {"-delete", "-fprint", "-fls"},
	"rg":   {"--pre", "--hostname-bin"},
	"sort": {"-o", "--output", "--compress-program"},
	"tree": {"-o"},
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

// hasOption reports whether a word is an option, or has it among its letters.
func hasOption(text, option string) bool {
	if strings.HasPrefix(text, option) {
		return true
	}
	return len(option) == 2 && option[0] == '-' && isOption(text) && strings.Contains(text, option[1:])
}

// harmless are the variables that change nothing of what a program does that
// a rule could be about.
var (
	harmless  = words(`CI CLICOLOR COLUMNS FORCE_COLOR LANG LANGUAGE LINES NO_COLOR TERM TZ GOOS GOARCH CGO_ENABLED RUST_BACKTRACE RUST_LOG NODE_ENV`)
	lowerCase = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// setsOnly reports whether a command sets none but harmless variables. Those in
// small letters are a script's own, but for the proxies'.
func (c simpleCommand) setsHarmless() bool {
	return !slices.ContainsFunc(c.sets, func(name string) bool {
		own := lowerCase.MatchString(name) && !strings.Contains(name, "proxy")
		return !own && !slices.Contains(harmless, name) && !strings.HasPrefix(name, "LC_")
	})
}
