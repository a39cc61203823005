package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// keyboard is what is typed at a terminal, for all who read it in turn: the chat's
// prompt, and questions. Bytes that somebody waited for and did not take stay for
// whoever reads next. It is used by one goroutine at a time.
type keyboard struct {
	asked  chan struct{}
	chunks chan []byte
	fails  chan error
	left   []byte
	forget func() // has the terminal forget what was typed; nil: it is none
}

// newKeyboard reads from a terminal; nil if in is none.
func newKeyboard(in io.Reader) *keyboard {
	if !isTerminal(in) {
		return nil
	}
	k := openKeyboard(in)
	if terminal, ok := in.(*os.File); ok {
		k.forget = func() { _ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
	}
	return k
}

// discard forgets what was typed and not read yet: it was no answer to what is asked
// now.
func (k *keyboard) discard() {
	if k.forget != nil {
		k.forget()
	}
	k.left = nil
	select {
	case <-k.chunks:
	default:
	}
}

func openKeyboard(in io.Reader) *keyboard {
	k := &keyboard{asked: make(chan struct{}, 1), chunks: make(chan []byte), fails: make(chan error, 1)}
	go k.pump(in)
	return k
}

// pump reads once each time that it is asked to, so that nothing is taken from the
// terminal that nobody wants.
func (k *keyboard) pump(in io.Reader) {
	for range k.asked {
		chunk := make([]byte, 4096)
		n, err := in.Read(chunk)
		if n > 0 {
			k.chunks <- chunk[:n]
		}
		if err != nil {
			k.fails <- err
			return
		}
	}
}

// wait waits until there is something left to read, or says why there is not.
func (k *keyboard) wait(ctx context.Context) error {
	if len(k.left) > 0 {
		return nil
	}
	select {
	case k.asked <- struct{}{}:
	default: // a read is under way still
	}
	select {
	case k.left = <-k.chunks:
		return nil
	case err := <-k.fails:
		k.fails <- err // and so for all who come later
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errInputEnded = errors.New("the input ended")

// line returns the next line, without its end.
func (k *keyboard) line(ctx context.Context) (string, error) {
	var line []byte
	for {
		err := k.wait(ctx)
		if err == io.EOF {
			err = errInputEnded
		}
		if err != nil {
			return "", err
		}
		before, after, ended := bytes.Cut(k.left, []byte("\n"))
		line, k.left = append(line, before...), after
		if ended {
			return string(bytes.TrimSuffix(line, []byte("\r"))), nil
		}
	}
}

// reading is the keyboard as a Reader, until ctx ends.
type reading struct {
	*keyboard
	ctx context.Context
}

func (r reading) Read(p []byte) (int, error) {
	if err := r.wait(r.ctx); err != nil {
		return 0, err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}
