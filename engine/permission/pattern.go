package permission

import (
	"path"
	"slices"
	"strings"
)

// certainty is how sure it is that a pattern fits.
type certainty int

const (
	no    certainty = iota
	maybe           // what is not known before the command runs may make it fit
	yes
)

// commandPattern is the pattern of a rule about commands: words, in which * stands
// for anything within a word, and at the end for all further words.
type commandPattern struct {
	words []string
	rest  bool // more words may follow
}

// parseCommandPattern reads "npm run test", "npm run *" or, with the same meaning,
// "npm run:*".
func parseCommandPattern(text string) commandPattern {
	text = strings.TrimSpace(text)
	var p commandPattern
	if before, ok := strings.CutSuffix(text, ":*"); ok {
		text, p.rest = before, true
	}
	p.words = strings.Fields(text)
	if n := len(p.words); n > 0 && p.words[n-1] == "*" {
		p.words, p.rest = p.words[:n-1], true
	}
	return p
}

// may says how sure it is that a command is one that the pattern is about, for a
// rule that forbids or asks: the program may be named with a path, and options may
// stand between it and the words of the pattern.
func (p commandPattern) may(c simpleCommand) certainty {
	if len(p.words) == 0 {
		return yes // it is about all of them
	}
	if len(c.words) == 0 {
		return no
	}
	first := c.words[0]
	if first.kind != known {
		return maybe
	}
	if !matchText(p.words[0], first.text) && !matchText(p.words[0], path.Base(first.text)) {
		return no
	}
	return p.follow(withoutFlags(p.words[1:], c), c.words[1:], c.more)
}

// withoutFlags leaves out the options of a pattern that a command has somewhere, alone
// or among others: rm -rf may be written rm -fr, rm -r -f or rm -rfv.
func withoutFlags(want []string, c simpleCommand) []string {
	letters := ""
	for _, w := range c.words[1:] {
		if w.kind == known && isOption(w.text) {
			letters += w.text
		}
	}
	return slices.DeleteFunc(slices.Clone(want), func(option string) bool {
		return isOption(option) && strings.Trim(option, letters) == ""
	})
}

// follow matches the words behind the program. It looks at each pair of a wanted word
// and a word once, from the end.
func (p commandPattern) follow(want []string, words []word, more bool) certainty {
	next := make([][]certainty, 3) // for the words from this one on, from the next, from that behind it
	for at := len(words); at >= 0; at-- {
		row := make([]certainty, len(want)+1)
		for i := range row {
			row[i] = p.step(want[i:], words[at:], more, func(wanted, skipped int) certainty { return next[skipped][i+wanted] })
		}
		next = [][]certainty{nil, row, next[1]}
	}
	return next[1][0]
}

// step matches want with words, when it is known how the rest matches.
func (p commandPattern) step(want []string, words []word, more bool, rest func(wanted, words int) certainty) certainty {
	switch {
	case len(want) == 0:
		return p.end(words, more, yes)
	case len(words) == 0 && more:
		return maybe
	case len(words) == 0:
		return no
	}
	w := words[0]
	best := no
	switch {
	case w.kind == many:
		return maybe
	case w.kind == one:
		best = min(rest(1, 1), maybe)
	case matchText(want[0], w.text):
		best = rest(1, 1)
	}
	if w.kind == one || strings.HasPrefix(w.text, "-") {
		best = max(best, rest(0, 1)) // an option
		if len(words) > 1 && !strings.HasPrefix(want[0], "-") {
			best = max(best, rest(0, 2)) // with an argument
		}
	}
	return best
}

// end judges what stands behind the last word of the pattern.
func (p commandPattern) end(words []word, more bool, sure certainty) certainty {
	if p.rest {
		return sure
	}
	for _, w := range words {
		if w.kind != many {
			return no
		}
	}
	if len(words) > 0 || more {
		return maybe
	}
	return sure
}

// must reports whether a command is surely one that the pattern is about, word by
// word as it is written: for a rule that allows.
func (p commandPattern) must(c simpleCommand) bool {
	if len(p.words) > len(c.words) {
		return false
	}
	for i, want := range p.words {
		switch w := c.words[i]; {
		case w.kind == many, w.kind == one && want != "*", w.kind == known && !matchText(want, w.text):
			return false
		}
	}
	return p.rest || len(c.words) == len(p.words) && !c.more
}

// matchText reports whether a text fits a pattern in which * stands for anything.
func matchText(pattern, text string) bool {
	head, tail, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, head)
	for ok {
		if head, tail, starred = strings.Cut(tail, "*"); !starred {
			return strings.HasSuffix(text, head)
		}
		_, text, ok = strings.Cut(text, head) // the first place is as good as any
	}
	return false
}
