package session

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Read returns a session's events as they are on disk, without repairing
// anything; another process may be writing them. torn is the length of a torn
// last line, which is left out. The events before a line that cannot be read
// are returned with the error that says so.
func (s *Store) Read(id ID) (records []Record, torn int, err error) {
	content, err := s.content(id)
	if err != nil {
		return nil, 0, err
	}
	records, whole, err := parse(content)
	if err != nil {
		return records, 0, fmt.Errorf("read session %s: %w", id, err)
	}
	return records, len(content) - whole, nil
}

// Raw returns the whole lines of a session's log as they stand there, if each is
// an event that can be read.
func (s *Store) Raw(id ID) ([]byte, error) {
	content, err := s.content(id)
	if err != nil {
		return nil, err
	}
	_, whole, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, err)
	}
	return content[:whole], nil
}

// content returns what stands in a session's log.
func (s *Store) content(id ID) ([]byte, error) {
	path, err := s.path(id)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, err)
	}
	defer f.Close()
	return readAll(f)
}

// openRegular opens a regular file, and nothing else that may stand in its
// place: a FIFO would be waited for, and a link leads to who knows what.
func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, notRegular(path, "a link")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, kindOf(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(path, kind string) error {
	return fmt.Errorf("open %s: it is %s, and must be a regular file", path, kind)
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	}
	return "a device or a socket"
}

// readAll reads a file from its start, in one piece.
func readAll(f *os.File) ([]byte, error) {
	var content bytes.Buffer
	if info, err := f.Stat(); err == nil {
		content.Grow(int(info.Size()) + bytes.MinRead)
	}
	_, err := content.ReadFrom(f)
	return content.Bytes(), err
}

// parse decodes content's whole lines. What follows the last newline is torn.
func parse(content []byte) (records []Record, whole int, err error) {
	records = make([]Record, 0, len(content)/128) // few lines are shorter
	for whole < len(content) {
		end := bytes.IndexByte(content[whole:], '\n')
		if end < 0 {
			break
		}
		r, err := Decode(content[whole : whole+end])
		if err != nil {
			return records, whole, fmt.Errorf("line %d: %w", len(records)+1, err)
		}
		if r.Seq != int64(len(records)) {
			return records, whole, fmt.Errorf("line %d: %w: its sequence number is %d", len(records)+1, ErrCorrupt, r.Seq)
		}
		if _, first := r.Event.(Started); first != (r.Seq == 0) {
			return records, whole, fmt.Errorf("line %d: %w: session.started is not the first event, or not the only one", len(records)+1, ErrCorrupt)
		}
		records = append(records, r)
		whole += end + 1
	}
	return records, whole, nil
}

// errEmpty reports a log without an event.
var errEmpty = fmt.Errorf("%w: the log is empty", ErrCorrupt)

// follow adds records to state, and says which is the first that is out of
// place.
func (s *state) follow(records []Record) error {
	for _, r := range records {
		if err := s.add(r); err != nil {
			return fmt.Errorf("line %d: %w: %w", r.Seq+1, ErrCorrupt, err)
		}
	}
	if len(records) == 0 {
		return errEmpty
	}
	return nil
}
