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
	"chrt":     {options: "TPD", operands: 1},
	"command":  {only: true},
	"doas":     {options: "Cu"},
	"env":      {options: "uC", long: []string{"--unset", "--chdir"}, only: true, sets: true},
	"exec":     {options: "a", only: true},
	"ionice":   {options: "cnpPu", only: true},
	"ltrace":   {options: "aADeFlnopsuxX"},
	"nice":     {options: "n", long: []string{"--adjustment"}, only: true},
	"nohup":    {only: true},
	"nsenter":  {options: "tSG"},
	"pkexec":   {long: []string{"--user"}},
	"runuser":  {options: "ugGsw"},
	"setpriv":  {},
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

var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish"}

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
	switch {
	case slices.Contains(shells, name):
		c.only = l.runShell(c.words[1:], in, depth)
	case name == "eval":
		c.only = l.runText(c.words[1:], depth)
	case name == "trap" && len(c.words) > 1:
		l.runText(c.words[1:2], depth)
	case name == "watch":
		l.runText(operands(c.words[1:], "nq"), depth)
	case name == "ssh":
		if words := operands(c.words[1:], "BbcDEeFIiJLlmOopPQRSWw"); len(words) > 1 { // the first is the host
			l.runText(words[1:], depth)
		}
	case name == "su" || name == "script" || name == "flock":
		l.runOption(c.words[1:], "c", depth)
	case name == "alias" || name == "parallel" || name == "at" || name == "batch" || name == "crontab":
		l.open = name + " runs what is not known"
	case (name == "." || name == "source") && len(c.words) > 1 && !plainFile(c.words[1]):
		l.open = name + " runs what is not known"
	case name == "xargs":
		c.only = l.runArguments(c.words[1:], depth)
	case name == "find" || name == "fd" || name == "fdfind":
		l.runFound(c.words[1:], depth)
	default:
		if w, ok := wrappers[name]; ok {
			c.only = l.runWrapped(w, c, depth) && w.only
		}
	}
	l.keep(c)
}

// plainFile reports whether a word names a file that was there before.
func plainFile(w word) bool {
	return w.kind == known && !strings.HasPrefix(w.text, "/dev/") && !strings.HasPrefix(w.text, "/proc/")
}

// runShell adds what a shell is given: a text, its input, or the name of a script,
// which is nothing that a line tells.
func (l *commandLine) runShell(words []word, in stdin, depth int) bool {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.kind != known:
			l.open = "a shell runs what is not known"
			return false
		case w.text == "-o" || w.text == "+o" || w.text == "-O" || w.text == "+O" || w.text == "--rcfile" || w.text == "--init-file":
			i++
		case strings.HasPrefix(w.text, "--"):
		case isOption(w.text) && strings.Contains(w.text, "c"):
			for i+1 < len(words) && isOption(words[i+1].text) { // bash -c -e TEXT
				i++
			}
			return l.runText(words[i+1:min(i+2, len(words))], depth)
		case isOption(w.text) && strings.Contains(w.text, "s"):
			return l.runInput(in, depth)
		case isOption(w.text) || w.text == "-":
		case !plainFile(w):
			return l.runInput(in, depth)
		default:
			return false
		}
	}
	return l.runInput(in, depth)
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
		case strings.HasPrefix(text, "-S") || strings.HasPrefix(text, "--split-string"):
			l.open = "env makes words of a text"
			return false
		case strings.HasPrefix(text, "--"):
			if slices.Contains(w.long, text) {
				i++
			}
		case isOption(text):
			if takesArgument(text, w.options) {
				i++
			}
		case w.sets && strings.Contains(text, "="):
			name, _, _ := strings.Cut(text, "=")
			inner.sets = append(inner.sets, name)
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

// takesArgument reports whether an option's argument is the next word: its last
// letter wants one, and nothing stands behind it.
func takesArgument(text, options string) bool {
	for i := 1; i < len(text); i++ {
		if strings.IndexByte(options, text[i]) >= 0 {
			return i == len(text)-1
		}
	}
	return false
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
		case text == "-I" || text == "--replace" || text == "-i":
			placeholder = "{}"
			if text == "-I" && i+1 < len(words) {
				i++
				placeholder = words[i].text
			}
		case strings.HasPrefix(text, "-I"), strings.HasPrefix(text, "--replace="), strings.HasPrefix(text, "-i"):
			placeholder = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "--replace="), "-I"), "-i")
		case strings.HasPrefix(text, "--"):
			if slices.Contains([]string{"--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-lines", "--max-procs"}, text) {
				i++
			}
		case isOption(text):
			if takesArgument(text, "adEeLlnPs") && text != "-e" && text != "-l" {
				i++
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
		for end < len(words) && words[end].text != ";" && words[end].text != "+" {
			end++
		}
		if end > i+1 {
			l.run(simpleCommand{words: fill(words[i+1:end], "{}"), more: true}, stdin{}, depth+1)
		}
	}
}
