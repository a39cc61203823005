package host

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
)

// guestLog takes what a guest logs and writes, up to a limit a call, into the
// session's log.
type guestLog struct {
	extension      string
	record         func(session.Event) error
	over           func() bool // whether the running call is over
	stdout, stderr lineWriter

	bytes, lines int
	dropped      bool
	err          error  // of record
	words        string // the first line on standard error
}

// begin starts a call.
func (l *guestLog) begin() {
	l.bytes, l.lines, l.dropped, l.err, l.words = 0, 0, false, nil, ""
	l.stdout.log, l.stdout.level = l, abi.Info
	l.stderr.log, l.stderr.level = l, abi.Warning
}

// end ends a call: unfinished lines count as lines. It returns the session
// log's error, if it had one.
func (l *guestLog) end() error {
	l.stdout.finish()
	l.stderr.finish()
	return l.err
}

// add logs one text. Beyond the limit, all is dropped with one note. An empty
// text is not logged, and counts as a line all the same.
func (l *guestLog) add(level abi.Level, text []byte) {
	if l.dropped || l.err != nil {
		return
	}
	l.lines++
	left := limitLog - l.bytes
	if len(text) > left || l.lines > limitLogLines {
		l.dropped = true
		l.write(level, text[:min(left, len(text))])
		l.write(abi.Warning, []byte(fmt.Sprintf("the rest of what this call logs is dropped: it is over the limit log, %d KiB a call", limitLog>>10)))
		return
	}
	l.write(level, text)
}

func (l *guestLog) write(level abi.Level, text []byte) {
	if len(text) == 0 || l.err != nil {
		return
	}
	l.bytes += len(text)
	l.err = l.record(session.ExtensionLogged{
		Extension: l.extension, Level: level.String(), Text: strings.ToValidUTF8(string(text), "\uFFFD"),
	})
}

// lastWords returns what a guest that died had to say, for an error.
func (l *guestLog) lastWords() string {
	l.stderr.finish()
	if l.words == "" {
		return ""
	}
	return ": " + l.words
}

// lineWriter is a guest's standard output or error.
type lineWriter struct {
	log   *guestLog
	level abi.Level
	line  []byte // not finished yet
}

// Write logs each line. It takes everything, whatever the limit, until the
// call is over: a guest can have it called a million times at once.
func (w *lineWriter) Write(p []byte) (int, error) {
	if w.log.over() {
		return 0, errTimeout
	}
	written := len(p)
	for len(p) > 0 && !w.log.dropped && w.log.err == nil {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		w.line = append(w.line, line[:min(len(line), limitLog+1)]...)
		if whole || len(w.line) > limitLog {
			w.flush()
		}
		p = rest
	}
	return written, nil
}

// finish logs a line that has no end yet.
func (w *lineWriter) finish() {
	if len(w.line) > 0 {
		w.flush()
	}
}

func (w *lineWriter) flush() {
	if w.level == abi.Warning && w.log.words == "" {
		w.log.words = strings.ToValidUTF8(string(w.line[:min(len(w.line), 200)]), "\uFFFD")
	}
	w.log.add(w.level, w.line)
	w.line = w.line[:0]
}
