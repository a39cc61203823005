package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/session"
)

// This file holds which hosts commands may reach: those of sandbox.allow_net, and
// of --allow-net.

// addNetworkFlag adds --allow-net.
func addNetworkFlag(f *pflag.FlagSet, into *[]string) {
	f.StringArrayVar(into, "allow-net", nil, "let commands reach `HOST`: api.example.com, *.example.com, either with :PORT (else 443 and 80), an address with its port, or * for any public host; repeatable")
}

// openHosts adds what flags open to what the configuration does, and checks it all.
func (c *config) openHosts(flags []string) error {
	for _, list := range []struct {
		from  string
		hosts []string
	}{{"sandbox.allow_net", c.Sandbox.Net}, {"--allow-net", flags}} {
		for _, host := range list.hosts {
			e, err := egress.ParseEntry(host)
			if err != nil {
				return usagef("%s: %w", list.from, err)
			}
			c.hosts = append(c.hosts, e)
		}
	}
	return nil
}

// network returns what commands may reach; audit is told of each connection.
func (c config) network(audit func(egress.Check) error) sandbox.Network {
	return sandbox.Network{Allow: c.hosts, Audit: audit, Budget: int64(c.Sandbox.Limits.Network)}
}

// openInWords names the hosts that are open; it is empty if there are none.
func (c config) openInWords() string {
	texts := make([]string, len(c.hosts))
	for i, e := range c.hosts {
		texts[i] = e.String()
		if texts[i] == "*" {
			texts[i] = "any public host (*)"
		}
	}
	return strings.Join(texts, ", ")
}

// checked records a connection of a command's.
func (j *journal) checked(c egress.Check) error {
	return j.record(session.EgressChecked{Host: c.Host, Port: c.Port, Allowed: c.Allowed, Rule: c.Rule})
}

// refusedConnection says what was refused, for people.
func refusedConnection(e session.EgressChecked) string {
	if e.Host == "" {
		return "a request to the proxy: " + e.Rule
	}
	return fmt.Sprintf("a connection to %s:%d: %s", e.Host, e.Port, e.Rule)
}
