package egress

import (
	"bufio"
	"errors"
	"io"
)

// tunnel carries out a CONNECT.
func (p *Proxy) tunnel(client *metered, in *bufio.Reader, h head) {
	server, no := p.reach(h, client.flow)
	if no != nil {
		client.answer(no)
		return
	}
	defer server.watch()()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if h.to.port == 443 { // nothing moves before it is known to be for that host
		if !p.open(client, server, in, h) {
			return
		}
		p.exchange(client, server, in, func() bool { return true })
		return
	}
	// Elsewhere the server may be the first to speak.
	p.exchange(client, server, in, func() bool {
		first, err := in.Peek(1)
		return err != nil || first[0] != tlsRecord || p.open(client, server, in, h)
	})
}

// open has the client's first TLS message pass if it names the host that the
// tunnel is for. Otherwise it says so to the client, and reports that.
func (p *Proxy) open(client, server *metered, in *bufio.Reader, h head) bool {
	client.endAfter(p.headTime)
	name, raw, err := readHello(in)
	client.endAfter(0)
	switch {
	case err == nil && name == h.to.host:
		_, err = server.Write(raw)
		return err == nil
	case errors.Is(err, errNoName) && h.to.literal: // TLS has no way to name an address
		_, err = server.Write(raw)
		return err == nil
	case err == nil:
		err = errors.New("its TLS hello names another host, " + name)
	case len(raw) == 0:
		return false // the client left, or said nothing
	}
	text := "the tunnel to " + h.to.String() + " was closed: " + err.Error()
	p.note(h.to.String(), text, false)
	_ = p.audit(Check{h.to.host, h.to.port, false, text}) // nothing leaves in any case
	if raw[0] == tlsRecord {
		_, _ = client.Write(unrecognizedName)
	}
	return false
}

// exchange carries bytes both ways until both sides have ended, or one breaks
// off. opened is called before the first of the client's, and may end it all.
func (p *Proxy) exchange(client, server *metered, in io.Reader, opened func() bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		carry(client, server, server)
	}()
	if opened() {
		carry(server, client, in)
	} else {
		_ = client.Close()
		_ = server.Close()
	}
	<-ended
}

// carry copies what comes of from to to. An end is passed on; whatever else
// stops it ends both.
func carry(to, from *metered, in io.Reader) {
	if _, err := io.Copy(to, in); err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	to.closeWrite()
}
