package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkGranted refuses files and folders of Config.Read and Config.Write that
// could not be meant, or that commands could exchange for something else.
func (c *Config) checkGranted(homes []string) error {
	for _, path := range c.Read {
		if err := c.grantable(path, homes); err != nil {
			return fmt.Errorf("read %q: %w", path, err)
		}
	}
	for i, path := range c.Write {
		if err := c.grantable(path, homes); err != nil {
			return fmt.Errorf("write %q: %w", path, err)
		}
		if pattern, protected := Protected(strings.TrimPrefix(path, "/"), false); protected {
			return fmt.Errorf("write %q: it is protected, as %q: what is written there acts outside the sandbox", path, pattern)
		}
		if within(path, "/usr") {
			return fmt.Errorf("write %q: programs of the system are in it: choose a folder of your own", path)
		}
		for _, other := range slices.Concat([]string{c.Workspace}, c.Write[:i], c.Read) {
			below := within(path, other) && !slices.Contains(c.Read, other) // what is only read cannot be exchanged
			if below || within(other, path) {
				return fmt.Errorf("write %q: it overlaps %q: choose folders apart from each other", path, other)
			}
		}
	}
	return nil
}

// grantable says why commands cannot be given path.
func (c *Config) grantable(path string, homes []string) error {
	if !filepath.IsAbs(path) {
		return errors.New("it is not absolute: name the whole path")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if real != path {
		return fmt.Errorf("it is reached through a symbolic link or a detour: use %q", real)
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return errors.Join(err, errors.New("it is neither a file nor a folder"))
	}
	if tooWide(path, homes) || slices.ContainsFunc(kernelFolders, func(k string) bool { return within(path, k) }) {
		return errors.New("it is a home or system folder, or holds one, or lies in one of the kernel's: choose a narrower one")
	}
	for _, h := range c.Hidden {
		if within(path, h) || within(h, path) {
			return fmt.Errorf("it overlaps %q, which must stay hidden: choose a folder apart from it", h)
		}
	}
	if within(path, c.Workspace) {
		return errors.New("it lies in the workspace, which is there anyway: leave it out")
	}
	if c.CacheDir != "" && (within(path, c.CacheDir) || within(c.CacheDir, path) || within(path, insideCache)) {
		return errors.New("it overlaps the cache folder, which is writable for commands: choose a folder apart from it")
	}
	return nil
}

// writable returns the folders that commands may write: the workspace and what
// was granted besides.
func (s *Sandbox) writable() []string {
	all := []string{s.cfg.Workspace}
	for _, path := range s.cfg.Write {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			all = append(all, path)
		}
	}
	return all
}
