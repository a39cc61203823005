package cli

import (
	"context"
	"slices"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/tool/builtin"
)

// searchConfig says who searches the web.
type searchConfig struct {
	Provider string `toml:"provider"` // searxng or brave
	URL      string `toml:"url"`
	Key      string `toml:"key"` // the name of a secret
}

// check says what is wrong with it.
func (c searchConfig) check() error {
	if !slices.Contains([]string{"", "searxng", "brave"}, c.Provider) {
		return usagef("web_search.provider %q: not one of searxng, brave", c.Provider)
	}
	switch {
	case c.Provider == "" && c != searchConfig{}:
		return usagef("web_search: it has no provider: set it to searxng or brave")
	case c.Provider == "searxng" && c.URL == "":
		return usagef("web_search: searxng needs a url, that of your server")
	case c.Provider == "brave" && c.Key == "":
		return usagef("web_search: brave needs a key, the name of a secret or environment variable")
	case c.URL == "":
		return nil
	}
	if _, err := egress.ParseURL(c.URL); err != nil {
		return usagef("web_search.url %q: %w", c.URL, err)
	}
	return nil
}

// web returns how the web tools reach the network. The addresses that are open to commands
// are open to them.
func (e *equipment) web(ctx context.Context, cfg config, view *progress) builtin.Web {
	c := cfg.WebSearch
	client := egress.NewClient(egress.ClientConfig{MaxBody: 5 << 20})
	e.closes = append(e.closes, client.Close)
	w := builtin.Web{
		Client: client, Open: cfg.hosts, Search: builtin.Search{Provider: c.Provider, URL: c.URL},
		Audit: e.journal.checked,
		Leaks: func(text string) (string, bool) { return e.secrets.Scanner().Find(text) },
	}
	if c.Key == "" {
		return w
	}
	w.Search.Key = func(ctx context.Context) (string, error) { return e.secrets.Value(ctx, c.Key) }
	if _, err := w.Search.Key(ctx); err != nil && ctx.Err() == nil { // from here on it is kept out of everything
		view.notice("web_search: %v; searching fails", err)
	}
	return w
}
