// Package egress decides what may leave for the network, for everything in
// Wharf that reaches it on somebody's behalf.
//
// A [Pattern] says which requests are meant: method, scheme, host, port and
// path. [ParseURL] brings a URL into the one form that is judged and sent, and
// refuses what two programs could read in two ways. A [Dialer] resolves a name
// once, checks what it stands for ([CheckAddress]) and connects to exactly
// that, so that a name cannot lead elsewhere after it was checked. A [Client]
// makes HTTP requests of these parts: each hop of a redirect is judged like the
// first. A [Proxy] lets programs that know nothing of this reach the hosts of a
// list, each of which is an [Entry].
//
// The package grants nothing: who may reach what is its callers' to say, and
// what nobody says is refused.
package egress

import (
	"errors"
	"fmt"
)

// The three ways in which a request does not come about, besides the network's own.
var (
	ErrRefused = errors.New("not allowed")     // it leads to where it must not
	ErrInvalid = errors.New("invalid request") // nobody could send it as it is
	ErrLimit   = errors.New("over a limit")    // it took too many bytes or hops
)

// invalid is an [ErrInvalid] that says only what is wrong.
type invalid struct{ error }

func (invalid) Is(target error) bool { return target == ErrInvalid }

func invalidf(format string, args ...any) error { return invalid{fmt.Errorf(format, args...)} }
