// Package openai asks any server that speaks Chat Completions.
//
// openai-go gives the types of a request, authentication and transport. The
// answer is read by our own code (package wire, [assembler]), because servers
// deviate from the protocol in many small ways, and because the SDK's reader
// ends quietly on a cut stream or an HTML page and fails on a comment. What is
// repaired here is the protocol alone: a broken argument text stays as it is,
// and a call that came without an id keeps an empty one.
//
// Reasoning is not sent back: servers disagree on the field, and refuse a wrong
// one. What a server attached to a call (session.Call.Extra) does go back.
package openai

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
)

// Config says which server to ask; a zero optional field means its default.
type Config struct {
	BaseURL     string        // up to, but without, /chat/completions; "" means https://api.openai.com/v1
	APIKey      string        // sent as a bearer token, to that server only; "" sends none
	HTTPClient  *http.Client  // nil means one with the default transport; its redirect policy is not used
	IdleTimeout time.Duration // the longest time without a byte from the server; 0 means 2 minutes
}

const defaultBaseURL = "https://api.openai.com/v1"

// Provider is a model behind a Chat Completions server. It may be used by
// several goroutines at once.
type Provider struct {
	client *wire.Client
	chat   openai.ChatCompletionService
}

// New checks cfg and returns a provider. It makes no request.
func New(cfg Config) (*Provider, error) {
	client, err := wire.NewClient(wire.Config{
		API: "openai", BaseURL: cfg.BaseURL, Default: defaultBaseURL, Key: cfg.APIKey, KeyName: "OPENAI_API_KEY",
		HTTPClient: cfg.HTTPClient, IdleTimeout: cfg.IdleTimeout,
	})
	if err != nil {
		return nil, err
	}
	return &Provider{client: client, chat: openai.NewChatCompletionService(
		option.WithBaseURL(client.BaseURL),
		option.WithAPIKey(client.Key),
		option.WithHTTPClient(client.HTTP),
		option.WithMaxRetries(0), // retries are the engine's: they must be visible
		option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithMiddleware(client.RefuseStatus),
	)}, nil
}

// Stream sends req and yields deltas until the reply is complete: text and
// reasoning as they come, at the end the calls, then the server's finish reason
// if it gave one. If ctx ends first, the last pair carries context.Cause(ctx).
// Every other error is a *[provider.Error]; calls that were complete before
// the connection broke are yielded before it.
func (p *Provider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		p.client.Stream(ctx, req, &assembler{}, func(ctx context.Context) (*http.Response, error) {
			params, err := encode(req)
			if err != nil {
				return nil, err
			}
			var resp *http.Response
			_, err = p.chat.New(ctx, params, option.WithResponseBodyInto(&resp))
			return resp, err
		}, yield)
	}
}
