package sandbox

import (
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/egress"
)

// Network says which hosts commands may reach, by a proxy of Wharf's; see
// [egress.Proxy]. The zero Network is none: then there is no proxy either.
type Network struct {
	Allow  []egress.Entry
	Audit  func(egress.Check) error // is told of each connection before it is made, by several at once; its error refuses it; nil is nobody
	Budget int64                    // bytes that one command may send and get; 0 is 2 GiB
}

// Where a command finds the proxy, on its own loopback.
const (
	proxyAddress = "127.0.0.1:3128"
	proxyPort    = 3128
)

// openTo returns the hosts that c may reach by the proxy.
func (s *Sandbox) openTo(c Command) []egress.Entry {
	if c.probe || c.Profile == FullAccess { // which has the host's own network
		return nil
	}
	return slices.Concat(s.cfg.Network.Allow, c.Network)
}

// proxyEnvironment tells programs of the proxy, in all the ways that they ask.
// An address of the loopback that is listed is a server outside: it is left out
// of what is reached without the proxy.
func proxyEnvironment(open []egress.Entry) []string {
	direct := []string{"localhost", "127.0.0.1", "::1"}
	for _, e := range open {
		if address, ok := e.Address(); ok {
			direct = slices.DeleteFunc(direct, func(d string) bool { return d == address })
		}
	}
	env := []string{"NO_PROXY=" + strings.Join(direct, ","), "no_proxy=" + strings.Join(direct, ","), "NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"=http://"+proxyAddress, strings.ToLower(name)+"=http://"+proxyAddress)
	}
	return env
}

// listed returns entries as they are written.
func listed(open []egress.Entry) string {
	texts := make([]string, len(open))
	for i, e := range open {
		texts[i] = e.String()
	}
	return strings.Join(texts, ", ")
}

// networkGap says what becomes of an allow-list where there are no namespaces.
const networkGap = "the network stays closed, also to hosts that are allowed: without namespaces nothing would keep a command to them"

// refusals tells of what a proxy refused.
func refusals(p *egress.Proxy) (notes []string) {
	for _, r := range p.Refused() {
		switch {
		case r.Unlisted:
			r.Why += "; what would allow it: sandbox.allow_net (--allow-net)"
		case r.Where == "":
			r.Why += "; the limit is sandbox.limits.network"
		}
		notes = append(notes, r.Why)
	}
	return notes
}
