package sandbox

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlock confines by the kernel's Landlock and a system call filter, set by
// Wharf itself, started again (see Init). There are no namespaces: what cannot
// be held so is in docs/security.md.
type landlock struct {
	sandbox *Sandbox
	abi     int
	grouped bool // memory and processes are limited by a control group
}

func (landlock) rung() Rung { return Landlock }

// gaps begin with the names that docs/security.md has for them.
func (l landlock) gaps() []string {
	all := []string{
		"protected paths inside the workspace: commands can write those that are there",
		"attributes of files: mode, times and extended attributes of files of the same user can be changed anywhere",
		"existence and size: whether a path exists, its size and where a link leads can be asked anywhere, and folders be watched; folders and files cannot be opened",
		"users of the host: /etc/passwd and /etc/group can be read",
		"processes of the host: they can be counted, and those of the same user be given other priorities and limits",
		"System V shared memory, semaphores and message queues: they are shared with the host",
		"temporary files: they are on the host's disk, limited only with all else that is written",
		"end of the tree: if Wharf's monitor process is killed, what left the command's session outlives it",
		"loopback: a server and its client within one run cannot talk to each other",
		"/proc: most of it cannot be read, a process's own entries neither",
	}
	if len(l.sandbox.cfg.Network.Allow) > 0 {
		all = append(all, networkGap)
	}
	if l.abi < 6 {
		all = append(all, "processes of the host: those of the same user can be signalled, and a tree that renews itself fast enough outlives the command (needs Linux 6.12)")
	}
	if l.abi < 3 {
		all = append(all, "truncate: it is refused, also in the workspace (needs Linux 6.2)")
	}
	return all
}

// confinement is what the confining process is told: by a descriptor, for its
// command line can be read by all.
type confinement struct {
	Argv     []string
	Env      []string
	Dir      string
	Read     []string // files and folders to read and execute
	Write    []string // folders to change
	Devices  []string // devices to read and write
	Consoles []string // and those to set as well
	Terminal bool     // the streams are a terminal, for the command to take as its own
	Scratch  string   // the private folders, which the monitor makes and removes
	Git      string   // the configuration of git in the private home
	ABI      int      // the version of Landlock to use
	Open     openings // of the system call filter
	Limits   Limits
	Timeout  time.Duration
	Groups   []string // files to be written to, to enter the control groups; none if there is no group
}

// launch prepares our monitor. It is the monitor that makes the private folders:
// nobody would remove them if Wharf were killed before there is one.
func (l landlock) launch(c Command) (*launch, error) {
	scratch, cleanup := l.sandbox.scratchPath(), func() {}
	if l.grouped { // which the keeper removes in the end
		if err := theKeeper.begin(); err != nil {
			return nil, err
		}
		cleanup = theKeeper.end
	}
	ready := &launch{
		path: "/proc/self/exe", argv: []string{monitorName}, dir: "/",
		cleanup: func() { removeScratch(scratch); cleanup() }, limits: l.sandbox.cfg.Limits,
	}
	spec := l.confinement(c, scratch)
	var err error
	if ready.group, err = takeGroup(l.grouped, spec.Limits); err == nil {
		if ready.group != nil {
			spec.Groups = ready.group.entrances()
		}
		err = ready.open(spec)
	}
	if err != nil {
		ready.close()
		return nil, err
	}
	return ready, nil
}

// open makes the descriptors of the monitor.
func (l *launch) open(spec confinement) error {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(spec); err != nil { // unlike JSON it keeps every byte of a path
		return err
	}
	file, err := dataFile("confinement", text.Bytes())
	if err != nil {
		return err
	}
	l.files = []*os.File{file}
	orders, control, err := os.Pipe()
	if err != nil {
		return err
	}
	l.control, l.files = control, append(l.files, orders)
	status, statusChild, err := os.Pipe()
	if err != nil {
		return err
	}
	l.status, l.files = status, append(l.files, statusChild)
	return nil
}

// confinement says what c may do, with its private folders under scratch.
func (l landlock) confinement(c Command, scratch string) confinement {
	s := l.sandbox
	at := place{home: filepath.Join(scratch, "home"), tmp: filepath.Join(scratch, "tmp"), cache: s.cfg.CacheDir}
	if at.cache == "" {
		at.cache = filepath.Join(at.home, ".cache")
	}
	spec := confinement{
		Argv: c.Argv, Env: s.environment(at, c.Profile), Dir: c.Dir, Scratch: scratch, Git: gitConfig(os.Getenv), ABI: l.abi,
		Open: s.open, Limits: s.cfg.Limits, Timeout: c.Timeout,
		Read:    append([]string{"/usr", s.cfg.Workspace, "/etc/passwd", "/etc/group"}, s.tools.roots...),
		Write:   []string{at.home, at.tmp, at.cache},
		Devices: []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"},
	}
	if c.Terminal.shown() {
		spec.Terminal, spec.Consoles = true, []string{"/dev/tty"} // a process's own terminal, whichever that is
	}
	if c.Profile == FullAccess {
		s.makeHidden()
		spec.openAll(s.masked())
		return spec
	}
	for _, dir := range systemLinks {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			spec.Read = append(spec.Read, dir)
		}
	}
	for _, m := range etcView() {
		spec.Read = append(spec.Read, m.real)
	}
	for _, name := range []string{"cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems"} {
		spec.Read = append(spec.Read, "/proc/"+name)
	}
	spec.Read = append(spec.Read, s.cfg.Read...)
	if c.Profile == WorkspaceWrite {
		spec.Write = slices.Concat(spec.Write, []string{s.cfg.Workspace}, s.cfg.Write)
	} else {
		spec.Read = append(spec.Read, s.cfg.Write...)
	}
	return spec
}

// openAll grants all that is on the host now, but for what is masked. Rights only
// add up: so a folder that holds something masked is granted by what is in it.
func (c *confinement) openAll(masked []string) {
	c.Env, c.Open = openEnvironment(os.Getenv, string(FullAccess)), openForAll
	// Where root writes to these, it changes the machine.
	c.Read, c.Write = []string{"/proc", "/sys"}, []string{"/dev/shm"}
	var grant func(dir string)
	grant = func(dir string) {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			switch {
			case slices.Contains(masked, path), path == "/dev", path == "/proc", path == "/sys":
			case slices.ContainsFunc(masked, func(m string) bool { return within(m, path) }):
				grant(path)
			default:
				c.Write = append(c.Write, path)
			}
		}
	}
	grant("/")
}

// gapOfFull is what full-access lacks under Landlock.
const gapOfFull = "folders that hold something hidden, such as the home folder, can neither be listed nor added to; what is in them can be reached, and attributes of what is hidden be changed"

// terminate has the monitor ask the command's processes to end.
func (landlock) terminate(ch *child) { _, _ = ch.control.Write([]byte{orderTerminate}) }

// kill has the monitor end them.
func (landlock) kill(ch *child) { _ = ch.control.Close() }

// landlockVersion returns the version of the kernel's Landlock; 0 means that
// it has none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// The rights of Landlock: to look, what a single file can have, and all but
// making devices.
const (
	rightsLook = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsDevice  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsConsole = rightsDevice | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsChange  = rightsLook | rightsFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
)

// handled returns what a ruleset of version abi governs: all that this version
// can. What no rule grants is refused.
func handled(abi int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	for _, step := range []struct {
		abi             int
		fs, net, scoped uint64
	}{
		{2, unix.LANDLOCK_ACCESS_FS_REFER, 0, 0},
		{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0},
		{4, 0, unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 0},
		{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0},
		{6, 0, 0, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
		{9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0, 0},
	} {
		if abi >= step.abi {
			attr.Handled_access_fs |= step.fs
			attr.Handled_access_net |= step.net
			attr.Scoped |= step.scoped
		}
	}
	return attr
}

// scopeSignals sees to it that signals of the calling thread reach nobody but
// what the thread starts from now on, and reports whether that is certain: it
// is tried on the parent, which had been in reach.
func scopeSignals(abi int) bool {
	parent := os.Getppid()
	if abi < 6 || unix.Kill(parent, 0) != nil || unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	ruleset, err := createRuleset(unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL})
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(ruleset) }()
	return restrictSelf(ruleset) == nil && errors.Is(unix.Kill(parent, 0), unix.EPERM)
}

func createRuleset(attr unix.LandlockRulesetAttr) (int, error) {
	const size = unsafe.Offsetof(attr.Quiet_access_fs) // what follows is for logging alone
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, fmt.Errorf("create Landlock ruleset: %w", errno)
	}
	return int(fd), nil
}

func restrictSelf(ruleset int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("restrict by Landlock: %w", errno)
	}
	return nil
}

// restrict confines the calling thread, for good, to what spec names.
func restrict(spec confinement) error {
	if spec.ABI < 1 {
		return errors.New("this kernel has no Landlock")
	}
	attr := handled(spec.ABI)
	if spec.Open.Network {
		attr.Handled_access_net = 0
		attr.Scoped &^= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	ruleset, err := createRuleset(attr)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(ruleset) }()
	for _, grant := range []struct {
		paths  []string
		rights uint64
	}{{spec.Read, rightsLook}, {spec.Write, rightsChange}, {spec.Devices, rightsDevice}, {spec.Consoles, rightsConsole}} {
		for _, path := range grant.paths {
			if err := allow(ruleset, path, grant.rights&attr.Handled_access_fs); err != nil {
				return err
			}
		}
	}
	return restrictSelf(ruleset)
}

// allow adds a rule for what is at and below path. A path that is not there
// grants nothing.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q for Landlock: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat %q for Landlock: %w", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return nil // whoever wants what is behind it names that
	default:
		rights &= rightsFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %q by Landlock: %w", path, errno)
	}
	return nil
}
