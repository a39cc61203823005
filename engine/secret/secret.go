// Package secret keeps the user's secrets, and finds their values where they
// must not be.
//
// A [Store] reads a secret when somebody who may have it asks: from the
// environment, a file or a command of the user's. From then on its value is
// known to the Store's [Scanner], which finds it in texts, plain or encoded,
// and puts a mark in its place ([Scanner.Redact]) or names it ([Scanner.Find]).
//
// What the scanner finds is what Wharf itself knows: it guesses nothing, so it
// neither blocks what only looks like a secret nor finds one it was never told.
// Who may use which secret is judged by package capability; the values are put
// into requests by package host, behind all checks.
package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Source says where a secret comes from: one field is set. The zero Source is
// the environment variable of the secret's name.
type Source struct {
	Env     string
	File    string   // absolute
	Command []string // a program and its arguments; what it prints is the value
}

// Config says where secrets come from.
type Config struct {
	Sources   map[string]Source                               // by name; others come from the environment
	LookupEnv func(string) (string, bool)                     // nil is the process's environment
	Run       func(context.Context, []string) ([]byte, error) // runs a command; nil refuses all
}

// The limits of a value.
const (
	minValue       = 8       // bytes: shorter ones stand in innocent texts
	maxValue       = 8 << 10 // bytes
	commandTimeout = 30 * time.Second
)

// Store holds the secrets of one run of Wharf. It is safe for concurrent use.
// A nil Store has none and knows none.
type Store struct {
	cfg     Config
	scanner Scanner

	mu   sync.Mutex // held while a secret is read
	read map[string]string
}

// NewStore returns a Store that has read nothing yet.
func NewStore(cfg Config) (*Store, error) {
	if cfg.LookupEnv == nil {
		cfg.LookupEnv = os.LookupEnv
	}
	for name, s := range cfg.Sources {
		set := 0
		for _, is := range []bool{s.Env != "", s.File != "", len(s.Command) > 0} {
			if is {
				set++
			}
		}
		if set != 1 || !isName(name) {
			return nil, fmt.Errorf("secret %q: it needs a name of letters, digits and _, and one of env, file and command", name)
		}
	}
	return &Store{cfg: cfg, read: map[string]string{}}, nil
}

// Scanner finds the values of the secrets that were read so far.
func (s *Store) Scanner() *Scanner {
	if s == nil {
		return nil
	}
	return &s.scanner
}

// Know makes a value known that Wharf holds already, such as the key of its
// provider. One that is too short to be looked for is left out.
func (s *Store) Know(name, value string) {
	if s != nil && checkValue(value) == nil {
		s.scanner.Add(name, value)
	}
}

// Value returns the value of a secret, which is read once, and known from then
// on. No error holds anything of it.
func (s *Store) Value(ctx context.Context, name string) (string, error) {
	if s == nil {
		return "", fmt.Errorf("secret %q: there are none here", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.read[name]; ok {
		return value, nil
	}
	value, err := s.load(ctx, name)
	if err == nil {
		value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
		err = checkValue(value)
	}
	if err != nil {
		return "", fmt.Errorf("secret %q: %w", name, err)
	}
	s.scanner.Add(name, value)
	s.read[name] = value
	return value, nil
}

func checkValue(value string) error {
	switch {
	case value == "":
		return errors.New("it is empty")
	case len(value) < minValue:
		return fmt.Errorf("it has fewer than %d bytes: too short to be told from other text, so it could not be kept out of logs", minValue)
	case len(value) > maxValue:
		return fmt.Errorf("it has more than %d bytes", maxValue)
	}
	return nil
}

// load gets a value from its source.
func (s *Store) load(ctx context.Context, name string) (string, error) {
	source := s.cfg.Sources[name]
	switch {
	case source.File != "":
		return readFile(source.File)
	case len(source.Command) > 0:
		return s.run(ctx, source.Command)
	case source.Env == "":
		source.Env = name
	}
	value, ok := s.cfg.LookupEnv(source.Env)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set: set it, or say under [secrets.%s] where it comes from", source.Env, name)
	}
	return value, nil
}

// readFile reads a regular file: a pipe could hold us, or give another value to
// each reader.
func readFile(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%q is no regular file", path)
	}
	value, err := io.ReadAll(io.LimitReader(file, maxValue+2))
	return string(value), err
}

// run runs a secret's command. What it says on the way to a failure is not
// passed on: it might be the secret.
func (s *Store) run(ctx context.Context, argv []string) (string, error) {
	if s.cfg.Run == nil {
		return "", errors.New("it comes from a command, and there is nothing here to run one")
	}
	limited, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := s.cfg.Run(limited, argv)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.Err() != nil:
		return "", fmt.Errorf("its command %q did not end within %v", argv[0], commandTimeout)
	case err != nil:
		return "", fmt.Errorf("its command %q did not work: run it by hand to see why", argv[0])
	}
	return string(out), nil
}
