package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestCheckAddress(t *testing.T) {
	for what, addresses := range map[string]string{
		"":                           "93.184.216.34 1.1.1.1 172.32.0.1 100.128.0.1 192.1.0.1 223.255.255.255 2606:4700::1111 2a00:1450::1 ::ffff:1.1.1.1",
		"of this host":               "0.0.0.0 0.1.2.3 ::",
		"loopback":                   "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1",
		"of a private network":       "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 ::ffff:10.0.0.1 fc00::1 fd00:ec2::254 fec0::1",
		"of a carrier's network":     "100.64.0.1 100.127.255.255 100.100.100.200",
		"a metadata service":         "169.254.169.254 ::ffff:169.254.169.254 168.63.129.16",
		"link-local":                 "169.254.0.1 fe80::1 febf::1",
		"multicast":                  "224.0.0.1 239.255.255.250 ff02::1",
		"for documentation or tests": "192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 2001:db8::1 3fff::1",
		"translated from IPv4":       "64:ff9b::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 2002:7f00:1:: 2001:0:1::1 ::127.0.0.1 192.88.99.1",
		"reserved":                   "192.0.0.192 240.0.0.1 255.255.255.255 100::1 2001:20::1 5f00::1",
		"not of the public network":  "4000::1 1000::1 f000::1",
	} {
		for text := range strings.FieldsSeq(addresses) {
			a := netip.MustParseAddr(text)
			err := CheckAddress(a)
			if what == "" {
				if err != nil {
					t.Errorf("CheckAddress(%s) = %v; want nil", text, err)
				}
				continue
			}
			want := "not allowed: the address " + a.Unmap().String() + " is " + what
			if err == nil || err.Error() != want || !errors.Is(err, ErrRefused) {
				t.Errorf("CheckAddress(%s) = %v; want %s", text, err, want)
			}
		}
	}
	if CheckAddress(netip.Addr{}) == nil || CheckAddress(netip.MustParseAddr("2606:4700::1%eth0")) == nil {
		t.Error("no address, or one with a zone, is let through")
	}
}

// Names of this machine are refused, and nobody is asked for them.
func TestLocalNames(t *testing.T) {
	w := &world{names: map[string][][]string{}}
	d := Dialer{Resolver: w}
	for _, name := range []string{"localhost", "a.localhost", "metadata.google.internal", "printer.local", "instance-data", "metadata"} {
		if _, err := d.Resolve(t.Context(), name, 80, true); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(w.asked) != 0 {
		t.Errorf("asked for %v", w.asked)
	}
}

// The next address is tried when one does not answer.
func TestDialTriesTheNext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var tried []string
	d := Dialer{Connect: func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
		tried = append(tried, at.String())
		if len(tried) == 1 {
			return nil, errors.New("nobody there")
		}
		return connectTCP(ctx, netip.MustParseAddrPort(listener.Addr().String()))
	}}
	conn, err := d.Dial(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("1.1.1.1:80"), netip.MustParseAddrPort("1.0.0.1:80")})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if got := strings.Join(tried, " "); got != "1.1.1.1:80 1.0.0.1:80" {
		t.Errorf("tried %s", got)
	}
	if _, err := d.Dial(t.Context(), nil); err == nil {
		t.Error("no address was dialled")
	}
}
