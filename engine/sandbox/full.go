package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Under the profile full-access a command has the host's files and network, as
// its user has them. It still ends with everything that it started, has limits
// and a clean environment, and does not see Wharf's own folders and the places
// where secrets are kept. A person allows each of these commands.

// openForAll is what the filter leaves to such a command.
var openForAll = openings{UnixSockets: true, Ptrace: true, Namespaces: true, Network: true}

// secretFiles are secrets outside the home folders.
var secretFiles = []string{"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/ssh", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/krb5.keytab"}

// secretsAtHome are those in a home folder that its programs do not need to
// start; of .config alone what holds tokens.
var secretsAtHome = []string{
	".ssh", ".aws", ".gnupg", ".azure", ".kube", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".password-store",
	".docker/config.json", ".config/gh", ".config/glab-cli", ".config/gcloud", ".config/git/credentials", ".config/op",
	".config/hub", ".config/containers/auth.json", ".config/rclone", ".local/share/keyrings", ".mozilla", ".thunderbird",
	".pki", ".cargo/credentials", ".cargo/credentials.toml", ".terraform.d", ".gem/credentials", ".m2/settings.xml", ".vault-token",
	".config/google-chrome", ".config/chromium", ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".oci", ".config/doctl",
	".composer/auth.json", ".config/composer/auth.json", ".bundle/config", ".config/github-copilot",
	".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
}

// agents are where programs listen that sign and unlock for whoever asks.
func agents() []string {
	session := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	all := []string{filepath.Join(session, "gnupg"), filepath.Join(session, "keyring")}
	if socket := os.Getenv("SSH_AUTH_SOCK"); filepath.IsAbs(socket) {
		all = append(all, socket)
	}
	return all
}

// masked returns what a command of the profile full-access does not see: real
// paths, of what is there, the outer ones alone.
func (s *Sandbox) masked() []string {
	wanted := slices.Concat(s.cfg.Hidden, secretFiles, agents())
	for _, home := range s.homes {
		for _, name := range secretsAtHome {
			wanted = append(wanted, filepath.Join(home, name))
		}
	}
	var all []string
	for _, path := range wanted {
		real, err := filepath.EvalSymlinks(path)
		if err == nil && real != "/" && !within(s.cfg.Workspace, real) {
			all = append(all, real)
		}
	}
	slices.Sort(all)
	var outer []string
	for _, path := range all {
		if len(outer) == 0 || !within(path, outer[len(outer)-1]) {
			outer = append(outer, path)
		}
	}
	return outer
}

// above returns the folders that lead to Wharf's own, the outer ones first. A folder
// is mounted over itself to stay where it is: else it could be moved away, and another
// one put in its place for Wharf to read.
func (s *Sandbox) above() (all []string) {
	for _, path := range s.cfg.Hidden {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		for dir := filepath.Dir(real); dir != "/"; dir = filepath.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// makeHidden makes the folders that are to be masked: what is not there could be
// made by the command.
func (s *Sandbox) makeHidden() {
	for _, dir := range s.cfg.Hidden {
		_ = os.MkdirAll(dir, 0o700)
	}
}

// fullArgs returns bubblewrap's arguments for the profile full-access. None of
// them makes or writes a file: its place would be the host's own. All that is
// mounted, is mounted over what is there.
func (b bwrap) fullArgs(dir string) []string {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--cap-drop", "ALL", "--die-with-parent", "--new-session",
		"--bind", "/", "/",
	}
	for _, dir := range b.sandbox.above() {
		args = append(args, "--bind", dir, dir)
	}
	args = append(args,
		"--dev", "/dev", "--size", strconv.Itoa(shmSize), "--perms", "1777", "--tmpfs", "/dev/shm",
		"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys",
		"--ro-bind", "/sys", "/sys", // where its limits could be lifted, and root's writes change the machine
	)
	for _, path := range b.sandbox.masked() {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.IsDir():
			args = append(args, "--size", "4096", "--perms", "0500", "--tmpfs", path, "--remount-ro", path)
		case info.Mode().Type()&fs.ModeSymlink == 0:
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	return append(args, "--chdir", dir)
}
