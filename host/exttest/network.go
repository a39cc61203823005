package exttest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/egress"
)

// network is all the Internet of a case: one server, in this process, which has
// every name and answers what the case has answers to. The host reaches it as it
// reaches any: its checks, redirects and certificates are the real ones.
type network struct {
	stage  *stage
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	served sync.WaitGroup
	ca     *authority
}

func openNetwork(s *stage) (*network, error) {
	ca, err := certificates()
	if err != nil {
		return nil, err
	}
	n := &network{stage: s, conns: make(chan net.Conn), closed: make(chan struct{}), ca: ca}
	n.server = &http.Server{Handler: n, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute, ConnContext: withConn}
	n.served.Go(func() { _ = n.server.Serve(n) }) // ends when close does
	return n, nil
}

func (n *network) close() {
	close(n.closed)
	_ = n.server.Close() // connections within this process close
	n.served.Wait()
}

// config is how the host reaches the network.
func (n *network) config() egress.ClientConfig {
	return egress.ClientConfig{Dialer: egress.Dialer{Resolver: everywhere{}, Connect: n.connect}, RootCAs: n.ca.pool}
}

// everywhere finds each name at an address of the public network, which nobody
// connects to.
type everywhere struct{}

// LookupNetIP returns that address.
func (everywhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{1, 1, 1, 1})}, nil
}

// connect is a connection to the server, whatever the address.
func (n *network) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case n.conns <- &served{Conn: theirs, reader: bufio.NewReader(theirs), network: n, address: to.Addr()}:
		return ours, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept, Close and Addr make the network the server's listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close does nothing: close does.
func (n *network) Close() error { return nil }

// Addr is nothing that anybody asks for.
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// served is a connection that becomes one of TLS if that is how it begins.
type served struct {
	net.Conn
	reader  *bufio.Reader
	network *network
	address netip.Addr
	once    sync.Once
	inner   net.Conn // of TLS; nil if it is plain
}

// begin finds out what the client speaks.
func (c *served) begin() {
	c.once.Do(func() {
		first, err := c.reader.Peek(1)
		if err == nil && first[0] == 22 { // a handshake of TLS
			c.inner = tls.Server(&peeked{c.Conn, c.reader}, &tls.Config{
				MinVersion: tls.VersionTLS12,
				GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
					return c.network.ca.issue(hello.ServerName, c.address)
				},
			})
		}
	})
}

// Read reads what the client sent.
func (c *served) Read(p []byte) (int, error) {
	c.begin()
	if c.inner != nil {
		return c.inner.Read(p)
	}
	return c.reader.Read(p)
}

// Write answers it.
func (c *served) Write(p []byte) (int, error) {
	c.begin()
	if c.inner != nil {
		return c.inner.Write(p)
	}
	return c.Conn.Write(p)
}

// peeked is a connection of which something was looked at already.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

// Read reads that too.
func (p *peeked) Read(b []byte) (int, error) { return p.reader.Read(b) }

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ServeHTTP answers a request from the case.
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*served)
	scheme := "http://"
	if c != nil && c.inner != nil {
		scheme = "https://"
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client went away
	}
	asked := scheme + r.Host + r.RequestURI
	h := take(n.stage, n.stage.world.HTTP, func(h *httpForm) bool {
		return h.method() == r.Method && sameURL(h.URL, asked)
	}, func(h *httpForm) int { return h.Times })
	if h == nil {
		_ = n.stage.lacks("the case has no [[case.http]] for %s %s", r.Method, asked) // noted
		panic(http.ErrAbortHandler)                                                   // the server's way to cut a connection
	}
	n.compare(h, r, body)
	w.Header()["Date"], w.Header()["Content-Type"] = nil, nil // nothing that the case does not say
	for name, value := range h.Headers {
		w.Header().Set(name, value)
	}
	if h.Status != 0 {
		w.WriteHeader(h.Status)
	}
	_, _ = io.WriteString(w, h.Body) // a client that is gone needs no answer
}

// compare notes where a request is not as the case has it.
func (n *network) compare(h *httpForm, r *http.Request, body []byte) {
	for _, name := range sortedKeys(h.SentHeaders) {
		if got := r.Header.Get(name); got != h.SentHeaders[name] {
			_ = n.stage.lacks("%s %s was sent with the header %s = %q, and not %q", r.Method, h.URL, name, got, h.SentHeaders[name])
		}
	}
	if h.SentBody != nil && *h.SentBody != string(body) {
		_ = n.stage.lacks("%s %s was sent with the body %q, and not %q", r.Method, h.URL, body, *h.SentBody)
	}
}

func (h *httpForm) method() string {
	if h.Method == "" {
		return http.MethodGet
	}
	return h.Method
}

func sameURL(a, b string) bool {
	left, err := egress.ParseURL(a)
	if err != nil {
		return false
	}
	right, err := egress.ParseURL(b)
	return err == nil && left.String() == right.String()
}

// authority vouches for every name. Its key never leaves the process.
type authority struct {
	key  *ecdsa.PrivateKey
	root *x509.Certificate
	pool *x509.CertPool

	mu     sync.Mutex
	issued map[string]*tls.Certificate
}

var certificates = sync.OnceValues(func() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the network of a case"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, root: root, pool: x509.NewCertPool(), issued: map[string]*tls.Certificate{}}
	a.pool.AddCert(root)
	return a, nil
})

// issue makes a certificate for a name, or for an address where no name was sent.
func (a *authority) issue(name string, address netip.Addr) (*tls.Certificate, error) {
	if !address.IsValid() {
		return nil, errors.New("no address")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id := name + " " + address.String()
	if c := a.issued[id]; c != nil {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a.issued)) + 2), NotBefore: a.root.NotBefore, NotAfter: a.root.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{address.AsSlice()},
	}
	if name != "" {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	a.issued[id] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
	return a.issued[id], nil
}
