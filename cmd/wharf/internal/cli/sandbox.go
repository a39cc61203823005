package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

func sandboxCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "sandbox: ", []command{
		{"run", "[flags] -- CMD…", "run a command as the model's are", sandboxRun},
		{"explain", "[flags]", "what such a command would see and may do", sandboxExplain},
	}, args)
}

// sandboxFlags are the flags that the sandbox commands share with run.
func sandboxFlags(name string, o *runOptions) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetNormalizeFunc(alsoNamed("sandbox", "profile"))
	f.StringVar(&o.profile, "profile", "", "read-only, workspace-write (the default) or full-access")
	f.StringArrayVar(&o.read, "read", nil, "let it read the file or folder `PATH` too; repeatable")
	f.StringArrayVar(&o.write, "write", nil, "let it change the file or folder `PATH` too; repeatable")
	f.StringVarP(&o.dir, "directory", "C", "", "the workspace; this folder if absent")
	f.StringVar(&o.configFile, "config", "", "read the configuration from `FILE` instead of the user's")
	addTrustFlag(f, &o.trust)
	f.StringArrayVar(&o.sets, "set", nil, "set a configuration `key=value` (a TOML value); repeatable")
	return f
}

// alsoNamed has a flag be found by the name that it has in another command too.
func alsoNamed(other, name string) func(*pflag.FlagSet, string) pflag.NormalizedName {
	return func(_ *pflag.FlagSet, given string) pflag.NormalizedName {
		if given == other {
			given = name
		}
		return pflag.NormalizedName(given)
	}
}

// openSandbox returns the sandbox that wharf run would use.
func (o runOptions) openSandbox(io stdio) (*sandbox.Sandbox, error) {
	f, err := findFolders()
	if err != nil {
		return nil, err
	}
	view := newProgress(io.err, false)
	workspace, _, err := o.workspace(f, view)
	if err != nil {
		return nil, err
	}
	cfg, notices, err := o.config(f, workspace)
	if err != nil {
		return nil, err
	}
	for _, notice := range notices {
		view.notice("%s", notice)
	}
	return newSandbox(cfg, f, workspace, workspace, false, nil)
}

// sandboxRun runs a command confined, with this process's streams, and ends
// with the command's status.
func sandboxRun(ctx context.Context, io stdio, args []string) error {
	var o runOptions
	f := sandboxFlags("sandbox run", &o)
	addNetworkFlag(f, &o.allowNet)
	timeout := f.Duration("timeout", 0, "end the command after this time (default 2m)")
	f.SetInterspersed(false) // what follows the command is the command's
	if err := parse(io, f, "sandbox run [flags] -- CMD…\n\nWhat CMD prints is passed on as it is, escape sequences for the terminal too.", args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return usagef("sandbox run: there is no command: wharf sandbox run -- CMD…")
	}
	box, err := o.openSandbox(io)
	if err != nil {
		return err
	}
	result, err := box.Run(ctx, sandbox.Command{
		Argv: f.Args(), Stdin: io.in, Stdout: io.out, Stderr: io.err, Timeout: *timeout,
	})
	if notice := box.Notice(); notice != "" {
		fmt.Fprintf(io.err, "wharf: %s\n", notice)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(io.err, "wharf: %s\n", printable(note))
	}
	for _, refused := range result.Refused {
		fmt.Fprintf(io.err, "wharf: %s\n", printable(refused.String()))
	}
	switch {
	case ctx.Err() != nil:
		return exitError{status("cancelled", context.Cause(ctx)), context.Cause(ctx)}
	case err != nil:
		return err
	case result.TimedOut:
		return fmt.Errorf("the command was ended after its time limit (%v): raise it with --timeout", result.Duration.Round(time.Second))
	case result.ExitCode != 0:
		return exitError{code: result.ExitCode}
	}
	return nil
}

func sandboxExplain(ctx context.Context, io stdio, args []string) error {
	var o runOptions
	f := sandboxFlags("sandbox explain", &o)
	addNetworkFlag(f, &o.allowNet)
	if err := parse(io, f, "sandbox explain [flags]", args); err != nil {
		return err
	}
	box, err := o.openSandbox(io)
	if err != nil {
		return err
	}
	fmt.Fprint(io.out, printable(box.Explain(ctx)))
	return nil
}
