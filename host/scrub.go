package host

import (
	"encoding/json"
	"fmt"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/session"
)

// This file keeps the values of secrets out of what guests say and get. A value
// goes to the network alone, put in by http.fetch behind all checks; what comes
// back from there is scrubbed like all else.

// scrub returns text with a mark in the place of each value that is known.
func (x *instance) scrub(text []byte) []byte {
	scanner := x.session.Secrets.Scanner()
	if !scanner.Knows() {
		return text
	}
	if clean, found := scanner.Redact(string(text)); found {
		return []byte(clean)
	}
	return text
}

// refuseLeak refuses to let texts leave that carry a value, also one that goes
// from one into the next.
func (x *instance) refuseLeak(parts ...string) error {
	name, found := x.session.Secrets.Scanner().Find(parts...)
	if !found {
		return nil
	}
	return fmt.Errorf(`%w: the request carries the value of the secret %s, which goes nowhere but where the host puts it`, egress.ErrRefused, name)
}

// scrubJSON is scrub for a response. A value in a place where no mark can stand,
// such as a number, leaves nothing of it.
func (x *instance) scrubJSON(response []byte) ([]byte, bool) {
	clean := x.scrub(response)
	return clean, &clean[0] == &response[0] || json.Valid(clean)
}

// scrubError is scrub for an error that may quote a guest.
func (x *instance) scrubError(err error) error {
	if text, found := x.session.Secrets.Scanner().Redact(err.Error()); found {
		return &scrubbedError{text, err}
	}
	return err
}

// scrubbedError is an error whose text holds no values.
type scrubbedError struct {
	text  string
	cause error // for errors.Is and errors.As
}

func (e *scrubbedError) Error() string { return e.text }

func (e *scrubbedError) Unwrap() error { return e.cause }

// scrubbing returns a record of events that holds no values, whatever a guest
// took for the name of a thing.
func (cfg SessionConfig) scrubbing(record func(session.Event) error) func(session.Event) error {
	scanner := cfg.Secrets.Scanner()
	clean := func(text *string) { *text, _ = scanner.Redact(*text) }
	return func(event session.Event) error {
		switch e := event.(type) {
		case session.ExtensionUsed:
			clean(&e.Target)
			clean(&e.Reason)
			event = e
		case session.ExtensionEmitted:
			data := string(e.Data)
			clean(&data)
			e.Data = []byte(data)
			event = e
		case session.EgressChecked:
			clean(&e.Host)
			clean(&e.Rule)
			event = e
		}
		return record(event)
	}
}
