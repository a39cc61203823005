package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/wharf-agent/wharf/engine/provider"
)

// Assembler makes one reply out of what a server sends. It belongs to one API.
type Assembler interface {
	// Take takes one event, or a whole answer under the name "", and returns what
	// can be passed on of it. It notes in p how far the reply has come.
	Take(p *Progress, event string, payload []byte) ([]provider.Delta, error)
	// Rest returns what is left at the end of a reply that is complete.
	Rest() []provider.Delta
	// Salvage returns what is left at the end of a reply that broke off: among the
	// calls, only those that are whole without doubt.
	Salvage() []provider.Delta
}

// Progress is how far a reply has come.
type Progress struct {
	Begun    bool // something of an answer came
	Finished bool // the model has said all: what may be missing is only the wrapping
	Done     bool // nothing more comes
	Strict   bool // the API has an end of its own, and a reply without it is cut off
}

// reply reads one answer, whatever form the server gave it.
type reply struct {
	Assembler
	Progress
	watch *idleWatch
	emit  func(provider.Delta) bool
}

// read passes on the answer in body until it is complete.
func read(ctx context.Context, body io.Reader, watch *idleWatch, a Assembler, emit func(provider.Delta) bool) error {
	in := bufio.NewReaderSize(body, 32<<10)
	r := &reply{Assembler: a, watch: watch, emit: emit}
	switch first, err := firstByte(in); {
	case err != nil:
		return r.cut(ctx, err, "")
	case first == '{' || first == '[':
		return r.readWhole(ctx, in)
	case first == '<':
		page, _ := io.ReadAll(io.LimitReader(in, maxErrorBody))
		return Malformed("the server sent a web page instead of an answer: "+htmlText(page),
			"check base_url")
	}
	return r.readEvents(ctx, in)
}

// firstByte looks at the first byte that is neither space nor byte order mark.
func firstByte(in *bufio.Reader) (byte, error) {
	for n := 1; ; n++ {
		seen, err := in.Peek(n)
		if len(seen) < n {
			return 0, err
		}
		if c := seen[n-1]; bytes.IndexByte(byteOrderMark, c) < 0 && c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, nil
		}
		if n == 1024 {
			return '\n', nil // nothing but space: the event reader knows what to do
		}
	}
}

// readWhole reads an answer that is one JSON value.
func (r *reply) readWhole(ctx context.Context, in io.Reader) error {
	body, err := io.ReadAll(in)
	if err != nil {
		return r.cut(ctx, err, "")
	}
	if body = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), byteOrderMark)); body[0] == '[' {
		return Complain(body)
	}
	if err := r.take("", body); err != nil {
		return err
	}
	if !r.Begun {
		return Malformed("the server sent JSON that is no answer: "+string(body),
			"check base_url")
	}
	return r.end()
}

func (r *reply) readEvents(ctx context.Context, in *bufio.Reader) error {
	events := &eventReader{in: in}
	for !r.Done {
		e, err := events.next()
		if err == nil {
			err = r.event(ctx, events, e)
		}
		switch {
		case errors.Is(err, errStopped):
			return err
		case err != nil && r.Finished && !cancelled(ctx):
			return r.end() // the model had finished: what broke was only the wrapping
		case err != nil:
			return r.cut(ctx, err, events.stray)
		}
	}
	if r.Strict && !r.Finished {
		return r.cut(ctx, io.ErrUnexpectedEOF, "")
	}
	if err := r.end(); err != nil {
		return err
	}
	r.watch.tighten(drainIdle) // the body's end lets the connection be used again
	_, _ = io.Copy(io.Discard, io.LimitReader(in, 4<<10))
	return nil
}

// event takes all that one event carries.
func (r *reply) event(ctx context.Context, events *eventReader, e event) error {
	for payload := range e.payloads() {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case isEndMark(payload):
			r.Done = true
			return nil
		case payload[0] == ':': // a comment that a proxy wrapped in data
		case payload[0] != '{':
			if string(payload) != "null" {
				events.strayed(payload)
			}
		default:
			if err := r.take(e.name, payload); err != nil {
				return err
			}
		}
	}
	return nil
}

// take passes on what one event brings.
func (r *reply) take(name string, payload []byte) error {
	finished := r.Finished
	deltas, err := r.Take(&r.Progress, name, payload)
	if err == nil && !finished && r.Finished {
		r.watch.tighten(finishedIdle)
	}
	return cmp.Or(r.pass(deltas), err)
}

// Decode reads an event into v. The error does not show the event: it may hold a
// part of the answer, which a finalize_content hook has yet to see.
func Decode(payload []byte, v any) error {
	if crowded(payload) {
		return Malformed(fmt.Sprintf("the server sent an event of more than %d values", maxValues), "ask for less at a time")
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return Malformed("the server sent an event that cannot be read: "+fault(err), "try again")
	}
	return nil
}

func fault(err error) string {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Sprintf("%s has the wrong type (%s)", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	return err.Error()
}

func (r *reply) pass(deltas []provider.Delta) error {
	for _, d := range deltas {
		if !r.emit(d) {
			return errStopped
		}
	}
	return nil
}

func (r *reply) end() error { return r.pass(r.Rest()) }

// cut makes an error of a reply that broke off before the model had finished.
// stray is what the server wrote in place of events.
func (r *reply) cut(ctx context.Context, err error, stray string) error {
	var known *provider.Error
	if errors.As(err, &known) || cancelled(ctx) {
		return err
	}
	if err := r.pass(r.Salvage()); err != nil {
		return err
	}
	switch {
	case errors.Is(err, errTooLarge):
		return Malformed("the reply is larger than this program reads", "ask for less at a time")
	case stray != "":
		return Malformed("the server sent this instead of an answer: "+stray, "check base_url")
	}
	return &provider.Error{
		Class: provider.Unreachable, Message: "the stream ended before the answer was complete" + why(err),
		Advice: "try again", Err: err,
	}
}

// cancelled reports whether the request was given up by the caller, not by the
// idle watch.
func cancelled(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errIdle)
}

func why(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	return " (" + err.Error() + ")"
}

// ReadAll reads an answer from body, as [Client.Stream] does, for tests without
// a connection.
func ReadAll(ctx context.Context, body io.Reader, a Assembler, emit func(provider.Delta) bool) error {
	_, watch := watchIdle(ctx, defaultIdle)
	defer watch.stop()
	return read(ctx, body, watch, a, emit)
}
