package wire

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
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
)

// maxErrorBody is how many bytes of an error's body are looked at.
const maxErrorBody = 64 << 10

// statusError makes an error of an answer whose status is no success.
func statusError(resp *http.Response, body []byte) *provider.Error {
	c := readComplaint(body)
	c.retryAfter = cmp.Or(headerDelay(resp.Header), c.retryAfter)
	e := &provider.Error{
		Class:      c.class(provider.ClassOf(resp.StatusCode)),
		Status:     resp.StatusCode,
		Message:    cmp.Or(c.message, http.StatusText(resp.StatusCode), "no reason given"),
		RetryAfter: c.retryAfter,
	}
	if where := resp.Header.Get("Location"); resp.StatusCode/100 == 3 {
		e.Message = fmt.Sprintf("the server redirects to %q, and redirects are not followed", where)
		e.Advice = "if you trust that address, set base_url to it"
	}
	return e
}

// Complain makes an error of a body or an event that holds one.
func Complain(body []byte) *provider.Error {
	c := readComplaint(body)
	e := &provider.Error{
		Class: provider.Server, Status: c.status, RetryAfter: c.retryAfter,
		Message: "the server reports an error: " + cmp.Or(c.message, "no reason given"),
	}
	switch {
	case c.status != 0:
		e.Class = provider.ClassOf(c.status)
	case containsAny(c.words, "overloaded", "server_error", "api_error", "internal"):
	case containsAny(c.words, "rate_limit", "quota", "resource_exhausted", "too_many"):
		e.Class = provider.RateLimit
	case containsAny(c.words, "auth", "api_key", "permission"):
		e.Class = provider.Auth
	case containsAny(c.words, "invalid", "not_found", "bad_request", "badrequest", "context_length", "too_large"):
		e.Class = provider.Invalid
	}
	e.Class = c.class(e.Class)
	return e
}

// longestRate is the longest wait that a limit of the rate asks for. Some servers
// speak of a quota where they mean no more than that.
const longestRate = 5 * time.Minute

// class tells a quota that is used up, and a request that is too long, from what the
// status says.
func (c complaint) class(by provider.Class) provider.Class {
	said := c.words + strings.ToLower(c.message)
	paid := containsAny(said, "insufficient_quota", "insufficient quota", "insufficient balance", "insufficient_balance",
		"credit balance", "insufficient credits", "out of credits", "billing_error", "billing_hard_limit", "payment required",
		"exceeded_current_quota", "usage_limit_reached")
	switch by {
	case provider.RateLimit:
		if (paid || containsAny(said, "quota", "billing", "usage limit", "1113")) && (c.retryAfter == 0 || c.retryAfter > longestRate) {
			return provider.Quota
		}
	case provider.Invalid, provider.Auth:
		if paid {
			return provider.Quota
		}
	}
	if (by == provider.Invalid || by == provider.Server) && provider.IsOverflow(said) {
		return provider.Overflow
	}
	return by
}

// refusesImages reports whether e is about the request's images: it says so, or it
// gives no reason at all.
func refusesImages(e *provider.Error) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return false
	}
	if e.Status < 500 && e.Status != http.StatusNotFound && (e.Message == http.StatusText(e.Status) || e.Message == "no reason given") {
		return true
	}
	return containsAny(strings.ToLower(e.Message), "image", "vision", "visual", "multimodal", "multi-modal", "mmproj", "media_type",
		"content must be a string", "content should be a string", "content should be a valid string", "unsupported content", "unknown variant")
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// Malformed makes the error of an answer that is none.
func Malformed(message, advice string) *provider.Error {
	return &provider.Error{Class: provider.Malformed, Message: message, Advice: advice}
}

// polish makes err a *provider.Error that says what to do and holds no key.
func (c *Client) polish(err error, req provider.Request) error {
	var e provider.Error
	if known := (*provider.Error)(nil); errors.As(err, &known) {
		e = *known
	} else {
		e = c.networkError(err)
	}
	if req.HasImages() && (e.Class == provider.Invalid || e.Class == provider.Server) && refusesImages(&e) {
		e.Class = provider.Images
	}
	if e.Advice == "" && c.advise != nil {
		e.Advice = c.advise(&e)
	}
	if e.Advice == "" {
		e.Advice = c.advice(&e, req.Model)
	}
	e.Message, e.Advice = excerpt(c.redact(e.Message)), c.redact(e.Advice)
	if e.Err != nil && c.redact(e.Err.Error()) != e.Err.Error() {
		e.Err = nil // its text is not ours to change
	}
	return &e
}

func (c *Client) redact(s string) string {
	if len(c.Key) < 4 { // no secret; and it would stand in every other word
		return s
	}
	return strings.ReplaceAll(s, c.Key, "[redacted]")
}

func (c *Client) networkError(err error) provider.Error {
	e := provider.Error{Class: provider.Unreachable, Message: "ask " + c.BaseURL + ": " + rootCause(err), Err: err}
	var dns *net.DNSError
	var unknownCA x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Advice = "is the server running there? start it, or set base_url"
	case errors.As(err, &dns):
		e.Advice, e.Permanent = "check the host in base_url, and the network", dns.IsNotFound
	case errors.As(err, &unknownCA), errors.As(err, &wrongHost):
		e.Advice, e.Permanent = "check base_url, and that this machine trusts the server's certificate", true
	case errors.As(err, &notTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Advice, e.Permanent = "the server speaks plain HTTP: write http:// in base_url", true
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
func (c *Client) advice(e *provider.Error, model string) string {
	switch {
	case e.Status == http.StatusForbidden:
		return "check what the key in " + c.keyName + " may do"
	case e.Class == provider.Auth && c.Key == "":
		return "set " + c.keyName + " to a key of this server"
	case e.Class == provider.Auth:
		return "check the key in " + c.keyName + ": is it one of this server?"
	case e.Class == provider.Overflow:
		return "the conversation is longer than this model takes: set window under [context] to what it takes, ask for a shorter answer, or start a new session"
	case e.Class == provider.Images:
		return "ask without images, or take a model that can see"
	case e.Class == provider.Quota && e.RetryAfter > 0:
		return fmt.Sprintf("the quota is used up: try again in %s", e.RetryAfter.Round(time.Second))
	case e.Class == provider.Quota:
		return "check the account's balance and its quota"
	case e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		return fmt.Sprintf("check base_url (%s) and the model's name (%q)", c.BaseURL, model)
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

// Invalid makes the error of a request that need not be sent.
func Invalid(message, advice string) *provider.Error {
	return &provider.Error{Class: provider.Invalid, Message: message, Advice: advice}
}
