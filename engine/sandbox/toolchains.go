package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secrets are places in a home folder that no command ever sees, whatever a
// toolchain's folder may be.
var secrets = []string{
	".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".config", ".netrc", ".npmrc", ".pypirc",
	".git-credentials", ".password-store", ".mozilla", ".thunderbird", ".pki", ".local/share/keyrings",
	".cargo/credentials", ".cargo/credentials.toml", ".terraform.d", ".gem/credentials", ".m2/settings.xml",
}

// managers are folders of version managers: a program in one of their folders
// on PATH needs the rest of it.
var managers = []string{
	".asdf", ".bun", ".deno", ".goenv", ".local/share/fnm", ".local/share/mise", ".nodenv", ".nvm", ".pyenv",
	".rbenv", ".sdkman", ".volta", "sdk",
}

// systemPath is searched after what the caller's PATH names.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// toolchains is what a command gets of programs outside the system's folders.
type toolchains struct {
	roots    []string // real paths of folders to be read and executed
	path     []string // PATH in the sandbox
	modCache string   // the user's Go module cache, one of roots; empty if there is none
}

// finder looks for toolchains, by the caller's environment. Its paths are real.
type finder struct {
	getenv    func(string) string
	homes     []string
	hidden    []string
	workspace string
	cache     string   // of the workspace, writable too; empty if there is none
	granted   []string // what is writable besides
}

// find returns the toolchains of the caller's PATH and those configured.
func (f finder) find(configured []string) toolchains {
	var t toolchains
	entries := f.pathEntries()
	var candidates []string
	for _, dir := range configured {
		candidates = append(candidates, f.resolve(dir))
	}
	for _, dir := range entries {
		candidates = append(candidates, f.rootOf(dir), f.goRoot(dir))
	}
	t.modCache = f.moduleCache()
	for _, dir := range append(candidates, t.modCache) {
		if f.usable(dir) && !slices.ContainsFunc(t.roots, func(r string) bool { return within(dir, r) }) {
			t.roots = append(t.roots, dir)
		}
	}
	seen := func(dir string) bool {
		return f.inWorkspace(dir) || slices.ContainsFunc(t.roots, func(r string) bool { return within(dir, r) })
	}
	if !seen(t.modCache) {
		t.modCache = ""
	}
	for _, dir := range append(entries, systemPath...) {
		visible := seen(dir) || within(dir, "/usr") || slices.Contains(systemPath, dir)
		if visible && !slices.Contains(t.path, dir) {
			t.path = append(t.path, dir)
		}
	}
	return t
}

// pathEntries returns the folders of the caller's PATH, by their real paths.
func (f finder) pathEntries() []string {
	var entries []string
	for _, dir := range filepath.SplitList(f.getenv("PATH")) {
		if real := f.resolve(dir); real != "" && !slices.Contains(entries, real) {
			entries = append(entries, real)
		}
	}
	return entries
}

// resolve returns the real path behind an absolute path. It is empty if the way
// leads through a folder that commands can write and out of it again: an
// earlier command may have put the link there, to be shown what it leads to.
func (f finder) resolve(name string) string {
	if !filepath.IsAbs(name) {
		return ""
	}
	done, todo, writable := "/", strings.Split(filepath.Clean(name), "/"), false
	for links := 0; len(todo) > 0; {
		next := filepath.Join(done, todo[0])
		todo = todo[1:]
		writable = writable || f.writable(next)
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing at all
			done = next
			continue
		}
		if links++; links > maxLinks {
			return ""
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	if writable && !f.writable(done) {
		return ""
	}
	return done
}

// writable reports whether commands can write what is at a real path.
func (f finder) writable(path string) bool {
	return f.inWorkspace(path) || f.cache != "" && within(path, f.cache) ||
		slices.ContainsFunc(f.granted, func(dir string) bool { return within(path, dir) })
}

func (f finder) inWorkspace(path string) bool {
	return f.workspace != "" && within(path, f.workspace)
}

// rootOf returns the folder that programs in dir, an entry of PATH, need: the
// version manager's or the package's whole folder, else dir alone. It is empty
// where dir is neither under a home folder nor under /opt.
func (f finder) rootOf(dir string) string {
	if rest, ok := strings.CutPrefix(dir, "/opt/"); ok {
		first, _, _ := strings.Cut(rest, "/")
		return "/opt/" + first
	}
	for _, home := range f.homes {
		if !within(dir, home) {
			continue
		}
		for _, m := range managers {
			if m = filepath.Join(home, m); within(dir, m) {
				return m
			}
		}
		return dir
	}
	return ""
}

// goRoot returns the root of the Go installation whose go command is in dir,
// an entry of PATH, or nothing.
func (f finder) goRoot(dir string) string {
	program := f.resolve(filepath.Join(dir, "go"))
	if filepath.Base(filepath.Dir(program)) != "bin" {
		return ""
	}
	root := filepath.Dir(filepath.Dir(program))
	if _, err := os.Stat(filepath.Join(root, "pkg", "tool")); err != nil {
		return ""
	}
	return root
}

// moduleCache returns the real path of the user's Go module cache, or nothing.
func (f finder) moduleCache() string {
	dir := f.getenv("GOMODCACHE")
	if gopath := filepath.SplitList(f.getenv("GOPATH")); dir == "" && len(gopath) > 0 {
		dir = filepath.Join(gopath[0], "pkg", "mod")
	}
	if home := f.getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, "go", "pkg", "mod")
	}
	return f.resolve(dir)
}

// usable reports whether commands may see dir: a folder outside the system's
// own and the workspace (these are there anyway) that is no home, and neither
// lies in nor holds a secret or a hidden folder.
func (f finder) usable(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || within(dir, "/usr") || f.writable(dir) || tooWide(dir, f.homes) || systemFolder(dir) {
		return false
	}
	overlaps := func(p string) bool { return within(dir, p) || holdsExisting(dir, p) }
	for _, home := range f.homes {
		for _, s := range secrets {
			if overlaps(filepath.Join(home, s)) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(f.hidden, overlaps)
}

// systemFolder reports whether dir lies where the system keeps what is not a
// program: nothing there becomes visible because PATH names it.
func systemFolder(dir string) bool {
	return slices.ContainsFunc([]string{"/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/var"}, func(s string) bool {
		return within(dir, s)
	})
}

// holdsExisting reports whether path exists and lies below dir.
func holdsExisting(dir, path string) bool {
	if !within(path, dir) {
		return false
	}
	_, err := os.Lstat(path)
	return err == nil
}
