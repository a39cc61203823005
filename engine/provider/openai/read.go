package openai

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

// reply reads one answer, whatever form the server gave it.
type reply struct {
	assembler
	watch *idleWatch
	emit  func(provider.Delta) bool
	begun bool // a choice came
	done  bool // the end mark came
}

// readReply passes on the answer in body until it is complete.
func readReply(ctx context.Context, body io.Reader, watch *idleWatch, emit func(provider.Delta) bool) error {
	in := bufio.NewReaderSize(body, 32<<10)
	r := &reply{watch: watch, emit: emit}
	switch first, err := firstByte(in); {
	case err != nil:
		return r.cut(ctx, err, "")
	case first == '{' || first == '[':
		return r.readWhole(ctx, in)
	case first == '<':
		page, _ := io.ReadAll(io.LimitReader(in, maxErrorBody))
		return malformed("the server sent a web page instead of an answer: "+htmlText(page),
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
		return complain(body)
	}
	if err := r.take("", body); err != nil {
		return err
	}
	if !r.begun {
		return malformed("the server sent JSON that is no answer: "+string(body),
			"check base_url")
	}
	return r.end()
}

func (r *reply) readEvents(ctx context.Context, in *bufio.Reader) error {
	events := &eventReader{in: in}
	for !r.done {
		e, err := events.next()
		if err == nil {
			err = r.event(ctx, events, e)
		}
		switch {
		case errors.Is(err, errStopped):
			return err
		case err != nil && r.finish != "" && !cancelled(ctx):
			return r.end() // the model had finished: what broke was only the wrapping
		case err != nil:
			return r.cut(ctx, err, events.stray)
		}
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
			r.done = true
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

// take passes on one chunk.
func (r *reply) take(eventName string, payload []byte) error {
	var c chunk
	if err := json.Unmarshal(payload, &c); err != nil {
		return malformed("the server sent an event that cannot be read: "+fault(err), "try again")
	}
	if c.complains(eventName) {
		return complain(payload)
	}
	finished := r.finish != ""
	deltas, err := r.add(&c)
	r.begun = r.begun || len(c.Choices) > 0
	switch {
	case err != nil:
	case r.finish == "error":
		r.finish = ""
		err = &provider.Error{
			Class: provider.Server, Message: "the server ended the reply with an error and no reason",
			Advice: "try again",
		}
	case !finished && r.finish != "":
		r.watch.tighten(finishedIdle)
	}
	return cmp.Or(r.pass(deltas), err)
}

// fault says what is wrong with a chunk without showing it: it may hold a part
// of the answer, which a finalize_content hook has yet to see.
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

func (r *reply) end() error { return r.pass(r.rest()) }

// cut makes an error of a reply that broke off before the model had finished.
// stray is what the server wrote in place of events.
func (r *reply) cut(ctx context.Context, err error, stray string) error {
	var known *provider.Error
	if errors.As(err, &known) || cancelled(ctx) {
		return err
	}
	if err := r.pass(r.salvage()); err != nil {
		return err
	}
	switch {
	case errors.Is(err, errTooLarge):
		return malformed("the reply is larger than this program reads", "ask for less at a time")
	case stray != "":
		return malformed("the server sent this instead of an answer: "+stray, "check base_url")
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
