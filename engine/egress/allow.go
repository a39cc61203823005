package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Entry is an entry of a list of hosts that may be reached: "host", "*.host" for
// its subdomains, either with ":port"; an address with its port; or "*", any
// host of the public network that has a name. Without a port the ports 443 and
// 80 are meant. The zero Entry allows nothing.
type Entry struct {
	host HostPattern
	any  bool
}

// anyHost is the word for all hosts: an empty list is no network.
const anyHost = "*"

// ParseEntry reads an entry. An address is opened exactly as it stands there,
// also one that [CheckAddress] refuses, so it must name its port.
func ParseEntry(text string) (Entry, error) {
	e, err := parseEntry(text)
	if err != nil {
		return Entry{}, fmt.Errorf("%q: %w", text, err)
	}
	return e, nil
}

func parseEntry(text string) (Entry, error) {
	switch {
	case text == anyHost:
		return Entry{any: true}, nil
	case strings.HasPrefix(text, anyHost+":"):
		return Entry{}, errors.New(`"*" is any host at the ports 443 and 80: write it alone, or name the hosts`)
	case strings.Contains(text, "/"):
		return Entry{}, errors.New("write the host alone, without https:// and without a path")
	}
	host, err := ParseHost(text)
	switch {
	case err != nil:
		return Entry{}, err
	case host.literal && !host.HasPort():
		return Entry{}, fmt.Errorf("an address needs its port: write %s", net.JoinHostPort(host.host, "8080"))
	case checkName(host.host) != nil:
		return Entry{}, errors.New("it is a name of this machine or of a local network: write the address and the port, such as 127.0.0.1:8080")
	}
	return Entry{host: host}, nil
}

// String prints e as [ParseEntry] reads it.
func (e Entry) String() string {
	if e.any {
		return anyHost
	}
	return e.host.String()
}

// Address returns the address that e opens, as it is written in a URL without
// its port, and whether e is one.
func (e Entry) Address() (string, bool) { return e.host.host, e.host.literal }

// matches reports whether e stands for an endpoint.
func (e Entry) matches(at endpoint) bool {
	if e.any {
		return !at.literal && (at.port == 443 || at.port == 80)
	}
	return e.host.Matches(at.host, at.port)
}

// Public returns a Permit for all of the public network, and besides for the addresses
// among entries, each at its port.
func Public(entries []Entry) func(method string, u *url.URL) Decision {
	return func(_ string, u *url.URL) Decision {
		host, port := Endpoint(u)
		_, err := netip.ParseAddr(host)
		if e, found := find(entries, endpoint{host, err == nil, port}); found && err == nil {
			return Decision{Allowed: true, Open: true, Rule: e.String()}
		}
		return Decision{Allowed: true, Rule: "the public network"}
	}
}

// endpoint is a host that was read strictly, and a port.
type endpoint struct {
	host    string // a name in lower case, or an address as netip prints it
	literal bool   // it is an address
	port    uint16
}

func (e endpoint) String() string { return net.JoinHostPort(e.host, strconv.Itoa(int(e.port))) }

// find returns the first of entries that stands for an endpoint.
func find(entries []Entry, at endpoint) (Entry, bool) {
	for _, e := range entries {
		if e.matches(at) {
			return e, true
		}
	}
	return Entry{}, false
}
