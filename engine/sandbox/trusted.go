package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// TrustedCommand is one of Wharf's own children: a compiler that builds an
// extension, Wharf itself compiling a guest, a command that the user's own
// configuration names for a secret. Never a line that a model, a guest or a
// workspace had a say in.
type TrustedCommand struct {
	Argv  []string  // the program, looked up in PATH if it has no slash, and its arguments
	Dir   string    // empty means Wharf's own working directory
	Env   []string  // the whole environment; nil means an empty one
	Stdin io.Reader // nil means nothing to read
}

// Output is what a trusted command printed, each stream up to 8 MiB.
type Output struct{ Stdout, Stderr []byte }

const trustedOutput = 8 << 20

// Trusted runs c unconfined, in a process group of its own, and waits for it.
// It is the one door for children that are not confined. A command that cannot
// be started or ends with another status than 0 is an error that holds the end
// of what it printed on stderr; when ctx ends, the whole group is killed and
// the error is ctx's cause.
func Trusted(ctx context.Context, c TrustedCommand) (Output, error) {
	if len(c.Argv) == 0 {
		return Output{}, errors.New("run trusted command: no program was given")
	}
	if ctx.Err() != nil {
		return Output{}, context.Cause(ctx)
	}
	stdout, stderr := &keepFirst{left: trustedOutput}, &keepFirst{left: trustedOutput}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, append([]string{}, c.Env...), c.Stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second // a child that left the group must not hold us by our pipes
	err := cmd.Run()
	out := Output{Stdout: stdout.kept, Stderr: stderr.kept}
	switch {
	case err != nil && ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil:
		return out, fmt.Errorf("run %q: %w%s", c.Argv[0], err, lastWords(out.Stderr))
	}
	return out, nil
}

// lastWords returns the end of what a failed command said, for its error.
func lastWords(stderr []byte) string {
	text := strings.TrimSpace(string(stderr))
	if text == "" {
		return ""
	}
	const most = 2000
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return ": " + text
}

// keepFirst keeps the first bytes written to it and swallows the rest.
type keepFirst struct {
	mu   sync.Mutex
	kept []byte
	left int
}

func (k *keepFirst) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(len(p), k.left)
	k.kept = append(k.kept, p[:n]...)
	k.left -= n
	return len(p), nil
}
