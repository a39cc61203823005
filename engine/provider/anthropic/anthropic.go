// Package anthropic asks any server that speaks Anthropic's Messages API.
//
// anthropic-sdk-go gives the types of a request, authentication and transport.
// The event stream is read by package wire, as for the other APIs: the SDK's
// reader, too, ends quietly where a stream is cut off. Thinking, its signatures
// and what tools of the server's own left behind go back to the model that they
// came from as they came, in their order (wire.Layout).
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
)

// Config says which server to ask; a zero optional field means its default.
type Config struct {
	BaseURL     string        // up to, but without, /v1/messages; "" means https://api.anthropic.com
	APIKey      string        // sent as x-api-key, to that server only; "" sends none
	HTTPClient  *http.Client  // nil means one with the default transport; its redirect policy is not used
	IdleTimeout time.Duration // the longest time without a byte from the server; 0 means 2 minutes
}

const defaultBaseURL = "https://api.anthropic.com"

// DefaultMaxTokens is the limit of a reply where the parameters name none: the
// API wants one.
const DefaultMaxTokens = 8192

// Provider is a model behind a Messages server. It may be used by several
// goroutines at once.
type Provider struct {
	client   *wire.Client
	messages anthropic.MessageService
}

// New checks cfg and returns a provider. It makes no request.
func New(cfg Config) (*Provider, error) {
	client, err := wire.NewClient(wire.Config{
		API: "anthropic", BaseURL: cfg.BaseURL, Default: defaultBaseURL, Key: cfg.APIKey, KeyName: "ANTHROPIC_API_KEY",
		HTTPClient: cfg.HTTPClient, IdleTimeout: cfg.IdleTimeout,
	})
	if err != nil {
		return nil, err
	}
	options := []option.RequestOption{
		option.WithBaseURL(client.BaseURL),
		option.WithHTTPClient(client.HTTP),
		option.WithMaxRetries(0), // retries are the engine's: they must be visible
		option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithMiddleware(client.RefuseStatus),
	}
	if client.Key != "" {
		options = append(options, option.WithAPIKey(client.Key))
	}
	return &Provider{client: client, messages: anthropic.NewMessageService(options...)}, nil
}

// Stream sends req and yields deltas until the reply is complete: text and
// reasoning as they come, at the end the calls, what goes back with the reply,
// and why it is over. If ctx ends first, the last pair carries
// context.Cause(ctx). Every other error is a *[provider.Error]; calls that were
// complete before the connection broke are yielded before it.
func (p *Provider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		p.client.Stream(ctx, req, &assembler{model: req.Model}, func(ctx context.Context) (*http.Response, error) {
			params, err := encode(req)
			if err != nil {
				return nil, err
			}
			var resp *http.Response
			stream := p.messages.NewStreaming(ctx, params, option.WithResponseInto(&resp))
			return resp, stream.Err()
		}, yield)
	}
}
