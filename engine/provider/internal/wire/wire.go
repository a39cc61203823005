// Package wire is what the adapters of HTTP APIs have in common: how a server is
// reached, and how an event stream is read.
//
// An adapter makes the request with its SDK and knows what an event means (its
// [Assembler]). Here is what has nothing to do with the API: the key stays with
// one server and out of every text, no redirect is followed, silence and size
// have limits, and an event stream is read whatever a server or a proxy makes
// of it.
package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
)

// Config says which server to ask.
type Config struct {
	API         string // the adapter's name, for error texts
	BaseURL     string // "" means Default
	Default     string
	Key         string // "" sends none
	KeyName     string // the environment variable that a user sets the key in
	HTTPClient  *http.Client
	IdleTimeout time.Duration // 0 means 2 minutes

	// Advise says what to do about an error where the API knows better; "" otherwise.
	Advise func(*provider.Error) string
}

const (
	defaultIdle = 2 * time.Minute
	// finishedIdle is how long to wait for token counts and the end mark once
	// the model has finished: its answer is complete without them.
	finishedIdle = 5 * time.Second
	drainIdle    = 100 * time.Millisecond // for the end of the body after the end mark
)

// Client asks one server. It may be used by several goroutines at once.
type Client struct {
	BaseURL string
	Key     string
	HTTP    *http.Client // follows no redirect

	keyName string
	idle    time.Duration
	advise  func(*provider.Error) string
}

// NewClient checks cfg. It makes no request.
func NewClient(cfg Config) (*Client, error) {
	base := cmp.Or(cfg.BaseURL, cfg.Default)
	if err := checkBaseURL(base, cfg); err != nil {
		return nil, err
	}
	key := strings.TrimSpace(cfg.Key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("%s: the API key has characters that no header may carry: "+
			"copy it again, without quotes or line breaks", cfg.API)
	}
	if cfg.IdleTimeout < 0 {
		return nil, fmt.Errorf("%s: the idle time-out %s is negative: use 0 for the default of %s",
			cfg.API, cfg.IdleTimeout, defaultIdle)
	}
	return &Client{
		BaseURL: base, Key: key, HTTP: stayingClient(cfg.HTTPClient),
		keyName: cfg.KeyName, idle: cmp.Or(cfg.IdleTimeout, defaultIdle), advise: cfg.Advise,
	}, nil
}

func checkBaseURL(base string, cfg Config) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return fmt.Errorf("%s: base_url is not a URL: write one such as %q", cfg.API, cfg.Default)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s: base_url %q is not the address of a server: write one such as %q",
			cfg.API, u.Redacted(), cfg.Default)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s: base_url %q has more than scheme, host and path: "+
			"leave out user, query and fragment", cfg.API, u.Redacted())
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

// Stream sends req and passes what the assembler makes of the answer to yield. If
// ctx ends first, the last pair carries context.Cause(ctx); every other error is a
// *[provider.Error].
func (c *Client) Stream(ctx context.Context, req provider.Request, a Assembler,
	send func(context.Context) (*http.Response, error), yield func(provider.Delta, error) bool,
) {
	err := c.stream(ctx, a, send, func(d provider.Delta) bool { return yield(d, nil) })
	switch {
	case err == nil, errors.Is(err, errStopped):
	case ctx.Err() != nil:
		yield(provider.Delta{}, context.Cause(ctx))
	default:
		yield(provider.Delta{}, c.polish(err, req))
	}
}

func (c *Client) stream(parent context.Context, a Assembler, send func(context.Context) (*http.Response, error),
	emit func(provider.Delta) bool,
) error {
	ctx, watch := watchIdle(parent, c.idle)
	defer watch.stop()
	resp, err := send(ctx)
	if err == nil {
		defer resp.Body.Close()
		err = read(ctx, watch.reader(resp.Body), watch, a, emit)
	}
	if err != nil && !errors.Is(err, errStopped) && parent.Err() == nil && errors.Is(context.Cause(ctx), errIdle) {
		return &provider.Error{
			Class: provider.Timeout, Message: fmt.Sprintf("the server sent nothing for %s", c.idle),
			Advice: "is the server overloaded? for a slow model, raise the idle time-out", Err: errIdle,
		}
	}
	return err
}

// RefuseStatus makes an error of every status but success, before an SDK reads
// a body without a limit.
func (c *Client) RefuseStatus(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
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
