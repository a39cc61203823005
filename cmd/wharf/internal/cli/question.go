package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// canAsk reports whether somebody is there to answer a question.
func (s stdio) canAsk() bool { return isTerminal(s.in) }

// terminal is where somebody sees a question who can answer it: what stands on standard
// error may go into a file.
func (s stdio) terminal() io.Writer {
	if in, ok := s.in.(io.Writer); ok && !isTerminal(s.err) {
		return in
	}
	return s.err
}

// confirm asks a question whose answer is no, unless it begins with y.
func (s stdio) confirm(ctx context.Context, question string) (bool, error) {
	if _, err := fmt.Fprintf(s.terminal(), "%s [y/N] ", question); err != nil {
		return false, err
	}
	answer, err := answerTo(ctx, func() (string, error) { return readLine(s.in) })
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(s.terminal())
		return false, nil
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}

// password asks for a password, which is not shown.
func (s stdio) password(ctx context.Context, question string) (string, error) {
	in, _ := s.in.(*os.File)
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(in.Fd()), before) // also if a signal comes first
	if _, err := fmt.Fprintf(s.terminal(), "%s: ", question); err != nil {
		return "", err
	}
	defer fmt.Fprintln(s.terminal())
	return answerTo(ctx, func() (string, error) {
		text, err := term.ReadPassword(int(in.Fd()))
		return string(text), err
	})
}

// answerTo waits for an answer, or for ctx. A read of a terminal cannot be cut short:
// after a cancel it is left behind, and the process is about to end.
func answerTo(ctx context.Context, read func() (string, error)) (string, error) {
	type reply struct {
		text string
		err  error
	}
	came := make(chan reply, 1)
	go func() {
		text, err := read()
		came <- reply{text, err}
	}()
	select {
	case r := <-came:
		return r.text, r.err
	case <-ctx.Done():
		err := context.Cause(ctx)
		return "", exitError{status("cancelled", err), err}
	}
}

// maxAnswer bounds what is read as an answer, in bytes.
const maxAnswer = 1 << 10

// readLine reads one line and nothing of what follows it.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxAnswer; {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return string(line), nil
}
