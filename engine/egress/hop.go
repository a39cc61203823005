package egress

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hop is one request as it leaves.
type hop struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	secret http.Header // what the caller adds; no other hop has it
}

// hostHeaders are the headers that belong to the connection, which is not the
// asker's, or that would let it unpack what cannot be looked at packed.
var hostHeaders = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade",
	"Expect", "Http2-Settings", "Accept-Encoding",
}

// otherwise are the headers by which some servers take a request for one of
// another method, host or path than was judged.
var otherwise = []string{
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
	"X-Original-Url", "X-Original-Uri", "X-Original-Host", "X-Rewrite-Url", "X-Host", "Forwarded",
}

// mayBeSet reports whether a request may set a header. Behind some servers, - and
// _ in its name are the same.
func mayBeSet(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return httpguts.ValidHeaderFieldName(name) && !slices.Contains(hostHeaders, name) && !slices.Contains(otherwise, name) &&
		!strings.HasPrefix(name, "Proxy-") && !strings.HasPrefix(name, "X-Forwarded-")
}

// firstHop checks a request as far as it can be without asking anybody.
func firstHop(r Request) (hop, error) {
	if !methodName.MatchString(r.Method) || slices.Contains([]string{"CONNECT", "TRACE", "PRI"}, r.Method) {
		return hop{}, invalidf("method %.20q: write GET, POST or another in upper case", r.Method)
	}
	u, err := ParseURL(r.URL)
	if err != nil {
		return hop{}, err
	}
	at := hop{method: r.Method, url: u, header: http.Header{"User-Agent": {"wharf"}}, body: r.Body, secret: http.Header{}}
	size := 0
	for name, values := range r.Header {
		at.header[http.CanonicalHeaderKey(name)] = values
		size += len(name) + len(strings.Join(values, ""))
		if err == nil {
			err = checkHeader(name, values)
		}
	}
	if err == nil && size > maxHeader {
		err = invalidf("the headers have %d bytes, and may have %d", size, maxHeader)
	}
	for name, values := range r.Secret {
		at.secret[http.CanonicalHeaderKey(name)] = values
		if err == nil {
			err = checkHeader(name, values)
		}
	}
	return at, err
}

// headers are those of the hop and the caller's, which take the place of others.
func (h hop) headers() http.Header {
	all := maps.Clone(h.header)
	maps.Copy(all, h.secret)
	return all
}

func checkHeader(name string, values []string) error {
	if !mayBeSet(name) {
		return invalidf("header %.60q is not for a request to set", name)
	}
	bad := func(value string) bool { return !httpguts.ValidHeaderFieldValue(value) }
	if slices.ContainsFunc(values, bad) {
		return invalidf("header %.60q has a value that cannot be sent", name)
	}
	return nil
}

// refusal says why a hop must not leave, whatever it leads to.
func (h hop) refusal(d Decision) error {
	where := h.method + " " + h.url.Scheme + "://" + h.url.Host + h.url.EscapedPath()
	if !d.Allowed {
		return fmt.Errorf("%s: %w: %s", where, ErrRefused, d.Rule)
	}
	host, _ := Endpoint(h.url)
	a, _ := netip.ParseAddr(host)
	if len(h.secret) > 0 && h.url.Scheme != "https" && !(d.Open && a.IsLoopback()) {
		return fmt.Errorf("%s: %w: a secret is sent by https, or to an address of this machine that is granted", where, ErrRefused)
	}
	return nil
}

func isRedirect(status int) bool {
	return slices.Contains([]int{301, 302, 303, 307, 308}, status)
}

// keptAcross are the headers that may follow a redirect to another origin: a
// list of what must not would have to know every name that a credential has.
var keptAcross = []string{"Accept", "Accept-Language", "User-Agent"}

// next returns the hop to which an answer of h redirects.
func (h hop) next(status int, location string) (hop, error) {
	to, err := h.resolve(location)
	if err != nil {
		return hop{}, err
	}
	if h.url.Scheme == "https" && to.Scheme != "https" {
		return hop{}, fmt.Errorf("%w: it leads from https to http", ErrRefused)
	}
	n := hop{method: h.method, url: to, header: http.Header{}, body: h.body}
	if status == 303 && h.method != "HEAD" || status < 303 && h.method == "POST" {
		n.method, n.body = "GET", nil
	}
	across := to.Scheme != h.url.Scheme || to.Host != h.url.Host
	if across && len(n.body) > 0 {
		return hop{}, fmt.Errorf("%w: it would take the body to another origin, %s://%s", ErrRefused, to.Scheme, to.Host)
	}
	for name, values := range h.header {
		if slices.Contains(keptAcross, name) || !across && (len(n.body) > 0 || !strings.HasPrefix(name, "Content-")) {
			n.header[name] = values
		}
	}
	return n, nil
}

// resolve reads a Location, which may be relative.
func (h hop) resolve(location string) (*url.URL, error) {
	to, err := url.Parse(location)
	if err == nil && !strings.ContainsFunc(location, mustBeEscaped) {
		to, err = parseURL(h.url.ResolveReference(to).String())
	} else {
		err = errors.New("it cannot be read")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the URL that it leads to: %w", ErrRefused, err)
	}
	return to, nil
}
