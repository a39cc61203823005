package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/provider"
)

// FuzzEvents: the reader ends, with io.EOF or a known error, and how the bytes
// were cut into reads makes no difference.
func FuzzEvents(f *testing.F) {
	for _, c := range loadReplies(f) {
		f.Add([]byte(c.body()))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		whole, err := readEvents(t, bytes.NewReader(body))
		torn, tornErr := readEvents(t, iotest.OneByteReader(bytes.NewReader(body)))
		if !slices.Equal(whole, torn) || !errors.Is(tornErr, err) {
			t.Errorf("events of %q: at once %q, %v; byte by byte %q, %v", body, whole, err, torn, tornErr)
		}
	})
}

func readEvents(t *testing.T, in io.Reader) (all []string, _ error) {
	r := &eventReader{in: bufio.NewReader(in)}
	for {
		e, err := r.next()
		if err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Fatalf("next error = %v; want io.EOF or io.ErrUnexpectedEOF", err)
			}
			return all, err
		}
		if len(e.data) == 0 {
			t.Fatal("next returned an event without data")
		}
		all = append(all, e.name+"|"+string(e.data))
	}
}

// FuzzReply: whatever a server sends, deltas are well-formed, and the finish
// reason is the last one.
func FuzzReply(f *testing.F) {
	for _, c := range loadReplies(f) {
		f.Add([]byte(c.body()))
	}
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\x9a\x80\"}}]}\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"s\":\"\xff\",\"function\":{\"name\":\"f\"}}]},\"finish_reason\":\"stop\"}]}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		finished := false
		_, watch := watchIdle(t.Context(), defaultIdle)
		defer watch.stop()
		err := readReply(t.Context(), bytes.NewReader(body), watch, func(d provider.Delta) bool {
			if finished {
				t.Errorf("%+v came after the finish reason", d)
			}
			finished = d.Finish != ""
			for _, s := range []string{d.Text, d.Reasoning, d.Finish} {
				if !utf8.ValidString(s) {
					t.Errorf("%q is no UTF-8", s)
				}
			}
			if c := d.Call; c != nil && (c.Name == "" || !utf8.ValidString(c.Name+string(c.ID)+c.Arguments) ||
				len(c.Extra) > 0 && (!isObject(c.Extra) || !utf8.Valid(c.Extra))) {
				t.Errorf("call %+v is not well-formed", *c)
			}
			return true
		})
		var known *provider.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("readReply error %v is no *provider.Error", err)
		}
	})
}
