// Package egress decides what may leave for the network, for everything in
// Wharf that reaches it on somebody's behalf.
//
// A [Pattern] says which requests are meant: method, scheme, host, port and
// path. [ParseURL] brings a URL into the one form that is judged and sent, and
// refuses what two programs could read in two ways. A [Dialer] resolves a name
// once, checks what it stands for ([CheckAddress]) and connects to exactly
// that, so that a name cannot lead elsewhere after it was checked. A [Client]
// makes HTTP requests of these parts: each hop of a redirect is judged like the
// first.
//
// The package grants nothing: who may reach what is its callers' to say, and
// what nobody says is refused.
package egress

import "errors"

// The three ways in which a request does not come about, besides the network's own.
var (
	ErrRefused = errors.New("not allowed")  // it leads to where it must not
	ErrInvalid = errors.New("bad request")  // nobody could send it as it is
	ErrLimit   = errors.New("over a limit") // it took too many bytes or hops
)
