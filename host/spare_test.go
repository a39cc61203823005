package host

import (
	"strings"
	"sync"
	"testing"

	"github.com/wharf-agent/wharf/engine/tool"
)

// plainTool is an extension whose tools have an instance for each call.
const plainTool = `name = "guest"
version = "0.1.0"
abi = 1

[[tools]]
name = "do"
description = "Does what it is told"
input_schema = '{"type":"object"}'
timeout = "200ms"
`

// noHooks takes the exports of hooks out of the guest, so that nothing shares an instance.
func noHooks(t testing.TB) []byte {
	t.Helper()
	wasm := string(fixture(t, "guest"))
	for _, point := range []string{"before_execute_tool", "on_stream"} {
		wasm = strings.Replace(wasm, point, strings.Repeat("x", len(point)), 1)
	}
	return []byte(wasm)
}

// A call's instance is made ahead of it; it is given to that call alone, and
// closed with the session.
func TestSpares(t *testing.T) {
	e, err := shared.LoadBytes(t.Context(), "guest.wasm", embed(t, noHooks(t), plainTool), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := joinExtension(t, e, &journal{})
	first := s.spare
	if first == nil {
		t.Fatal("the first instance is not kept for the first call")
	}
	for range 3 {
		if got := run(t, s, "do", `{"do":"m"}`); got != "1" {
			t.Errorf("a call finds what another left: it is number %s", got)
		}
		s.calls.Wait()
		if s.spare == nil || s.spare == first {
			t.Error("there is no new spare behind a call")
		}
	}
	if got := run(t, s, "do", `{"do":"l"}`); !strings.HasPrefix(got, "failed TOOL_TIMEOUT") {
		t.Errorf("got %s", got)
	}
	s.calls.Wait()
	last := s.spare
	if got := run(t, s, "do", `{"do":"m"}`); got != "1" {
		t.Errorf("behind a call that was ended: number %s", got)
	}
	s.Close()
	if first.usable() || last.usable() || s.spare != nil && s.spare.usable() {
		t.Error("an instance outlives the session")
	}
}

// Many calls at once never share an instance, also while the session closes.
func TestHammerSpares(t *testing.T) {
	e, err := shared.LoadBytes(t.Context(), "guest.wasm", embed(t, noHooks(t), strings.Replace(plainTool, "200ms", "10s", 1)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := joinExtension(t, e, &journal{})
	var calls sync.WaitGroup
	enough := make(chan bool, 100)
	for range 8 {
		calls.Go(func() {
			for range 50 {
				got, err := s.Tools()[0].Run(t.Context(), tool.Call{Name: "do", Arguments: []byte(`{"do":"m"}`)})
				if err != nil || got.Content != "1" && !strings.HasSuffix(got.Content, "the session is closed") {
					t.Errorf("%+v, %v", got, err)
				}
				select {
				case enough <- true:
				default:
				}
			}
		})
	}
	for range cap(enough) {
		<-enough
	}
	s.Close()
	calls.Wait()
	if s.spare != nil && s.spare.usable() {
		t.Error("a spare outlives its session")
	}
}
