package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
)

// tlsRecord is the first byte of a TLS connection: a record of its handshake.
const tlsRecord = 22

// unrecognizedName is TLS's own way to say that a name is not served.
var unrecognizedName = []byte{21, 3, 1, 0, 2, 2, 112}

var (
	errHello  = errors.New("it does not begin as TLS does")
	errNoName = errors.New("its TLS hello does not name a host in the open")
)

// readHello reads the first message of a TLS client and returns the host that
// it names, and all that was read. The message may come in many records; its
// size is bounded by package crypto/tls, whose parser this is.
func readHello(in io.Reader) (name string, raw []byte, err error) {
	var read bytes.Buffer
	err = errHello
	look := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, err = strings.ToLower(hello.ServerName), nil
		return nil, errHello // which ends the handshake: all is known
	}}
	_ = tls.Server(listening{in: io.TeeReader(in, &read)}, look).Handshake()
	if err == nil && !hostName.MatchString(name) {
		name, err = "", errNoName
	}
	return name, read.Bytes(), err
}

// listening is a connection that is only read: nothing is said on it.
type listening struct {
	net.Conn // none: the calls that a handshake makes are below
	in       io.Reader
}

func (l listening) Read(b []byte) (int, error)  { return l.in.Read(b) }
func (l listening) Write(b []byte) (int, error) { return len(b), nil }
func (l listening) Close() error                { return nil }
