package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTrusted(t *testing.T) {
	dir := t.TempDir()
	out, err := Trusted(t.Context(), TrustedCommand{
		Argv: []string{"/bin/sh", "-c", "pwd; cat; echo $CANARY; echo oops >&2"}, Dir: dir,
		Env: []string{"CANARY=yellow"}, Stdin: strings.NewReader("in\n"),
	})
	if err != nil || string(out.Stdout) != dir+"\nin\nyellow\n" || string(out.Stderr) != "oops\n" {
		t.Errorf("Trusted = %q, %q, %v", out.Stdout, out.Stderr, err)
	}
}

func TestTrustedSaysWhatWentWrong(t *testing.T) {
	tests := []struct {
		name string
		argv []string
		want string
	}{
		{"no program", nil, "run trusted command: no program was given"},
		{
			"another status than 0 carries the last words",
			[]string{"/bin/sh", "-c", "echo no such flag >&2; exit 3"},
			`run "/bin/sh": exit status 3: no such flag`,
		},
		{
			"a program that is not there",
			[]string{"/nonexistent/go"},
			`run "/nonexistent/go": fork/exec /nonexistent/go: no such file or directory`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Trusted(t.Context(), TrustedCommand{Argv: tt.argv}); err == nil || err.Error() != tt.want {
				t.Errorf("Trusted(%q) error = %v; want %q", tt.argv, err, tt.want)
			}
		})
	}
}

func TestTrustedInheritsNoEnvironment(t *testing.T) {
	t.Setenv("WHARF_CANARY", "red")
	out, err := Trusted(t.Context(), TrustedCommand{Argv: []string{"/usr/bin/env"}})
	if err != nil || strings.Contains(string(out.Stdout), "red") {
		t.Errorf("env printed %q, %v; want no canary", out.Stdout, err)
	}
}

func TestTrustedEndsTheGroupOnCancel(t *testing.T) {
	why := errors.New("the user pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	began := time.Now()
	_, err := Trusted(ctx, TrustedCommand{Argv: []string{"/bin/sh", "-c", "sleep 60 & sleep 60"}})
	if !errors.Is(err, why) || time.Since(began) > 10*time.Second {
		t.Errorf("Trusted = %v after %v; want the cause of the cancel, at once", err, time.Since(began))
	}
}
