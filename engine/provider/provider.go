// Package provider says what a model is asked and how it answers.
//
// Each adapter lives in a package below this one and fences in one SDK. An
// adapter turns a [Request] into its server's form and the server's stream
// into [Delta] values; it repairs what servers get wrong about their own
// protocol, and nothing else. Retries, budgets and recovery are the engine's.
package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/session"
)

// Request is everything that a model sees.
type Request struct {
	session.Header
	Messages []session.Message

	// Session groups requests that begin alike, for a server's cache; a model does
	// not see it. It may be empty.
	Session session.ID
}

// HasImages reports whether the request shows the model an image.
func (r Request) HasImages() bool {
	return slices.ContainsFunc(r.Messages, func(m session.Message) bool { return len(m.Images) > 0 })
}

// WithoutImages returns the request for a model that cannot see: a line of text
// stands for each message's images. r stays as it is.
func (r Request) WithoutImages() Request {
	r.Messages = slices.Clone(r.Messages)
	for i, m := range r.Messages {
		r.Messages[i] = WithoutImages(m)
	}
	return r
}

// WithoutImages returns a message for a model that cannot see.
func WithoutImages(m session.Message) session.Message {
	if n := len(m.Images); n > 0 {
		m.Content = strings.TrimLeft(fmt.Sprintf("%s\n[%d image(s) left out: this model cannot see them]", m.Content, n), "\n")
		m.Images = nil
	}
	return m
}

// Delta is one increment of a reply. Any of its fields may be zero.
type Delta struct {
	Text      string         // more of the answer; whole UTF-8 characters
	Reasoning string         // more of the thinking, which is no part of the answer
	Call      *session.Call  // one complete tool call, in the model's order; its ID may be empty
	Usage     *session.Usage // the request's totals so far; the last one counts
	Finish    string         // why the reply is over: stop, tool_calls, length, content_filter, or the server's own word

	Extra        json.RawMessage // what belongs to the reply as a whole: see [session.AssistantMessage]; the last one counts
	ProviderTool json.RawMessage // an event of a tool that the server runs itself, as it came
}

// Class sorts failures by what can be done about them.
type Class string

// The classes of failure.
const (
	Unreachable Class = "unreachable" // no connection, or it broke
	Timeout     Class = "timeout"     // nothing came for too long
	Auth        Class = "auth"        // the key is missing or was refused
	Invalid     Class = "invalid"     // the server does not take the request
	Overflow    Class = "overflow"    // the request is longer than the model takes
	Images      Class = "images"      // the server does not take the request's images: see [Request.WithoutImages]
	RateLimit   Class = "rate_limit"  // too many requests: wait and ask again
	Quota       Class = "quota"       // used up, or not paid for: asking again does not help before RetryAfter, if that is known
	Server      Class = "server"      // the server's own fault
	Malformed   Class = "malformed"   // an answer that is none
	Script      Class = "script"      // a scripted reply's expectation was not met, or replies ran out
)

// Error is a request that failed. Its text says what happened, why, and what
// to do, and never holds a key.
type Error struct {
	Class      Class
	Status     int           // of HTTP; 0 if there was none
	Message    string        // what the server or the network said
	Advice     string        // what to do; may be empty
	Permanent  bool          // asking again would end in the same way, whatever the class
	RetryAfter time.Duration // how long the server wants us to wait; 0 if it did not say
	Err        error         // the cause, if there is one
}

// Error says what happened, why, and what to do.
func (e *Error) Error() string {
	if e.Advice != "" {
		return e.Cause() + ": " + e.Advice
	}
	return e.Cause()
}

// Cause says what happened and why, for where something is done about it already.
func (e *Error) Cause() string {
	if e.Status != 0 {
		return fmt.Sprintf("status %d: %s", e.Status, e.Message)
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
