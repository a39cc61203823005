package sandbox

import (
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"time"
)

// streams are the three streams of a command: pipes, so that it has no
// terminal and holds no file of ours; or a terminal of its own.
type streams struct {
	childIn, childOut, childErr *os.File  // the child's ends
	in                          *os.File  // our end of stdin; nil if there is nothing to read
	source                      io.Reader // what is read; nil if in is written to
	terminal                    bool      // in is the terminal, and the only pump's too
	pumps                       []*pump
	all                         sync.WaitGroup
	said                        *keepFirst // the first bytes of stderr
}

// pump carries what the child writes to a writer.
type pump struct {
	from *os.File
	to   io.Writer // nil drops it
}

const (
	quiet       = 200 * time.Millisecond // without output, after which an ended command's pipe is given up
	keptOfError = 4 << 10
)

// openStreams makes the pipes of c.
func openStreams(c Command) (s *streams, err error) {
	s = &streams{source: c.Stdin, said: &keepFirst{left: keptOfError}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	switch {
	case c.Terminal.shown():
		return s, s.openTerminal(c)
	case c.Stdin == nil && !c.Input:
		s.childIn, err = os.Open(os.DevNull)
	default:
		s.childIn, s.in, err = os.Pipe()
	}
	if err != nil {
		return s, err
	}
	if sameWriter(c.Stdout, c.Stderr) {
		s.childOut, err = s.pipe(tee(c.Stdout, s.said))
		s.childErr = s.childOut
		return s, err
	}
	if s.childOut, err = s.pipe(c.Stdout); err != nil {
		return s, err
	}
	s.childErr, err = s.pipe(tee(c.Stderr, s.said))
	return s, err
}

// pipe adds a pump to w and returns the end that the child writes to.
func (s *streams) pipe(w io.Writer) (*os.File, error) {
	r, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.pumps = append(s.pumps, &pump{from: r, to: w})
	return child, nil
}

// begin starts to carry, once the child has its ends.
func (s *streams) begin() {
	s.closeChild()
	for _, p := range s.pumps {
		s.all.Go(p.run)
	}
	if s.source != nil {
		go func() { // not waited for: a Read of the source may block for good
			_, _ = io.Copy(s.in, s.source)
			_ = s.in.Close()
		}()
	}
}

// finish waits, after the child has ended, until the writers have taken all
// output, and reports whether they did in time.
func (s *streams) finish() bool {
	for _, p := range s.pumps {
		_ = p.from.SetReadDeadline(time.Now().Add(quiet))
	}
	taken := make(chan struct{})
	go func() { s.all.Wait(); close(taken) }()
	select {
	case <-taken:
		return true
	case <-time.After(flushed):
		return false
	}
}

// lastWords returns the beginning of what came on stderr. Only after finish.
func (s *streams) lastWords() string {
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	return string(s.said.kept)
}

// close closes all ends.
func (s *streams) close() {
	s.closeChild()
	closeAll([]*os.File{s.in})
	for _, p := range s.pumps {
		_ = p.from.Close()
	}
}

func (s *streams) closeChild() {
	closeAll([]*os.File{s.childIn, s.childOut, s.childErr})
}

// run carries until the pipe has no writer any more, or no more output comes
// after the command's end. A writer that fails does not stop the command: the
// rest is dropped.
func (p *pump) run() {
	buf := make([]byte, 32<<10)
	extended := false
	for {
		n, err := p.from.Read(buf)
		if n > 0 && p.to != nil {
			if _, err := p.to.Write(buf[:n]); err != nil {
				p.to = nil
			}
		}
		switch {
		case n > 0:
			extended = false
		case errors.Is(err, os.ErrDeadlineExceeded) && !extended:
			extended = true // there may be output that the writer kept us from reading
			_ = p.from.SetReadDeadline(time.Now().Add(quiet))
		case err != nil:
			return
		}
	}
}

// tee returns a writer to w that lets said have the first bytes too.
func tee(w io.Writer, said io.Writer) io.Writer {
	if w == nil {
		return said
	}
	return io.MultiWriter(said, w)
}

// sameWriter reports whether a and b are one writer.
func sameWriter(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}
