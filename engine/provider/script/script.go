// Package script replays a recorded model: no key, no network, the same every
// time. Demos, tests and bug reports use it.
//
// A script is a file of JSON Lines, one reply each (see [Parse]). All requests
// that a [Provider] gets, whoever makes them, take the replies in order. A
// request that does not meet what a reply expects, or one more than there are
// replies, is an error of class provider.Script that says what was expected and
// what came.
package script

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// Provider answers from a script. It may be used by several goroutines at once.
type Provider struct {
	replies []Reply

	mu   sync.Mutex
	next int
}

// New returns a provider that gives the replies, each once.
func New(replies []Reply) *Provider { return &Provider{replies: replies} }

// Stream answers req with the next reply: its text in pieces of a word, then its
// calls. If ctx ends first, the last pair carries context.Cause(ctx).
func (p *Provider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		reply, err := p.take(req)
		if err == nil {
			err = wait(ctx, reply.Delay)
		}
		if err != nil {
			yield(provider.Delta{}, err)
			return
		}
		for d := range reply.deltas() {
			if ctx.Err() != nil {
				yield(provider.Delta{}, context.Cause(ctx))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if reply.Failure != nil {
			yield(provider.Delta{}, reply.Failure.err())
		}
	}
}

// take returns the next reply if req is what it expects.
func (p *Provider) take(req provider.Request) (*Reply, error) {
	p.mu.Lock()
	n := p.next
	p.next++
	p.mu.Unlock()
	if n >= len(p.replies) {
		return nil, scriptError(
			fmt.Sprintf("the script ends after reply %d, and this is request %d%s", len(p.replies), n+1, after(req)),
			"add a reply, or find out why there is one more request")
	}
	reply := &p.replies[n]
	var last session.Message
	if len(req.Messages) > 0 {
		last = req.Messages[len(req.Messages)-1]
	}
	if !strings.Contains(last.Content, reply.LastContains) {
		return nil, scriptError(
			fmt.Sprintf("reply %d%s expects %q in the request's last message%s", n+1, place(reply.At), reply.LastContains, after(req)),
			"correct the script, or find out why the request differs")
	}
	return reply, nil
}

func place(at string) string {
	if at == "" {
		return ""
	}
	return " (" + at + ")"
}

// after tells what a request ends with.
func after(req provider.Request) string {
	if len(req.Messages) == 0 {
		return ", which has no messages"
	}
	last := req.Messages[len(req.Messages)-1]
	content := []rune(last.Content)
	if len(content) > 200 {
		content = append(content[:200], '…')
	}
	return fmt.Sprintf("; it ends with the %s message %q", last.Role, string(content))
}

func scriptError(message, advice string) *provider.Error {
	return &provider.Error{Class: provider.Script, Message: message, Advice: advice}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// deltas yields the reply as a server would send it. A reply that fails breaks
// off before its end.
func (r *Reply) deltas() iter.Seq[provider.Delta] {
	return func(yield func(provider.Delta) bool) {
		for word := range words(r.Reasoning) {
			if !yield(provider.Delta{Reasoning: word}) {
				return
			}
		}
		for word := range words(r.Text) {
			if !yield(provider.Delta{Text: word}) {
				return
			}
		}
		for _, c := range r.Calls {
			if !yield(provider.Delta{Call: &c}) {
				return
			}
		}
		if r.Usage != nil && !yield(provider.Delta{Usage: r.Usage}) {
			return
		}
		if r.Extra != nil && !yield(provider.Delta{Extra: r.Extra}) {
			return
		}
		if r.Failure == nil {
			yield(provider.Delta{Finish: r.finish()})
		}
	}
}

// words splits a text behind its spaces. An empty text has none.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word := range strings.SplitAfterSeq(text, " ") {
			if word != "" && !yield(word) {
				return
			}
		}
	}
}

func (r *Reply) finish() string {
	if len(r.Calls) > 0 {
		return cmp.Or(r.FinishReason, "tool_calls")
	}
	return cmp.Or(r.FinishReason, "stop")
}

func (f *Failure) err() *provider.Error {
	class := provider.Unreachable
	if f.Status != 0 {
		class = provider.ClassOf(f.Status)
	}
	if provider.IsOverflow(f.Message) {
		class = provider.Overflow
	}
	return &provider.Error{
		Class: cmp.Or(f.Class, class), Status: f.Status, Message: cmp.Or(f.Message, "the script says so"), Advice: f.Advice,
		RetryAfter: time.Duration(min(f.RetryAfterMS, maxDelay.Milliseconds())) * time.Millisecond, Permanent: f.Permanent,
	}
}
