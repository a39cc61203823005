// Package openai asks any server that speaks Chat Completions, or OpenAI's newer
// Responses API.
//
// openai-go gives the types of a request, authentication and transport. The
// answer is read by our own code (package wire, [assembler]), because servers
// deviate from the protocol in many small ways, and because the SDK's reader
// ends quietly on a cut stream or an HTML page and fails on a comment. What is
// repaired here is the protocol alone: a broken argument text stays as it is,
// and a call that came without an id keeps an empty one.
//
// In Chat Completions, reasoning goes back only where a setting asks for it
// ([Compat]): servers disagree on the field, and refuse a wrong one. What a
// server attached to a call (session.Call.Extra) does go back. In the Responses
// API the items of a reply go back as they came.
package openai

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
)

// Config says which server to ask; a zero optional field means its default.
type Config struct {
	API         string        // chat (Chat Completions, the default) or responses
	BaseURL     string        // up to, but without, /chat/completions or /responses; "" means https://api.openai.com/v1
	APIKey      string        // sent as a bearer token, to that server only; "" sends none
	HTTPClient  *http.Client  // nil means one with the default transport; its redirect policy is not used
	IdleTimeout time.Duration // the longest time without a byte from the server; 0 means 2 minutes
	Compat      Compat        // what a server of Chat Completions wants otherwise
}

const defaultBaseURL = "https://api.openai.com/v1"

// Provider is a model behind a server of one of the two APIs. It may be used by
// several goroutines at once.
type Provider struct {
	client    *wire.Client
	chat      openai.ChatCompletionService
	responses responses.ResponseService
	modern    bool // the Responses API
	own       bool // the server is OpenAI's own
	compat    Compat
}

// New checks cfg and returns a provider. It makes no request.
func New(cfg Config) (*Provider, error) {
	client, err := wire.NewClient(wire.Config{
		API: "openai", BaseURL: cfg.BaseURL, Default: defaultBaseURL, Key: cfg.APIKey, KeyName: "OPENAI_API_KEY",
		HTTPClient: cfg.HTTPClient, IdleTimeout: cfg.IdleTimeout, Advise: advise,
	})
	if err != nil {
		return nil, err
	}
	if cfg.API != "" && cfg.API != "chat" && cfg.API != "responses" {
		return nil, fmt.Errorf("openai: api %q: not one of chat, responses", cfg.API)
	}
	p := &Provider{client: client, modern: cfg.API == "responses", own: hostOf(client.BaseURL) == "api.openai.com"}
	if p.compat, err = cfg.Compat.complete(hostOf(client.BaseURL)); err != nil {
		return nil, err
	}
	options := []option.RequestOption{
		option.WithBaseURL(client.BaseURL),
		option.WithAPIKey(client.Key),
		option.WithHTTPClient(client.HTTP),
		option.WithMaxRetries(0), // retries are the engine's: they must be visible
		option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithMiddleware(client.RefuseStatus),
	}
	p.chat, p.responses = openai.NewChatCompletionService(options...), responses.NewResponseService(options...)
	return p, nil
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Stream sends req and yields deltas until the reply is complete: text and
// reasoning as they come, at the end the calls, then the server's finish reason
// if it gave one. If ctx ends first, the last pair carries context.Cause(ctx).
// Every other error is a *[provider.Error]; calls that were complete before
// the connection broke are yielded before it.
func (p *Provider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if p.modern {
			p.client.Stream(ctx, req, &composer{model: req.Model}, func(ctx context.Context) (resp *http.Response, err error) {
				params, err := encodeResponses(req, p.own)
				if err == nil {
					_, err = p.responses.New(ctx, params, option.WithResponseBodyInto(&resp))
				}
				return resp, err
			}, yield)
			return
		}
		p.client.Stream(ctx, req, p.compat.assembler(req), func(ctx context.Context) (resp *http.Response, err error) {
			params, err := p.compat.encode(req, p.own)
			if err == nil {
				_, err = p.chat.New(ctx, params, option.WithResponseBodyInto(&resp))
			}
			return resp, err
		}, yield)
	}
}
