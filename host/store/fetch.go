package store

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/host"
)

// Candidate is an extension at a source, looked at and not installed.
type Candidate struct {
	*host.Inspection // with a Manifest, and without a Problem
	Source           string
	Wasm             []byte
	Signature        []byte // what lies beside it as NAME.wasm.minisig; nil: nothing
	Offered          Key    // what lies beside it as minisign.pub; the zero Key: nothing
}

// The kinds of sources, as they begin.
const shippedSource = "shipped:"

// Shipped returns the candidate of an extension that comes with wharf. It needs no
// signature: who has another wharf has other extensions.
func Shipped(name string, wasm []byte) (Candidate, error) {
	return newCandidate(shippedSource+name, wasm)
}

// IsURL tells a URL from the path of a file.
func IsURL(source string) bool {
	return strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
}

// ShippedName returns the name in a source that is a shipped extension.
func ShippedName(source string) (name string, ok bool) {
	return strings.CutPrefix(source, shippedSource)
}

// installArgument is what wharf ext install takes for a source.
func installArgument(source string) string {
	if name, ok := ShippedName(source); ok {
		return "--shipped " + name
	}
	return source
}

// origin is for whom a key is pinned: the server of a URL, or files of this machine.
func origin(source string) string {
	u, err := egress.ParseURL(source)
	if err != nil {
		return "file"
	}
	return u.Scheme + "://" + u.Host
}

// newCandidate looks into a module. What could not be loaded is no candidate.
func newCandidate(source string, wasm []byte) (Candidate, error) {
	in, err := host.Inspect(wasm)
	if err != nil {
		return Candidate{}, err
	}
	if in.Problem != nil {
		return Candidate{}, in.Problem
	}
	return Candidate{Inspection: in, Source: source, Wasm: wasm}, nil
}

// ReadFile returns the candidate in a file, with what lies beside it.
func ReadFile(file string) (Candidate, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return Candidate{}, err
	}
	raw, err := host.ReadFile(file)
	if err != nil {
		return Candidate{}, err
	}
	wasm, err := host.ReadExtension(file)
	if err != nil {
		return Candidate{}, err
	}
	c, err := newCandidate(file, wasm)
	if err != nil {
		return Candidate{}, err
	}
	if !bytes.Equal(raw, wasm) {
		return c, nil // its manifest stands beside it, which a signature of the module says nothing of
	}
	c.Signature, err = host.ReadFile(file + signatureEnd)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return Candidate{}, err
	}
	text, err := host.ReadFile(filepath.Join(filepath.Dir(file), keyName))
	if err == nil {
		c.Offered, _ = ParseKey(string(text)) // what is no key is no offer
	}
	return c, nil
}

// The names of what lies beside a module.
const (
	signatureEnd = ".minisig"
	keyName      = "minisign.pub"
)

// SignatureFile returns where the signature of a module's file belongs.
func SignatureFile(file string) string { return file + signatureEnd }

// The limits on what is fetched.
const (
	fetchTime   = 2 * time.Minute // with all redirects
	fetchModule = 32 << 20        // bytes; the host takes no larger one
)

// Fetcher fetches candidates from URLs. The zero Fetcher is ready.
type Fetcher struct {
	Dialer  egress.Dialer
	RootCAs *x509.CertPool // who vouches for servers; nil is the system's
}

// Fetch returns the candidate at a URL, with what lies beside it. It must be https,
// or an address of this machine; of other addresses that are not public, the one that
// the URL itself names is reached, and no redirect leads to one.
func (f Fetcher) Fetch(ctx context.Context, source string) (Candidate, error) {
	u, err := egress.ParseURL(source)
	if err != nil {
		return Candidate{}, err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return Candidate{}, errors.New("the URL has a query, which could be a password, and wharf.lock would hold it: fetch the file yourself and install that")
	}
	client := egress.NewClient(egress.ClientConfig{Dialer: f.Dialer, RootCAs: f.RootCAs, Timeout: fetchTime, MaxBody: fetchModule})
	defer client.Close()
	get := func(u *url.URL) (egress.Response, error) {
		return client.Do(ctx, egress.Request{Method: "GET", URL: u.String(), Permit: permit(u)})
	}
	response, err := get(u)
	if err != nil {
		return Candidate{}, err
	}
	if response.Status != 200 {
		return Candidate{}, fmt.Errorf("the server answers with status %d: is the URL right?", response.Status)
	}
	c, err := newCandidate(u.String(), response.Body)
	if err != nil {
		return Candidate{}, err
	}
	return c, c.fetchSignature(u, get)
}

// fetchSignature fetches what lies beside a module. A server that has no signature
// may say so with a page of its own.
func (c *Candidate) fetchSignature(u *url.URL, get func(*url.URL) (egress.Response, error)) error {
	beside := *u
	beside.Path, beside.RawPath = u.Path+signatureEnd, ""
	response, err := get(&beside)
	if err != nil {
		return fmt.Errorf("its signature: %w", err)
	}
	if slices.Contains([]int{403, 404, 410}, response.Status) || response.Status == 200 && !bytes.HasPrefix(response.Body, []byte("untrusted comment:")) {
		return nil
	}
	if response.Status != 200 {
		return fmt.Errorf("its signature: the server answers with status %d: try again later", response.Status)
	}
	c.Signature = response.Body
	beside.Path = path.Join(path.Dir(u.Path), keyName)
	if response, err = get(&beside); err == nil && response.Status == 200 {
		c.Offered, _ = ParseKey(string(response.Body)) // what is no key is no offer
	}
	return nil
}

// permit judges the hops of a fetch.
func permit(first *url.URL) func(string, *url.URL) egress.Decision {
	return func(_ string, u *url.URL) egress.Decision {
		a, err := netip.ParseAddr(u.Hostname())
		named := err == nil && u.Host == first.Host && u.Scheme == first.Scheme
		if u.Scheme != "https" && !(named && a.IsLoopback()) {
			return egress.Decision{Rule: "it is not https"}
		}
		return egress.Decision{Allowed: true, Open: named}
	}
}
