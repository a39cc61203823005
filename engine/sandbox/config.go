package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// Profile says what a command may do to the workspace.
type Profile string

// The profiles.
const (
	ReadOnly       Profile = "read-only"       // looks at the workspace, changes nothing in it
	WorkspaceWrite Profile = "workspace-write" // changes the workspace, and nothing else
	FullAccess     Profile = "full-access"     // changes what its user can, and has the host's network; a person allows each command
)

// Config says how commands are confined; a zero optional field means its
// default.
type Config struct {
	Profile   Profile  // empty means WorkspaceWrite
	Workspace string   // required: an absolute path of a folder, free of links; no home or system folder, nor one that holds such
	CacheDir  string   // folder of the host, private to this workspace, that keeps Go's, npm's and pip's caches between runs; created if missing; empty keeps none
	Roots     []string // further folders that commands may read and execute: toolchains outside /usr that are not on PATH
	Read      []string // files and folders that commands may read besides: absolute paths, free of links
	Write     []string // and those that they may change, not under the profile read-only; protected names hold in them too
	Hidden    []string // folders that are never visible, such as Wharf's own state and configuration
	Require   Rung     // Bubblewrap refuses to fall back to Landlock; empty takes what there is
	VCS       string   // "readonly" keeps commands from changing anything in .git; empty protects what git runs and reads
	Allow     []string // system calls that are refused otherwise: AllowUnixSockets, AllowPtrace
	Limits    Limits   // what a command may use of the machine
	Network   Network  // the hosts that commands may reach; zero is none
	None      bool     // run commands unconfined: the user's word, never a fallback
}

// What Config.Allow opens, each at a price: a program that may be talked to by a
// socket in the workspace, or a process that reads another one's memory.
const (
	AllowUnixSockets = "unix-sockets"
	AllowPtrace      = "ptrace"
)

// VCSReadOnly is the other value of Config.VCS.
const VCSReadOnly = "readonly"

// openingsOf returns what words of Config.Allow open.
func openingsOf(words []string) (open openings, err error) {
	for _, word := range words {
		switch word {
		case AllowUnixSockets:
			open.UnixSockets = true
		case AllowPtrace:
			open.Ptrace = true
		default:
			return open, fmt.Errorf("cannot allow %q: use %q or %q", word, AllowUnixSockets, AllowPtrace)
		}
	}
	return open, nil
}

// systemFolders are never a workspace themselves; nor is what holds one.
var systemFolders = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run",
	"/sbin", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/include", "/usr/lib", "/usr/local", "/usr/local/bin",
	"/usr/sbin", "/usr/share", "/var", "/var/lib", "/var/tmp",
}

// kernelFolders are never a workspace, and neither is anything in them.
var kernelFolders = []string{"/boot", "/dev", "/etc", "/proc", "/sys"}

// check refuses a configuration that could not be meant, and fills in what
// was left out.
func (c *Config) check(homes []string) error {
	c.Profile = cmp.Or(c.Profile, WorkspaceWrite)
	if err := c.Profile.check(); err != nil {
		return fmt.Errorf("configure sandbox: %w", err)
	}
	if c.Require != "" && c.Require != Bubblewrap {
		return fmt.Errorf("configure sandbox: cannot require %q: only %q can be", c.Require, Bubblewrap)
	}
	if c.VCS != "" && c.VCS != VCSReadOnly {
		return fmt.Errorf("configure sandbox: unknown vcs %q: use %q or leave it out", c.VCS, VCSReadOnly)
	}
	if err := c.Limits.check(); err != nil {
		return fmt.Errorf("configure sandbox: limits: %w", err)
	}
	c.Hidden = realPaths(c.Hidden)
	if err := checkWorkspace(c.Workspace, homes, c.Hidden); err != nil {
		return fmt.Errorf("configure sandbox: workspace %q: %w", c.Workspace, err)
	}
	if c.CacheDir != "" {
		if err := c.makeCache(homes); err != nil {
			return fmt.Errorf("configure sandbox: cache folder %q: %w", c.CacheDir, err)
		}
	}
	if err := c.checkGranted(homes); err != nil {
		return fmt.Errorf("configure sandbox: %w", err)
	}
	return nil
}

// check refuses a profile that there is not.
func (p Profile) check() error {
	switch p {
	case ReadOnly, WorkspaceWrite, FullAccess:
		return nil
	}
	return fmt.Errorf("unknown profile %q: use %q, %q or %q", p, ReadOnly, WorkspaceWrite, FullAccess)
}

// checkWorkspace says why dir cannot be a workspace.
func checkWorkspace(dir string, homes, hidden []string) error {
	if err := checkFolder(dir); err != nil {
		return err
	}
	if tooWide(dir, homes) || slices.ContainsFunc(kernelFolders, func(k string) bool { return within(dir, k) }) {
		return errors.New("it is a home or system folder, or holds one: choose a project's own folder")
	}
	for _, h := range hidden {
		if within(dir, h) || within(h, dir) {
			return fmt.Errorf("it overlaps %q, which must stay hidden: choose a folder apart from it", h)
		}
	}
	return nil
}

// makeCache creates the cache folder, for its owner alone.
func (c *Config) makeCache(homes []string) error {
	if !filepath.IsAbs(c.CacheDir) {
		return errors.New("it is not absolute: name the whole path")
	}
	if dir := filepath.Clean(c.CacheDir); tooWide(dir, homes) || within(dir, c.Workspace) || within(c.Workspace, dir) {
		return errors.New("it is writable for commands: choose a folder of its own, apart from the workspace")
	}
	if err := os.MkdirAll(c.CacheDir, 0o700); err != nil {
		return err
	}
	if err := checkFolder(c.CacheDir); err != nil {
		return err
	}
	return os.Chmod(c.CacheDir, 0o700) // commands can change that
}

// checkFolder says why dir is not the real path of a folder.
func checkFolder(dir string) error {
	if !filepath.IsAbs(dir) {
		return errors.New("it is not absolute: name the whole path")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if real != dir {
		return fmt.Errorf("it is reached through a symbolic link or a detour: use %q", real)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("it is not a folder")
	}
	return nil
}

// tooWide reports whether dir is the root, a home or a system folder, or holds
// one of these.
func tooWide(dir string, homes []string) bool {
	if filepath.Dir(dir) == "/home" {
		return true
	}
	holds := func(p string) bool { return within(p, dir) }
	return slices.ContainsFunc(homes, holds) || slices.ContainsFunc(systemFolders, holds)
}

// within reports whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// homeFolders returns the real paths of the home folders of the user who runs
// Wharf, by the environment and by the system's own account.
func homeFolders() []string {
	homes := []string{"/root"}
	if h := os.Getenv("HOME"); filepath.IsAbs(h) {
		homes = append(homes, h)
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		homes = append(homes, u.HomeDir)
	}
	return slices.DeleteFunc(realPaths(homes), func(h string) bool { return h == "/" })
}

// realPaths cleans paths and resolves their links; one that cannot be resolved
// stays as it was written. Each appears once.
func realPaths(paths []string) []string {
	var all []string
	for _, p := range paths {
		p = filepath.Clean(p)
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
