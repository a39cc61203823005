package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrantedPaths(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		top := folder(t)
		data, out := filepath.Join(top, "data"), filepath.Join(top, "out")
		write(t, filepath.Join(data, "f"), "data\n")
		write(t, filepath.Join(out, "f"), "")
		write(t, filepath.Join(data, "ws", "f"), "workspace\n")
		below := filepath.Join(data, "below")
		write(t, filepath.Join(below, "f"), "below\n")
		file := write(t, filepath.Join(top, "one", "file"), "one\n")
		other := write(t, filepath.Join(top, "one", "other"), canary)
		cfg := Config{Workspace: filepath.Join(data, "ws"), Read: []string{data}, Write: []string{out, file, below}}
		s := open(t, rung, cfg)
		got, _ := sh(t, s, fmt.Sprintf("cat %s/f %s %s; cat %s; echo x > %s/f; echo own > own; echo x > %s/x; echo two > %s; echo more > %s/f; echo tried", data, file, "f", other, data, out, file, below))
		for _, line := range []string{"data", "one", "workspace", "tried"} {
			if !has(got, line) {
				t.Errorf("there is no line %q:\n%s", line, got)
			}
		}
		for path, want := range map[string]string{
			filepath.Join(data, "f"): "data\n", filepath.Join(out, "x"): "x\n", filepath.Join(below, "f"): "more\n", file: "two\n", filepath.Join(cfg.Workspace, "own"): "own\n",
		} {
			if text, err := os.ReadFile(path); string(text) != want {
				t.Errorf("%s holds %q, %v; want %q", path, text, err, want)
			}
		}
		if strings.Contains(got, canary) {
			t.Error("what lies beside a file can be read")
		}
		cfg.Profile = ReadOnly
		sh(t, open(t, rung, cfg), "echo no > "+out+"/x; echo no > "+file)
		if text, _ := os.ReadFile(filepath.Join(out, "x")); string(text) != "x\n" {
			t.Errorf("the profile read-only has changed it to %q", text)
		}
	})
}

// What is protected is so in every folder that may be written.
func TestProtectedInGrantedFolders(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	out := repository(t)
	s := open(t, Bubblewrap, Config{Write: []string{out}})
	before := snapshot(t, filepath.Join(out, ".git"))
	_, res := sh(t, s, fmt.Sprintf("cd %s; echo x > .git/config; echo x > .git/hooks/pre-commit; mv .git g; rm -rf .git/hooks; mkdir -p .claude; cd vendor/lib && echo x > .git/config; true", out))
	for path, was := range before {
		if now := snapshot(t, filepath.Join(out, ".git"))[path]; now != was {
			t.Errorf(".git/%s is now %q", path, now)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(out, "vendor", "lib", ".git", "config")); string(text) == "x\n" {
		t.Error("the nested repository's configuration was written")
	}
	if len(res.Notes) != 1 || !strings.Contains(res.Notes[0], ".claude, which is protected") {
		t.Errorf("Notes = %q", res.Notes)
	}
}

func TestNewRefusesGrants(t *testing.T) {
	top := folder(t)
	ws, state := filepath.Join(top, "ws"), filepath.Join(top, "state")
	write(t, filepath.Join(ws, "sub", "f"), "")
	write(t, filepath.Join(state, "sub", "f"), "")
	write(t, filepath.Join(top, "data", ".vscode", "f"), "")
	home := filepath.Join(top, "people", "me")
	write(t, filepath.Join(home, "f"), "")
	t.Setenv("HOME", home)
	link := filepath.Join(top, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	const wide = "it is a home or system folder, or holds one, or lies in one of the kernel's: choose a narrower one"
	tests := []struct{ name, path, read, write string }{ // why it cannot be read, and why not written where that is another reason
		{"a relative path", "data", "it is not absolute: name the whole path", ""},
		{"what is not there", top + "/no", fmt.Sprintf("lstat %s/no: no such file or directory", top), ""},
		{"a link", link, fmt.Sprintf("it is reached through a symbolic link or a detour: use %q", home), ""},
		{"a device", "/dev/null", "it is neither a file nor a folder", ""},
		{"a home", home, wide, ""},
		{"what holds a home", filepath.Dir(home), wide, ""},
		{"a system folder", "/var", wide, ""},
		{"the kernel's", "/proc/self/task", "", ""},
		{"a file in /etc", "/etc/passwd", wide, ""},
		{"a hidden folder", state, fmt.Sprintf("it overlaps %q, which must stay hidden: choose a folder apart from it", state), ""},
		{"in a hidden folder", state + "/sub", fmt.Sprintf("it overlaps %q, which must stay hidden: choose a folder apart from it", state), ""},
		{"in the workspace", ws + "/sub", "it lies in the workspace, which is there anyway: leave it out", ""},
		{"a protected one", top + "/data/.vscode", "-", `it is protected, as ".vscode": what is written there acts outside the sandbox`},
		{"programs", "/usr/share/doc", "-", "programs of the system are in it: choose a folder of your own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for kind, cfg := range map[string]Config{
				"read": {Workspace: ws, Hidden: []string{state}, Read: []string{tt.path}}, "write": {Workspace: ws, Hidden: []string{state}, Write: []string{tt.path}},
			} {
				want := tt.read
				if kind == "write" && tt.write != "" {
					want = tt.write
				}
				_, err := New(cfg)
				if want == "-" {
					if err != nil {
						t.Errorf("%s: %v", kind, err)
					}
				} else if err == nil || want != "" && err.Error() != fmt.Sprintf("configure sandbox: %s %q: %s", kind, tt.path, want) {
					t.Errorf("New error = %v; want %s: %s", err, kind, want)
				}
			}
		})
	}
	both := Config{Workspace: ws, Read: []string{top + "/data"}, Write: []string{top + "/data"}}
	want := fmt.Sprintf("configure sandbox: write %q: it overlaps %q: choose folders apart from each other", top+"/data", top+"/data")
	if _, err := New(both); err == nil || err.Error() != want {
		t.Errorf("New error = %v; want %s", err, want)
	}
}
