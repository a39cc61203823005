package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
)

// FuzzEvents: the reader ends, with io.EOF or a known error, and how the bytes
// were cut into reads makes no difference.
func FuzzEvents(f *testing.F) {
	for _, body := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n", "event: ping\rdata:\r\rdata:{}\r\n\r\n", ": comment\n\ndata: {\ndata: }\n\n",
		"\xef\xbb\xbfdata: 1\n\nid: 1\nretry: 5\nnonsense\n\n", "<html></html>", "data: {\"cut\":", "data: [DONE]",
	} {
		f.Add([]byte(body))
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
