package permission

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// There are more programs that run others than anybody can list, and languages that
// are not the shell's. So what a rule forbids is also looked for among the words of a
// command, wherever a program could find it there: in doubt a person is asked.

// The programs whose words are no commands.
var (
	inert       = words(`chgrp chmod chown export kill killall mkdir pkill readonly return rm rmdir set shift touch unset local declare typeset man apropos`)
	subcommands = words(`apt apt-get brew cargo docker gh go kubectl npm pip pip3 pnpm podman systemctl yarn`) // whose first word is one of their own
	copiers     = words(`cp install ln mv`)

	// Variables that a shell runs, or that name what it reads first.
	evaluated = words(`BASH_ALIASES BASH_CMDS BASH_ENV ENV PROMPT_COMMAND PS0 PS1 PS2 PS4`)

	// What of git runs other programs.
	gitRunners = words(`bisect config difftool filter-branch for-each-repo mergetool rebase send-email submodule`)
)

// within says whether a command that runs something else may be what a pattern is about.
func (p commandPattern) within(c simpleCommand) certainty {
	for i, name := range c.sets {
		if i < len(c.values) && !lowerCase.MatchString(name) && p.among(tokens(c.values[i:i+1]), false) {
			return maybe // PAGER="git push"
		}
	}
	if len(c.words) < 2 || c.reads() || len(p.words) == 0 {
		return no
	}
	name := path.Base(c.words[0].text)
	arguments := c.words[1:]
	switch {
	case slices.Contains(inert, name), c.only && (name == "eval" || slices.Contains(shells, name)), name == "git" && !runsMore(arguments):
		return no
	case slices.Contains(copiers, name):
		if slices.ContainsFunc(arguments, func(w word) bool { return w.kind == known && matchText(p.words[0], path.Base(w.text)) }) {
			return maybe // under another name it would not be known
		}
		return no
	case slices.Contains(subcommands, name):
		arguments = arguments[1:]
	}
	if p.among(tokens(arguments), c.more) {
		return maybe
	}
	return no
}

// runsMore reports whether git is told to run another program.
func runsMore(arguments []word) bool {
	first := arguments[0]
	return first.kind != known || slices.Contains(gitRunners, first.text) || strings.HasPrefix(first.text, "-c") || strings.HasPrefix(first.text, "--config") ||
		strings.HasPrefix(first.text, "-") && len(arguments) > 1 && runsMore(arguments[1:])
}

// tokens are the words of texts in whatever language.
func tokens(texts []word) (all []word) {
	for _, w := range texts {
		if w.kind != known {
			all = append(all, w)
			continue
		}
		for _, text := range strings.FieldsFunc(w.text, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./+", r)
		}) {
			all = append(all, word{text: text})
		}
	}
	return all
}

// among reports whether the words of a pattern stand among others, in their order.
func (p commandPattern) among(all []word, more bool) bool {
	want := p.words
	for _, w := range all {
		first := len(want) == len(p.words)
		switch {
		case w.kind != known && first:
		case w.kind == many:
			return true
		case w.kind == one, matchText(want[0], w.text), first && p.isProgram(w.text):
			want = want[1:]
		}
		if len(want) == 0 {
			return true
		}
	}
	return more && len(want) < len(p.words)
}

// isProgram reports whether a text names a pattern's program: by a path, or behind an
// option's letter.
func (p commandPattern) isProgram(text string) bool {
	return matchText(p.words[0], path.Base(text)) || len(text) > 2 && isOption(text) && matchText(p.words[0], text[2:])
}
