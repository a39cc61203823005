package host

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// httpFetch gives a guest HTTP. What is granted is asked of each hop again.
var httpFetch = define("http.fetch", needHTTP, fetch)

func needHTTP(in abi.HTTPRequest) (capability.Need, error) {
	u, err := egress.ParseURL(in.URL)
	if err != nil {
		return capability.Need{}, err
	}
	switch {
	case in.Method == "":
		return capability.Need{}, errors.New(`"method" must be there, such as "GET"`)
	case in.Body != "" && in.BodyBase64 != "":
		return capability.Need{}, errors.New(`"body" and "body_base64" exclude each other`)
	case len(in.Secrets) > limitSecrets:
		return capability.Need{}, fmt.Errorf(`"secrets" may name %d`, limitSecrets)
	}
	return capability.HTTP(in.Method, u), nil
}

// newClient returns the client of a session, or nil if none is needed.
func (e *Extension) newClient(cfg egress.ClientConfig) *egress.Client {
	if len(e.Granted.HTTP) == 0 {
		return nil
	}
	cfg.MaxBody = limitOutput // no more fits into a response
	return egress.NewClient(cfg)
}

func fetch(ctx context.Context, x *instance, in abi.HTTPRequest) (abi.HTTPResponse, error) {
	r := egress.Request{Method: in.Method, URL: in.URL, Header: http.Header{}, Body: []byte(in.Body), Permit: x.mayFetch, Audit: x.auditEgress}
	for name, value := range in.Headers {
		r.Header.Add(name, value)
	}
	if in.BodyBase64 != "" {
		var err error
		if r.Body, err = base64.StdEncoding.DecodeString(in.BodyBase64); err != nil {
			return abi.HTTPResponse{}, fmt.Errorf(`%w: "body_base64": %w`, errBadRequest, err)
		}
	}
	u, err := egress.ParseURL(in.URL)
	if err == nil {
		err = x.checkLeak(in, r.Body, u)
	}
	if err == nil {
		r.Secret, err = x.secretHeaders(ctx, in.Secrets, u, r.Header)
	}
	if err != nil {
		return abi.HTTPResponse{}, err
	}
	response, err := x.session.client.Do(ctx, r)
	if err != nil {
		return abi.HTTPResponse{}, err
	}
	return x.httpResponse(response), nil
}

// mayFetch says whether a hop is granted. A redirect is of the server's making,
// which was sent a secret, and may not pass it on.
func (x *instance) mayFetch(method string, u *url.URL) egress.Decision {
	if name, found := x.session.Secrets.Scanner().Find(u.String()); found {
		return egress.Decision{Rule: "its URL carries the value of the secret " + name}
	}
	if err := x.extension.Granted.Allow(capability.HTTP(method, u)); err != nil {
		return egress.Decision{Rule: err.Error()}
	}
	return egress.Allow(x.extension.Granted.HTTP)(method, u)
}

func (x *instance) auditEgress(c egress.Check) error {
	return x.session.Record(session.EgressChecked{Host: c.Host, Port: c.Port, Allowed: c.Allowed, Rule: c.Rule})
}

// checkLeak refuses a request that carries the value of a secret. What the
// host itself puts into it comes later.
func (x *instance) checkLeak(in abi.HTTPRequest, body []byte, u *url.URL) error {
	names := slices.Sorted(maps.Keys(in.Headers)) // as they are: a header's name loses its case on the way
	parts := []string{in.URL}
	for _, name := range names {
		parts = append(parts, in.Headers[name])
	}
	err := cmp.Or(x.refuseLeak(append(parts, string(body))...), x.refuseLeak(names...), x.refuseLeak(in.Method))
	if err == nil {
		return nil
	}
	host, port := egress.Endpoint(u)
	return errors.Join(err, x.auditEgress(egress.Check{Host: host, Port: port, Rule: err.Error()}))
}

// secretHeaders returns the headers that a request gets for the secrets that it
// names, all of which must be bound to its host.
func (x *instance) secretHeaders(ctx context.Context, names []string, u *url.URL, taken http.Header) (http.Header, error) {
	headers := http.Header{}
	for _, name := range names {
		need, err := capability.SecretFor(name, u.Hostname())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBadRequest, err)
		}
		if err := x.permit(need); err != nil {
			return nil, err
		}
		value, err := x.session.Secrets.Value(ctx, name)
		if err != nil { // which names files and programs of the user's
			return nil, fmt.Errorf("the secret %s is not to be had: Wharf says at its start why", name)
		}
		for _, s := range x.extension.Granted.Secrets {
			if s.Name == name && s.BoundTo(u.Hostname()) {
				headers.Set(s.Header, strings.Replace(s.Format, "{}", value, 1))
			}
		}
	}
	for header := range headers {
		if taken.Get(header) != "" {
			return nil, fmt.Errorf("%w: header %q is a secret's to set here", errBadRequest, header)
		}
	}
	return headers, nil
}

// httpResponse makes a response for the guest, without the values of secrets.
func (x *instance) httpResponse(r egress.Response) abi.HTTPResponse {
	scanner := x.session.Secrets.Scanner()
	out := abi.HTTPResponse{Status: r.Status, Headers: map[string]string{}, URL: r.URL}
	for name, values := range r.Header {
		out.Headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	body, _ := scanner.Redact(string(r.Body))
	if utf8.ValidString(body) {
		out.Body = &body
	} else {
		packed := base64.StdEncoding.EncodeToString([]byte(body))
		out.BodyBase64 = &packed
	}
	return out
}
