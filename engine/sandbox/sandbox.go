// Package sandbox confines what a permitted command can do.
//
// [New] checks a [Config]; [Sandbox.Run] runs a command under it, and
// [Sandbox.Start] one that is talked to while it runs. How it is confined is a [Rung], chosen once and kept: bubblewrap with every namespace
// of its own, else Landlock with a system call filter, else nothing runs at all
// ([ErrUnavailable]). Nothing is ever run unconfined because confining failed;
// [Config.None] alone does that, by the user's word.
//
// Under every rung a command sees the workspace, the system's programs and the
// toolchains on PATH, a private temporary folder and home, an environment made
// from nothing, no network but what [Network] opens, no terminal of the user's and no descriptor but its
// three streams; and its whole process tree ends with it.
//
// Whether a command may run is decided before, by package permission. The list
// of paths that must not be written even inside the workspace is here
// ([Protected]), and so is the one door for Wharf's own children ([Trusted]):
// no other package starts processes.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/egress"
)

// Rung names a way to confine a command, of the ladder that is tried from the
// top.
type Rung string

// The rungs.
const (
	Bubblewrap Rung = "bwrap"    // namespaces: all that the profile promises
	Landlock   Rung = "landlock" // weaker: docs/security.md lists what it cannot hold
	Unconfined Rung = "none"     // not confined at all, by the user's word
)

// ErrUnavailable says that a command was not run, since it could not be
// confined. The text of the error says why, and how to change that.
var ErrUnavailable = errors.New("sandbox unavailable")

// Sandbox confines commands in one workspace. It is safe for concurrent use.
type Sandbox struct {
	cfg       Config
	open      openings // of the system call filter
	tools     toolchains
	homes     []string    // real paths of the user's home folders
	workspace os.FileInfo // as it was when the configuration was checked

	bwrapPaths []string   // where bubblewrap is looked for
	landlock   func() int // the kernel's version of Landlock; 0 means none
	probeTime  time.Duration
	looks      time.Duration // between looks at what a command writes
	freeSpace  func(dir string) (device uint64, bytes int64, err error)

	look         sync.Once
	repositories []string // below the workspace, as it was at the first command
	bare         []string // those without a working tree, likewise
	unseen       bool     // there are too many folders to find all of them

	lookout lookout // over the protected paths

	mu        sync.Mutex
	chosen    confiner
	notice    string
	noBwrap   string // why bubblewrap, which is there, does not work
	chooseErr error
}

// Command is a command to confine: either a line for the shell or a program
// with its arguments.
type Command struct {
	Line    string        // run by /bin/sh -c
	Argv    []string      // run as it is; a program without a slash is looked up in the sandbox's PATH
	Dir     string        // inside the workspace, absolute or relative to it; empty means its top
	Stdin   io.Reader     // nil means nothing to read; a Read that blocks when the command ends is left behind
	Stdout  io.Writer     // nil drops it; after an error of Write the rest is dropped
	Stderr  io.Writer     // may be the same as Stdout: Run then writes one piece at a time
	Timeout time.Duration // 0 means 2 minutes
	Profile Profile       // of this command alone; empty means the one of the sandbox

	Input    bool           // its input stays open for [Process.Write]; not together with Stdin
	Network  []egress.Entry // hosts that it may reach besides those of Config.Network, by a person's word
	Terminal Terminal       // its streams are a terminal; implies Input, and Stdout gets all that it prints

	guard *guard
	probe bool                                // of the rung alone: no way to the network is opened
	ended func(Result, error) (Result, error) // is told of the end before anybody else, and may have more to say; may be nil
}

const defaultTimeout = 2 * time.Minute

// Result says how a command ended.
type Result struct {
	ExitCode int           // as a shell tells it: 128+n for a command that signal n ended
	TimedOut bool          // it was ended at its time limit
	Cut      bool          // a writer did not take all output within seconds of the command's end; it may still be written to
	Duration time.Duration // from start to end
	Rung     Rung          // how it was confined
	// Notes says what the sandbox did besides, a sentence each: the limit that a
	// command met, and that what it made under a protected name has been moved away.
	Notes []string
	// Refused guesses what a command that failed was refused; see [Refusal].
	Refused []Refusal
}

// New checks cfg and returns a sandbox for its workspace. Nothing is started:
// the way to confine is chosen at the first command, or when it is asked for.
func New(cfg Config) (*Sandbox, error) {
	homes := homeFolders()
	if err := cfg.check(homes); err != nil {
		return nil, err
	}
	open, err := openingsOf(cfg.Allow)
	if err != nil {
		return nil, fmt.Errorf("configure sandbox: %w", err)
	}
	info, err := os.Lstat(cfg.Workspace)
	if err != nil {
		return nil, err
	}
	f := finder{getenv: os.Getenv, homes: homes, hidden: cfg.Hidden, workspace: cfg.Workspace, cache: cfg.CacheDir, granted: cfg.Write}
	return &Sandbox{
		cfg: cfg, open: open, homes: homes, workspace: info, tools: f.find(cfg.Roots),
		bwrapPaths: bwrapPaths, landlock: landlockVersion, probeTime: 10 * time.Second, looks: time.Second, freeSpace: freeSpace,
	}, nil
}

// complete checks c and fills in what was left out.
func (s *Sandbox) complete(c *Command) error {
	switch {
	case (c.Line == "") == (len(c.Argv) == 0):
		return errors.New("it needs either a line or a program, not both")
	case c.Timeout < 0:
		return fmt.Errorf("the time limit %v is negative: use 0 for the default", c.Timeout)
	case c.Stdin != nil && (c.Input || c.Terminal.shown()):
		return errors.New("its input cannot both come from Stdin and be written: leave Stdin out")
	case c.Terminal.shown() && (c.Terminal.Rows <= 0 || c.Terminal.Columns <= 0 || max(c.Terminal.Rows, c.Terminal.Columns) > maxSide):
		return fmt.Errorf("a terminal of %d rows and %d columns cannot be: both must be from 1 to %d", c.Terminal.Rows, c.Terminal.Columns, maxSide)
	case c.Line != "":
		c.Argv = []string{"/bin/sh", "-c", "--", c.Line}
	case c.Argv[0] == "":
		return errors.New("the program's name is empty")
	}
	for _, a := range c.Argv {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("%q has a zero byte, which no program can be given", a)
		}
	}
	c.Timeout, c.Profile = cmp.Or(c.Timeout, defaultTimeout), cmp.Or(c.Profile, s.cfg.Profile)
	if err := c.Profile.check(); err != nil {
		return err
	}
	return s.resolveDir(c)
}

// resolveDir makes c.Dir a real path inside the workspace, which must still be
// the folder that it was.
func (s *Sandbox) resolveDir(c *Command) error {
	now, err := os.Lstat(s.cfg.Workspace)
	if err != nil {
		return err
	}
	if !os.SameFile(now, s.workspace) {
		return fmt.Errorf("workspace %q was replaced since the session began: start a new one", s.cfg.Workspace)
	}
	dir := c.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.cfg.Workspace, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if !within(real, s.cfg.Workspace) {
		return fmt.Errorf("folder %q lies outside the workspace %q", c.Dir, s.cfg.Workspace)
	}
	c.Dir = real
	return nil
}
