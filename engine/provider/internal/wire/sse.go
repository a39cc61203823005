package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
)

// maxEvent is how many bytes one event may have.
const maxEvent = 16 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// event is one server-sent event that has data.
type event struct {
	name string
	data []byte // lines joined by a line feed
}

// eventReader reads server-sent events: lines that end with CR, LF or both,
// comments, data of several lines, and whatever a server writes instead.
type eventReader struct {
	in     *bufio.Reader
	stray  string // the first text that belongs to no event stream; may be empty
	skipLF bool   // the last line ended with CR
	begun  bool   // the first line has been read
}

// next returns the next event. The error is io.EOF only after a stream that
// ended between two events; an end inside one is io.ErrUnexpectedEOF, unless
// what came of it is a whole.
func (r *eventReader) next() (event, error) {
	var e event
	var hasData bool
	for {
		line, err := r.line(maxEvent - len(e.data))
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		if len(line) > 0 {
			hasData = r.field(&e, line, hasData)
		}
		switch {
		case err != nil && hasData && complete(e.data):
			return e, nil // only the empty line after it is missing
		case err != nil && (hasData || len(line) > 0):
			return event{}, io.ErrUnexpectedEOF
		case err != nil:
			return event{}, err
		case len(line) == 0 && len(e.data) > 0:
			return e, nil
		case len(line) == 0:
			e, hasData = event{}, false
		}
	}
}

// field takes one line of an event and reports whether it has data by now.
func (r *eventReader) field(e *event, line []byte, hasData bool) bool {
	if line[0] == ':' {
		return hasData
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if hasData {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		return true
	case "event":
		e.name = string(value)
	case "id", "retry":
	default:
		r.strayed(line)
	}
	return hasData
}

func (r *eventReader) strayed(text []byte) {
	if r.stray == "" {
		r.stray = string(text[:min(len(text), maxErrorBody)])
	}
}

// line returns the next line without its end. With io.EOF it returns what came
// after the last line's end.
func (r *eventReader) line(limit int) ([]byte, error) {
	var line []byte
	for {
		if _, err := r.in.Peek(1); err != nil {
			return r.unmark(line), err
		}
		buffered, _ := r.in.Peek(r.in.Buffered())
		if r.skipLF && buffered[0] == '\n' {
			buffered = buffered[1:]
			_, _ = r.in.Discard(1)
		}
		r.skipLF = false
		end := bytes.IndexAny(buffered, "\r\n")
		part := buffered
		if end >= 0 {
			part = buffered[:end]
		}
		if len(line)+len(part) > limit {
			return nil, errTooLarge
		}
		line = append(line, part...)
		_, _ = r.in.Discard(len(part))
		if end >= 0 {
			r.skipLF = buffered[end] == '\r'
			_, _ = r.in.Discard(1)
			return r.unmark(line), nil
		}
	}
}

func (r *eventReader) unmark(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	return line
}

// payloads yields what an event carries: its data, or each line of it where a
// server forgot the empty lines between events.
func (e event) payloads() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if json.Valid(e.data) {
			yield(e.data)
			return
		}
		for line := range bytes.SplitSeq(e.data, []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// complete reports whether data, or its last line, stands for itself, so that
// nothing of it can have been cut off.
func complete(data []byte) bool {
	last := data[bytes.LastIndexByte(data, '\n')+1:]
	return isEndMark(last) || json.Valid(last) || json.Valid(data)
}

func isEndMark(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }
