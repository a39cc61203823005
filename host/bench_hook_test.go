package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
)

var payloads = []struct {
	name string
	size int
}{{"0", 0}, {"260B", 260}, {"10KiB", 10 << 10}, {"1MiB", 1 << 20}}

const (
	noOpinion = "20261130-090000-abcdef"
	denies    = "d0261130-090000-abcdef"
)

// payload makes a payload of so many bytes in a session. Without room for one
// there is none.
func payload(size int, id string) []byte {
	at, call := question(size, id)
	if size == 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"session_id":%q,"turn":%d,"step":%d,"call_id":%q,"tool":%q,"arguments":%s}`,
		at.Session, at.Turn, at.Step, call.ID, call.Tool, call.Arguments)
}

// question is what the engine makes a payload of so many bytes of.
func question(size int, id string) (hook.At, hook.Call) {
	const form, around = `{"command":"go test ./...","timeout_ms":60000,"description":%q}`, 159
	arguments := fmt.Sprintf(form, strings.Repeat("x", max(0, size-around-len(id))))
	return hook.At{Session: id, Turn: 3, Step: 7}, hook.Call{ID: "call_0123456789abcdef", Tool: "exec", Arguments: json.RawMessage(arguments)}
}

// BenchmarkHook is one call of a hook that has no opinion, its payload being
// ready, in each of the ways in which a program can be asked.
func BenchmarkHook(b *testing.B) {
	for _, way := range ways {
		b.Run("way="+way.name, func(b *testing.B) {
			ask := way.open(b)
			for _, p := range payloads {
				text := payload(p.size, noOpinion)
				if p.size == 0 && way.name == "wharf-go" {
					continue // the SDK takes no payload for an error
				}
				if len(text) != p.size {
					b.Fatalf("the payload has %d bytes, not %d", len(text), p.size)
				}
				b.Run("payload="+p.name, func(b *testing.B) {
					loop(b, func() {
						if answer, err := ask(b.Context(), text); err != nil || len(answer) > 0 {
							b.Fatalf("%s, %v", answer, err)
						}
					})
				})
			}
		})
	}
}

// BenchmarkHookVerdict is the same with a verdict, as the engine asks: the
// payload is made, and the answer is parsed, recorded and merged. What the
// payload alone takes is the first line: a hook that has no opinion, and takes no time
// for that.
func BenchmarkHookVerdict(b *testing.B) {
	nobody := func(context.Context, []byte) ([]byte, error) { return nil, nil }
	b.Run("way=payload-only", func(b *testing.B) { benchVerdict(b, nobody, "") })
	for _, way := range ways {
		b.Run("way="+way.name, func(b *testing.B) {
			benchVerdict(b, way.open(b), `denied by extension "bench": this command is not allowed here`)
		})
	}
}

func benchVerdict(b *testing.B, ask asking, want string) {
	chain := hook.NewChain([]hook.Hook{asked{ask}}, func(session.Event) error { return nil })
	for _, p := range payloads[1:] {
		at, call := question(p.size, denies)
		b.Run("payload="+p.name, func(b *testing.B) {
			loop(b, func() {
				judged, err := chain.BeforeExecuteTool(b.Context(), at, call)
				if err != nil || judged.Reason != want {
					b.Fatalf("the reason %q, %v", judged.Reason, err)
				}
			})
		})
	}
}

// asked is a hook that is asked in some way.
type asked struct{ ask asking }

func (asked) Name() string { return "bench" }

func (asked) Handles(p hook.Point) (hook.Handling, bool) {
	return hook.Handling{Timeout: time.Second, OnFailure: hook.Isolate}, p == hook.BeforeExecuteTool
}

func (a asked) Call(ctx context.Context, _ hook.Point, payload []byte) ([]byte, error) {
	return a.ask(ctx, payload)
}
