// Package guestsdk holds the guest SDKs' sources, so that wharf can build an
// extension without a network and without anything published.
package guestsdk

import (
	"embed"
	"io/fs"
)

//go:embed go/agent.go go/guest_other.go go/guest_wasip1.go go/host.go go/points.go go/register.go go/wharf.go
var sources embed.FS

// Go returns the sources of the Go SDK, package
// github.com/wharf-agent/wharf/guest-sdk/go.
func Go() fs.FS {
	sub, err := fs.Sub(sources, "go")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
