package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

func parse(t testing.TB, text string) []Reply {
	t.Helper()
	replies, err := Parse("model.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return replies
}

func asking(content string) provider.Request {
	return provider.Request{Messages: []session.Message{{Role: session.User, Content: content}}}
}

// play returns what one request gets, a delta a line.
func play(ctx context.Context, p *Provider, req provider.Request) string {
	var b strings.Builder
	for d, err := range p.Stream(ctx, req) {
		switch {
		case err != nil:
			fmt.Fprintf(&b, "error %v\n", err)
		case d.Call != nil:
			fmt.Fprintf(&b, "call %q %s %s\n", d.Call.ID, d.Call.Name, d.Call.Arguments)
		case d.Usage != nil:
			fmt.Fprintf(&b, "usage %d %d\n", d.Usage.InputTokens, d.Usage.OutputTokens)
		default:
			fmt.Fprintf(&b, "%q %q %q\n", d.Reasoning, d.Text, d.Finish)
		}
	}
	return b.String()
}

func TestStream(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{
			"reasoning and text in words", `{"reasoning":"Let me","text":"All is  well. "}`,
			"\"Let \" \"\" \"\"\n\"me\" \"\" \"\"\n\"\" \"All \" \"\"\n\"\" \"is \" \"\"\n\"\" \" \" \"\"\n\"\" \"well. \" \"\"\n\"\" \"\" \"stop\"\n",
		},
		{
			"calls: an object is made compact, a string stays as it is, nothing is an empty object",
			`{"calls":[{"name":"exec","arguments":{ "b": 1, "a": "<x>" }},{"call_id":"c","name":"exec","arguments":"{\"a\": "},{"name":"now"}]}`,
			"call \"\" exec {\"b\":1,\"a\":\"<x>\"}\ncall \"c\" exec {\"a\": \ncall \"\" now {}\n\"\" \"\" \"tool_calls\"\n",
		},
		{
			"usage, and a finish reason of one's own", `{"text":"cut","finish_reason":"length","usage":{"input_tokens":3,"output_tokens":1}}`,
			"\"\" \"cut\" \"\"\nusage 3 1\n\"\" \"\" \"length\"\n",
		},
		{"an empty reply", `{}`, "\"\" \"\" \"stop\"\n"},
		{"an error after some text", `{"text":"so","error":{"status":500,"message":"boom"}}`, "\"\" \"so\" \"\"\nerror status 500: boom\n"},
		{"an expectation that is met", `{"text":"hi","expect":{"last_contains":"ell"}}`, "\"\" \"hi\" \"\"\n\"\" \"\" \"stop\"\n"},
		{
			"an expectation that is not met", "\n" + `{"expect":{"last_contains":"goodbye"}}`,
			"error reply 1 (model.jsonl:2) expects \"goodbye\" in the request's last message; it ends with the user message \"hello\": " +
				"correct the script, or find out why the request differs\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, play(t.Context(), New(parse(t, tt.script)), asking("hello"))); diff != "" {
				t.Errorf("Stream (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClassesOfErrors(t *testing.T) {
	tests := []struct {
		name, script string
		want         provider.Class
	}{
		{"a broken connection", `{"error":{"message":"reset"}}`, provider.Unreachable},
		{"too many requests", `{"error":{"status":429}}`, provider.RateLimit},
		{"a refused key", `{"error":{"status":401}}`, provider.Auth},
		{"an unmet expectation", `{"expect":{"last_contains":"x"}}`, provider.Script},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, err := range New(parse(t, tt.script)).Stream(t.Context(), asking("hello")) {
				var e *provider.Error
				if !errors.As(err, &e) || e.Class != tt.want {
					t.Errorf("Stream error = %v; want class %s", err, tt.want)
				}
			}
		})
	}
}

func TestOneRequestTooMany(t *testing.T) {
	p := New(parse(t, `{"text":"a"}`))
	play(t.Context(), p, asking("one"))
	want := "error the script ends after reply 1, and this is request 2; it ends with the user message \"two\": " +
		"add a reply, or find out why there is one more request\n"
	if got := play(t.Context(), p, asking("two")); got != want {
		t.Errorf("second request = %s; want %s", got, want)
	}
	if got := play(t.Context(), p, provider.Request{}); !strings.Contains(got, "request 3, which has no messages") {
		t.Errorf("third request = %s; want it to say that it has no messages", got)
	}
}

func TestADelayCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(parse(t, `{"text":"late","delay_ms":3000}`+"\n"+`{"text":"never","delay_ms":3000}`))
		begun := time.Now()
		if got := play(t.Context(), p, asking("x")); !strings.Contains(got, "late") || time.Since(begun) != 3*time.Second {
			t.Errorf("Stream after %s = %s; want the text after 3s", time.Since(begun), got)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if got := play(ctx, p, asking("x")); got != "error enough\n" {
			t.Errorf("Stream after a cancel = %s; want its cause", got)
		}
	})
}

func TestACancelBetweenDeltas(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for _, err := range New(parse(t, `{"text":"one two three"}`)).Stream(ctx, asking("x")) {
		cancel(errors.New("enough"))
		last = err
	}
	if last == nil || last.Error() != "enough" {
		t.Errorf("last error = %v; want the cause of the cancel", last)
	}
}

func TestHammerTake(t *testing.T) {
	const n = 50
	p := New(parse(t, strings.Repeat("{\"text\":\"x\"}\n", n)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for range n + 1 {
		wg.Go(func() {
			got := play(t.Context(), p, asking("hello"))
			mu.Lock()
			defer mu.Unlock()
			answers[got[:5]]++
		})
	}
	wg.Wait()
	if answers[`"" "x`] != n || answers["error"] != 1 {
		t.Errorf("answers = %v; want each of %d replies once, and one error", answers, n)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"an unknown key", "{}\n" + `{"txt":"x"}`, `line 2: unknown field "txt": write one JSON object; ` + keys},
		{"an unknown key in a call", `{"calls":[{"name":"x","args":{}}]}`, `line 1: unknown field "args": write one JSON object; ` + keys},
		{"broken JSON", `{"text":`, `line 1: unexpected EOF: write one JSON object; ` + keys},
		{"a wrong type", `{"text":1}`, "line 1: text cannot be a number: write one JSON object; " + keys},
		{"two objects in a line", `{} {}`, "line 1: more or other than one JSON object: write one a line"},
		{"an object and stray text", `{}]`, "line 1: more or other than one JSON object: write one a line"},
		{"no object", `null`, "line 1: more or other than one JSON object: write one a line"},
		{"a call without name", `{"calls":[{"name":"x"},{}]}`, "line 1: call 2: it has no name: name the tool"},
		{"arguments of a wrong kind", `{"calls":[{"name":"x","arguments":[1]}]}`, "line 1: call 1: arguments are [1]: write an object, or a string for a broken text"},
		{"a negative delay", `{"delay_ms":-1}`, "line 1: delay_ms is -1: write milliseconds, from 0 on"},
		{"nothing", "\n \n", `it has no reply: write one JSON object a line, such as {"text":"Hello."}`},
		{"a line without end", `{"text":"` + strings.Repeat("x", maxLine), "line 1: longer than 16 MiB: make it shorter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("model.jsonl", strings.NewReader(tt.in))
			if want := "read script model.jsonl: " + tt.want; err == nil || err.Error() != want {
				t.Errorf("Parse error = %v\nwant %s", err, want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"text":"a","reasoning":"b","calls":[{"name":"exec","arguments":{"a":1}}],"usage":{"input_tokens":1},"delay_ms":1,"error":{"status":500},"expect":{"last_contains":"x"}}`)
	f.Add("{}\n\n{\"calls\":[{\"name\":\"x\",\"arguments\":\"{\"}]}")
	f.Fuzz(func(t *testing.T, text string) {
		replies, err := Parse("f", strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "read script f: ") {
				t.Errorf("Parse error %v does not name the script", err)
			}
			return
		}
		for _, r := range replies {
			if r.At == "" || r.Delay < 0 || r.Delay > maxDelay {
				t.Errorf("Parse gave %+v", r)
			}
			for _, c := range r.Calls {
				if c.Name == "" {
					t.Errorf("Parse gave a call without name: %+v", c)
				}
			}
		}
	})
}

func Example() {
	replies, err := Parse("model.jsonl", strings.NewReader(`{"text":"Hello.","expect":{"last_contains":"hi"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for d, err := range New(replies).Stream(context.Background(), asking("hi there")) {
		fmt.Printf("%q %q %v\n", d.Text, d.Finish, err)
	}
	// Output:
	// "Hello." "" <nil>
	// "" "stop" <nil>
}
