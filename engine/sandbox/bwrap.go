package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// bwrapPaths is where bubblewrap is looked for, and nowhere else: PATH may name
// folders that the sandboxed side can write, and a bwrap of its making would
// confine nothing.
var bwrapPaths = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}

// The private folders inside; the sizes are in bytes.
const (
	insideHome  = "/home/agent"
	insideCache = "/home/agent/.cache"
	tmpSize     = 256 << 20
	homeSize    = 256 << 20
	shmSize     = 64 << 20
)

// etcFiles are the parts of /etc that programs need and that say nothing of
// the host's users and secrets.
var etcFiles = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl/certs", "ssl/openssl.cnf", "ca-certificates",
	"pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "nsswitch.conf", "localtime", "mime.types", "protocols", "services", "os-release",
}

// The accounts inside.
const (
	insidePasswd = "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	insideGroup = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"
	insideHosts = "127.0.0.1 localhost sandbox\n::1 localhost\n"
)

// bwrap confines by bubblewrap: a file system built from nothing and a
// namespace of every kind.
type bwrap struct {
	program  string
	sandbox  *Sandbox
	noNested bool // bubblewrap can forbid user namespaces inside
	grouped  bool // memory and processes are limited by a control group
}

func (bwrap) rung() Rung { return Bubblewrap }

func (b bwrap) gaps() (all []string) {
	if !b.noNested {
		all = append(all, "this bubblewrap or kernel cannot forbid nested user namespaces: the system call filter alone does")
	}
	if !initCalled.Load() {
		all = append(all, "a command outlives this program if it is killed while the command starts (its main does not begin with sandbox.Init)")
	}
	b.sandbox.look.Do(b.sandbox.findRepositories)
	if b.sandbox.unseen {
		all = append(all, fmt.Sprintf("the workspace has more than %d folders: repositories beyond those are not protected", maxFolders))
	}
	return all
}

// The descriptors of bubblewrap, from 3 on in the order of launch.files. What
// is left open of them by bubblewrap would reach the command: a test holds that
// none is.
const (
	fdArgs = 3 + iota
	fdStatus
	fdFilter
	fdGate
	fdPasswd
	fdGroup
	fdHosts
	fdGit
	fdNetwork // only with a network
)

// launch builds bubblewrap's arguments, which go by a descriptor: its command
// line can be read by everyone on the host and inside.
func (b bwrap) launch(c Command) (*launch, error) {
	if err := theKeeper.begin(); err != nil {
		return nil, err
	}
	argv := c.Argv
	if c.Terminal.shown() {
		argv = append(slices.Clone(takeTerminal), argv...)
	}
	l := &launch{
		path: b.program, dir: "/", cleanup: theKeeper.end,
		argv: append([]string{theKeeper.mark, "--args", strconv.Itoa(fdArgs), "--"}, argv...),
		env:  b.sandbox.environment(place{home: insideHome, tmp: "/tmp", cache: insideCache}, c.Profile),
	}
	if c.Profile == FullAccess {
		l.env = openEnvironment(os.Getenv, string(FullAccess))
		b.sandbox.makeHidden()
	}
	err := b.open(l, c)
	if open := b.sandbox.openTo(c); err == nil && len(open) > 0 {
		err = b.openNetwork(l, open)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// open makes the descriptors of bubblewrap. Under full-access there are no files
// to be made of them.
func (b bwrap) open(l *launch, c Command) error {
	opened := b.sandbox.open
	last := fdGit
	if c.Profile == FullAccess {
		opened = openForAll
		last = fdGate
	}
	filter, err := filterFor(filter{rung: Bubblewrap, open: opened})
	if err != nil {
		return err
	}
	box, err := b.box(c)
	if err != nil {
		return err
	}
	status, statusChild, err := os.Pipe()
	if err != nil {
		return err
	}
	l.status = status
	if err := b.limit(l, c); err != nil {
		return err
	}
	l.files = make([]*os.File, last-fdArgs+1)
	l.files[fdStatus-fdArgs] = statusChild
	if l.files[fdGate-fdArgs], err = l.gate.forChild(); err != nil {
		return err
	}
	for fd, content := range map[int][]byte{
		fdArgs: zeroEnded(append(box, b.args(c)...)), fdFilter: filterBytes(filter), fdPasswd: []byte(insidePasswd),
		fdGroup: []byte(insideGroup), fdHosts: []byte(insideHosts), fdGit: []byte(gitConfig(os.Getenv)),
	} {
		if fd > last {
			continue
		}
		if l.files[fd-fdArgs], err = dataFile("sandbox", content); err != nil {
			return err
		}
	}
	return nil
}

// zeroEnded returns arguments as bubblewrap reads them.
func zeroEnded(args []string) []byte {
	var all []byte
	for _, a := range args {
		all = append(append(all, a...), 0)
	}
	return all
}

// limit has the command wait, when bubblewrap is done, until its limits are set.
func (b bwrap) limit(l *launch, c Command) (err error) {
	l.limits = b.sandbox.cfg.Limits
	if l.group, err = takeGroup(b.grouped, l.limits); err != nil {
		return err
	}
	if l.gate, err = newGate(l.limits.bounds(c.Timeout, b.grouped, 0), l.group); err != nil {
		return err
	}
	if c.Profile != FullAccess { // which mounts over what is there, for a person's own command
		l.gate.guard = cmp.Or(c.guard, &guard{}) // the probe's is empty: whether mounts can be looked at here
	}
	l.told = func(pid int) error {
		theKeeper.watch(pid)
		return l.gate.open(pid)
	}
	return nil
}

// args returns bubblewrap's arguments for a command.
func (b bwrap) args(c Command) []string {
	args := b.fullArgs(c.Dir)
	if c.Profile != FullAccess {
		args = b.confinedArgs(c.Dir, c.Profile, cmp.Or(c.guard, &guard{}))
	}
	return append(args, "--json-status-fd", strconv.Itoa(fdStatus), "--block-fd", strconv.Itoa(fdGate), "--seccomp", strconv.Itoa(fdFilter))
}

// confinedArgs returns the arguments of the other profiles. They count from left to
// right: later mounts lie over earlier ones.
func (b bwrap) confinedArgs(dir string, profile Profile, g *guard) (args []string) {
	add := func(more ...string) { args = append(args, more...) }
	add("--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--new-session")
	add("--hostname", "sandbox", "--uid", "1000", "--gid", "1000")
	if b.noNested {
		add("--disable-userns")
	}
	for _, m := range b.sandbox.systemView() {
		add(m...)
	}
	add("--dev", "/dev")
	add("--size", strconv.Itoa(shmSize), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
	// Writing to /proc/sys is judged by the host's uid, not the sandbox's.
	add("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
	for _, file := range []string{"/proc/keys", "/proc/key-users"} { // which name the user's keys
		if _, err := os.Lstat(file); err == nil {
			add("--ro-bind", "/dev/null", file)
		}
	}
	add("--size", strconv.Itoa(tmpSize), "--perms", "1777", "--tmpfs", "/tmp")
	add("--size", strconv.Itoa(homeSize), "--perms", "0700", "--tmpfs", insideHome)
	for i, file := range []string{"/etc/passwd", "/etc/group", "/etc/hosts", insideHome + "/.gitconfig"} {
		add("--ro-bind-data", strconv.Itoa(fdPasswd+i), file)
	}
	for _, m := range b.sandbox.granted(profile) {
		add(m...)
	}
	for _, m := range g.sealing() {
		add(m...)
	}
	add("--remount-ro", "/", "--chdir", dir)
	return args
}

// granted returns the arguments that mount what is the user's: the outer ones
// first, where one holds another.
func (s *Sandbox) granted(profile Profile) (mounts [][]string) {
	for _, root := range slices.Concat(s.tools.roots, slices.Sorted(slices.Values(s.cfg.Read))) {
		mounts = append(mounts, []string{"--ro-bind", root, root})
	}
	if cache := s.cfg.CacheDir; cache != "" && !within(s.cfg.Workspace, insideCache) {
		mounts = append(mounts, []string{"--bind", cache, insideCache}) // nothing is mounted in it: it may hold links
	}
	bind := "--bind"
	if profile == ReadOnly {
		bind = "--ro-bind"
	}
	for _, path := range append(slices.Clone(s.cfg.Write), s.cfg.Workspace) {
		mounts = append(mounts, []string{bind, path, path})
	}
	return mounts
}

// systemView returns the arguments that mount the system's own programs.
func (s *Sandbox) systemView() [][]string {
	view := [][]string{{"--ro-bind", "/usr", "/usr"}}
	for _, dir := range systemLinks {
		if target, err := os.Readlink(dir); err == nil {
			view = append(view, []string{"--symlink", target, dir})
		} else if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			view = append(view, []string{"--ro-bind", dir, dir})
		}
	}
	for _, m := range etcView() {
		view = append(view, []string{"--ro-bind", m.real, m.file})
	}
	return view
}

// systemLinks are links into /usr on most systems, folders on some.
var systemLinks = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// mapped is a file or folder of the host and the real path behind it.
type mapped struct{ file, real string }

// etcView returns the files and folders of /etc to be seen. One that leads
// elsewhere than to the system's own files is left out.
func etcView() []mapped {
	var view []mapped
	for _, name := range etcFiles {
		file := filepath.Join("/etc", name)
		real, err := filepath.EvalSymlinks(file)
		if err == nil && (within(real, "/etc") || within(real, "/usr")) {
			view = append(view, mapped{file, real})
		}
	}
	return view
}

// terminate asks all processes in the sandbox but its init to end.
func (b bwrap) terminate(ch *child) {
	first := ch.report.first()
	if first == 0 {
		return
	}
	below := descendants(first)
	if len(below) == 0 { // the command has not begun, and must not any more
		b.kill(ch)
	}
	for _, pid := range below {
		signalIf(pid, syscall.SIGTERM, func() bool { return isBelow(pid, first) })
	}
}

// kill ends the namespace's init, and with it, by the kernel's doing, every
// process in the namespace; and bubblewrap itself.
func (b bwrap) kill(ch *child) {
	if first := ch.report.first(); first != 0 {
		signalIf(first, syscall.SIGKILL, func() bool { // bubblewrap itself may be gone
			return parentOf(first) == ch.process.Pid || isMarked(first, ch.argv[0])
		})
	}
	ch.signalGroup(syscall.SIGKILL)
}

// explainSilence says why bubblewrap ended without telling of a command: said
// is its own voice, for nothing else ran.
func explainSilence(said string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	reason := strings.TrimPrefix(lines[len(lines)-1], "bwrap: ")
	if what, ok := strings.CutPrefix(reason, "execvp "); ok {
		name, why, _ := strings.Cut(what, ": ")
		if name == boxPath {
			return &notStarted{reason: "Wharf's own program cannot be run inside: " + strings.ToLower(why)}
		}
		return cannotRun(name, strings.ToLower(why))
	}
	if reason == "" {
		return &notStarted{reason: "bubblewrap ended without saying why"}
	}
	return &notStarted{reason: reason}
}
