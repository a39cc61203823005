package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRating(t *testing.T) {
	young := fakeProgram(t, "echo bubblewrap 0.12.1\n")
	old := fakeProgram(t, "echo bubblewrap 0.8.0\n")
	silent := fakeProgram(t, "exit 1\n")
	const nested = "this bubblewrap or kernel cannot forbid nested user namespaces: the system call filter alone does"
	tests := []struct {
		name string
		by   func(*Sandbox) confiner
		want []string
	}{
		{"all of it", func(s *Sandbox) confiner { return bwrap{program: young, sandbox: s, noNested: true, grouped: true} }, nil},
		{
			"an old bubblewrap",
			func(s *Sandbox) confiner { return bwrap{program: old, sandbox: s, noNested: true, grouped: true} },
			[]string{"bubblewrap 0.8.0 is older than 0.12: it follows links where it makes places to mount, unless your distribution has mended that; Wharf gives it none to follow"},
		},
		{
			"one that does not say", func(s *Sandbox) confiner { return bwrap{program: silent, sandbox: s, noNested: true, grouped: true} },
			[]string{"the version of bubblewrap is not known"},
		},
		{"nested namespaces", func(s *Sandbox) confiner { return bwrap{program: young, sandbox: s, grouped: true} }, []string{nested}},
		{"Landlock", func(s *Sandbox) confiner { return landlock{sandbox: s, grouped: true} }, []string{"without bubblewrap there are no namespaces; the gaps below stay open"}},
		{"nothing", func(*Sandbox) confiner { return unconfined{} }, []string{"commands are not confined at all, by --no-sandbox"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(Config{Workspace: folder(t)})
			if err != nil {
				t.Fatal(err)
			}
			s.chosen = tt.by(s)
			want := tt.want
			if os.Getuid() == 0 && s.chosen.rung() != Unconfined {
				want = append(want, "Wharf is run by root: some of the kernel's checks ask for the user alone; use an ordinary one")
			}
			full, reasons, err := s.Rating(t.Context())
			if full != (len(want) == 0) || fmt.Sprintf("%q", reasons) != fmt.Sprintf("%q", want) || err != nil {
				t.Errorf("Rating = %v, %q, %v; want %q", full, reasons, err, want)
			}
		})
	}
}

func TestIsWhole(t *testing.T) {
	for version, want := range map[string]bool{
		"0.12.0": true, "0.12": true, "0.13.1": true, "1.0": true, "0.8.0": false, "0.11.9": false, "": false, "x.y": false, "0": false, "0.12rc": false,
	} {
		if got := isWhole(version); got != want {
			t.Errorf("isWhole(%q) = %v; want %v", version, got, want)
		}
	}
}

// What keeps bubblewrap from working is told together with what to do.
func TestRemedyForBubblewrap(t *testing.T) {
	tests := []struct{ name, setting, value, want string }{
		{
			"AppArmor", "kernel/apparmor_restrict_unprivileged_userns", "1\n", "AppArmor forbids user namespaces. As root, write this to /etc/apparmor.d/bwrap, and run apparmor_parser -r /etc/apparmor.d/bwrap:\n" +
				"abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\n  userns,\n  include if exists <local/bwrap>\n}",
		},
		{"a switch of Debian's", "kernel/unprivileged_userns_clone", "0\n", "this system forbids user namespaces: as root, run sysctl -w kernel.unprivileged_userns_clone=1"},
		{"none are allowed", "user/max_user_namespaces", "0\n", "this system allows no user namespaces: as root, run sysctl -w user.max_user_namespaces=15000"},
		{"a container", "user/max_user_namespaces", "15000\n", "in a container, user namespaces and the mounting of /proc must be allowed by whoever started it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			read := func(name string) ([]byte, error) {
				if name == "/proc/sys/"+tt.setting {
					return []byte(tt.value), nil
				}
				return nil, errors.New("there is none")
			}
			if got := remedyFor("/usr/bin/bwrap", read); got != tt.want {
				t.Errorf("remedyFor = %s; want %s", got, tt.want)
			}
		})
	}
	s, err := New(Config{Workspace: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.bwrapPaths, s.landlock = []string{fakeBwrap(t)}, func() int { return 0 }
	if text := s.Explain(t.Context()); !strings.Contains(text, "\nbubblewrap   does not work: setting up uid map: Permission denied\n") {
		t.Errorf("Explain:\n%s", text)
	}
}

func TestExplainFullAccess(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	dir := home(t)
	s := open(t, Bubblewrap, Config{Profile: FullAccess})
	text := s.Explain(t.Context())
	for _, line := range []string{"profile      full-access", "network      the host's", "hidden       " + filepath.Join(dir, ".ssh"), "asked        about each command, every time"} {
		if !has(text, line) {
			t.Errorf("Explain lacks %q:\n%s", line, text)
		}
	}
}
