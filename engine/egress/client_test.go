package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is a network of our own: names resolve as it says, and whatever is
// dialled is noted and led to the test's servers.
type world struct {
	names  map[string][][]string // what each look-up of a name answers, in turn; the last stays
	server *httptest.Server
	secure *httptest.Server
	raw    net.Listener // in the place of both, if there is one

	mu     sync.Mutex
	asked  []string
	dialed []string
	seen   []*http.Request
	bodies []string
	checks []string
}

func (w *world) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name = strings.TrimSuffix(name, ".")
	w.asked = append(w.asked, name)
	answers := w.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, Server: "192.168.0.53:53"}
	}
	if len(answers) > 1 {
		w.names[name] = answers[1:]
	}
	var all []netip.Addr
	for _, a := range answers[0] {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (w *world) connect(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, at.String())
	w.mu.Unlock()
	to := w.server.Listener
	switch {
	case w.raw != nil:
		to = w.raw
	case at.Port() == 443:
		to = w.secure.Listener
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to.Addr().String())
}

// newWorld serves handle by http and https.
func newWorld(t *testing.T, handle http.HandlerFunc) (*world, *Client) {
	t.Helper()
	w := &world{names: map[string][][]string{
		"example.com":       {{"93.184.216.34"}},
		"other.example.com": {{"93.184.216.35"}},
	}}
	noting := func(out http.ResponseWriter, in *http.Request) {
		body, _ := io.ReadAll(in.Body)
		w.mu.Lock()
		w.seen, w.bodies = append(w.seen, in), append(w.bodies, string(body))
		w.mu.Unlock()
		handle(out, in)
	}
	w.server = httptest.NewServer(http.HandlerFunc(noting))
	w.secure = httptest.NewUnstartedServer(http.HandlerFunc(noting))
	w.secure.EnableHTTP2 = true
	w.secure.StartTLS()
	c := NewClient(ClientConfig{
		Dialer:  Dialer{Resolver: w, Connect: w.connect},
		RootCAs: w.secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
	})
	t.Cleanup(func() { c.Close(); w.server.Close(); w.secure.Close() })
	return w, c
}

func (w *world) audit(c Check) error {
	w.checks = append(w.checks, fmt.Sprintf("%s:%d %v %s", c.Host, c.Port, c.Allowed, c.Rule))
	return nil
}

func allow(t testing.TB, patterns ...string) func(string, *url.URL) Decision {
	t.Helper()
	var all []Pattern
	for _, p := range patterns {
		all = append(all, mustPattern(t, p))
	}
	return Allow(all)
}

func outcome(r Response, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%d %s %s", r.Status, r.URL, r.Body)
}

func TestDo(t *testing.T) {
	w, c := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
		http.SetCookie(out, &http.Cookie{Name: "a", Value: "b"})
		fmt.Fprintf(out, "%s %s %s cookie=%q", in.Proto, in.Method, in.Host, in.Header.Get("Cookie"))
	})
	permit := allow(t, "* https://example.com/*", "GET http://example.com/v1/*")
	tests := []struct{ method, url, want string }{
		{"GET", "https://EXAMPLE.com", `200 https://example.com/ HTTP/2.0 GET example.com cookie=""`},
		{"POST", "https://example.com:443/x", `200 https://example.com/x HTTP/2.0 POST example.com cookie=""`},
		{"GET", "http://example.com/v1/x#y", `200 http://example.com/v1/x HTTP/1.1 GET example.com cookie=""`},
		{"GET", "http://example.com/v2/", `error: GET http://example.com/v2/: not allowed: no pattern allows it`},
		{"POST", "http://example.com/v1/", `error: POST http://example.com/v1/: not allowed: no pattern allows it`},
		{"GET", "https://other.example.com/", `error: GET https://other.example.com/: not allowed: no pattern allows it`},
		{"get", "https://example.com/", `error: method "get": write GET, POST or another in upper case`},
		{"CONNECT", "https://example.com/", `error: method "CONNECT": write GET, POST or another in upper case`},
		{"GET", "https://me:pw@example.com/", `error: url: it names a user: a password belongs into a header, by secrets`},
	}
	for _, tt := range tests {
		r, err := c.Do(t.Context(), Request{Method: tt.method, URL: tt.url, Permit: permit, Audit: w.audit})
		if got := outcome(r, err); got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.method, tt.url, got, tt.want)
		}
		if r.Header.Get("Set-Cookie") != "" {
			t.Errorf("a cookie came through: %v", r.Header)
		}
	}
	want := []string{
		"example.com:443 true * https://example.com/*", "example.com:443 true * https://example.com/*",
		"example.com:80 true GET http://example.com/v1/*", "example.com:80 false no pattern allows it",
		"example.com:80 false no pattern allows it", "other.example.com:443 false no pattern allows it",
	}
	if got := strings.Join(w.checks, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("recorded:\n%s", got)
	}
	if got := strings.Join(w.asked, " "); got != "example.com example.com example.com" {
		t.Errorf("asked for %s: what is refused is not looked up", got)
	}
	if _, err := c.Do(t.Context(), Request{Method: "GET", URL: "https://example.com/"}); !errors.Is(err, ErrRefused) {
		t.Errorf("without a Permit: %v", err)
	}
}

// A hop that cannot be recorded does not leave.
func TestAuditStops(t *testing.T) {
	w, c := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	full := errors.New("the disk is full")
	_, err := c.Do(t.Context(), Request{
		Method: "GET", URL: "https://example.com/", Permit: allow(t, "* https://example.com/*"),
		Audit: func(Check) error { return full },
	})
	if !errors.Is(err, full) || len(w.dialed) != 0 {
		t.Errorf("Do = %v, and dialled %v", err, w.dialed)
	}
}

// A name is judged by all that it stands for, and only that is dialled.
func TestAddresses(t *testing.T) {
	const refused = "error: example.com: not allowed: the address "
	tests := []struct {
		name    string
		answers [][]string
		want    string
		dialed  string
	}{
		{"public", [][]string{{"93.184.216.34"}}, "200", "93.184.216.34:80"},
		{"public first, then private: rebinding", [][]string{{"93.184.216.34"}, {"127.0.0.1"}}, "200", "93.184.216.34:80"},
		{"public and private", [][]string{{"93.184.216.34", "10.0.0.1"}}, refused + "10.0.0.1 is of a private network", ""},
		{"loopback", [][]string{{"127.0.0.1"}}, refused + "127.0.0.1 is loopback", ""},
		{"mapped loopback", [][]string{{"::ffff:127.0.0.1"}}, refused + "127.0.0.1 is loopback", ""},
		{"a metadata service", [][]string{{"169.254.169.254"}}, refused + "169.254.169.254 is a metadata service", ""},
		{"mapped, of the public network", [][]string{{"::ffff:93.184.216.34"}}, "200", "93.184.216.34:80"},
		{"nothing", [][]string{{}}, "error: find the address of example.com: it has none", ""},
		{"unknown", nil, "error: find the address of example.com: no such host", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t, func(http.ResponseWriter, *http.Request) {})
			w.names["example.com"] = tt.answers
			r, err := c.Do(t.Context(), Request{Method: "GET", URL: "http://example.com/", Permit: allow(t, "* http://example.com/*")})
			if got := outcome(r, err); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
			if got := strings.Join(w.dialed, " "); got != tt.dialed || len(w.asked) != 1 {
				t.Errorf("dialled %s after %d look-ups; want %s after 1", got, len(w.asked), tt.dialed)
			}
		})
	}
}

// A redirect back to the name that was resolved before is resolved and checked again.
func TestRebindingAcrossHops(t *testing.T) {
	w, c := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Connection", "close")
		http.Redirect(out, in, "/again", http.StatusFound)
	})
	w.names["example.com"] = [][]string{{"93.184.216.34"}, {"127.0.0.1"}}
	_, err := c.Do(t.Context(), Request{Method: "GET", URL: "http://example.com/", Permit: allow(t, "* http://example.com/*")})
	if want := "example.com: not allowed: the address 127.0.0.1 is loopback"; err == nil || err.Error() != want || len(w.seen) != 1 {
		t.Errorf("Do = %v after %d requests", err, len(w.seen))
	}
}

// Only the very address and port that a pattern names is opened.
func TestOpenedAddress(t *testing.T) {
	w, c := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
		if to := in.URL.Query().Get("to"); to != "" {
			http.Redirect(out, in, to, http.StatusFound)
		}
	})
	w.names["sly.example"] = [][]string{{"127.0.0.1"}}
	permit := allow(t, "* http://127.0.0.1:8080/*", "* http://sly.example:8080/*", "* http://[::1]:8080/*")
	tests := []struct{ url, want string }{
		{"http://127.0.0.1:8080/", "200 http://127.0.0.1:8080/ "},
		{"http://[::1]:8080/", "200 http://[::1]:8080/ "},
		{"http://127.0.0.1:8081/", "error: GET http://127.0.0.1:8081/: not allowed: no pattern allows it"},
		{"http://127.0.0.2:8080/", "error: GET http://127.0.0.2:8080/: not allowed: no pattern allows it"},
		{"http://sly.example:8080/", "error: sly.example: not allowed: the address 127.0.0.1 is loopback"},
		{"http://127.0.0.1:8080/?to=http://127.0.0.1:8081/", "error: GET http://127.0.0.1:8081/: not allowed: no pattern allows it"},
		{"http://127.0.0.1:8080/?to=http://sly.example:8080/", "error: sly.example: not allowed: the address 127.0.0.1 is loopback"},
	}
	for _, tt := range tests {
		r, err := c.Do(t.Context(), Request{Method: "GET", URL: tt.url, Permit: permit})
		if got := outcome(r, err); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.url, got, tt.want)
		}
	}
	// A Permit that allows an address, and does not open it.
	closed := func(string, *url.URL) Decision { return Decision{Allowed: true} }
	if _, err := c.Do(t.Context(), Request{Method: "GET", URL: "http://127.0.0.1:8080/", Permit: closed}); !errors.Is(err, ErrRefused) {
		t.Errorf("an address that was not opened: %v", err)
	}
}

func TestRedirects(t *testing.T) {
	_, c := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
		if to := in.URL.Query().Get("to"); to != "" {
			out.Header().Set("Location", to)
			var status int
			fmt.Sscan(in.URL.Query().Get("status"), &status)
			out.WriteHeader(status)
		}
	})
	permit := allow(t, "* https://example.com/a/*", "* http://example.com/*", "* https://other.example.com/*")
	const where = "error: redirect: not allowed: "
	tests := []struct{ name, start, status, to, want string }{
		{"to a path that is allowed", "https://example.com/a/", "302", "b", "200 https://example.com/a/b "},
		{"up and down again", "https://example.com/a/b/c", "301", "../d", "200 https://example.com/a/d "},
		{"to another host that is allowed", "https://example.com/a/", "307", "https://other.example.com/", "200 https://other.example.com/ "},
		{"to a path that is not", "https://example.com/a/", "302", "/b", "error: GET https://example.com/b: not allowed: no pattern allows it"},
		{"out of a path by dots", "https://example.com/a/", "302", "../b", "error: GET https://example.com/b: not allowed: no pattern allows it"},
		{"out of a path by escaped dots", "https://example.com/a/", "302", "%2e%2e/b", where + "the URL that it leads to: its path has a dot segment"},
		{"to a host that is not", "https://example.com/a/", "302", "https://evil.example/", "error: GET https://evil.example/: not allowed: no pattern allows it"},
		{"to an address", "https://example.com/a/", "302", "https://169.254.169.254/", "error: GET https://169.254.169.254/: not allowed: no pattern allows it"},
		{"from https to http", "https://example.com/a/", "302", "http://example.com/", where + "it leads from https to http"},
		{"to a user", "https://example.com/a/", "302", "https://me@example.com/a/", where + "the URL that it leads to: it names a user: a password belongs into a header, by secrets"},
		{"to another scheme", "http://example.com/", "302", "file:///etc/passwd", where + "the URL that it leads to: it does not begin with https://host or http://host"},
		{"to what is no URL", "http://example.com/", "302", "http://a b/", where + "the URL that it leads to: it cannot be read"},
		{"round and round", "http://example.com/", "302", "?to=x", "error: over a limit: more than 5 redirects"},
		{"a status that redirects nowhere", "https://example.com/a/", "304", "/b", "304 https://example.com/a/?status=304&to=%2Fb "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "round and round" {
				tt.to = "?to=%3Fto&status=302"
				for range 9 {
					tt.to = "?status=302&to=" + url.QueryEscape(tt.to)
				}
			}
			start := tt.start + "?" + url.Values{"to": {tt.to}, "status": {tt.status}}.Encode()
			if got := outcome(c.Do(t.Context(), Request{Method: "GET", URL: start, Permit: permit})); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What a redirect takes along: the method, the body, the headers.
func TestWhatFollowsARedirect(t *testing.T) {
	tests := []struct{ name, method, body, status, to, want string }{
		{"POST becomes GET by 302", "POST", "b", "302", "https://example.com/x", `GET "" auth=mine key= type=`},
		{"POST becomes GET by 301", "POST", "b", "301", "https://example.com/x", `GET "" auth=mine key= type=`},
		{"PUT becomes GET by 303", "PUT", "b", "303", "https://example.com/x", `GET "" auth=mine key= type=`},
		{"HEAD stays HEAD", "HEAD", "", "303", "https://example.com/x", `HEAD "" auth=mine key= type=`},
		{"PUT stays PUT by 302", "PUT", "b", "302", "https://example.com/x", `PUT "b" auth=mine key= type=t/t`},
		{"POST stays POST by 307", "POST", "b", "307", "https://example.com/x", `POST "b" auth=mine key= type=t/t`},
		{"another host gets no credentials", "GET", "", "302", "https://other.example.com/x", `GET "" auth= key= type=`},
		{"another port gets no credentials", "GET", "", "302", "https://example.com:8443/x", `GET "" auth= key= type=`},
		{"another host gets no body", "POST", "b", "308", "https://other.example.com/x", `error: redirect: not allowed: it would take the body to another origin, https://other.example.com`},
		{"another host gets a GET without the body", "POST", "b", "302", "https://other.example.com/x", `GET "" auth= key= type=`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
				if in.URL.Path == "/" {
					out.Header().Set("Location", tt.to)
					var status int
					fmt.Sscan(tt.status, &status)
					out.WriteHeader(status)
				}
			})
			c.cfg.Dialer.Connect = func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
				return w.connect(ctx, netip.AddrPortFrom(at.Addr(), 443))
			}
			_, err := c.Do(t.Context(), Request{
				Method: tt.method, URL: "https://example.com/", Body: []byte(tt.body), Permit: allow(t, "* https://example.com/*", "* https://other.example.com/*", "* https://example.com:8443/*"),
				Header: http.Header{"authorization": {"mine"}, "Content-Type": {"t/t"}, "Cookie": {"c=1"}},
				Secret: http.Header{"X-Key": {"s3cret-value"}},
			})
			if first := w.seen[0].Header; first.Get("X-Key") != "s3cret-value" || first.Get("Authorization") != "mine" {
				t.Errorf("the first hop had %v", first)
			}
			last := w.seen[len(w.seen)-1]
			got := fmt.Sprintf("%s %q auth=%s key=%s type=%s", last.Method, w.bodies[len(w.bodies)-1],
				last.Header.Get("Authorization"), last.Header.Get("X-Key"), last.Header.Get("Content-Type"))
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A secret goes by https, or to this machine where that is opened.
func TestSecretByHTTP(t *testing.T) {
	w, c := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	permit := allow(t, "* http://example.com/*", "* http://127.0.0.1:8080/*", "* http://10.0.0.1:8080/*")
	for target, want := range map[string]string{
		"http://127.0.0.1:8080/": "200 http://127.0.0.1:8080/ ",
		"http://example.com/":    "error: GET http://example.com/: not allowed: a secret is sent by https, or to an address of this machine that is granted",
		"http://10.0.0.1:8080/":  "error: GET http://10.0.0.1:8080/: not allowed: a secret is sent by https, or to an address of this machine that is granted",
	} {
		r, err := c.Do(t.Context(), Request{Method: "GET", URL: target, Permit: permit, Secret: http.Header{"X-Key": {"v"}}})
		if got := outcome(r, err); got != want {
			t.Errorf("%s:\n got %s\nwant %s", target, got, want)
		}
	}
	if len(w.dialed) != 1 {
		t.Errorf("dialled %v", w.dialed)
	}
}

func TestHeadersThatAreNotForARequestToSet(t *testing.T) {
	w, c := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	for _, h := range []struct{ name, value string }{
		{"Host", "evil.example"},
		{"content-length", "5"},
		{"Transfer-Encoding", "chunked"},
		{"Connection", "X-Key"},
		{"Proxy-Authorization", "x"},
		{"proxy-foo", "x"},
		{"Upgrade", "h2c"},
		{"Accept-Encoding", "br"},
		{"TE", "trailers"},
		{"X-A", "a\r\nX-B: b"},
		{"X-A", "a\nb"},
		{"X\r\nA", "a"},
		{"X A", "a"},
		{"", "a"},
		{"X-A", "a\x00"},
		{":path", "/"},
		{"X-HTTP-Method-Override", "DELETE"},
		{"x_http_method_override", "DELETE"},
		{"X-Original-URL", "/admin"},
		{"X-Forwarded-Host", "evil.example"},
		{"Transfer_Encoding", "chunked"},
	} {
		_, err := c.Do(t.Context(), Request{
			Method: "GET", URL: "http://example.com/", Permit: allow(t, "* http://example.com/*"),
			Header: http.Header{h.name: {h.value}},
		})
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %q: %v", h.name, h.value, err)
		}
	}
	if len(w.asked) != 0 {
		t.Errorf("something was looked up: %v", w.asked)
	}
}

func TestLimits(t *testing.T) {
	packed := func(out http.ResponseWriter, size int) {
		out.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(out)
		_, _ = io.CopyN(z, zeroes{}, int64(size))
		_ = z.Close()
	}
	stop := make(chan struct{})
	tests := []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"a body of the largest size", func(out http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(out, zeroes{}, 1000) }, "200"},
		{"a body over it", func(out http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(out, zeroes{}, 1001) }, "error: over a limit: the response has more than 1000 bytes"},
		{"a body without end", func(out http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(out, zeroes{}) }, "error: over a limit: the response has more than 1000 bytes"},
		{"a packed body", func(out http.ResponseWriter, _ *http.Request) { packed(out, 1000) }, "200"},
		{"a packed body that is larger unpacked", func(out http.ResponseWriter, _ *http.Request) { packed(out, 100<<20) }, "error: over a limit: the response has more than 1000 bytes"},
		{"a packing that nobody asked for", func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "br")
			fmt.Fprint(out, "x")
		}, `error: read the response: it is encoded as "br", which was not asked for`},
		{"a body in an encoding behind none", func(out http.ResponseWriter, _ *http.Request) {
			out.Header()["Content-Encoding"] = []string{"identity", "gzip"}
			fmt.Fprint(out, "x")
		}, `error: read the response: it is encoded as "identity, gzip", which was not asked for`},
		{"a header that is too large", func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("X-Large", strings.Repeat("x", 100<<10))
		}, "error: over a limit: the response's header has more than 65536 bytes"},
		{"an answer that is no HTTP", func(out http.ResponseWriter, _ *http.Request) {
			if c, _, err := out.(http.Hijacker).Hijack(); err == nil {
				fmt.Fprint(c, "HTTP/1.1 your-secret-was hunter22\r\n\r\n")
				c.Close()
			}
		}, "error: the server's answer is not HTTP as it should be, or broke off"},
		{"an answer that takes the connection over", func(out http.ResponseWriter, _ *http.Request) {
			if c, _, err := out.(http.Hijacker).Hijack(); err == nil {
				fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				<-stop
				c.Close()
			}
		}, "error: the server's answer is not HTTP as it should be, or broke off"},
		{"an answer that breaks off", func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Length", "100")
			fmt.Fprint(out, "x")
		}, "error: read the response: the server's answer is not HTTP as it should be, or broke off"},
		{"a body that does not come", func(out http.ResponseWriter, in *http.Request) {
			fmt.Fprint(out, "x")
			out.(http.Flusher).Flush()
			select {
			case <-in.Context().Done():
			case <-stop:
			}
		}, "error: it was not answered in time"},
		{"a header that does not come", func(_ http.ResponseWriter, in *http.Request) {
			select {
			case <-in.Context().Done():
			case <-stop:
			}
		}, "error: it was not answered in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newWorld(t, tt.handle)
			c.cfg.MaxBody = 1000
			if strings.HasSuffix(tt.name, "does not come") {
				c.cfg.Timeout = 50 * time.Millisecond
			}
			r, err := c.Do(t.Context(), Request{Method: "GET", URL: "http://example.com/", Permit: allow(t, "* http://example.com/*")})
			if got := outcome(r, err); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %.200s\nwant %s", got, tt.want)
			}
			if strings.Contains(tt.want, "over a limit") != errors.Is(err, ErrLimit) {
				t.Errorf("%v is ErrLimit: %v", err, errors.Is(err, ErrLimit))
			}
		})
	}
	close(stop)
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A failure of the network tells nothing of this machine.
func TestNetworkFailure(t *testing.T) {
	w, c := newWorld(t, func(out http.ResponseWriter, _ *http.Request) {
		if conn, _, err := out.(http.Hijacker).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0) // reset, not closed
			conn.Close()
		}
	})
	ask := func() string {
		return outcome(c.Do(t.Context(), Request{Method: "POST", Body: []byte("x"), URL: "http://example.com/", Permit: allow(t, "* http://example.com/*")}))
	}
	if got, want := ask(), "error: read: read: connection reset by peer"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w.server.Close()
	if got, want := ask(), "error: dial: connect: connection refused"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// HTTP/2 has the same limit on the header, and packs it.
func TestHeaderLimitOfHTTP2(t *testing.T) {
	_, c := newWorld(t, func(out http.ResponseWriter, _ *http.Request) {
		for i := range 3000 {
			out.Header().Add("X-Same", fmt.Sprint(i))
		}
	})
	_, err := c.Do(t.Context(), Request{Method: "GET", URL: "https://example.com/", Permit: allow(t, "* https://example.com/*")})
	if want := "over a limit: the response's header has more than 65536 bytes"; err == nil || err.Error() != want {
		t.Errorf("Do = %v; want %s", err, want)
	}
}

// Wherever a server redirects to: it is a URL as one is judged, over https
// where it was, and another origin gets neither body nor credentials.
func FuzzRedirect(f *testing.F) {
	f.Add(302, "https://other.example.com/%2e%2e/x")
	f.Add(307, "//me@example.com\\x")
	f.Add(308, "?x#y")
	f.Fuzz(func(t *testing.T, status int, location string) {
		from, err := firstHop(Request{
			Method: "POST", URL: "https://example.com/a/b", Body: []byte("body"),
			Header: http.Header{"Authorization": {"x"}}, Secret: http.Header{"X-Key": {"y"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		to, err := from.next(status, location)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("the error %v is not ErrRefused", err)
			}
			return
		}
		if again := parsed(t, to.url.String()); again != to.url.String() || to.url.Scheme != "https" {
			t.Errorf("%q leads to %s, which reads as %s", location, to.url, again)
		}
		if len(to.secret) > 0 || to.url.Host != "example.com" && (len(to.body) > 0 || to.header.Get("Authorization") != "") {
			t.Errorf("%q takes along %v, %q", location, to.headers(), to.body)
		}
	})
}

// Who ended a request is told.
func TestCancelled(t *testing.T) {
	arrived := make(chan struct{})
	_, c := newWorld(t, func(_ http.ResponseWriter, in *http.Request) { close(arrived); <-in.Context().Done() })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-arrived; cancel(errors.New("changed my mind")) }()
	_, err := c.Do(ctx, Request{Method: "GET", URL: "http://example.com/", Permit: allow(t, "* http://example.com/*")})
	if err == nil || err.Error() != "changed my mind" {
		t.Errorf("Do = %v", err)
	}
}

// A certificate of somebody else is refused, whatever was dialled.
func TestCertificate(t *testing.T) {
	w, c := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	w.names["evil.example"] = [][]string{{"93.184.216.34"}}
	w.secure.Config.ErrorLog = nil
	_, err := c.Do(t.Context(), Request{Method: "GET", URL: "https://evil.example/", Permit: allow(t, "* https://evil.example/*")})
	if err == nil || !strings.Contains(err.Error(), "certificate") || len(w.seen) != 0 {
		t.Errorf("Do = %v", err)
	}
}

func TestHammerClient(t *testing.T) {
	_, c := newWorld(t, func(out http.ResponseWriter, in *http.Request) { fmt.Fprint(out, in.URL.RawQuery) })
	permit := allow(t, "* https://example.com/*")
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			url := fmt.Sprintf("https://example.com/?%d", i)
			r, err := c.Do(t.Context(), Request{Method: "GET", URL: url, Permit: permit})
			if want := fmt.Appendf(nil, "%d", i); err != nil || !bytes.Equal(r.Body, want) {
				t.Errorf("%s: %s, %v", url, r.Body, err)
			}
		})
	}
	wait.Wait()
}
