package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wharf-agent/wharf/engine/sandbox/sandboxtest"
)

// row is something that must be refused, or must work all the same.
type row struct {
	name, line string
	flags      []string // of wharf sandbox run
	says       []string // lines that it must print
	gap        string   // what keeps Landlock from holding it, by its name in docs/security.md
	alone      string   // why it is not tried unconfined, where it is to get through
	ordinary   bool     // what it is refused is anyway root's
	prepare    func(*stage)
	try        func(t *testing.T, s *stage, r row) (out string) // in place of wharf sandbox run and its line
}

// threat is a line of what must be refused, with all attempts at it.
type threat struct {
	name string
	rows []row
}

// What Landlock cannot hold, by the names that docs/security.md and wharf doctor
// have for it.
const (
	gapProtected  = "protected paths inside the workspace"
	gapAttributes = "attributes of files"
	gapExistence  = "existence and size"
	gapUsers      = "users of the host"
	gapProcesses  = "processes of the host"
	gapShared     = "System V shared memory, semaphores and message queues"
	gapTemporary  = "temporary files"
	gapLoopback   = "loopback"
	gapProc       = "/proc"
	gapTree       = "end of the tree"
)

// threats is the list of the policy.
func threats() []threat {
	return []threat{
		{"reading", append(rowsOf(sandboxtest.Reading, row{}), reading...)},
		{"writing", append(rowsOf(sandboxtest.Writing, row{}), writing...)},
		{"protected inside the workspace", slices.Concat(
			rowsOf(sandboxtest.Protected, row{gap: gapProtected}), rowsOf(sandboxtest.Planted, row{}), rowsOf(sandboxtest.OwnFolder, row{gap: gapProtected}), protected,
		)},
		{"processes", processes},
		{"terminal", terminal},
		{"network", network},
		{"environment", environment},
		{"exhaustion", exhaustion},
		{"privilege", privilege},
	}
}

// rowsOf are attempts as rows that are otherwise like one.
func rowsOf(attempts []sandboxtest.Attempt, like row) (rows []row) {
	for _, a := range attempts {
		r := like
		r.name, r.line, r.alone = a.Name, a.Line, hopeless[a.Name]
		rows = append(rows, r)
	}
	return rows
}

// hopeless are the attempts that fail for an ordinary user without a sandbox too.
var hopeless = map[string]string{
	"by the environment of the first process": "the first process outside is not the user's",
}

var reading = []row{
	{name: "the passwords of the machine", line: "cat /etc/shadow"},
	{name: "keys and tokens of the user", line: "cd $THEIRS; cat .aws/credentials .netrc .npmrc .docker/config.json .kube/config .git-credentials .config/gh/hosts.yml"},
	{name: "the engine's configuration", line: "cat $THEIRS/.config/wharf/config.toml"},
	{name: "the engine's sessions and extensions", line: "cat $THEIRS/.local/state/wharf/sessions/s/log.jsonl $THEIRS/.local/share/wharf/modules/m.wasm"},
	{name: "/run of the host", line: "cat /run/secret"},
	{name: "/tmp of the host", line: "cat /tmp/*/outside/secret"},
	{name: "by a file handle", line: "$PROBE reach handle $SECRET", alone: "handles are root's to open"},
	{name: "by another root", line: "$PROBE reach root /proc/$HOST/root $SECRET; $PROBE reach root / $SECRET", alone: "chroot is root's"},
	{name: "whether a file is there", line: "test -e $SECRET && echo GOT it", gap: gapExistence},
	{name: "who uses the machine", line: "grep -q ^daemon: /etc/passwd && echo GOT names", gap: gapUsers},
}

var writing = []row{
	{name: "start-up files of the home", line: "echo x >> $THEIRS/.bashrc; echo x > $THEIRS/.profile; echo x > $THEIRS/.zshrc"},
	{name: "folders of the system", line: "echo x > /usr/games/tool; echo x > /usr/games/new; echo x > /run/new"},
	{name: "the engine's own folders", line: "echo x >> $THEIRS/.config/wharf/config.toml; echo x > $THEIRS/.local/state/wharf/x; echo x > $THEIRS/.local/share/wharf/x"},
	{name: "attributes of a file", line: "chmod 777 $SECRET; touch -d 2001-01-01 $SECRET", gap: gapAttributes},
	{name: "a switch of the kernel", line: "v=$(cat /proc/sys/vm/swappiness) && echo $v > /proc/sys/vm/swappiness && echo GOT a switch", alone: "it is root's, and would be one of the machine"},
	{name: "/sys", line: "for f in /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state /sys/kernel/uevent_helper; do (: >> $f) && echo GOT $f; done", alone: "it is root's, and would be the machine's"},
	{name: "control groups", line: "for d in $(find /sys/fs/cgroup -maxdepth 2 -type d 2>&-) /sys/fs/cgroup; do (: >> $d/cgroup.procs) && echo GOT $d; done", alone: "it is root's, and would be the machine's"},
	{name: "devices", line: "for d in /dev/[svn][dv][a-z]* /dev/loop* /dev/mem /dev/kmsg /dev/port; do (: >> $d) && echo GOT $d; done", alone: "they are root's, and would be the machine's"},
	{name: "a new device", line: "mknod disk b 7 0; mknod null c 1 3; test -b disk -o -c null && echo GOT a device", alone: "devices are root's to make"},
	{name: "a set-user-id file", line: "cp /usr/bin/true own; chmod u+s own; chmod g+s own; test -u own -o -g own && echo GOT a bit"},
	{name: "what covers a secret, taken away", line: "umount -l $THEIRS; umount -l /proc/sys; mount -t tmpfs none /tmp && echo GOT a mount; mount -o remount,rw,bind / && echo GOT it writable", alone: "mounts are root's"},
}

var protected = []row{
	{name: "the engine's own folder that is not there", line: "mkdir .wharf; echo x > .wharf/x", gap: gapProtected, prepare: withoutOwnFolder},
	{name: "a link of an earlier run", line: "echo x > l", gap: gapProtected, prepare: func(s *stage) { _ = os.Symlink(".git/config", filepath.Join(s.ws, "l")) }},
	{name: "a workspace that is reached by a link", line: "echo x >> .git/config", gap: gapProtected, flags: []string{"-C", "../by-link"}, prepare: func(s *stage) { _ = os.Symlink("ws", filepath.Join(s.top, "by-link")) }},
	{
		name: "git itself works", prepare: withRepository, alone: "it is to work", says: []string{"done"},
		line: "git status --porcelain >&2 && git add own.txt && git -c user.name=a -c user.email=a@example.com commit -qm done && git log --format=%s",
	},
}

// withoutOwnFolder takes away the folder of Wharf's in the workspace.
func withoutOwnFolder(s *stage) { _ = os.RemoveAll(filepath.Join(s.ws, ".wharf")) }

// withRepository makes the workspace's repository a real one.
func withRepository(s *stage) {
	_ = os.RemoveAll(filepath.Join(s.ws, ".git"))
	_ = exec.Command("git", "init", "-q", s.ws).Run()
}

var processes = []row{
	{name: "seeing one", line: "test -e /proc/$HOST && echo GOT it", gap: gapProcesses},
	{name: "reading its command line", line: "grep -q 'sta[y]' /proc/$HOST/cmdline && echo GOT it; grep -l 'sta[y]' /proc/[0-9]*/cmdline && echo GOT it"},
	{name: "ending one", line: "kill -KILL $HOST; kill -TERM $HOST; sleep 0.1"},
	{name: "ending its group", line: "kill -KILL -$HOST; sleep 0.1"},
	{name: "tracing one", line: "$PROBE reach trace $HOST | grep ' ok' && echo GOT it"},
	{name: "reading its memory", line: "$PROBE reach memory $HOST $ADDRESS"},
	{name: "its memory that is shared by System V", gap: gapShared, try: trySharedMemory},
	{name: "ending the caller's group", try: tryCallersGroup},
	{name: "outliving the command, holding its output", try: tryOutliving},
	{name: "outliving the time limit", try: tryOutlivingTheLimit},
	{name: "a process's own entries in /proc", line: "cat /proc/self/status | sed -n s/^NoNewPrivs://p", says: []string{"\t1"}, gap: gapProc, alone: "it is to work"},
	{name: "outliving a supervisor that is killed", try: tryOutlivingTheSupervisor},
}

var terminal = []row{
	{name: "typing into the caller's", try: tryTyping},
	{name: "having one", line: "$PROBE descriptors; (: < /dev/tty) && echo GOT it", says: []string{"terminal false", "controlling terminal false"}, alone: "the tests have none either"},
}

var network = []row{
	{name: "TCP to the host's loopback", line: "$PROBE dial tcp $TCP"},
	{name: "TCP by IPv6", line: "$PROBE dial tcp $TCP6"},
	{name: "UDP", line: "$PROBE dial udp $UDP"},
	{name: "UDP by IPv6", line: "$PROBE dial udp $UDP6"},
	{name: "private, public and metadata addresses", line: "for a in 10.0.0.1:80 192.168.1.1:80 1.1.1.1:443 169.254.169.254:80 [2606:4700:4700::1111]:443; do $PROBE dial tcp $a; done | grep ' ok' && echo GOT out", alone: "nothing of the tests goes there"},
	{name: "names", line: "getent hosts example.com && echo GOT a name; $PROBE dial udp 1.1.1.1:53 | grep ok && echo GOT out; $PROBE dial udp $UDP", alone: "nothing of the tests goes there"},
	{name: "a Unix socket outside: the SSH agent's, the session bus's", line: "$PROBE dial unix $AGENT"},
	{name: "a Unix socket in the workspace", line: "$PROBE dial unix $INNER"},
	{name: "a Unix socket without a file", line: "$PROBE dial unix $ABSTRACT"},
	{name: "a Unix socket for datagrams", line: "$PROBE dial unixgram $DATAGRAM"},
	{
		name: "sockets of other kinds", line: "$PROBE calls",
		says: []string{"socket unix EPERM", "socket vsock EPERM", "socket alg EPERM", "socket packet EPERM", "socket audit EPERM", "pair datagram EPERM", "pair raw EPERM"},
	},
	{name: "a server and its client in one run", line: "$PROBE loopback", says: []string{"loopback ok"}, alone: "it is to work", gap: gapLoopback},
	{name: "the proxy: a host that is not listed", line: `$PROBE reach ask "GET http://$CLOSED/ HTTP/1.1\r\nHost: $CLOSED\r\n\r\n"; $PROBE reach ask "CONNECT $CLOSED HTTP/1.1\r\nHost: $CLOSED\r\n\r\n"`, flags: listed, try: tryProxy},
	{
		name: "the proxy: other spellings of an address", flags: listed, try: tryProxy,
		line: `for h in 127.1 0x7f.1 2130706433 0177.0.0.1 [::ffff:127.0.0.1] 127.0.0.1. %31%32%37.0.0.1; do $PROBE reach ask "GET http://$h:${TCP#*:}/ HTTP/1.1\r\nHost: $h\r\n\r\n"; done`,
	},
	{name: "the proxy: a user in front of the host", line: `$PROBE reach ask "GET http://$TCP@$CLOSED/ HTTP/1.1\r\nHost: $TCP\r\n\r\n"; $PROBE reach ask "GET http://a@$TCP/ HTTP/1.1\r\nHost: $TCP\r\n\r\n"`, flags: listed, try: tryProxy},
	{name: "the proxy: smuggled lines", line: `$PROBE reach ask "GET http://$TCP/ HTTP/1.1\r\nHost: $TCP\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"; $PROBE reach ask "GET http://$TCP/\nX: HTTP/1.1\r\nHost: $TCP\r\n\r\n"`, flags: listed, try: tryProxy},
	{name: "the proxy: a Host header of another", try: tryForeignHost},
	{name: "the proxy: a name that stands for a private address", line: `$PROBE reach ask "GET http://inside.example:${TCP#*:}/ HTTP/1.1\r\nHost: inside.example\r\n\r\n"`, flags: []string{"--allow-net", "inside.example:$PORT"}, try: tryProxy},
	{name: "the proxy: TLS to another name", line: `$PROBE reach hello $TCP other.example`, flags: listed, try: tryProxy},
}

// listed lets a command talk to the stage's one server; see tryRow.
var listed = []string{"--allow-net", "$TCP"}

var environment = []row{
	{name: "the caller's variables", line: "env; export -p; tr '\\0' '\\n' < /proc/self/environ"},
	{name: "files that a shell reads, and functions", line: "bash -c 'tell'; bash -c :; sh -i -c : ; bash -ic :"},
	{name: "command lines", line: "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -e 'allow.[n]et' -e 'hidde[n].example' && echo GOT the policy", flags: []string{"--allow-net", "hidden.example"}, alone: "there is no policy outside"},
}

var exhaustion = []row{
	// Without a control group the user's other processes count too: those of the rows beside
	// this one, and what its own counter-check left.
	{name: "forks", line: "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 5 & sleep 5 & sleep 5 & sleep 5 & sleep 5 & sleep 5 & done; echo GOT 120; kill $(jobs -p)", flags: []string{"--set", "sandbox.limits.processes=24"}, try: tryForks},
	{name: "memory", line: "dd if=/dev/zero of=/dev/null bs=200M count=1 && echo GOT it; echo went on", flags: []string{"--set", `sandbox.limits.memory="64MiB"`}, says: []string{"went on"}},
	{name: "processor time", line: "while :; do :; done", flags: []string{"--set", `sandbox.limits.cpu="1s"`}, says: []string{"wharf: a process was ended at the limit of 1s of processor time (sandbox.limits.cpu)"}, alone: "it would not end"},
	{name: "temporary files", line: "fallocate -l 300M $TMPDIR/f && echo GOT it", gap: gapTemporary, alone: "it would fill the machine's"},
	{name: "shared memory", line: "fallocate -l 100M /dev/shm/f && echo GOT it", alone: "it would fill the machine's"},
	{name: "any other place", line: "for d in / /dev /dev/mqueue /etc /home /opt /proc /run /sys /usr /var /var/tmp /mnt /.box; do (echo x > $d/$$.x) && echo GOT $d; done", alone: "they are root's"},
	{name: "one file", line: "(dd if=/dev/zero of=big bs=1M count=3) && echo GOT it; exec dd if=/dev/zero of=big bs=1M count=3", flags: []string{"--set", `sandbox.limits.file_size="1MiB"`}, says: []string{"wharf: a process was ended at the 1 MiB limit on the size of a file (sandbox.limits.file_size)"}},
	{
		name: "many files", line: "i=0; while [ $i -lt 60 ]; do i=$((i+1)); dd if=/dev/zero of=f$i bs=1M count=4; sleep 1; done 2>&-; echo GOT time", flags: []string{"--set", `sandbox.limits.disk="16MiB"`},
		says: []string{"wharf: it was ended at the 16 MiB limit on what a command writes (sandbox.limits.disk)"}, alone: "it would end by itself, late",
	},
	{name: "open files", line: "$PROBE reach files 200", flags: []string{"--set", "sandbox.limits.open_files=100"}, says: []string{"files open /dev/null: too many open files"}},
	{name: "core dumps", line: "ulimit -c unlimited; test $(ulimit -c) = 0 || echo GOT them"},
	{name: "output", try: tryOutput},
}

// untried are the gaps that the suite does not go through, and why.
var untried = map[string]string{
	gapTree:    "a command cannot kill the monitor; TestMonitorBreaksDown does",
	"truncate": "it is one of older kernels; TestOlderLandlock has them",
}

var privilege = []row{
	{name: "namespaces", line: "$PROBE calls", says: []string{"unshare EPERM", "setns EPERM", "clone EPERM", "clone3 ENOSYS"}},
	{name: "keys and rings", line: "$PROBE calls", says: []string{"keyctl EPERM", "io_uring_setup ENOSYS"}},
	{name: "calls that are refused", line: "$PROBE refused | grep -v -e EPERM -e ENOSYS -e truncate | sed 's/^/GOT /'"},
	{name: "arguments that are refused", line: "$PROBE judged | grep -e device -e disk -e set-user -e set-group -e typing -e console -e rubbish -e raw -e packet -e tracing -e unix | grep -v -e EPERM -e 'a mode that' | sed 's/^/GOT /'"},
	{name: "capabilities", line: "$PROBE privileges", says: []string{"effective 0 0 permitted 0 0"}, alone: "an ordinary user has none"},
	{name: "new privileges", line: "$PROBE privileges | grep -q 'nonew 1' || echo GOT them"},
	{name: "a set-user-id program", line: "test $(/usr/games/setuid -u) != 0 || echo GOT root", ordinary: true, flags: []string{"--read", "/usr/games"}, try: trySetUserID},
	{name: "calls by another machine's table", line: "$PROBE reach other-table"},
}
