package cli

import (
	"context"
	"os"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/host"
)

// secretConfig says where a secret comes from.
type secretConfig struct {
	Env     string   `toml:"env"`
	File    string   `toml:"file"`
	Command []string `toml:"command"`
}

// newSecrets makes the store of secrets. The key of the model's server is known
// to it from the start.
func newSecrets(cfg config) (*secret.Store, error) {
	sources := map[string]secret.Source{}
	for name, s := range cfg.Secrets {
		sources[name] = secret.Source(s)
	}
	store, err := secret.NewStore(secret.Config{Sources: sources, Run: runSecretCommand})
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	store.Know("OPENAI_API_KEY", os.Getenv("OPENAI_API_KEY"))
	return store, nil
}

// runSecretCommand runs a command of the user's own configuration, which may
// need all of the user's environment.
func runSecretCommand(ctx context.Context, argv []string) ([]byte, error) {
	out, err := sandbox.Trusted(ctx, sandbox.TrustedCommand{Argv: argv, Env: os.Environ()})
	return out.Stdout, err
}

// readSecrets reads the secrets that were granted to an extension, so that they
// are kept out of everything from here on, and says which are not to be had.
func (e *equipment) readSecrets(ctx context.Context, ext *host.Extension, view *progress) {
	for _, s := range ext.Granted.Secrets {
		if _, err := e.secrets.Value(ctx, s.Name); err != nil && ctx.Err() == nil {
			view.notice("extension %q: %v; requests that need it fail", ext.Manifest.Name, err)
		}
	}
}
