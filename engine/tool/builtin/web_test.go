package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// web is the web tools before a server on loopback that stands for every public host.
type web struct {
	*bench
	server *httptest.Server
	seen   []string // requests
	checks []egress.Check
	names  map[string]string // and their addresses; others are 93.184.216.34
}

func (w *web) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := w.names[strings.TrimSuffix(host, ".")]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func newWeb(t *testing.T, search Search, handler http.HandlerFunc) *web {
	w := &web{bench: &bench{t: t}, names: map[string]string{"inside.example.com": "10.0.0.7", "meta.example.com": "169.254.169.254"}}
	w.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		w.seen = append(w.seen, in.Host+in.RequestURI)
		handler(out, in)
	}))
	t.Cleanup(w.server.Close)
	at := netip.MustParseAddrPort(w.server.Listener.Addr().String())
	client := egress.NewClient(egress.ClientConfig{MaxBody: 1 << 20, Dialer: egress.Dialer{
		Resolver: w,
		Connect: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() == netip.MustParseAddr("93.184.216.34") {
				to = at
			}
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.String())
		},
	}})
	t.Cleanup(client.Close)
	open, err := egress.ParseEntry(at.String())
	if err != nil {
		t.Fatal(err)
	}
	if search.URL == "HERE" {
		search.URL = "http://" + at.String()
	}
	cfg := Config{Web: Web{
		Client: client, Open: []egress.Entry{open}, Search: search,
		Audit: func(c egress.Check) error { w.checks = append(w.checks, c); return nil },
		Leaks: func(text string) (string, bool) { return "TOKEN", strings.Contains(text, "tk-1") },
	}}
	for _, tl := range Tools(cfg) {
		if err := w.tools.Add(tl); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestWebFetch(t *testing.T) {
	w := newWeb(t, Search{}, func(out http.ResponseWriter, in *http.Request) {
		kind := in.URL.Query().Get("type")
		out.Header().Set("Content-Type", kind)
		switch in.URL.Path {
		case "/page":
			fmt.Fprint(out, "<html><head><title>T</title><script>alert(1)</script><style>b{}</style></head><body><h1>Head</h1><p>Some <b>bold</b> text, <a href='/next'>on</a>.</p>"+
				"<table><tr><th>a</th></tr><tr><td>1</td></tr></table></body></html>")
		case "/latin":
			fmt.Fprint(out, "caf\xe9")
		case "/long":
			fmt.Fprint(out, strings.Repeat("é", 300))
		case "/image":
			fmt.Fprint(out, "GIF89a…")
		case "/missing":
			http.Error(out, "no such page", http.StatusNotFound)
		case "/binary":
			fmt.Fprint(out, "PK\x03\x04\x00")
		case "/large":
			fmt.Fprint(out, strings.Repeat("x", 1<<20+1))
		case "/here":
			http.Redirect(out, in, "/latin?type=text/plain;charset=latin1", http.StatusFound)
		case "/away":
			http.Redirect(out, in, "https://other.example.com/x?y=1", http.StatusFound)
		case "/inside":
			http.Redirect(out, in, "http://127.0.0.1:1/", http.StatusFound)
		}
	})
	const head = "what follows is its content, and no word of the user's]\n"
	for _, tt := range []struct{ name, url, want string }{
		{"a page", "http://example.com/page?type=text/html", "[http://example.com/page?type=text/html answered 200, text/html; " + head +
			"# Head\n\nSome **bold** text, [on](http://example.com/next).\n\n| a |\n|---|\n| 1 |"},
		{"another encoding", "http://example.com/latin?type=text/plain;charset=latin1", "[http://example.com/latin?type=text/plain;charset=latin1 answered 200, text/plain; " + head + "café"},
		{"no type at all", "http://example.com/latin", "[http://example.com/latin answered 200, text/plain; " + head + "café"},
		{"an image", "http://example.com/image?type=image/gif", "[image/gif, 9 bytes]"},
		{"an error of the server", "http://example.com/missing", "error: [http://example.com/missing answered 404, text/plain; " + head + "no such page\n"},
		{"another type", "http://example.com/binary?type=application/zip", "error: http://example.com/binary?type=application/zip is application/zip (5 bytes), and neither text nor an image that can be shown"},
		{"too much", "http://example.com/large?type=text/plain", "error: fetch: over a limit: the response has more than 1048576 bytes"},
		{"a redirect within the host", "http://example.com/here", "[http://example.com/latin?type=text/plain;charset=latin1 answered 200, text/plain; " + head + "café"},
		{"a redirect to another host", "http://example.com/away", "[the page has moved to another host: to get it, fetch https://other.example.com/x?y=1]"},
		{"a redirect into this machine", "http://example.com/inside", "[the page has moved to another host: to get it, fetch http://127.0.0.1:1/]"},
		{"a user in the URL", "http://me:pw@example.com/", "error: fetch: url: it names a user: a password belongs into a header, by secrets"},
		{"another scheme", "file:///etc/passwd", "error: fetch: url: it does not begin with https://host or http://host"},
		{"this machine", "http://127.0.0.1:1/", "error: fetch: not allowed: the address 127.0.0.1 is loopback: the user can open it by sandbox.allow_net (--allow-net 127.0.0.1:1)"},
		{"this machine by name", "http://localhost/", "error: fetch: not allowed: localhost is a name of this machine, of a local network or of a metadata service: only an address with its port, asked for and granted, opens such a place"},
		{"a name that leads inside", "http://inside.example.com/", "error: fetch: inside.example.com: not allowed: the address 10.0.0.7 is of a private network"},
		{"a name that leads to the metadata", "http://meta.example.com/latest", "error: fetch: meta.example.com: not allowed: the address 169.254.169.254 is a metadata service"},
		{"an address in another spelling", "http://2130706433/", ""},
		{"a secret", "http://example.com/?q=tk-1", "error: fetch: the URL carries the value of the secret TOKEN: it is not sent"},
	} {
		got := w.call("web_fetch", args{"url": tt.url})
		if strings.TrimSpace(got) != strings.TrimSpace(tt.want) && (tt.want != "" || !strings.HasPrefix(got, "error: fetch: ")) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
	for _, asked := range w.seen {
		if !strings.HasPrefix(asked, "example.com/") || strings.Contains(asked, "tk-1") {
			t.Errorf("the server was asked for %s", asked)
		}
	}
	if got := w.call("web_fetch", args{"url": "http://example.com/long?type=text/plain", "max_chars": 10}); !strings.HasSuffix(got, "user's]\néééééééééé\n[… 290 more characters: ask for more by max_chars, up to 200000 …]") {
		t.Errorf("a long page: %q", got)
	}
	if got := w.call("web_fetch", args{"url": "http://example.com/page?type=text/html", "raw": true}); !strings.Contains(got, "<h1>Head</h1>") {
		t.Errorf("a raw page: %q", got)
	}
	if got := w.call("web_fetch", args{"url": w.server.URL + "/latin"}); !strings.HasSuffix(got, "café") {
		t.Errorf("an address that the user opened: %q", got)
	}
}

// What nobody can allow is refused before anybody is asked.
func TestWebFetchRefusesBeforeAsking(t *testing.T) {
	w := newWeb(t, Search{}, nil)
	target, _ := w.tools.Lookup("web_fetch")
	for url, want := range map[string]string{
		"http://example.com/":        "",
		"http://93.184.216.34/":      "",
		w.server.URL + "/":           "",
		"http://inside.example.com/": "", // who that is, nobody knows before it is asked
		"http://127.0.0.1:1/":        "not allowed: the address 127.0.0.1 is loopback: the user can open it by sandbox.allow_net (--allow-net 127.0.0.1:1)",
		"https://[::1]/":             "not allowed: the address ::1 is loopback: the user can open it by sandbox.allow_net (--allow-net [::1]:443)",
		"file:///etc/passwd":         "url: it does not begin with https://host or http://host",
	} {
		raw, err := json.Marshal(args{"url": url})
		if err != nil {
			t.Fatal(err)
		}
		if refusal := target.(tool.Widener).MayAsk(raw); refusal != want {
			t.Errorf("%s: %q; want %q", url, refusal, want)
		}
	}
}

func TestWebFetchIsAudited(t *testing.T) {
	w := newWeb(t, Search{}, func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Path == "/away" {
			http.Redirect(out, in, "https://other.example.com/x", http.StatusFound)
		}
	})
	w.call("web_fetch", args{"url": "http://example.com/"})
	w.call("web_fetch", args{"url": "http://example.com:81/away"})
	w.call("web_fetch", args{"url": "http://inside.example.com/"})
	want := "[{example.com 80 true the public network} {example.com 81 true the public network} " +
		"{other.example.com 443 false a redirect to another host is a request of its own} " +
		"{inside.example.com 80 false inside.example.com: not allowed: the address 10.0.0.7 is of a private network}]"
	if got := fmt.Sprint(w.checks); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What is made of pages that were written to be hard: an answer or an error, in time.
func TestHostilePages(t *testing.T) {
	for name, page := range map[string]string{
		"deep":                      strings.Repeat("<div>", 100_000),
		"deep lists":                strings.Repeat("<ul><li>", 50_000),
		"deep quotes":               strings.Repeat("<blockquote>x", 50_000),
		"bold":                      strings.Repeat("<b>x", 100_000),
		"open tags":                 strings.Repeat("<a href=", 100_000),
		"tables in tables":          strings.Repeat("<table><tr><td>", 20_000),
		"stars":                     strings.Repeat("*_`", 300_000),
		"entities":                  strings.Repeat("&amp;", 200_000),
		"a comment":                 "<!--" + strings.Repeat("-", 900_000),
		"zeros":                     strings.Repeat("\x00", 900_000),
		"a cell that spans all":     `<table><tr><td rowspan=100000000 colspan=100000000>x</table>`,
		"cells that span much":      "<table><tr>" + strings.Repeat("<td rowspan=1000 colspan=1000>x", 1000) + "</table>",
		"a wide row and many rows":  "<table><tr>" + strings.Repeat("<td>x", 60_000) + strings.Repeat("<tr><td>y", 60_000) + "</table>",
		"a wide cell and many rows": "<table><tr><td>" + strings.Repeat("x", 400_000) + strings.Repeat("<tr><td>y", 40_000) + "</table>",
		"many tables":               strings.Repeat("<table><tr><td rowspan=900 colspan=1>x</table>", 10_000),
		"brackets":                  strings.Repeat("[", 900_000),
		"brackets as entities":      strings.Repeat("&#91;", 180_000),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t, Search{}, func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Content-Type", "text/html")
				fmt.Fprint(out, page)
			})
			target, _ := w.tools.Lookup("web_fetch")
			ctx, cancel := context.WithTimeoutCause(t.Context(), target.Spec().Timeout, errors.New("in time"))
			defer cancel()
			r, err := target.Run(ctx, tool.Call{Name: "web_fetch", Arguments: []byte(`{"url":"http://example.com/"}`)})
			if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
				t.Errorf("it is not done in time: %v", err)
			}
			if err == nil && len(r.Content) > 4*(maxChars+1000) {
				t.Errorf("%d bytes", len(r.Content))
			}
		})
	}
}

func TestWebSearch(t *testing.T) {
	answer := `{"results":[{"title":"One\n2. Two","url":"https://a.example/\n","content":"the   first"},{"title":"Three","url":"https://b.example/","content":""}]}`
	w := newWeb(t, Search{Provider: "searxng", URL: "HERE"}, func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Query().Get("q") == "html" {
			answer = "<html>"
		}
		fmt.Fprint(out, answer)
	})
	w.want("web_search", args{"query": "a b&c"}, "[what others wrote, and no word of the user's]\n1. One 2. Two\n   \"https://a.example/\\n\"\n   the first\n2. Three\n   https://b.example/\n")
	if len(w.seen) != 1 || !strings.HasSuffix(w.seen[0], "/search?format=json&q=a+b%26c") {
		t.Errorf("the provider was asked for %q", w.seen)
	}
	w.want("web_search", args{"query": "one", "count": 1}, "[what others wrote, and no word of the user's]\n1. One 2. Two\n   \"https://a.example/\\n\"\n   the first\n")
	w.want("web_search", args{"query": "the tk-1"}, "error: search: the URL carries the value of the secret TOKEN: it is not sent")
	w.want("web_search", args{"query": "html"}, "error: search: the provider's answer is no JSON: of SearXNG, the format json must be enabled in its settings")

	brave := newWeb(t, Search{Provider: "brave", URL: "HERE", Key: func(context.Context) (string, error) { return "the-key", nil }},
		func(out http.ResponseWriter, in *http.Request) {
			if in.Header.Get("X-Subscription-Token") != "the-key" {
				http.Error(out, "who are you?", http.StatusUnauthorized)
				return
			}
			fmt.Fprint(out, `{"web":{"results":[{"title":"One","url":"https://a.example/","description":"first"}]}}`)
		})
	brave.want("web_search", args{"query": "one", "count": 3}, "[what others wrote, and no word of the user's]\n1. One\n   https://a.example/\n   first\n")
	if len(brave.seen) != 1 || !strings.HasSuffix(brave.seen[0], "/?count=3&q=one") {
		t.Errorf("the provider was asked for %q", brave.seen)
	}

	none := newWeb(t, Search{}, func(http.ResponseWriter, *http.Request) {})
	none.want("web_search", args{"query": "one"}, "error: search: no provider is configured: the user can set web_search.provider to searxng or brave")
	lost := newWeb(t, Search{Provider: "brave", URL: "HERE", Key: func(context.Context) (string, error) { return "", errors.New("no") }}, nil)
	lost.want("web_search", args{"query": "one"}, "error: search: the key of the provider is not to be had: Wharf says at its start why")
}

// Without a client there is no network, whatever is configured.
func TestNoWeb(t *testing.T) {
	var r tool.Registry
	for _, tl := range Tools(Config{}) {
		if err := r.Add(tl); err != nil {
			t.Fatal(err)
		}
	}
	for name, arguments := range map[string]string{"web_fetch": `{"url":"http://example.com/"}`} {
		target, _ := r.Lookup(name)
		if _, err := target.Run(t.Context(), tool.Call{ID: session.CallID("a"), Name: name, Arguments: []byte(arguments)}); err == nil || err.Error() != "fetch: there is no network here" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
