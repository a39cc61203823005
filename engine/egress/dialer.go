package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Resolver finds the addresses of a name; [net.Resolver] does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer connects to hosts whose addresses were checked. The zero Dialer is
// ready, and it is safe for concurrent use.
type Dialer struct {
	Resolver Resolver                                                // nil is the system's
	Connect  func(context.Context, netip.AddrPort) (net.Conn, error) // nil is TCP
}

// connectTimeout bounds one attempt to connect.
const connectTimeout = 10 * time.Second

// Resolve returns the addresses of a host, as [ParseURL] or [ParseHost] spell it
// without brackets, all of which are checked: if one is not of the public
// network, the host is refused. open is for a host that is an address: that
// very one is opened, whatever it is. The error is [ErrRefused] or the resolver's.
func (d *Dialer) Resolve(ctx context.Context, host string, port uint16, open bool) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if !open {
			err = CheckAddress(a)
		}
		return []netip.AddrPort{netip.AddrPortFrom(a, port)}, err
	}
	if err := checkName(host); err != nil {
		return nil, err
	}
	var r Resolver = net.DefaultResolver
	if d.Resolver != nil {
		r = d.Resolver
	}
	found, err := r.LookupNetIP(ctx, "ip", host+".") // the dot: no search list of the machine's
	if err != nil {
		return nil, fmt.Errorf("find the address of %s: %w", host, plainLookup(err))
	}
	var checked []netip.AddrPort
	for _, a := range found {
		if err := CheckAddress(a); err != nil {
			return nil, fmt.Errorf("%s: %w", host, err)
		}
		checked = append(checked, netip.AddrPortFrom(a.Unmap(), port))
	}
	if len(checked) == 0 {
		return nil, fmt.Errorf("find the address of %s: it has none", host)
	}
	return checked, nil
}

// plainLookup leaves out of a resolver's error the server that was asked.
func plainLookup(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(dns.Err)
	}
	return err
}

// Dial connects to the first of the addresses that answers.
func (d *Dialer) Dial(ctx context.Context, checked []netip.AddrPort) (net.Conn, error) {
	connect := d.Connect
	if connect == nil {
		connect = connectTCP
	}
	err := errors.New("there is no address to connect to")
	for _, at := range checked {
		attempt, cancel := context.WithTimeout(ctx, connectTimeout)
		var conn net.Conn
		conn, err = connect(attempt, at)
		cancel()
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// connectTCP connects to at. What the kernel is about to be asked is compared
// once more with what was checked.
func connectTCP(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if address != at.String() {
			return fmt.Errorf("%w: %s is not the address that was checked", ErrRefused, address)
		}
		return nil
	}}
	return d.DialContext(ctx, "tcp", at.String())
}
