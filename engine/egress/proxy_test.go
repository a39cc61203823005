package egress

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxied is a Proxy before the world of a test.
type proxied struct {
	*Proxy
	world *world

	mu     sync.Mutex
	checks []string
}

// newProxied starts a proxy for a list. adjust, unless nil, changes it before.
func newProxied(t *testing.T, w *world, list []Entry, adjust func(*Proxy)) *proxied {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxied{world: w}
	p.Proxy = newProxy(l, ProxyConfig{Allow: list, Audit: p.audit, Dialer: Dialer{Resolver: w, Connect: w.connect}})
	if adjust != nil {
		adjust(p.Proxy)
	}
	p.all.Go(p.serve)
	t.Cleanup(p.Close)
	return p
}

func (p *proxied) audit(c Check) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks = append(p.checks, fmt.Sprintf("%s:%d %v %s", c.Host, c.Port, c.Allowed, c.Rule))
	return nil
}

func (p *proxied) recorded() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.checks, "\n")
}

// dial connects to the proxy.
func (p *proxied) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // a test that hangs is a test that fails
	return conn
}

// say sends text to the proxy and returns all that it answers.
func (p *proxied) say(t *testing.T, text string) string {
	t.Helper()
	conn := p.dial(t)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("after %q: %v", answer, err)
	}
	return string(answer)
}

// summary is an answer's status and body.
func summary(answer string) string {
	r, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
	if err != nil {
		return fmt.Sprintf("%q: %v", answer, err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Sprintf("%d and then %v", r.StatusCode, err)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, body))
}

func TestProxyForwards(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
		names := slices.Collect(func(yield func(string) bool) {
			for name := range in.Header {
				yield(name)
			}
		})
		slices.Sort(names)
		fmt.Fprintf(out, "%s %s host=%s %v", in.Method, in.URL, in.Host, names)
	})
	w.names["private.example"] = [][]string{{"93.184.216.34", "10.0.0.1"}}
	w.names["rebound.example"] = [][]string{{"93.184.216.34"}, {"127.0.0.1"}}
	p := newProxied(t, w, entries(t, "example.com", "private.example", "rebound.example", "gone.example", "127.0.0.1:8080", "other.example.com:8080"), nil)
	const end = " HTTP/1.1\r\nUser-Agent: a\r\n\r\n"
	tests := []struct{ name, text, want, check string }{
		{"a listed host", "GET http://example.com/x%2Fy/..?q" + end, "200 GET /x%2Fy/..?q host=example.com [Connection User-Agent]", "example.com:80 true example.com"},
		{
			"another Host header", "GET http://example.com/ HTTP/1.1\r\nHost: evil.example\r\nUser-Agent: a\r\n\r\n",
			"200 GET / host=example.com [Connection User-Agent]", "example.com:80 true example.com",
		},
		{
			"headers of the connection", "GET http://example.com/ HTTP/1.1\r\nConnection: X-Mine, close\r\nX-Mine: 1\r\nX-Kept: 1\r\nProxy-Authorization: x\r\nUpgrade: x\r\nTE: x\r\n\r\n",
			"200 GET / host=example.com [Connection X-Kept]", "example.com:80 true example.com",
		},
		{"a listed port", "GET http://other.example.com:8080/" + end, "200 GET / host=other.example.com:8080 [Connection User-Agent]", "other.example.com:8080 true other.example.com:8080"},
		{"a listed address", "GET http://127.0.0.1:8080/" + end, "200 GET / host=127.0.0.1:8080 [Connection User-Agent]", "127.0.0.1:8080 true 127.0.0.1:8080"},
		{"HTTP/1.0", "GET http://example.com/ HTTP/1.0\r\nUser-Agent: a\r\n\r\n", "200 GET / host=example.com [Connection User-Agent]", "example.com:80 true example.com"},
		{"an unlisted host", "GET http://evil.example/secret-path" + end, "403 evil.example:80 is not on this run's network allow-list", "evil.example:80 false evil.example:80 is not on this run's network allow-list"},
		{"an unlisted port", "GET http://example.com:8080/" + end, "403 example.com:8080 is not on this run's network allow-list", "example.com:8080 false example.com:8080 is not on this run's network allow-list"},
		{"a listed name at another port than its own", "GET http://other.example.com/" + end, "403 other.example.com:80 is not on this run's network allow-list", "other.example.com:80 false other.example.com:80 is not on this run's network allow-list"},
		{"an unlisted address", "GET http://169.254.169.254/" + end, "403 169.254.169.254:80 is not on this run's network allow-list", "169.254.169.254:80 false 169.254.169.254:80 is not on this run's network allow-list"},
		{"a name with a private address", "GET http://private.example/" + end, "403 private.example: not allowed: the address 10.0.0.1 is of a private network", "private.example:80 false private.example: not allowed: the address 10.0.0.1 is of a private network"},
		{"a name that is public", "GET http://rebound.example/" + end, "200 GET / host=rebound.example [Connection User-Agent]", "rebound.example:80 true rebound.example"},
		{"and then is not: rebinding", "GET http://rebound.example/" + end, "403 rebound.example: not allowed: the address 127.0.0.1 is loopback", "rebound.example:80 false rebound.example: not allowed: the address 127.0.0.1 is loopback"},
		{"a name that is not there", "GET http://gone.example/" + end, "502 find the address of gone.example: no such host", "gone.example:80 false find the address of gone.example: no such host"},
		{"a request that is smuggled", "POST http://example.com/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 the request is malformed", ":0 false the request is malformed"},
		{"an address in hex", "GET http://0x7f.1/" + end, "400 " + errHost.Error(), ":0 false " + errHost.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.checks = nil
			if got := summary(p.say(t, tt.text)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := p.recorded(); got != tt.check {
				t.Errorf("recorded %s\nwant     %s", got, tt.check)
			}
		})
	}
	if got := strings.Join(w.asked, " "); strings.Contains(got, "evil") {
		t.Errorf("asked for %s: what is not listed is not looked up", got)
	}
	if got := strings.Join(w.dialed, " "); strings.Contains(got, "10.0.0.1") || strings.Contains(got, "169.254") {
		t.Errorf("dialled %s", got)
	}
	if got := p.Refused(); len(got) != 6 || got[0] != (Refusal{"evil.example:80", "evil.example:80 is not on this run's network allow-list", true}) || got[4].Unlisted {
		t.Errorf("Refused = %+v", got)
	}
}

// Any public host is the names of the public network, at two ports.
func TestProxyAnyHost(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) { fmt.Fprint(out, in.Host) })
	w.names["private.example"] = [][]string{{"192.168.1.1"}}
	p := newProxied(t, w, entries(t, "*"), nil)
	for to, want := range map[string]string{
		"example.com":     "200 example.com",
		"private.example": "403 private.example: not allowed: the address 192.168.1.1 is of a private network",
		"localhost": "403 not allowed: localhost is a name of this machine, of a local network or of a metadata service: " +
			"only an address with its port, asked for and granted, opens such a place",
		"93.184.216.34":    "403 93.184.216.34:80 is not on this run's network allow-list",
		"127.0.0.1":        "403 127.0.0.1:80 is not on this run's network allow-list",
		"example.com:8080": "403 example.com:8080 is not on this run's network allow-list",
	} {
		if got := summary(p.say(t, "GET http://"+to+"/ HTTP/1.1\r\n\r\n")); got != want {
			t.Errorf("%s: got %s; want %s", to, got, want)
		}
	}
}

// Only one request goes by a connection: what stands behind it is dropped.
func TestProxyForwardsOneRequest(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) {})
	p := newProxied(t, w, entries(t, "example.com"), nil)
	answer := p.say(t, "POST http://example.com/a HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"+
		"GET http://example.com/b HTTP/1.1\r\n\r\n")
	if strings.Count(answer, "HTTP/1.1 ") != 1 || len(w.seen) != 1 || w.bodies[0] != "ab" {
		t.Errorf("answered %q after %d requests, the first with %q", answer, len(w.seen), w.bodies)
	}
}

func TestProxyForwardsBodies(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
		out.Write([]byte("first "))
		out.(http.Flusher).Flush()
		out.Write([]byte("second"))
	})
	p := newProxied(t, w, entries(t, "example.com"), nil)
	answer := p.say(t, "POST http://example.com/ HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
	answer, had := strings.CutPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\n")
	if got := summary(answer); got != "200 first second" || !had || w.bodies[0] != "abc" {
		t.Errorf("got %s; the server had %q", got, w.bodies)
	}
	if answer := p.say(t, "HEAD http://example.com/ HTTP/1.1\r\n\r\n"); !strings.HasSuffix(answer, "\r\n\r\n") {
		t.Errorf("HEAD got %q", answer)
	}
}

// A redirect is the client's to follow, and its next request is judged like the first.
func TestProxyFollowsNoRedirects(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) {
		http.Redirect(out, in, "http://evil.example/", http.StatusFound)
	})
	p := newProxied(t, w, entries(t, "example.com"), nil)
	at, _ := url.Parse("http://" + p.listener.Addr().String())
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}
	r, err := client.Get("http://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if body, _ := io.ReadAll(r.Body); r.StatusCode != 403 || string(body) != "evil.example:80 is not on this run's network allow-list\n" {
		t.Errorf("got %d %s", r.StatusCode, body)
	}
}

// tunnelTo opens a tunnel, or returns what was answered instead.
func (p *proxied) tunnelTo(t *testing.T, to string) (net.Conn, string) {
	t.Helper()
	conn := p.dial(t)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	const opened = "HTTP/1.1 200 Connection established\r\n\r\n"
	answer := make([]byte, len(opened))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatalf("the proxy answered %q: %v", answer, err)
	}
	if string(answer) == opened {
		return conn, ""
	}
	rest, _ := io.ReadAll(conn)
	return nil, summary(string(answer) + string(rest))
}

func TestProxyTunnels(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) { fmt.Fprint(out, "over TLS") })
	w.names["private.example"] = [][]string{{"127.0.0.1"}}
	list := entries(t, "example.com", "private.example", "other.example.com:80", "127.0.0.1:443")
	p := newProxied(t, w, list, nil)
	get := func(name string) func(net.Conn) string {
		return func(conn net.Conn) string {
			roots := w.secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			c := tls.Client(conn, &tls.Config{ServerName: name, RootCAs: roots, InsecureSkipVerify: name != "example.com"})
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
				return err.Error()
			}
			answer, err := io.ReadAll(c)
			if err != nil {
				return err.Error()
			}
			return summary(string(answer))
		}
	}
	plain := func(conn net.Conn) string {
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		answer, _ := io.ReadAll(conn)
		return summary(string(answer))
	}
	const mismatch = "remote error: tls: unrecognized name"
	tests := []struct {
		name, to string
		through  func(net.Conn) string
		want     string
		check    string
	}{
		{"TLS to a listed host", "example.com:443", get("example.com"), "200 over TLS", "example.com:443 true example.com"},
		{
			"TLS to another name", "example.com:443", get("evil.example"), mismatch, "example.com:443 true example.com\n" +
				"example.com:443 false the tunnel to example.com:443 was closed: its TLS hello names another host, evil.example",
		},
		{
			"TLS to no name", "example.com:443", get(""), mismatch, "example.com:443 true example.com\n" +
				"example.com:443 false the tunnel to example.com:443 was closed: its TLS hello does not name a host in the open",
		},
		{
			"no TLS at 443", "example.com:443", plain, `"": unexpected EOF`, "example.com:443 true example.com\n" +
				"example.com:443 false the tunnel to example.com:443 was closed: it does not begin as TLS does",
		},
		{"TLS to an address", "127.0.0.1:443", get(""), "200 over TLS", "127.0.0.1:443 true 127.0.0.1:443"},
		{
			"TLS to an address, with a name", "127.0.0.1:443", get("example.com"), mismatch, "127.0.0.1:443 true 127.0.0.1:443\n" +
				"127.0.0.1:443 false the tunnel to 127.0.0.1:443 was closed: its TLS hello names another host, example.com",
		},
		{"another protocol at a port that is listed", "other.example.com:80", plain, "200 over TLS", "other.example.com:80 true other.example.com:80"},
		{
			"TLS to another name at such a port", "other.example.com:80", get("evil.example"), mismatch, "other.example.com:80 true other.example.com:80\n" +
				"other.example.com:80 false the tunnel to other.example.com:80 was closed: its TLS hello names another host, evil.example",
		},
		{
			"port 80 that is not listed by number", "example.com:80", nil, "403 example.com:80 is open for http:// requests alone: what goes through a tunnel to port 80 cannot be looked at",
			"example.com:80 false example.com:80 is open for http:// requests alone: what goes through a tunnel to port 80 cannot be looked at",
		},
		{"an unlisted host", "evil.example:443", nil, "403 evil.example:443 is not on this run's network allow-list", "evil.example:443 false evil.example:443 is not on this run's network allow-list"},
		{"an unlisted port", "example.com:22", nil, "403 example.com:22 is not on this run's network allow-list", "example.com:22 false example.com:22 is not on this run's network allow-list"},
		{"a private address", "private.example:443", nil, "403 private.example: not allowed: the address 127.0.0.1 is loopback", "private.example:443 false private.example: not allowed: the address 127.0.0.1 is loopback"},
		{"another spelling of an address", "2130706433:443", nil, "400 " + errHost.Error(), ":0 false " + errHost.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.mu.Lock()
			p.checks = nil
			p.mu.Unlock()
			conn, got := p.tunnelTo(t, tt.to)
			if conn != nil && tt.through != nil {
				got = tt.through(conn)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := p.recorded(); got != tt.check {
				t.Errorf("recorded %s\nwant     %s", got, tt.check)
			}
		})
	}
}

// rawServer takes the place of all servers of a world.
func rawServer(t *testing.T, serve func(*net.TCPConn)) *world {
	t.Helper()
	w, _ := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn.(*net.TCPConn))
		}
	}()
	w.raw = l
	return w
}

// An end in one direction leaves the other open; a server may speak first.
func TestProxyHalfClose(t *testing.T) {
	w := rawServer(t, func(conn *net.TCPConn) {
		defer conn.Close()
		io.WriteString(conn, "hello\n")
		said, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "you said %s\n", said)
	})
	p := newProxied(t, w, entries(t, "example.com:22"), nil)
	conn, _ := p.tunnelTo(t, "example.com:22")
	in := bufio.NewReader(conn)
	if first, err := in.ReadString('\n'); first != "hello\n" {
		t.Fatalf("the server said %q, %v", first, err)
	}
	io.WriteString(conn, "something")
	conn.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(in); string(rest) != "you said something\n" || err != nil {
		t.Errorf("after the end of the client: %q, %v", rest, err)
	}
}

// Headers of the server's connection, another protocol, and what is no HTTP stay
// on the server's side.
func TestProxyAnswers(t *testing.T) {
	for said, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nConnection: X-Gone\r\nX-Gone: 1\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nX-Kept: 1\r\n\r\nok",
		"HTTP/1.0 200 OK\r\n\r\nuntil the end":                                          "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbroken":                            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nbroken",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n": "502 example.com:80: " + errNoAnswer.Error(),
		"SSH-2.0-x\r\n": "502 example.com:80: " + errNoAnswer.Error(),
	} {
		w := rawServer(t, func(conn *net.TCPConn) {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for line := "x"; line != "\r\n"; {
				if line, _ = in.ReadString('\n'); line == "" {
					return
				}
			}
			io.WriteString(conn, said)
		})
		p := newProxied(t, w, entries(t, "example.com"), nil)
		got := p.say(t, "GET http://example.com/ HTTP/1.1\r\n\r\n")
		if strings.HasPrefix(want, "502") {
			got = summary(got)
		}
		if got != want {
			t.Errorf("to %q\ngot  %q\nwant %q", said, got, want)
		}
	}
}

// A client that is slow with its head, or with its TLS hello, and a server that
// says nothing, do not hold a connection for ever.
func TestProxyEndsWhatHangs(t *testing.T) {
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	w := rawServer(t, func(conn *net.TCPConn) { <-held; conn.Close() })
	short := func(p *Proxy) { p.headTime, p.idle = 400*time.Millisecond, 400*time.Millisecond }
	p := newProxied(t, w, entries(t, "example.com:22", "other.example.com"), short)
	t.Run("a head that does not end", func(t *testing.T) {
		if answer := p.say(t, "GET http://example.com:22/ HTTP/1.1\r\n"); answer != "" {
			t.Errorf("answered %q", answer)
		}
	})
	t.Run("a hello that does not come", func(t *testing.T) {
		conn, _ := p.tunnelTo(t, "other.example.com:443")
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
	t.Run("a server that hangs", func(t *testing.T) {
		want := "502 example.com:22: "
		if got := summary(p.say(t, "GET http://example.com:22/ HTTP/1.1\r\n\r\n")); !strings.HasPrefix(got, want) {
			t.Errorf("got %s; want %s…", got, want)
		}
	})
	t.Run("a tunnel in which nothing moves", func(t *testing.T) {
		conn, _ := p.tunnelTo(t, "example.com:22")
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
}

// A server that answers late, but not too late, is waited for while the other
// direction is quiet.
func TestProxyWaitsWhileSomethingMoves(t *testing.T) {
	w := rawServer(t, func(conn *net.TCPConn) {
		defer conn.Close()
		for range 20 {
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
			<-time.After(40 * time.Millisecond)
		}
	})
	p := newProxied(t, w, entries(t, "example.com:22"), func(p *Proxy) { p.idle = 600 * time.Millisecond })
	conn, _ := p.tunnelTo(t, "example.com:22")
	if got, err := io.ReadAll(conn); len(got) != 20 || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// No more than so many connections are served at once; the next one waits.
func TestProxyConnectionsAtOnce(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) {})
	p := newProxied(t, w, entries(t, "example.com"), nil)
	var held []net.Conn
	for range maxConnections {
		conn := p.dial(t)
		fmt.Fprint(conn, "GET ") // and no more
		held = append(held, conn)
	}
	conn := p.dial(t)
	fmt.Fprint(conn, "GET http://example.com/ HTTP/1.1\r\n\r\n")
	answered := make(chan string, 1)
	go func() {
		answer, _ := io.ReadAll(conn)
		answered <- string(answer)
	}()
	select {
	case answer := <-answered:
		t.Errorf("answered %q beside %d others", answer, maxConnections)
	case <-time.After(100 * time.Millisecond):
	}
	held[3].Close()
	if got := summary(<-answered); got != "200" {
		t.Errorf("got %s", got)
	}
}

func TestProxyBudget(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) { out.Write(make([]byte, 3<<20)) })
	p := newProxied(t, w, entries(t, "example.com"), func(p *Proxy) { p.cfg.Budget = 2 << 20; p.left.Store(2 << 20) })
	const get = "GET http://example.com/ HTTP/1.1\r\n\r\n"
	if answer := p.say(t, get); len(answer) > 2<<20 {
		t.Errorf("%d bytes came", len(answer))
	}
	if got := p.Refused(); len(got) != 1 || got[0] != (Refusal{"", "this run has used up its 2 MiB of network traffic", false}) {
		t.Errorf("Refused = %+v", got)
	}
	if got := summary(p.say(t, get)); got != "403 this run has used up its 2 MiB of network traffic" {
		t.Errorf("then got %s", got)
	}
}

// Requests have an end too, so that their record has one.
func TestProxyRequestsInAll(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) {})
	p := newProxied(t, w, entries(t, "example.com"), func(p *Proxy) { p.judged = maxRequests - 1 })
	const get = "GET http://example.com/ HTTP/1.1\r\n\r\n"
	first, second := summary(p.say(t, get)), summary(p.say(t, get))
	if first != "200" || second != "403 this run has made 10000 requests, and more are not let through" || len(p.checks) != 1 {
		t.Errorf("got %s, then %s, and recorded %v", first, second, p.checks)
	}
}

// What cannot be recorded does not leave.
func TestProxyAuditStops(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) {})
	p := newProxied(t, w, entries(t, "example.com"), func(p *Proxy) {
		p.cfg.Audit = func(Check) error { return errors.New("the disk is full") }
	})
	if got := summary(p.say(t, "GET http://example.com/ HTTP/1.1\r\n\r\n")); got != "503 example.com:80 was not connected to: that could not be recorded" || len(w.dialed) != 0 {
		t.Errorf("got %s and dialled %v", got, w.dialed)
	}
}

// Closing ends what is open, in any state.
func TestProxyClose(t *testing.T) {
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	w := rawServer(t, func(conn *net.TCPConn) { <-held; conn.Close() })
	p := newProxied(t, w, entries(t, "example.com:22"), nil)
	open, _ := p.tunnelTo(t, "example.com:22")
	half := p.dial(t)
	fmt.Fprint(half, "GET ")
	p.Close()
	for _, conn := range []net.Conn{open, half} {
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	}
	if _, err := net.Dial("tcp", p.listener.Addr().String()); err == nil {
		t.Error("a closed proxy is connected to")
	}
}

// Many at once: each answer is for its own request, and nothing is lost.
func TestHammerProxy(t *testing.T) {
	w, _ := newWorld(t, func(out http.ResponseWriter, in *http.Request) { fmt.Fprint(out, in.URL.Path) })
	p := newProxied(t, w, entries(t, "example.com"), nil)
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			want := fmt.Sprintf("200 /%d", n)
			if got := summary(p.say(t, fmt.Sprintf("GET http://example.com/%d HTTP/1.1\r\n\r\n", n))); got != want {
				t.Errorf("got %s; want %s", got, want)
			}
		})
	}
	all.Wait()
	if len(p.checks) != 200 {
		t.Errorf("recorded %d", len(p.checks))
	}
}
