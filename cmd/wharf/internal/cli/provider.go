package cli

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/provider/anthropic"
	"github.com/wharf-agent/wharf/engine/provider/openai"
)

func (o runOptions) newProvider(cfg config) (engine.Provider, error) {
	switch cfg.Provider {
	case "script":
		return o.newScript()
	case "openai":
		return newOpenAI(cfg)
	case "anthropic":
		return newAnthropic(cfg)
	}
	return nil, usagef("provider %q: not one of openai, anthropic, script", cfg.Provider)
}

// server returns where to ask and with what key: the configuration goes before the
// environment, whose variables are those of the provider's own tools.
func (c config) server(name, prefix string) (base, key string, err error) {
	base = c.BaseURL
	if base == "" {
		base = os.Getenv(prefix + "_BASE_URL")
	}
	key = os.Getenv(prefix + "_API_KEY")
	switch {
	case c.Model == "":
		return "", "", usagef("no model was named: add --model NAME, or model = \"NAME\" to the configuration")
	case key == "" && base == "":
		return "", "", usagef("there is no key for %s: set %s_API_KEY, or --base-url for another server; \"wharf demo\" needs neither", name, prefix)
	}
	return base, key, nil
}

// recording is the file of --record.
type recording struct{ *os.File }

// newRecording makes the file. One that is there already is not written over: it
// may be the recording of something else.
func newRecording(path string) (*recording, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, usagef("--record %q: the file is there already: name a new one", path)
	}
	if err != nil {
		return nil, usagef("--record: %w", err)
	}
	return &recording{file}, nil
}

// Write adds a line, whole or not at all: a torn one would spoil the script.
func (r *recording) Write(line []byte) (int, error) {
	before, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	n, err := r.File.Write(line)
	if err != nil {
		err = errors.Join(err, r.Truncate(before))
	}
	return n, err
}

// close closes the file, and removes it if nothing was recorded.
func (r *recording) close() error {
	info, err := r.Stat()
	if err == nil && info.Size() == 0 {
		err = os.Remove(r.Name())
	}
	return errors.Join(err, r.Close())
}

func newOpenAI(cfg config) (engine.Provider, error) {
	base, key, err := cfg.server("OpenAI", "OPENAI")
	if err != nil {
		return nil, err
	}
	p, err := openai.New(openai.Config{
		API: cfg.API, BaseURL: base, APIKey: key, IdleTimeout: time.Duration(cfg.IdleTimeout),
		Compat: openai.Compat{
			SystemRole: cfg.Compat.SystemRole, ToolRole: cfg.Compat.ToolRole, AssistantAfterTool: cfg.Compat.AssistantAfterTool,
			TextCalls:     cfg.Compat.TextCalls,
			NoStreamUsage: cfg.Compat.StreamUsage != nil && !*cfg.Compat.StreamUsage, Reasoning: cfg.Compat.Reasoning,
		},
	})
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return p, nil
}

func newAnthropic(cfg config) (engine.Provider, error) {
	base, key, err := cfg.server("Anthropic", "ANTHROPIC")
	if err != nil {
		return nil, err
	}
	p, err := anthropic.New(anthropic.Config{BaseURL: base, APIKey: key, IdleTimeout: time.Duration(cfg.IdleTimeout)})
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return p, nil
}
