package script

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
)

// source is a provider made of a function.
type source func(ctx context.Context, yield func(provider.Delta, error) bool)

func (s source) Stream(ctx context.Context, _ provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) { s(ctx, yield) }
}

// A recording waits as long as its source did, and plays back what that said.
func TestRecordWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := source(func(_ context.Context, yield func(provider.Delta, error) bool) {
			time.Sleep(1500 * time.Millisecond)
			_ = yield(provider.Delta{Text: "a <b> "}, nil) && yield(provider.Delta{Text: "c"}, nil) && yield(provider.Delta{Finish: "stop"}, nil)
		})
		var file bytes.Buffer
		live := play(t.Context(), &Provider{}, asking("")) // an empty script's error, to be different from
		recorder := Record(slow, &file)
		var text string
		for d := range recorder.Stream(t.Context(), asking("hi")) {
			text += d.Text
		}
		if want := `{"text":"a <b> c","finish_reason":"stop","delay_ms":1500}` + "\n"; file.String() != want || text != "a <b> c" || live == text {
			t.Errorf("recorded %s of %q; want %s", file.String(), text, want)
		}
		begun := time.Now()
		if got := play(t.Context(), New(parse(t, file.String())), asking("hi")); !strings.HasSuffix(got, "\"stop\"\n") || time.Since(begun) != 1500*time.Millisecond {
			t.Errorf("played %s after %s; want an end after 1.5s", got, time.Since(begun))
		}
	})
}

// Whatever ends a reply, its line is written, whole.
func TestRecordOfWhatFails(t *testing.T) {
	tests := []struct {
		name   string
		source source
		stop   bool
		want   string
	}{
		{"a failure", func(_ context.Context, yield func(provider.Delta, error) bool) {
			_ = yield(provider.Delta{Text: "half"}, nil) &&
				yield(provider.Delta{}, &provider.Error{Class: provider.Quota, Status: 429, Message: "used up", Advice: "wait", RetryAfter: time.Hour, Permanent: true})
		}, false, `{"text":"half","error":{"status":429,"message":"used up","class":"quota","advice":"wait","retry_after_ms":3600000,"permanent":true}}`},
		{"a caller who wants no more", func(_ context.Context, yield func(provider.Delta, error) bool) {
			yield(provider.Delta{Text: "half"}, nil)
		}, true, `{"text":"half","error":{"message":"the request was given up here"}}`},
		{"a cancel", func(ctx context.Context, yield func(provider.Delta, error) bool) {
			<-ctx.Done()
			yield(provider.Delta{}, context.Cause(ctx))
		}, false, `{"delay_ms":60000,"error":{"message":"the request was given up here"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a secret reason"))
				defer cancel()
				var file bytes.Buffer
				for range Record(tt.source, &file).Stream(ctx, asking("hi")) {
					if tt.stop {
						break
					}
				}
				if file.String() != tt.want+"\n" {
					t.Errorf("recorded %s\nwant %s", file.String(), tt.want)
				}
				if _, err := Parse("recording", &file); err != nil {
					t.Errorf("Parse error = %v", err)
				}
			})
		})
	}
}

// Lines stand in the order of requests, also where a later one ends first.
func TestRecordInOrder(t *testing.T) {
	var file bytes.Buffer
	r := Record(nil, &file)
	first, second := r.begin(), r.begin()
	if err := r.end(second, []byte("2\n")); err != nil || file.String() != "" {
		t.Errorf("after the second ended: %q, %v; want nothing yet", file.String(), err)
	}
	if err := r.end(first, []byte("1\n")); err != nil || file.String() != "1\n2\n" {
		t.Errorf("after both: %q, %v; want 1, 2", file.String(), err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRecordOnAFullDisk(t *testing.T) {
	says := source(func(_ context.Context, yield func(provider.Delta, error) bool) {
		yield(provider.Delta{Text: "hi"}, nil)
	})
	var last error
	for _, err := range Record(says, fullDisk{}).Stream(t.Context(), asking("hi")) {
		last = err
	}
	want := "the reply could not be recorded: no space left: record to a file elsewhere, or not at all"
	if last == nil || last.Error() != want {
		t.Errorf("Stream error = %v; want %s", last, want)
	}
}
