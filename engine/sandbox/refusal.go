package sandbox

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Refusal is what the sandbox may have refused a command that failed. Programs
// tell of it in the kernel's words alone, and they can print what they like: so it
// is a guess, and worded as one.
type Refusal struct {
	What   string // the line of the command's that tells of it
	Remedy string // what would allow it
}

// String words it for whoever had the command run.
func (r Refusal) String() string {
	return fmt.Sprintf("the sandbox may have refused this: %q. %s", r.What, r.Remedy)
}

const (
	mostRefusals  = 3
	longestQuoted = 200 // bytes
	heard         = 16 << 10
)

// sign is how a refusal looks in the output of programs.
type sign struct {
	words  []string // in small letters, of which one must be in the line
	with   []string // and one of these, unless there are none
	remedy string
	rung   Rung // where it means a refusal; empty means everywhere
}

const (
	remedyWrite   = "What would allow it: sandbox.write in the user's configuration (--write PATH)"
	remedyRead    = "If it is there at all, what would allow it: sandbox.read in the user's configuration (--read PATH)"
	remedyProfile = "What would allow it: the profile workspace-write"
	remedyAsk     = "It is protected: ask for approval instead of working around it"
	remedyPrivate = "The temporary folder and the home of a command are its own, and empty at first; what would show it this machine's: sandbox.read in the user's configuration (--read PATH)"
	remedyNetwork = `What would allow it: sandbox.allow_net = ["HOST"] in the user's configuration (--allow-net HOST)`
	remedySockets = `What would allow it: sandbox.allow = ["unix-sockets"] in the user's configuration`
	remedyPtrace  = `What would allow it: sandbox.allow = ["ptrace"] in the user's configuration`
	remedyCall    = "A system call that the sandbox does not allow; the profile full-access has most of them"
)

// The signs, the special ones before the general.
var (
	signsOfLimits = []sign{
		{[]string{"cannot allocate memory", "memory exhausted", "out of memory", "memoryerror", "std::bad_alloc"}, nil, "The limit is sandbox.limits.memory", ""},
		{[]string{"cannot fork", "can't fork", "fork: resource temporarily unavailable", "pthread_create failed"}, nil, "The limit is sandbox.limits.processes", ""},
		{[]string{"too many open files"}, nil, "The limit is sandbox.limits.open_files", ""},
		{[]string{"file too large"}, nil, "The limit is sandbox.limits.file_size", ""},
		{[]string{"no space left on device"}, nil, "The temporary folder and the home inside are small: put large files into the workspace", Bubblewrap},
	}
	signsOfNetwork = []sign{
		{[]string{
			"network is unreachable", "could not resolve", "couldn't resolve", "name resolution", "name or service not known",
			"no such host", "enetunreach", "eai_again", "getaddrinfo", "unable to resolve",
		}, nil, remedyNetwork, ""},
		{[]string{"operation not permitted", "permission denied", "eperm"}, []string{"socket:", "dial tcp", "dial udp", "listen tcp", "lookup "}, remedyNetwork, Landlock},
	}
	signsOfCalls = []sign{
		{[]string{"operation not permitted", "eperm"}, []string{"ptrace", "tracing", "traceme", "personality"}, remedyPtrace, ""},
		{[]string{"operation not permitted", "eperm"}, []string{"socket", "unix"}, remedySockets, ""},
		{[]string{"operation not permitted", "function not implemented"}, []string{"mount", "unshare", "clone", "namespace", "mknod", "chmod", "io_uring", "keyctl", "chroot", "setns", "bpf"}, remedyCall, ""},
	}
)

// refusals guesses what a command that failed was refused, by the end of what it
// said on standard error.
func (s *Sandbox) refusals(profile Profile, res Result, said string) (all []Refusal) {
	if res.ExitCode == 0 || res.TimedOut || res.Rung == Unconfined {
		return nil
	}
	told := map[string]bool{}
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		remedy := s.remedy(profile, res.Rung, line)
		if remedy == "" || told[remedy] || len(all) == mostRefusals {
			continue
		}
		told[remedy] = true
		if len(line) > longestQuoted {
			line = strings.ToValidUTF8(line[:longestQuoted], "") + "…"
		}
		all = append(all, Refusal{line, remedy})
	}
	return all
}

// remedy returns what would allow what a line tells of, or nothing if it does not
// tell of a refusal.
func (s *Sandbox) remedy(profile Profile, rung Rung, line string) string {
	small := strings.ToLower(line)
	signs := signsOfLimits
	if profile != FullAccess {
		signs = append(append(signs[:len(signs):len(signs)], signsOfNetwork...), signsOfCalls...)
	}
	for _, sign := range signs {
		if (sign.rung == "" || sign.rung == rung) && hasAny(small, sign.words) && (len(sign.with) == 0 || hasAny(small, sign.with)) {
			return sign.remedy
		}
	}
	if profile == FullAccess {
		return ""
	}
	return s.remedyOfPath(profile, rung, line, small)
}

func hasAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// remedyOfPath is about the words of the kernel for a file. Whether there is one
// on the host is not looked up: that would tell the command.
func (s *Sandbox) remedyOfPath(profile Profile, rung Rung, line, small string) string {
	outside := s.outside(line)
	switch {
	case hasAny(small, []string{"read-only file system", "erofs"}), hasAny(small, []string{"device or resource busy", "ebusy"}) && protectedIn(line):
		switch {
		case protectedIn(line):
			return remedyAsk
		case outside:
			return remedyWrite
		case profile == ReadOnly:
			return remedyProfile
		}
		return remedyWrite
	case rung == Landlock && outside && hasAny(small, []string{"permission denied", "eacces"}):
		return remedyRead + ", or sandbox.write"
	case rung == Landlock && profile == ReadOnly && hasAny(small, []string{"permission denied", "eacces"}):
		return remedyProfile
	case rung == Bubblewrap && hasAny(small, []string{"no such file or directory", "enoent", "directory nonexistent", "can't cd to"}):
		switch {
		case outside:
			return remedyRead
		case namesBelow(line, "/tmp", insideHome) && !namesBelow(line, append(s.writable(), s.cfg.Read...)...): // which may lie there
			return remedyPrivate
		}
	}
	return ""
}

// pathIn finds absolute paths in what programs print.
var pathIn = regexp.MustCompile("(?:^|[\\s'\"`‘“(=:])(/[^\\s'\"`’”:;,()]+)")

// outside reports whether a line names a path that is not in a command's view.
func (s *Sandbox) outside(line string) bool {
	inside := append([]string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev", "/tmp", insideHome}, s.writable()...)
	inside = append(append(inside, s.tools.roots...), s.cfg.Read...)
next:
	for _, found := range pathIn.FindAllStringSubmatch(line, -1) {
		for _, dir := range inside {
			if within(found[1], dir) {
				continue next
			}
		}
		return true
	}
	return false
}

// namesBelow reports whether a line names a path below one of some folders.
func namesBelow(line string, dirs ...string) bool {
	for _, found := range pathIn.FindAllStringSubmatch(line, -1) {
		if slices.ContainsFunc(dirs, func(dir string) bool { return within(found[1], dir) }) {
			return true
		}
	}
	return false
}

// protectedIn reports whether a line names something protected.
func protectedIn(line string) bool {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \t'\"`‘’“”:;,()", r) }) {
		if pattern, protected := Protected(strings.TrimLeft(word, "/"), false); protected && pattern != ".." {
			return true
		}
	}
	return false
}

// keepLast keeps the end of what is written to it.
type keepLast struct {
	mu   sync.Mutex
	kept []byte
}

func (k *keepLast) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, p[max(0, len(p)-heard):]...)
	if len(k.kept) > 2*heard { // seldom, so that it costs little
		k.kept = append(k.kept[:0], k.kept[len(k.kept)-heard:]...)
	}
	return len(p), nil
}

func (k *keepLast) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.kept[max(0, len(k.kept)-heard):])
}

// listen has k hear what c says on standard error, wherever that goes.
func (k *keepLast) listen(c *Command) {
	if c.Terminal.shown() || sameWriter(c.Stdout, c.Stderr) {
		c.Stdout = tee(c.Stdout, k)
		c.Stderr = c.Stdout
		return
	}
	c.Stderr = tee(c.Stderr, k)
}
