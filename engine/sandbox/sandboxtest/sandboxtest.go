// Package sandboxtest holds what must not succeed inside a sandbox, as lines of
// shell: the tests of package sandbox try them on the package, those of the
// command line on "wharf sandbox run". Whether something got through is for the
// test to see, outside.
package sandboxtest

import (
	"fmt"
	"strings"
)

// Attempt is one way to get at what must stay out of reach. Its line is begun in
// the workspace, by a POSIX shell, behind [Places.Script].
type Attempt struct{ Name, Line string }

// Places is what the lines aim at, all of it made by a test.
type Places struct {
	Outside string // OUT: a folder beside the workspace with the file secret; the workspace has links to both, planted and planted-folder
	Home    string // THEIRS: a home folder, with the file .ssh/id
	Host    int    // HOST: a process outside whose working directory is Outside
	FD      int    // FD: a descriptor of the secret, left open for commands to inherit
	Probe   string // PROBE: what makes attempts that no shell can
}

// Script returns line behind the variables that it reads. It says "begun" first
// and "tried" last, each on a line of its own.
func (p Places) Script(line string) string {
	return strings.Join([]string{
		"echo begun",
		fmt.Sprintf("OUT=%s SECRET=%s/secret THEIRS=%s HOST=%d FD=%d PROBE=%q", p.Outside, p.Outside, p.Home, p.Host, p.FD, p.Probe),
		line, "echo", "echo tried",
	}, "\n")
}

// Reading aims at the secret, at what is in the home folder, and at the
// environment of Host.
var Reading = []Attempt{
	{"by its absolute path", "cat $SECRET"},
	{"by dot dot", "cat ../outside/secret"},
	{"by a link that was there", "cat planted"},
	{"by a folder's link that was there", "cat planted-folder/secret"},
	{"by a link of its own", "ln -s $SECRET l; cat l"},
	{"by a hard link of its own", "ln $SECRET h; cat h"},
	{"by moving it in", "mv $SECRET m; cat m"},
	{"by the root of its parent", "cat /proc/$PPID/root$SECRET"},
	{"by its own root", "cat /proc/self/root$SECRET"},
	{"by the root of a host's process", "cat /proc/$HOST/root$SECRET"},
	{"by the working directory of a host's process", "cat /proc/$HOST/cwd/secret"},
	{"by the environment of a host's process", "cat /proc/$HOST/environ"},
	{"by the environment of the first process", "cat /proc/1/environ /proc/$PPID/environ"},
	{"by its own environment", "env; export -p"},
	{"by an inherited descriptor", "cat 0<&$FD; cat /proc/self/fd/$FD /proc/$PPID/fd/$FD"},
	{"by a listing of the folder", "cat $OUT/*"},
	{"in the user's home", "cat $THEIRS/.ssh/id"},
}

// Writing aims at Outside and at the folder that holds it.
var Writing = []Attempt{
	{"over a file", "echo x > ../outside/secret"},
	{"at the end of a file", "echo x >> $OUT/secret"},
	{"a new file", "echo x > $OUT/new"},
	{"through a link that was there", "echo x > planted"},
	{"in a linked folder", "echo x > planted-folder/new"},
	{"through a link of its own", "ln -s $OUT/new l; echo x > l"},
	{"by moving a file out", "mv own.txt $OUT/"},
	{"by moving a file in", "mv $OUT/secret ."},
	{"by a hard link out", "ln own.txt $OUT/own"},
	{"by a new folder", "mkdir $OUT/d"},
	{"by a link outside", "ln -s x $OUT/l"},
	{"by a pipe outside", "mkfifo $OUT/f"},
	{"by deleting", "rm -rf $OUT/secret"},
	{"beside the workspace", "echo x > ../sibling"},
	{"by emptying", "truncate -s 0 $OUT/secret; true > $OUT/secret"},
	{"through the root of its parent", "echo x > /proc/$PPID/root$OUT/new"},
}

// Protected aims at what is in [Repository]: what trusted code reads and runs later.
var Protected = lines(
	"echo x > .git/hooks/pre-commit", "echo x >> .git/config", "echo x > .git/hooks/new; chmod +x .git/hooks/new", "echo x > .git/modules/sub/config", "echo x > .git/info/attributes",
	"rm .git/hooks/pre-commit", "rm -rf .git/hooks", "rm -rf .git; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", "mv .git/hooks h; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
	"mv .git g && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit", "mv .git/info i; mkdir .git/info; echo x > .git/info/attributes", "mv .git/worktrees w", "echo x > .git/worktrees/w/gitdir",
	"mv .git/config c; echo x > .git/config", "ln -sf own.txt .git/config", "ln -f own.txt .git/config", "cp own.txt .git/config", "truncate -s 0 .git/config", "dd if=own.txt of=.git/config conv=notrunc",
	"mv -f own.txt .git/config", "mkdir d; $PROBE exchange d .git/hooks", "$PROBE exchange own.txt .git/config", "mkdir d; $PROBE exchange d .git",
	"echo x > sub/.git", "rm -f sub/.git; echo x > sub/.git", "mv sub/.git p", "echo x > vendor/lib/.git/hooks/post-checkout", "rm -rf vendor/lib/.git/hooks",
	"mv vendor/lib/.git vendor/lib/g; mkdir vendor/lib/.git; echo x > vendor/lib/.git/config", "echo x > .vscode/tasks.json", "echo x > .vscode/new", "rm -rf .vscode", "mv .vscode v; mkdir .vscode", "echo x > .envrc",
	"rm -f .envrc", "mv .envrc e; echo x > .envrc", "chmod 777 .git/hooks/pre-commit .envrc",
	"mount -o remount,rw,bind .git/config; echo x >> .git/config", "umount .git/config; echo x >> .git/config",
)

// Planted aims at names that are protected and are not in [Repository] yet.
var Planted = lines(
	"echo x > .git/commondir", "echo x > .git/config.worktree", "echo x > .mcp.json", "mkdir .claude; echo x > .claude/settings.json", "ln -s own.txt .mcp.json", "mkfifo .cursor", "mkdir vendor/lib/.claude",
	"ln -s /nowhere .idea", "mv own.txt .codex", "echo x > .git/worktrees/w/commondir",
)

// OwnFolder aims at the folder of Wharf's in the workspace.
var OwnFolder = lines("echo x > .wharf/x", "rm -rf .wharf", "mv .wharf w", "ln -s own.txt .wharf/l")

// lines are attempts that are their own names.
func lines(all ...string) (attempts []Attempt) {
	for _, line := range all {
		attempts = append(attempts, Attempt{line, line})
	}
	return attempts
}

// Repository is a workspace with a repository, another one in it, one that is a
// pointer, and the start-up files of an editor and an agent; secret is what
// stands in the files that are protected.
func Repository(secret string) map[string]string {
	return map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n", ".git/hooks/pre-commit": secret, ".git/info/attributes": secret,
		".git/modules/sub/config": "[user]\n\tname = " + secret + "\n", ".git/worktrees/w/gitdir": secret, ".git/objects/x": "x", ".git/refs/heads/x": "x",
		"vendor/lib/.git/config": "[user]\n\tname = " + secret + "\n", "vendor/lib/.git/hooks/post-checkout": secret, "sub/.git": "gitdir: ../.git/modules/sub\n",
		".vscode/tasks.json": secret, ".envrc": secret, "own.txt": "own\n",
	}
}
