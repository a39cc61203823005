package openai

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
)

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
		err := wire.ReadAll(t.Context(), bytes.NewReader(body), &assembler{}, func(d provider.Delta) bool {
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
				len(c.Extra) > 0 && (!wire.IsObject(c.Extra) || !utf8.Valid(c.Extra))) {
				t.Errorf("call %+v is not well-formed", *c)
			}
			return true
		})
		var known *provider.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("ReadAll error %v is no *provider.Error", err)
		}
	})
}
