package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// closedRanges are the addresses that are not the public network, each with
// what it is. IPv4 addresses in IPv6 are taken out before.
var closedRanges = rangesOf(
	"of this host", "0.0.0.0/8 ::/128",
	"loopback", "127.0.0.0/8 ::1/128",
	"of a private network", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
	"of a carrier's network", "100.64.0.0/10",
	"a metadata service", "169.254.169.254/32 169.254.170.2/32 168.63.129.16/32",
	"link-local", "169.254.0.0/16 fe80::/10",
	"multicast", "224.0.0.0/4 ff00::/8",
	"for documentation or tests", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 198.18.0.0/15 2001:db8::/32 3fff::/20",
	"translated from IPv4", "64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32 ::/96 192.88.99.0/24",
	"reserved", "192.0.0.0/24 240.0.0.0/4 100::/64 2001::/23 5f00::/16",
)

type closedRange struct {
	prefix netip.Prefix
	what   string
}

// rangesOf reads pairs: what it is, and prefixes.
func rangesOf(pairs ...string) (all []closedRange) {
	for i := 0; i < len(pairs); i += 2 {
		for prefix := range strings.FieldsSeq(pairs[i+1]) {
			all = append(all, closedRange{netip.MustParsePrefix(prefix), pairs[i]})
		}
	}
	return all
}

// globalUnicast is all of IPv6 that is given out for the public network.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// CheckAddress returns nil if a is an address of the public network, which
// anybody may be let to. All else is [ErrRefused], with what it is. An IPv4
// address that is mapped into IPv6 is judged as what it stands for.
func CheckAddress(a netip.Addr) error {
	if a.Zone() != "" {
		return fmt.Errorf("%w: the address %s has a zone", ErrRefused, a)
	}
	a = a.Unmap()
	for _, r := range closedRanges {
		if r.prefix.Contains(a) {
			return fmt.Errorf("%w: the address %s is %s", ErrRefused, a, r.what)
		}
	}
	if !a.Is4() && !globalUnicast.Contains(a) {
		return fmt.Errorf("%w: the address %s is not of the public network", ErrRefused, a)
	}
	return nil
}

// localNames are names that never lead to the public network, so nobody is
// asked for them.
var localNames = []string{
	"localhost", "local", "internal", "localdomain", "home.arpa",
	"metadata", "instance-data", "metadata.goog", "metadata.azure.com",
}

// checkName refuses names of this machine, the local network and metadata services.
func checkName(host string) error {
	for _, name := range localNames {
		if host == name || strings.HasSuffix(host, "."+name) {
			return fmt.Errorf("%w: %s is a name of this machine, of a local network or of a metadata service: "+
				"only an address with its port, asked for and granted, opens such a place", ErrRefused, host)
		}
	}
	return nil
}
