package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wharf-agent/wharf/engine/session"
)

// A wait counts down on a terminal, and is one line elsewhere; the next event ends it.
func TestCountdown(t *testing.T) {
	tests := []struct {
		name string
		live bool
		wait time.Duration
		goes time.Duration // until the next event
		want string
	}{
		{"on a terminal", true, 3100 * time.Millisecond, 3100 * time.Millisecond, "wharf: the request failed: busy (attempt 1 of 4); again in 3.1s\n" +
			"[… again in 3s][… again in 2s][… again in 1s][… again in 0s][]"},
		{"that is cut short", true, time.Minute, 1500 * time.Millisecond, "wharf: the request failed: busy (attempt 1 of 4); again in 1m0s\n" +
			"[… again in 1m0s][… again in 59s][]"},
		{"elsewhere", false, time.Minute, time.Second, "wharf: the request failed: busy (attempt 1 of 4); again in 1m0s\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				p := newProgress(&out, false)
				p.live = tt.live
				p.event(session.Record{Event: session.RequestRetried{Attempt: 1, Attempts: 4, DelayMS: tt.wait.Milliseconds(), Cause: "busy"}})
				<-time.After(tt.goes)
				p.event(session.Record{Event: session.RequestSent{}})
				got := out.String()
				if first, rest, live := strings.Cut(got, "\r\x1b[K"); live {
					got = first + "[" + strings.ReplaceAll(rest, "\r\x1b[K", "][") + "]"
				}
				if got != tt.want {
					t.Errorf("the user sees\n%s\nwant\n%s", got, tt.want)
				}
			})
		})
	}
}

// Who follows a run sees when something was left out to make room.
func TestWhatMadeRoomIsShown(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, true)
	for _, e := range []session.ContextReplaced{{By: "result_budget", Targets: []int64{1}}, {By: "in_flight", Targets: []int64{4}}, {By: "snip", Targets: []int64{2, 3}}} {
		p.event(session.Record{Event: e})
	}
	want := "  the conversation is long, so it goes on without 1 result of this turn\n  the conversation is long, so it goes on without 2 old messages or results\n"
	if got := out.String(); got != want {
		t.Errorf("the user sees\n%s\nwant\n%s", got, want)
	}
}

// What is asked again at once is another request, or goes to another model.
func TestWhatIsAskedAgainAtOnce(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, false)
	p.event(session.Record{Event: session.RequestRetried{Attempt: 1, Cause: "status 400: too long"}})
	p.event(session.Record{Event: session.RequestRetried{Attempt: 2, Cause: "status 503: busy", Model: "other"}})
	want := "wharf: the request failed and is sent again without what was too much: status 400: too long\n" +
		"wharf: the request failed, and the model other is asked instead: status 503: busy\n"
	if got := out.String(); got != want {
		t.Errorf("the user sees\n%s\nwant\n%s", got, want)
	}
}
