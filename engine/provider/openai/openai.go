// Package openai asks any server that speaks Chat Completions.
//
// openai-go gives the types of a request, authentication and transport. The
// answer is read by our own code ([eventReader], [assembler]), because servers
// deviate from the protocol in many small ways, and because the SDK's reader
// ends quietly on a cut stream or an HTML page and fails on a comment. What is
// repaired here is the protocol alone: a broken argument text stays as it is,
// and a call that came without an id keeps an empty one.
//
// Reasoning is not sent back: servers disagree on the field, and refuse a wrong
// one. What a server attached to a call (session.Call.Extra) does go back.
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/wharf-agent/wharf/engine/provider"
)

// Config says which server to ask; a zero optional field means its default.
type Config struct {
	BaseURL     string        // up to, but without, /chat/completions; "" means https://api.openai.com/v1
	APIKey      string        // sent as a bearer token, to that server only; "" sends none
	HTTPClient  *http.Client  // nil means one with the default transport; its redirect policy is not used
	IdleTimeout time.Duration // the longest time without a byte from the server; 0 means 2 minutes
}

const (
	defaultBaseURL = "https://api.openai.com/v1"
	defaultIdle    = 2 * time.Minute
	// finishedIdle is how long to wait for token counts and the end mark once
	// the model has finished: its answer is complete without them.
	finishedIdle = 5 * time.Second
	drainIdle    = 100 * time.Millisecond // for the end of the body after the end mark
)

// Provider is a model behind a Chat Completions server. It may be used by
// several goroutines at once.
type Provider struct {
	chat    openai.ChatCompletionService
	baseURL string
	key     string
	idle    time.Duration
}

// New checks cfg and returns a provider. It makes no request.
func New(cfg Config) (*Provider, error) {
	base := cmp.Or(cfg.BaseURL, defaultBaseURL)
	if err := checkBaseURL(base); err != nil {
		return nil, err
	}
	key := strings.TrimSpace(cfg.APIKey)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("openai: the API key has characters that no header may carry: " +
			"copy it again, without quotes or line breaks")
	}
	if cfg.IdleTimeout < 0 {
		return nil, fmt.Errorf("openai: the idle time-out %s is negative: use 0 for the default of %s",
			cfg.IdleTimeout, defaultIdle)
	}
	p := &Provider{baseURL: base, key: key, idle: cmp.Or(cfg.IdleTimeout, defaultIdle)}
	p.chat = openai.NewChatCompletionService(
		option.WithBaseURL(base),
		option.WithAPIKey(key),
		option.WithHTTPClient(stayingClient(cfg.HTTPClient)),
		option.WithMaxRetries(0), // retries are the engine's: they must be visible
		option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithMiddleware(p.refuseStatus),
	)
	return p, nil
}

func checkBaseURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return fmt.Errorf("openai: base_url is not a URL: write one such as %q", defaultBaseURL)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("openai: base_url %q is not the address of a server: write one such as %q",
			u.Redacted(), defaultBaseURL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("openai: base_url %q has more than scheme, host and path: "+
			"leave out user, query and fragment", u.Redacted())
	}
	return nil
}

// stayingClient returns a copy of c that follows no redirect, so that neither
// the key nor the conversation goes to a server that the user did not name.
func stayingClient(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		own.Transport = t.Clone()
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// errStopped says that the caller wants no more.
var errStopped = errors.New("stopped by the caller")

// Stream sends req and yields deltas until the reply is complete: text and
// reasoning as they come, at the end the calls, then the server's finish reason
// if it gave one. If ctx ends first, the last pair carries context.Cause(ctx).
// Every other error is a *[provider.Error]; calls that were complete before
// the connection broke are yielded before it.
func (p *Provider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		err := p.stream(ctx, req, func(d provider.Delta) bool { return yield(d, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(provider.Delta{}, err)
		}
	}
}

func (p *Provider) stream(parent context.Context, req provider.Request, emit func(provider.Delta) bool) error {
	params, err := encode(req)
	if err != nil {
		return p.polish(err, req.Model)
	}
	ctx, watch := watchIdle(parent, p.idle)
	defer watch.stop()
	var resp *http.Response
	_, err = p.chat.New(ctx, params, option.WithResponseBodyInto(&resp))
	if err == nil {
		defer resp.Body.Close()
		err = readReply(ctx, watch.reader(resp.Body), watch, emit)
	}
	switch {
	case err == nil, errors.Is(err, errStopped):
		return err
	case parent.Err() != nil:
		return context.Cause(parent)
	case errors.Is(context.Cause(ctx), errIdle):
		err = &provider.Error{
			Class: provider.Timeout, Message: fmt.Sprintf("the server sent nothing for %s", p.idle),
			Advice: "is the server overloaded? for a slow model, raise the idle time-out", Err: errIdle,
		}
	}
	return p.polish(err, req.Model)
}

// refuseStatus makes an error of every status but success, before the SDK reads
// a body without a limit.
func (p *Provider) refuseStatus(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err != nil || resp.StatusCode/100 == 2 {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil && len(body) == 0 && req.Context().Err() != nil {
		return nil, err
	}
	return nil, statusError(resp, body)
}
