package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// ClientConfig says how a Client reaches the network; zero means the default.
type ClientConfig struct {
	Dialer  Dialer
	RootCAs *x509.CertPool // who vouches for servers; nil is the system's
	Timeout time.Duration  // of a request with all its hops and its body; 0 is 30 s
	MaxBody int64          // bytes of a response, decoded; 0 is 10 MiB
}

// The other limits of a request.
const (
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of a header, either way
)

// Client makes HTTP requests, each hop of which is judged before it leaves. It
// keeps no cookies and knows no proxy. It is safe for concurrent use; Close it.
//
// What a server sends that nobody asked for, net/http writes to the standard
// logger of package log, whatever it holds: a program turns that off.
type Client struct {
	cfg       ClientConfig
	transport *http.Transport
}

// NewClient returns a Client of its own connections.
func NewClient(cfg ClientConfig) *Client {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 10 << 20
	}
	c := &Client{cfg: cfg}
	c.transport = &http.Transport{
		DialContext:            c.dial,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           8,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
	}
	return c
}

// Close ends the connections that wait for another request.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is a request of somebody who must be judged.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte

	// Secret holds the headers that the caller adds on behalf of who asks. They
	// go to the first hop alone, and only by https or to an opened address of
	// this machine.
	Secret http.Header

	// Permit judges each hop; its URL is as [ParseURL] returns it. Nil refuses all.
	Permit func(method string, u *url.URL) Decision

	// Audit is told of each hop, before it leaves; its error stops the request.
	// Nil is nobody.
	Audit func(Check) error
}

// Decision is what a Permit says of a hop. The zero Decision refuses.
type Decision struct {
	Allowed bool
	Open    bool   // also where the URL's host is an address that is not public
	Rule    string // what allows it, or why nothing does
}

// Check is a judged hop, for the record.
type Check struct {
	Host    string
	Port    uint16
	Allowed bool
	Rule    string
}

// Allow returns a Permit for what one of patterns stands for. An address that
// a pattern names is opened at that pattern's port.
func Allow(patterns []Pattern) func(method string, u *url.URL) Decision {
	return func(method string, u *url.URL) Decision {
		for _, p := range patterns {
			if p.Matches(method, u) {
				return Decision{Allowed: true, Open: p.Literal(), Rule: p.String()}
			}
		}
		return Decision{Rule: "no pattern allows it"}
	}
}

// Response is the answer to a Request.
type Response struct {
	Status int
	Header http.Header // without cookies
	Body   []byte      // decoded
	URL    string      // of the last hop
}

var errTimeout = errors.New("it was not answered in time")

// Do makes a request and follows its redirects. What is not allowed is
// [ErrRefused], what nobody could send is [ErrInvalid], what is too large or
// redirected too often is [ErrLimit]. If ctx ends first, the error is its cause.
func (c *Client) Do(ctx context.Context, r Request) (Response, error) {
	limited, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)
	defer cancel()
	response, err := c.follow(limited, r)
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	return response, err
}

func (c *Client) follow(ctx context.Context, r Request) (Response, error) {
	at, err := firstHop(r)
	if err != nil {
		return Response{}, err
	}
	for n := 0; ; n++ {
		answer, err := c.send(ctx, r, at)
		if err != nil {
			return Response{}, err
		}
		location := answer.Header.Get("Location")
		if location == "" || !isRedirect(answer.StatusCode) {
			return c.read(at, answer)
		}
		answer.Body.Close()
		if n == maxRedirects {
			return Response{}, fmt.Errorf("%w: more than %d redirects", ErrLimit, maxRedirects)
		}
		if at, err = at.next(answer.StatusCode, location); err != nil {
			return Response{}, fmt.Errorf("redirect: %w", err)
		}
	}
}

// send judges one hop, and lets it leave.
func (c *Client) send(ctx context.Context, r Request, at hop) (*http.Response, error) {
	checked, err := c.judge(ctx, r, at)
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, checkedKey{}, checked)
	request, err := http.NewRequestWithContext(ctx, at.method, at.url.String(), bytes.NewReader(at.body))
	if err != nil {
		return nil, invalid{err}
	}
	request.Header = at.headers()
	answer, err := c.transport.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusSwitchingProtocols {
		answer.Body.Close() // the connection itself, which would not end with ctx
		return nil, errNoAnswer
	}
	return answer, plainFailure(err)
}

var errNoAnswer = errors.New("the server's answer is not HTTP as it should be, or broke off")

// plainFailure leaves out of the transport's error this machine's address, and
// what a server said: pieces of it, which may be pieces of what it was sent.
func plainFailure(err error) error {
	if err == nil {
		return nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	if _, network := errors.AsType[net.Error](err); network {
		return err
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return bad
	}
	text := err.Error() // of HTTP/1.1, of HTTP/2
	if strings.Contains(text, "response headers exceeded") || strings.Contains(text, "header list larger") {
		return fmt.Errorf("%w: the response's header has more than %d bytes", ErrLimit, maxHeader)
	}
	return errNoAnswer
}

// judge returns the addresses to which a hop may go.
func (c *Client) judge(ctx context.Context, r Request, at hop) ([]netip.AddrPort, error) {
	var d Decision
	if r.Permit != nil {
		d = r.Permit(at.method, at.url)
	}
	host, port := Endpoint(at.url)
	var checked []netip.AddrPort
	err := at.refusal(d)
	if err == nil {
		checked, err = c.cfg.Dialer.Resolve(ctx, host, port, d.Open)
	}
	if err != nil && d.Allowed {
		d = Decision{Rule: err.Error()}
	}
	if r.Audit != nil {
		err = errors.Join(err, r.Audit(Check{host, port, d.Allowed, d.Rule}))
	}
	return checked, err
}

type checkedKey struct{}

// dial connects to the addresses that were checked for the request, whatever
// the name stands for by now.
func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	checked, _ := ctx.Value(checkedKey{}).([]netip.AddrPort)
	return c.cfg.Dialer.Dial(ctx, checked)
}

// read reads the answer of the last hop.
func (c *Client) read(at hop, answer *http.Response) (Response, error) {
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, c.cfg.MaxBody+1))
	if err != nil {
		return Response{}, fmt.Errorf("read the response: %w", plainFailure(err))
	}
	if int64(len(body)) > c.cfg.MaxBody {
		return Response{}, fmt.Errorf("%w: the response has more than %d bytes", ErrLimit, c.cfg.MaxBody)
	}
	if coding := strings.Join(answer.Header.Values("Content-Encoding"), ", "); len(body) > 0 && coding != "" && coding != "identity" {
		return Response{}, fmt.Errorf("read the response: it is encoded as %.20q, which was not asked for", coding)
	}
	answer.Header.Del("Set-Cookie")
	answer.Header.Del("Set-Cookie2")
	return Response{answer.StatusCode, answer.Header, body, at.url.String()}, nil
}
