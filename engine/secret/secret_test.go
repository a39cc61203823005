package secret

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValue(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(write(t, "through-a-link"), link); err != nil {
		t.Fatal(err)
	}
	printing := func(text string, err error) func(context.Context, []string) ([]byte, error) {
		return func(context.Context, []string) ([]byte, error) { return []byte(text), err }
	}
	const short = `error: secret "T": it has fewer than 8 bytes: too short to be told from other text, so it could not be kept out of logs`
	tests := []struct {
		name   string
		source Source
		run    func(context.Context, []string) ([]byte, error)
		want   string
	}{
		{"the variable of its name", Source{}, nil, "from-variable-T"},
		{"another variable", Source{Env: "OTHER"}, nil, "from-variable-OTHER"},
		{"a variable that is not set", Source{Env: "UNSET"}, nil, `error: secret "T": the environment variable UNSET is not set: set it, or say under [secrets.T] where it comes from`},
		{"an empty variable", Source{Env: "EMPTY"}, nil, `error: secret "T": it is empty`},
		{"a file", Source{File: write(t, "from-the-file\n")}, nil, "from-the-file"},
		{"a file through a link", Source{File: link}, nil, "through-a-link"},
		{"one line break is not part of it", Source{File: write(t, "two-breaks\r\n\r\n")}, nil, "two-breaks\r\n"},
		{"a short one", Source{File: write(t, "1234567\n")}, nil, short},
		{"a large one", Source{File: write(t, strings.Repeat("x", 9000))}, nil, `error: secret "T": it has more than 8192 bytes`},
		{"a pipe", Source{File: pipe}, nil, `error: secret "T": "` + pipe + `" is no regular file`},
		{"a folder", Source{File: filepath.Dir(pipe)}, nil, `error: secret "T": "` + filepath.Dir(pipe) + `" is no regular file`},
		{"no file", Source{File: "/nonexistent/x"}, nil, `error: secret "T": open /nonexistent/x: no such file or directory`},
		{"a command", Source{Command: []string{"pass", "show"}}, printing("from-a-command\n", nil), "from-a-command"},
		{"a command that fails", Source{Command: []string{"pass"}}, printing("", errors.New("it was hunter22hunter22")), `error: secret "T": its command "pass" did not work: run it by hand to see why`},
		{"a command, and nothing to run it", Source{Command: []string{"pass"}}, nil, `error: secret "T": it comes from a command, and there is nothing here to run one`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Run: tt.run, LookupEnv: func(name string) (string, bool) {
				switch name {
				case "UNSET":
					return "", false
				case "EMPTY":
					return "", true
				}
				return "from-variable-" + name, true
			}}
			if tt.source.Env != "" || tt.source.File != "" || tt.source.Command != nil {
				cfg.Sources = map[string]Source{"T": tt.source}
			}
			s, err := NewStore(cfg)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Value(t.Context(), "T")
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want {
				t.Errorf("Value = %q; want %q", got, tt.want)
			}
			if s.Scanner().Knows() != (err == nil) || err == nil && !holds(s.Scanner(), "x"+tt.want) {
				t.Error("what was read is not known, or something else is")
			}
		})
	}
}

func TestValueIsReadOnce(t *testing.T) {
	runs := 0
	s, err := NewStore(Config{
		Sources: map[string]Source{"T": {Command: []string{"pass", "show", "x"}}},
		Run: func(_ context.Context, argv []string) ([]byte, error) {
			if runs++; runs == 1 {
				return nil, errors.New("locked")
			}
			if !slices.Equal(argv, []string{"pass", "show", "x"}) {
				t.Errorf("ran %q", argv)
			}
			return []byte("opened-at-last"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Value(t.Context(), "T"); err == nil {
		t.Error("a command that fails gives a value")
	}
	for range 3 {
		if got, err := s.Value(t.Context(), "T"); got != "opened-at-last" || err != nil {
			t.Errorf("Value = %q, %v", got, err)
		}
	}
	if runs != 2 {
		t.Errorf("the command ran %d times; want 2: once in vain", runs)
	}
}

// A command has its time, and ends with whoever asked.
func TestCommandEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewStore(Config{
			Sources: map[string]Source{"T": {Command: []string{"pass"}}},
			Run: func(ctx context.Context, _ []string) ([]byte, error) {
				<-ctx.Done()
				return []byte("half-of-the-value"), ctx.Err()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Value(t.Context(), "T")
		if want := `secret "T": its command "pass" did not end within 30s`; err == nil || err.Error() != want {
			t.Errorf("Value = %v; want %s", err, want)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if _, err = s.Value(ctx, "T"); err == nil || err.Error() != `secret "T": enough` {
			t.Errorf("Value = %v", err)
		}
	})
}

func TestConfigMistakes(t *testing.T) {
	for name, source := range map[string]Source{
		"T":      {},
		"U":      {Env: "A", File: "/x"},
		"V":      {File: "/x", Command: []string{"x"}},
		"a name": {Env: "A"},
		"":       {Env: "A"},
	} {
		want := `secret "` + name + `": it needs a name of letters, digits and _, and one of env, file and command`
		if _, err := NewStore(Config{Sources: map[string]Source{name: source}}); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", name, err, want)
		}
	}
}

func TestKnow(t *testing.T) {
	s, err := NewStore(Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Know("KEY", "test")
	if s.Scanner().Knows() {
		t.Error("a short key is looked for")
	}
	s.Know("KEY", "sk-0123456789")
	if got, _ := s.Scanner().Redact("sk-0123456789!"); got != "[redacted:KEY]!" {
		t.Errorf("Redact = %q", got)
	}
	var none *Store
	if _, err := none.Value(t.Context(), "T"); err == nil || none.Scanner().Knows() {
		t.Error("a nil Store has something")
	}
	none.Know("KEY", "sk-0123456789")
}
