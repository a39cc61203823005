// Package cli is the command line: commands, flags and configuration, and the
// wiring of everything else. It is the only package that prints.
//
// Each command is a function from its arguments to an error; [Main] turns the
// error into a line on standard error and an exit status.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host"
)

// version is Wharf's own.
const version = "0.1.0"

// Exit statuses (DESIGN section 10).
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitLimit   = 3
	exitBlocked = 4
	exitHUP     = 129
	exitINT     = 130
	exitTERM    = 143
)

// command is one verb of the command line.
type command struct {
	name  string
	args  string
	short string
	run   func(ctx context.Context, io stdio, args []string) error
}

// stdio is what a command talks to.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

func commands() []command {
	return []command{
		{"run", "[flags] PROMPT|-", "give the agent a job; - reads it from standard input", runCommand},
		{"chat", "[flags]", "talk with the agent, a turn for each line", chatCommand},
		{"demo", "", "watch the main job, without a key and without a network", demoCommand},
		{"session", "list|show|resume|fork|…", "look at what happened, check it, go on with it", sessionCommand},
		{"permissions", "list|explain", "the rules about what the model may do, and what they say", permissionsCommand},
		{"sandbox", "run|explain", "run a command confined, or see how it would be", sandboxCommand},
		{"ext", "new|build|test|install|list|…", "make extensions, look at them, install them", extCommand},
		{"doctor", "", "see what works on this machine", doctorCommand},
		{"version", "", "print the version", versionCommand},
	}
}

// Main runs the command line of this process and returns its exit status.
func Main() int {
	sandbox.Init()
	host.Init()
	log.SetOutput(io.Discard) // net/http quotes there what servers say, which may be a secret that they were sent
	ctx, stop := notifyContext()
	defer stop()
	err := dispatch(ctx, stdio{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
	if err == nil {
		return exitOK
	}
	var status exitError
	if errors.As(err, &status) {
		if status.err != nil {
			fmt.Fprintf(os.Stderr, "wharf: %v\n", printable(status.err.Error()))
		}
		return status.code
	}
	fmt.Fprintf(os.Stderr, "wharf: %v\n", printable(err.Error()))
	if s, ok := errors.AsType[signalled](err); ok {
		return signalStatus(s.Signal)
	}
	return exitFailed
}

// exitError is an error with an exit status of its own. Without a cause,
// everything has been said already.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// usagef is a mistake in the command line or the configuration.
func usagef(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

// signalled is the cause of a context that a signal ended.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return "ended by the signal " + s.String() }

// notifyContext returns a context that the first SIGINT, SIGTERM or SIGHUP (the
// terminal is gone) ends. A
// second one ends the process at once; what it runs dies with it. SIGINT is
// otherwise once a command has taken it by takeInterrupts.
func notifyContext() (context.Context, func()) {
	taken := make(chan chan<- os.Signal, 1)
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), interruptsKey{}, taken))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		var interrupts chan<- os.Signal
		var began time.Time // of the end
		for {
			select {
			case interrupts = <-taken:
			case s := <-signals:
				if s == syscall.SIGINT && interrupts != nil {
					select {
					case interrupts <- s:
					default: // nobody minds so many
					}
					continue
				}
				if began.IsZero() {
					began = time.Now()
					cancel(signalled{s})
				} else if time.Since(began) > meant {
					os.Exit(signalStatus(s))
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// meant is how long after a first signal another one is a second wish: timeout(1)
// sends its signal to the process and to its group, and a shell may, too.
const meant = 250 * time.Millisecond

type interruptsKey struct{}

// takeInterrupts has SIGINT come out of the channel from now on, and end nothing. Who
// does so reads from it for as long as the process lives.
func takeInterrupts(ctx context.Context) <-chan os.Signal {
	interrupts := make(chan os.Signal, 8)
	if taken, ok := ctx.Value(interruptsKey{}).(chan chan<- os.Signal); ok {
		taken <- interrupts
	}
	return interrupts
}

func signalStatus(s os.Signal) int {
	switch s {
	case syscall.SIGTERM:
		return exitTERM
	case syscall.SIGHUP:
		return exitHUP
	}
	return exitINT
}

func dispatch(ctx context.Context, io stdio, args []string) error {
	if len(args) == 0 {
		usage(io.err)
		return exitError{code: exitUsage}
	}
	switch args[0] {
	case "help", "-h", "--help":
		if len(args) > 1 {
			return dispatch(ctx, io, append(args[1:], "--help"))
		}
		usage(io.out)
		return nil
	case "--version":
		return versionCommand(ctx, io, nil)
	}
	return choose(ctx, io, "", commands(), args)
}

// choose runs the command that args names.
func choose(ctx context.Context, io stdio, prefix string, list []command, args []string) error {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.name
	}
	if len(args) == 0 {
		return usagef("%swhich one? %s", prefix, strings.Join(names, ", "))
	}
	i := slices.Index(names, args[0])
	if i < 0 && slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		group := strings.TrimSuffix(prefix, ": ")
		fmt.Fprintf(io.out, "Usage:\n")
		printCommands(io.out, group+" ", list)
		fmt.Fprintf(io.out, "\n\"wharf %s COMMAND --help\" lists a command's flags.\n", group)
		return nil
	}
	if i < 0 {
		return usagef("%sunknown command %q%s: see \"wharf help\"", prefix, args[0], didYouMean(args[0], names))
	}
	return list[i].run(ctx, io, args[1:])
}

// didYouMean names what name may be a misspelling of.
func didYouMean(name string, known []string) string {
	if near := tool.Nearest(name, known); len(near) > 0 {
		return fmt.Sprintf(", did you mean %s?", strings.Join(near, " or "))
	}
	return ""
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Wharf runs AI agents whose every effect is confined and on record.\n\nUsage:\n")
	printCommands(w, "", commands())
	fmt.Fprint(w, "\n\"wharf COMMAND --help\" lists a command's flags.\n")
}

// printCommands prints a line for each command: its arguments, and what it does.
func printCommands(w io.Writer, prefix string, list []command) {
	for _, c := range list {
		fmt.Fprintf(w, "  wharf %-42s %s\n", strings.TrimSpace(prefix+c.name+" "+c.args), c.short)
	}
}

// parse parses a command's flags. Asked for help, it prints that and returns
// an error that ends the command with success.
func parse(io stdio, flags *pflag.FlagSet, synopsis string, args []string) error {
	flags.SetOutput(io.err)
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(io.out, "Usage: wharf %s\n\n%s", synopsis, flags.FlagUsages())
		return exitError{code: exitOK}
	}
	if err != nil {
		return usagef("%s: %w: see \"wharf %s --help\"", flags.Name(), err, flags.Name())
	}
	flags.Visit(func(f *pflag.Flag) { // most likely a shell variable that is not set: the default is not what was meant
		if f.Value.Type() == "string" && f.Value.String() == "" {
			err = usagef("%s: --%s is empty: name something, or leave it out", flags.Name(), f.Name)
		}
	})
	return err
}

func versionCommand(_ context.Context, io stdio, _ []string) error {
	fmt.Fprintln(io.out, "wharf", version)
	return nil
}
