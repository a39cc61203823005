package sandbox

import (
	"bytes"
	"strings"
	"testing"
)

func TestRemedies(t *testing.T) {
	ws := folder(t)
	s, err := New(Config{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	const limit = "The limit is sandbox.limits."
	tests := []struct {
		name    string
		profile Profile
		rung    Rung
		line    string
		want    string
	}{
		{"a write outside", WorkspaceWrite, Bubblewrap, "touch: cannot touch '/srv/x': Read-only file system", remedyWrite},
		{"a write under the profile read-only", ReadOnly, Bubblewrap, "touch: cannot touch 'x': Read-only file system", remedyProfile},
		{"git's own lock there", ReadOnly, Bubblewrap, "fatal: Unable to create '" + ws + "/.git/index.lock': Read-only file system", remedyProfile},
		{"a hook", WorkspaceWrite, Bubblewrap, "sh: 1: cannot create .git/hooks/pre-commit: Read-only file system", remedyAsk},
		{"a hook, by node", WorkspaceWrite, Bubblewrap, "Error: EROFS: read-only file system, open '" + ws + "/.vscode/tasks.json'", remedyAsk},
		{"the folder of a repository", WorkspaceWrite, Bubblewrap, "mv: cannot move '.git' to 'g': Device or resource busy", remedyAsk},
		{"another busy thing", WorkspaceWrite, Bubblewrap, "rm: cannot remove 'mnt': Device or resource busy", ""},
		{"what is not there in the private folder", WorkspaceWrite, Bubblewrap, "cat: /tmp/data: No such file or directory", remedyPrivate},
		{"a folder that is not there", WorkspaceWrite, Bubblewrap, "sh: 1: cannot create /srv/out/d: Directory nonexistent", remedyRead},
		{"what is not there", WorkspaceWrite, Bubblewrap, "cat: /srv/data: No such file or directory", remedyRead},
		{"what is not there in the workspace", WorkspaceWrite, Bubblewrap, "cat: " + ws + "/x: No such file or directory", ""},
		{"nor by a relative path", WorkspaceWrite, Bubblewrap, "cat: x/y: No such file or directory", ""},
		{"nor among the programs", WorkspaceWrite, Bubblewrap, "cat: /usr/share/x: No such file or directory", ""},
		{"an ordinary lack of rights", WorkspaceWrite, Bubblewrap, "cat: /srv/x: Permission denied", ""},
		{"the same under Landlock", WorkspaceWrite, Landlock, "cat: /srv/x: Permission denied", remedyRead + ", or sandbox.write"},
		{"a script without its bit", WorkspaceWrite, Landlock, "sh: 1: ./x: Permission denied", ""},
		{"no network", WorkspaceWrite, Bubblewrap, "curl: (6) Could not resolve host: example.com", remedyNetwork},
		{"no route", WorkspaceWrite, Bubblewrap, "connect: Network is unreachable", remedyNetwork},
		{"no socket", WorkspaceWrite, Landlock, "listen tcp 127.0.0.1:0: socket: operation not permitted", remedyNetwork},
		{"no Unix socket", WorkspaceWrite, Bubblewrap, "socket: Operation not permitted", remedySockets},
		{"no debugger", WorkspaceWrite, Bubblewrap, "warning: ptrace: Operation not permitted", remedyPtrace},
		{"no namespace", WorkspaceWrite, Bubblewrap, "unshare: unshare failed: Operation not permitted", remedyCall},
		{"no memory", WorkspaceWrite, Bubblewrap, "dd: memory exhausted by input buffer of size 104857600 bytes (100 MiB)", limit + "memory"},
		{"no processes", WorkspaceWrite, Bubblewrap, "/bin/sh: 1: Cannot fork", limit + "processes"},
		{"no descriptors", FullAccess, Bubblewrap, "open: Too many open files", limit + "open_files"},
		{"a file too large", WorkspaceWrite, Landlock, "write: File too large", limit + "file_size"},
		{"full access has files and network", FullAccess, Bubblewrap, "curl: (6) Could not resolve host: example.com", ""},
		{"a failure of its own", WorkspaceWrite, Bubblewrap, "--- FAIL: TestX (0.00s)", ""},
		{"nothing", WorkspaceWrite, Bubblewrap, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.remedy(tt.profile, tt.rung, tt.line); got != tt.want {
				t.Errorf("remedy(%q) = %q; want %q", tt.line, got, tt.want)
			}
		})
	}
}

// What the kernel really says, and what is made of it.
func TestRefused(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		const outside = "/etc/hostname" // is there nearly everywhere, and in no sandbox
		s := open(t, rung, Config{})
		reading := map[Rung]string{Bubblewrap: remedyRead, Landlock: remedyRead + ", or sandbox.write"}[rung]
		tests := []struct {
			name, line string
			want       []string
		}{
			{"reading outside", "cat " + outside, []string{reading}},
			{"a failure that is over", "cat " + outside + "; true", nil},
			{"a failure of its own", "cat nothing; exit 3", nil},
			{"the network", probe(t, "loopback") + " 2>&1; " + probe(t, "dial", "tcp", "192.0.2.1:9") + " >&2; exit 1", []string{remedyNetwork}},
			{"twice the same", "cat " + outside + " " + outside + "; exit 1", []string{reading}},
			{"far from the end", "cat " + outside + "; head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", nil},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				var out, errs bytes.Buffer
				res, err := s.Run(t.Context(), Command{Line: tt.line, Stdout: &out, Stderr: &errs})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, r := range res.Refused {
					got = append(got, r.Remedy)
					if !strings.Contains(errs.String(), r.What) || !strings.HasPrefix(r.String(), `the sandbox may have refused this: "`) {
						t.Errorf("Refusal %q is not what was said: %q", r, errs.String())
					}
				}
				if strings.Join(got, "|") != strings.Join(tt.want, "|") {
					t.Errorf("Refused = %q; want %q\n%.2000s", got, tt.want, errs.String())
				}
			})
		}
	})
}

// Output that is no text, or one endless line, is no trouble.
func FuzzRefusals(f *testing.F) {
	f.Add("touch: cannot touch '/srv/x': Read-only file system\n\xff/\x00")
	f.Add(strings.Repeat("/", 5000) + " EROFS")
	s := &Sandbox{cfg: Config{Workspace: "/w"}}
	f.Fuzz(func(t *testing.T, said string) {
		for _, rung := range []Rung{Bubblewrap, Landlock} {
			all := s.refusals(WorkspaceWrite, Result{ExitCode: 1, Rung: rung}, said)
			if len(all) > mostRefusals {
				t.Errorf("%d refusals", len(all))
			}
			for _, r := range all {
				if len(r.What) > longestQuoted+len("…") || r.Remedy == "" {
					t.Errorf("Refusal %+v", r)
				}
			}
		}
	})
}
