package host

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
)

// guestLog takes what a guest logs and writes, up to a limit a call, into the
// session's log.
type guestLog struct {
	extension      string
	record         func(session.Event) error
	secrets        *secret.Scanner
	total          *atomic.Int64 // bytes that were logged in the session
	over           func() bool   // whether the running call is over
	stdout, stderr lineWriter

	bytes, lines int
	dropped      bool
	waiting      []loggedText
	err          error  // of record
	words        string // the first line on standard error
}

// loggedText is what a guest logged at once. If it may end in the beginning of
// a secret's value, it waits for the next.
type loggedText struct {
	level abi.Level
	text  string
	limit int // the most bytes that are written of it
}

// begin starts a call.
func (l *guestLog) begin() {
	l.bytes, l.lines, l.dropped, l.waiting, l.err, l.words = 0, 0, l.total.Load() > limitLogged, nil, nil, ""
	l.stdout.log, l.stdout.level = l, abi.Info
	l.stderr.log, l.stderr.level = l, abi.Warning
}

// end ends a call: unfinished lines count as lines. It returns the session
// log's error, if it had one.
func (l *guestLog) end() error {
	l.stdout.finish()
	l.stderr.finish()
	l.release(0)
	return l.err
}

// add logs one text. Beyond the limit, all is dropped with one note. An empty
// text is not logged, and counts as a line all the same.
func (l *guestLog) add(level abi.Level, text []byte) {
	if l.dropped || l.err != nil {
		return
	}
	l.lines++
	if l.total.Add(int64(len(text))) > limitLogged {
		l.dropped = true
		l.release(0)
		l.write(abi.Warning, []byte(fmt.Sprintf("what this extension logs is dropped from here on: it is over the limit logged, %d MiB a session", limitLogged>>20)), limitLog)
		return
	}
	left := limitLog - l.bytes
	if len(text) > left || l.lines > limitLogLines {
		l.dropped = true
		l.write(level, text[:min(len(text), left+limitLog)], left) // a value that the limit cuts is looked for whole
		l.release(0)
		l.write(abi.Warning, []byte(fmt.Sprintf("the rest of what this call logs is dropped: it is over the limit log, %d KiB a call", limitLog>>10)), limitLog)
		return
	}
	l.write(level, text, left)
}

// write takes a text, of which it writes at most so many bytes, without the values of
// secrets: also of one that began in the texts before.
func (l *guestLog) write(level abi.Level, text []byte, limit int) {
	if len(text) == 0 {
		return
	}
	l.bytes += min(limit, len(text))
	l.waiting = append(l.waiting, loggedText{level, string(text), limit})
	if !l.secrets.Knows() {
		l.release(0)
		return
	}
	texts := make([]string, len(l.waiting))
	for i, w := range l.waiting {
		texts[i] = w.text
	}
	texts, _ = l.secrets.RedactParts(texts...)
	for i, clean := range texts {
		l.waiting[i].text = clean
	}
	l.release(l.secrets.Partial(texts...))
}

// release records what waits but for so many texts.
func (l *guestLog) release(but int) {
	for len(l.waiting) > but {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		if text := w.text[:min(w.limit, len(w.text))]; text != "" && l.err == nil {
			l.err = l.record(session.ExtensionLogged{
				Extension: l.extension, Level: w.level.String(), Text: strings.ToValidUTF8(text, "\uFFFD"),
			})
		}
	}
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
	for len(p) > 0 && !w.log.dropped && w.log.err == nil && !w.log.over() {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		w.line = append(w.line, line[:min(len(line), 2*limitLog)]...)
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
		words, _ := w.log.secrets.Redact(string(w.line))
		w.log.words = strings.ToValidUTF8(words[:min(len(words), 200)], "\uFFFD")
	}
	w.log.add(w.level, w.line)
	w.line = w.line[:0]
}
