package capability

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCommand bounds a command, in bytes.
const maxCommand = 8 << 10

// word is one word of a command or of a pattern, without its quotes.
type word struct {
	text string
	star bool // only in patterns: whatever begins with text
}

// splitCommand splits one simple command into its words, as a shell would. It
// takes only what every shell reads the same way, and refuses the rest: a
// second command, a redirection, an assignment, whatever is expanded. In a
// pattern, a * may end a word.
//
// It is no shell parser, and does not try to be one: in doubt it refuses.
func splitCommand(text string, pattern bool) ([]word, error) {
	if len(text) > maxCommand {
		return nil, fmt.Errorf("the command has more than %d bytes", maxCommand)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the command is not UTF-8")
	}
	s := commandScanner{rest: text, pattern: pattern}
	var words []word
	for {
		s.rest = strings.TrimLeft(s.rest, " \t")
		if s.rest == "" {
			break
		}
		w, err := s.word()
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	if len(words) == 0 {
		return nil, errors.New("the command is empty")
	}
	return words, checkFirst(words[0])
}

type commandScanner struct {
	rest    string
	pattern bool
}

// word reads one word, which begins at rest.
func (s *commandScanner) word() (word, error) {
	if s.rest[0] == '#' {
		return word{}, errors.New("the command has a comment")
	}
	var w word
	var b strings.Builder
	for s.rest != "" && s.rest[0] != ' ' && s.rest[0] != '\t' {
		r, size := utf8.DecodeRuneInString(s.rest)
		s.rest = s.rest[size:]
		switch {
		case w.star:
			return word{}, errors.New("in a pattern, * may stand only at the end of a word")
		case r == '\'' || r == '"':
			quoted, err := s.quoted(r)
			if err != nil {
				return word{}, err
			}
			b.WriteString(quoted)
		case r == '*' && s.pattern:
			w.star = true
		case !plainInCommand(r):
			return word{}, fmt.Errorf("the command has %q, so it may be more than one simple command: call programs one by one, or quote it", r)
		default:
			b.WriteRune(r)
		}
	}
	w.text = b.String()
	if w.star && strings.Contains(w.text, "..") {
		return word{}, fmt.Errorf("in a pattern, no .. may stand before a *: it would lead anywhere")
	}
	return w, nil
}

// quoted reads up to the closing quote.
func (s *commandScanner) quoted(quote rune) (string, error) {
	text, rest, closed := strings.Cut(s.rest, string(quote))
	if !closed {
		return "", errors.New("the command has a quote that is not closed")
	}
	s.rest = rest
	odd := func(r rune) bool {
		return unicode.IsControl(r) || quote == '"' && strings.ContainsRune("$`\\!", r)
	}
	if i := strings.IndexFunc(text, odd); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return "", fmt.Errorf("the command has %q between quotes, which is not taken: use single quotes, or leave it out", r)
	}
	return text, nil
}

// plainInCommand reports whether a character outside quotes means only itself
// to every shell.
func plainInCommand(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@+%#", r)
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// reserved are the words with which a command begins that is not simple.
var reserved = strings.Fields("if then elif else fi case esac for select while until do done in function time coproc")

// checkFirst refuses what in the place of a program's name is none.
func checkFirst(w word) error {
	switch {
	case w.text == "" && !w.star:
		return errors.New("the program's name is empty")
	case strings.Contains(w.text, "="):
		return errors.New("the command begins with an assignment: use env NAME=VALUE")
	case slices.Contains(reserved, w.text):
		return fmt.Errorf("the command begins with %q, a word of the shell's", w.text)
	}
	return nil
}

// checkCommandPattern checks an item of exec: the words of one simple command.
// A * at the end of a word stands for whatever follows in that word; one that
// is the last word stands for one word or more.
func checkCommandPattern(text string) error {
	if err := checkPlain(text); err != nil {
		return err
	}
	if _, err := splitCommand(text, true); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return nil
}

// commandIncludes reports whether a pattern takes every command that another
// one takes. A pattern that is none takes nothing, and lies within nothing.
func commandIncludes(outer, inner string) bool {
	out, err1 := splitCommand(outer, true)
	in, err2 := splitCommand(inner, true)
	if err1 != nil || err2 != nil {
		return false
	}
	last := len(out) - 1
	if !isRest(out[last]) {
		return len(in) == len(out) && !isRest(in[len(in)-1]) && eachIncludes(out, in)
	}
	return len(in) >= len(out) && eachIncludes(out[:last], in[:last])
}

// isRest reports whether a last word stands for one word or more.
func isRest(w word) bool { return w.star && w.text == "" }

func eachIncludes(outer, inner []word) bool {
	for i, w := range outer {
		if !w.includes(inner[i]) {
			return false
		}
	}
	return true
}

// includes reports whether w takes whatever inner takes. A prefix takes
// nothing with .. in it: src/* is meant to stay in src.
func (w word) includes(inner word) bool {
	switch {
	case !w.star:
		return w == inner
	case w.text == "":
		return true
	default:
		return strings.HasPrefix(inner.text, w.text) && !strings.Contains(inner.text, "..")
	}
}

// commandPattern returns the pattern that takes exactly this command.
func commandPattern(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
		if w.text == "" || w.text[0] == '#' || strings.ContainsFunc(w.text, func(r rune) bool { return !plainInCommand(r) }) {
			texts[i] = "'" + strings.ReplaceAll(w.text, "'", `'"'"'`) + "'"
		}
	}
	return strings.Join(texts, " ")
}
