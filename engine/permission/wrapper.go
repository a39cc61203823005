package permission

import (
	"path"
	"slices"
	"strings"
)

// wrapper is how a program says which command it runs.
type wrapper struct {
	options  string // letters of options that take an argument
	long     []string
	operands int  // in front of the command
	only     bool // it changes nothing that a rule could be about
	sets     bool // NAME=VALUE in front of the command sets variables
}

// wrappers are the programs that run the command that stands behind their own
// options.
var wrappers = map[string]wrapper{
	"builtin":  {only: true},
	"busybox":  {only: true},
	"chroot":   {long: []string{"--userspec", "--groups"}, operands: 1},
	"choom":    {options: "np", long: []string{"--adjust", "--pid"}},
	"chrt":     {options: "TPD", operands: 1},
	"command":  {only: true},
	"doas":     {options: "Cu"},
	"env":      {options: "auCS", long: []string{"--argv0", "--unset", "--chdir"}, only: true, sets: true},
	"exec":     {options: "a", only: true},
	"ionice":   {options: "cnpPu", only: true},
	"ltrace":   {options: "aADeFlnopsuxX"},
	"nice":     {options: "n", long: []string{"--adjustment"}, only: true},
	"nohup":    {only: true},
	"nsenter":  {options: "tSG"},
	"pkexec":   {long: []string{"--user"}},
	"runuser":  {options: "ugGsw"},
	"prlimit":  {options: "o", long: []string{"--output"}},
	"setarch":  {operands: 1},
	"setpriv":  {long: []string{"--ambient-caps", "--inh-caps", "--bounding-set", "--ruid", "--euid", "--rgid", "--egid", "--reuid", "--regid", "--groups", "--securebits", "--pdeathsig", "--selinux-label", "--apparmor-profile"}},
	"setsid":   {only: true},
	"stdbuf":   {options: "ioe", long: []string{"--input", "--output", "--error"}, only: true},
	"strace":   {options: "abeEIkoOpPsSuUX"},
	"sudo":     {options: "ACDghpRrtTUu", long: []string{"--user", "--group", "--host", "--prompt", "--chdir", "--role", "--type", "--other-user", "--close-from", "--command-timeout"}, sets: true},
	"taskset":  {operands: 1},
	"time":     {options: "fo", long: []string{"--format", "--output"}, only: true},
	"timeout":  {options: "ks", long: []string{"--kill-after", "--signal"}, operands: 1, only: true},
	"toybox":   {only: true},
	"unbuffer": {only: true},
	"unshare":  {options: "SGRw"},
	"xvfb-run": {options: "efnpsw"},
}

// flags are long options of wrappers that take no argument. What is in neither list
// may be short for one that does.
var flags = words(`--all-tasks --append --background --ctty --debug --foreground --fork --ignore-environment --ignore-failure --login --no-run-if-empty
	--non-interactive --null --portability --preserve-env --preserve-status --quiet --set-home --stdin --verbose --wait`)

// shells run scripts. The scripts of those in foreign are not of the syntax that is read here.
var (
	shells  = append(words("sh bash dash ash ksh mksh lksh oksh pdksh posh yash rbash"), foreign...)
	foreign = words("zsh fish csh tcsh nu pwsh elvish xonsh")
)

// evaluators are commands of shells that may carry out a substitution in an argument,
// as a variable's index, however it is quoted.
var evaluators = words("test [ printf unset let read declare typeset local export readonly mapfile readarray wait getopts")

// run adds a command, and what it runs.
func (l *commandLine) run(c simpleCommand, in stdin, depth int) {
	if len(c.words) == 0 {
		l.keep(c)
		return
	}
	if c.words[0].kind != known {
		l.open = "its program is not known before it runs"
		l.keep(c)
		return
	}
	if depth > deepest {
		l.open = errDeep.Error()
		return
	}
	name := path.Base(c.words[0].text)
	if slices.Contains(evaluators, name) {
		looks := name == "test" || name == "[" || name == "printf"
		l.untold = l.untold || !looks || !c.reads()
		l.counts = l.counts || looks && c.mayEvaluate()
		if slices.ContainsFunc(slices.Concat(c.words[1:], c.values), hidesCommand) {
			l.open = name + " may evaluate a text"
		}
	}
	switch {
	case slices.Contains(shells, name):
		c.only = l.runShell(c.words[1:], in, depth)
		if slices.Contains(foreign, name) {
			l.open = name + " runs what is not judged"
		}
	case name == "eval":
		c.only = l.runText(afterDashes(c.words[1:]), depth)
	case name == "trap" && len(c.words) > 1:
		if action := afterDashes(c.words[1:]); len(action) > 0 {
			l.runText(action[:1], depth)
		}
	case name == "set":
		l.untold = true // $1 and so on
	case name == "hash" && len(c.words) > 1:
		l.open = "hash may give a program another name"
	case name == "watch":
		l.runText(operands(c.words[1:], "nq"), depth)
	case name == "ssh":
		if words := operands(c.words[1:], "BbcDEeFIiJLlmOopPQRSWw"); len(words) > 1 { // the first is the host
			l.runText(words[1:], depth)
		}
	case name == "su" || name == "script" || name == "flock" || name == "sg" || name == "capsh":
		l.runOption(c.words[1:], "c", depth)
	case name == "alias" || name == "parallel" || name == "at" || name == "batch" || name == "crontab" || name == "run-parts":
		l.open = name + " runs what is not known"
	case (name == "." || name == "source") && len(c.words) > 1 && !plainFile(c.words[1]):
		l.open = name + " runs what is not known"
	case name == "xargs":
		c.only = l.runArguments(c.words[1:], depth)
	case name == "find" || name == "fd" || name == "fdfind":
		l.runFound(c.words[1:], depth)
	default:
		if w, ok := wrappers[name]; ok {
			c.only = l.runWrapped(w, c, depth) && w.only && !(name == "time" && c.writes())
		}
	}
	l.keep(c)
}

// afterDashes leaves out the end of a command's options.
func afterDashes(words []word) []word {
	if len(words) > 0 && words[0].kind == known && words[0].text == "--" {
		return words[1:]
	}
	return words
}

// plainFile reports whether a word names a file that was there before.
func plainFile(w word) bool {
	return w.kind == known && !strings.HasPrefix(w.text, "/dev/") && !strings.HasPrefix(w.text, "/proc/")
}

// runShell adds what a shell is given: a text, its input, or the name of a script,
// which is nothing that a line tells.
func (l *commandLine) runShell(words []word, in stdin, depth int) bool {
	text, input := false, false
	i := 0
	for ; i < len(words) && words[i].kind == known; i++ {
		w := words[i].text
		switch {
		case w == "--rcfile" || w == "--init-file":
			i++
			continue
		case w != "--" && strings.HasPrefix(w, "--"):
			continue
		case isOption(w):
			text = text || strings.Contains(w, "c")
			input = input || strings.Contains(w, "s")
			i += strings.Count(w, "o") + strings.Count(w, "O") // each has the next word as its argument
			continue
		case w == "--" || w == "-":
			i++
		}
		break
	}
	rest := words[min(i, len(words)):]
	switch {
	case text:
		return l.runText(rest[:min(1, len(rest))], depth)
	case len(rest) > 0 && rest[0].kind != known:
		l.open = "a shell runs what is not known"
		return false
	case input || len(rest) == 0 || !plainFile(rest[0]):
		return l.runInput(in, depth)
	}
	return false
}

func isOption(text string) bool {
	return len(text) > 1 && (text[0] == '-' || text[0] == '+') && text[1] != '-'
}

// runInput adds what a shell reads.
func (l *commandLine) runInput(in stdin, depth int) bool {
	if in.given {
		l.add(in.text, depth+1)
		return true
	}
	l.open = "a shell runs what it reads"
	return false
}

// runText adds a script that stands in words.
func (l *commandLine) runText(words []word, depth int) bool {
	if len(words) == 0 {
		l.open = "a shell runs what is not known"
		return false
	}
	texts := make([]string, len(words))
	for i, w := range words {
		if w.kind != known {
			l.open = "a shell runs what is not known"
			return false
		}
		texts[i] = w.text
	}
	l.add(strings.Join(texts, " "), depth+1)
	return true
}

// operands leaves out the options in front, and the arguments of those that take one.
func operands(words []word, options string) []word {
	for i := 0; i < len(words); i++ {
		switch text := words[i].text; {
		case words[i].kind != known || !strings.HasPrefix(text, "-"):
			return words[i:]
		case isOption(text) && takesArgument(text, options):
			i++
		}
	}
	return nil
}

// runOption adds the script that an option has as its argument, or the command
// behind the operands: flock FILE COMMAND.
func (l *commandLine) runOption(words []word, option string, depth int) {
	for i, w := range words {
		if w.kind == known && isOption(w.text) && strings.Contains(w.text, option) || w.text == "--command" {
			l.runText(words[i+1:min(i+2, len(words))], depth)
			return
		}
	}
	if rest := operands(words, "wE"); len(rest) > 1 {
		l.run(simpleCommand{words: rest[1:]}, stdin{piped: true}, depth+1)
		return
	}
	l.open = "it begins a shell"
}

// runWrapped adds the command behind a wrapper's own words.
func (l *commandLine) runWrapped(w wrapper, c simpleCommand, depth int) bool {
	words := c.words[1:]
	inner := simpleCommand{more: c.more}
	left := w.operands
	for i := 0; i < len(words); i++ {
		text := words[i].text
		switch {
		case words[i].kind != known:
			l.open = "it runs a program that is not known before"
			return false
		case text == "--": // the end of its options
		case c.words[0].text == "command" && (text == "-v" || text == "-V"):
			return false // it only looks for a program
		case w.sets && text == "-": // env -
		case w.sets && (optionOf(text, w.options) == 'S' || strings.HasPrefix(text, "--s")):
			l.open = "env makes words of a text"
			return false
		case strings.HasPrefix(text, "--"):
			if slices.Contains(w.long, text) {
				i++
			} else if !strings.Contains(text, "=") && !slices.Contains(flags, text) {
				l.open = "it has the option " + text + ", which is not known"
			}
		case isOption(text):
			if takesArgument(text, w.options) {
				i++
			}
		case w.sets && strings.Contains(text, "="):
			name, _, _ := strings.Cut(text, "=")
			inner.sets = append(inner.sets, name)
			inner.values = append(inner.values, word{text: text[len(name)+1:]})
		case left > 0:
			left--
		default:
			inner.words = words[i:]
			l.run(inner, stdin{piped: true}, depth+1)
			return true
		}
	}
	if c.more {
		l.open = "it runs a program that is not known before"
		return false
	}
	if name := path.Base(c.words[0].text); name == "sudo" || name == "doas" || name == "pkexec" || name == "runuser" || name == "unshare" || name == "nsenter" || name == "chroot" {
		l.open = "it begins a shell"
	}
	return false
}

// writes reports whether time writes a file.
func (c simpleCommand) writes() bool {
	return slices.ContainsFunc(c.words[1:], func(w word) bool { return hasOption(w.text, "-o") || hasOption(w.text, "--output") })
}

// takesArgument reports whether an option's argument is the next word: its last
// letter wants one, and nothing stands behind it.
func takesArgument(text, options string) bool {
	letter := optionOf(text, options)
	return letter != 0 && strings.IndexByte(text, letter) == len(text)-1
}

// optionOf returns the first letter of an option's word that takes an argument; 0: none
// does.
func optionOf(text, options string) byte {
	if i := strings.IndexAny(text, options); isOption(text) && i > 0 {
		return text[i]
	}
	return 0
}

// runArguments adds the command of xargs, behind which words follow.
func (l *commandLine) runArguments(words []word, depth int) bool {
	placeholder := ""
	for i := 0; i < len(words); i++ {
		text := words[i].text
		switch {
		case words[i].kind != known:
			l.open = "it runs a program that is not known before"
			return false
		case strings.HasPrefix(text, "--r"): // --replace, or short for it
			placeholder = "{}"
			if _, value, ok := strings.Cut(text, "="); ok {
				placeholder = value
			}
		case strings.HasPrefix(text, "--"):
			if slices.Contains([]string{"--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-procs", "--process-slot-var"}, text) {
				i++
			} else if !strings.Contains(text, "=") && !slices.Contains(flags, text) {
				l.open = "it has the option " + text + ", which is not known"
			}
		case isOption(text):
			switch letter := optionOf(text, "adEeiILlnPs"); letter {
			case 'I', 'i':
				if placeholder = text[strings.IndexByte(text, letter)+1:]; placeholder == "" && letter == 'i' {
					placeholder = "{}"
				} else if placeholder == "" && i+1 < len(words) {
					i++
					placeholder = words[i].text
				}
			case 'e', 'l': // what they take stands behind them
			default:
				if takesArgument(text, "adELnPs") {
					i++
				}
			}
		default:
			inner := simpleCommand{words: fill(words[i:], placeholder), more: true}
			l.run(inner, stdin{piped: true}, depth+1)
			return true
		}
	}
	return true // it runs echo
}

// fill marks the words into which a text comes that nobody knows.
func fill(words []word, placeholder string) []word {
	out := slices.Clone(words)
	for i, w := range out {
		if placeholder != "" && strings.Contains(w.text, placeholder) {
			out[i] = word{kind: many}
		}
	}
	return out
}

// runFound adds the commands that find runs.
func (l *commandLine) runFound(words []word, depth int) {
	for i, w := range words {
		if w.kind != known {
			l.open = "it has actions that are not known before"
			return
		}
		switch w.text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		default:
			continue
		}
		end := i + 1
		for end < len(words) && words[end].text != ";" && (words[end].text != "+" || words[end-1].text != "{}") {
			end++
		}
		if end > i+1 {
			l.run(simpleCommand{words: fill(words[i+1:end], "{}"), more: true}, stdin{}, depth+1)
		}
	}
}
