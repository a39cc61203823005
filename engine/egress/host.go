package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// HostPattern stands for hosts with a port: "host", "host:port", or "*.host"
// for its subdomains. The zero HostPattern matches nothing.
type HostPattern struct {
	host    string // a name, or an address as netip prints it
	below   bool   // the subdomains of host, and not host
	literal bool   // host is an address
	port    uint16 // 0 is one that was not named
}

// ParseHost reads a host pattern.
func ParseHost(text string) (HostPattern, error) {
	host, port, err := splitPort(text)
	if err != nil {
		return HostPattern{}, err
	}
	host, below := strings.CutPrefix(host, "*.")
	host, literal, err := parseHost(host)
	if err == nil && below && literal {
		err = errors.New("an address has no subdomains")
	}
	if errors.Is(err, errNoHost) {
		err = fmt.Errorf("%w: write it in lower case; *. may stand before it", err)
	}
	if err != nil {
		return HostPattern{}, err
	}
	return HostPattern{host, below, literal, port}, nil
}

// String prints h as [ParseHost] reads it.
func (h HostPattern) String() string {
	text := h.host
	if h.below {
		text = "*." + text
	}
	if strings.Contains(text, ":") {
		text = "[" + text + "]"
	}
	if h.port != 0 {
		text += ":" + strconv.Itoa(int(h.port))
	}
	return text
}

// Matches reports whether h stands for a host, in lower case and without
// brackets, at a port. A pattern that names no port stands for 80 and 443.
func (h HostPattern) Matches(host string, port uint16) bool {
	return (h.port == port || h.port == 0 && (port == 80 || port == 443)) && h.MatchesName(host)
}

// MatchesName is Matches for any port.
func (h HostPattern) MatchesName(host string) bool {
	if h.below {
		return strings.HasSuffix(host, "."+h.host)
	}
	return h.host != "" && host == h.host
}

// Covers reports whether h stands for all that other stands for.
func (h HostPattern) Covers(other HostPattern) bool {
	switch {
	case h.port != other.port && (h.port != 0 || other.port != 80 && other.port != 443):
		return false
	case h.host == other.host && h.below == other.below:
		return true
	default:
		return h.below && strings.HasSuffix(other.host, "."+h.host)
	}
}

var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

var errNoHost = errors.New("no host")

// HasPort reports whether h names a port.
func (h HostPattern) HasPort() bool { return h.port != 0 }

// parseHost reads a name in lower case or an address, IPv6 in brackets. What
// only some programs take for an address (0x7f.1, 2130706433) is neither.
func parseHost(text string) (host string, literal bool, err error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if err != nil || !closed || !a.Is6() || a.Is4In6() || a.Zone() != "" {
			return "", false, fmt.Errorf("%q is no address", text)
		}
		return a.String(), true, nil
	}
	if len(text) > 253 || !hostName.MatchString(text) {
		return "", false, fmt.Errorf("%q is %w", text, errNoHost)
	}
	if last := text[strings.LastIndexByte(text, '.')+1:]; isNumber(last) {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return "", false, fmt.Errorf("%q is no address: write its four numbers in decimal", text)
		}
		return a.String(), true, nil
	}
	return text, false, nil
}

// isNumber reports whether a last label makes some programs read the host as an
// IPv4 address.
func isNumber(label string) bool {
	return strings.Trim(label, "0123456789") == "" || strings.HasPrefix(label, "0x") && strings.Trim(label[2:], "0123456789abcdef") == ""
}

// splitPort cuts the port off a host. The port is 0 if there is none.
func splitPort(text string) (host string, port uint16, err error) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 || strings.HasSuffix(text, "]") {
		return text, 0, nil
	}
	n, err := strconv.ParseUint(text[i+1:], 10, 16)
	if err != nil || n == 0 || text[i+1] == '0' {
		return "", 0, fmt.Errorf("%q is no port", text[i+1:])
	}
	return text[:i], uint16(n), nil
}

// defaultPort returns a scheme's port, or 0 if it is neither http nor https.
func defaultPort(scheme string) uint16 {
	switch scheme {
	case "http":
		return 80
	case "https":
		return 443
	default:
		return 0
	}
}
