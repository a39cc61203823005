package openai

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/wharf-agent/wharf/engine/provider"
)

// maxErrorBody is how many bytes of an error's body are looked at.
const maxErrorBody = 64 << 10

// statusError makes an error of an answer whose status is no success.
func statusError(resp *http.Response, body []byte) *provider.Error {
	c := readComplaint(body)
	e := &provider.Error{
		Class:      provider.ClassOf(resp.StatusCode),
		Status:     resp.StatusCode,
		Message:    cmp.Or(c.message, http.StatusText(resp.StatusCode), "no reason given"),
		RetryAfter: cmp.Or(headerDelay(resp.Header), c.retryAfter),
	}
	if where := resp.Header.Get("Location"); resp.StatusCode/100 == 3 {
		e.Message = fmt.Sprintf("the server redirects to %q, and redirects are not followed", where)
		e.Advice = "if you trust that address, set base_url to it"
	}
	return e
}

// complain makes an error of a body or an event that holds one.
func complain(body []byte) *provider.Error {
	c := readComplaint(body)
	e := &provider.Error{
		Class: provider.Server, Status: c.status, RetryAfter: c.retryAfter,
		Message: "the server reports an error: " + cmp.Or(c.message, "no reason given"),
	}
	switch {
	case c.status != 0:
		e.Class = provider.ClassOf(c.status)
	case containsAny(c.words, "rate_limit", "quota", "resource_exhausted", "too_many"):
		e.Class = provider.RateLimit
	case containsAny(c.words, "auth", "api_key", "permission"):
		e.Class = provider.Auth
	case containsAny(c.words, "invalid", "not_found", "bad_request", "badrequest", "context_length"):
		e.Class = provider.Invalid
	}
	return e
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

func malformed(message, advice string) *provider.Error {
	return &provider.Error{Class: provider.Malformed, Message: message, Advice: advice}
}

// polish makes err a *provider.Error that says what to do and holds no key.
func (p *Provider) polish(err error, model string) error {
	var e provider.Error
	if known := (*provider.Error)(nil); errors.As(err, &known) {
		e = *known
	} else {
		e = p.networkError(err)
	}
	if e.Advice == "" {
		e.Advice = p.advice(&e, model)
	}
	e.Message, e.Advice = excerpt(p.redact(e.Message)), p.redact(e.Advice)
	if e.Err != nil && p.redact(e.Err.Error()) != e.Err.Error() {
		e.Err = nil // its text is not ours to change
	}
	return &e
}

func (p *Provider) redact(s string) string {
	if len(p.key) < 4 { // no secret; and it would stand in every other word
		return s
	}
	return strings.ReplaceAll(s, p.key, "[redacted]")
}

func (p *Provider) networkError(err error) provider.Error {
	e := provider.Error{Class: provider.Unreachable, Message: "ask " + p.baseURL + ": " + rootCause(err), Err: err}
	var dns *net.DNSError
	var unknownCA x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Advice = "is the server running there? start it, or set base_url"
	case errors.As(err, &dns):
		e.Advice = "check the host in base_url, and the network"
	case errors.As(err, &unknownCA), errors.As(err, &wrongHost):
		e.Advice = "check base_url, and that this machine trusts the server's certificate"
	case errors.As(err, &notTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Advice = "the server speaks plain HTTP: write http:// in base_url"
	default:
		e.Advice = "check base_url and the network, and try again"
	}
	return e
}

// rootCause is err's text without the method and URL that net/http puts first.
func rootCause(err error) string {
	var wrapped interface {
		error
		Timeout() bool
		Unwrap() error
	}
	if errors.As(err, &wrapped) && wrapped.Unwrap() != nil {
		err = wrapped.Unwrap()
	}
	if errors.Is(err, context.Canceled) {
		return "the request was given up"
	}
	return err.Error()
}

// advice says what to do about e, which has a status or a class.
func (p *Provider) advice(e *provider.Error, model string) string {
	switch {
	case e.Status == http.StatusForbidden:
		return "check what the key in OPENAI_API_KEY may do"
	case e.Class == provider.Auth && p.key == "":
		return "set OPENAI_API_KEY to a key of this server"
	case e.Class == provider.Auth:
		return "check the key in OPENAI_API_KEY: is it one of this server?"
	case e.Status == http.StatusPaymentRequired:
		return "check the account's balance"
	case e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		return fmt.Sprintf("check base_url (%s) and the model's name (%q)", p.baseURL, model)
	case e.Status == http.StatusRequestEntityTooLarge:
		return "the conversation is too long for this server"
	case e.Class == provider.RateLimit && e.RetryAfter > 0:
		return fmt.Sprintf("try again in %s", e.RetryAfter)
	case e.Class == provider.RateLimit:
		return "wait and try again, or check the account's quota"
	case e.Class == provider.Server, e.Class == provider.Timeout:
		return "the fault is the server's: try again later"
	case e.Class == provider.Invalid:
		return fmt.Sprintf("check the model's name (%q) and the parameters", model)
	}
	return ""
}
