package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestNewRefuses(t *testing.T) {
	top := folder(t)
	ws := filepath.Join(top, "ws")
	file := write(t, filepath.Join(ws, "file"), "")
	link := filepath.Join(top, "link")
	if err := os.Symlink(ws, link); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "people", "me")
	write(t, filepath.Join(home, "project", "f"), "")
	t.Setenv("HOME", home)
	state := filepath.Join(top, "state")
	write(t, filepath.Join(state, "log"), "")
	const wide = "it is a home or system folder, or holds one: choose a project's own folder"
	tests := []struct {
		name string
		cfg  Config
		want string // after "configure sandbox: "
	}{
		{"no workspace", Config{}, `workspace "": it is not absolute: name the whole path`},
		{"a relative one", Config{Workspace: "ws"}, `workspace "ws": it is not absolute: name the whole path`},
		{"one that is not there", Config{Workspace: top + "/no"}, fmt.Sprintf("workspace %q: lstat %s/no: no such file or directory", top+"/no", top)},
		{"a file", Config{Workspace: file}, fmt.Sprintf("workspace %q: it is not a folder", file)},
		{"a link", Config{Workspace: link}, fmt.Sprintf("workspace %q: it is reached through a symbolic link or a detour: use %q", link, ws)},
		{"a detour", Config{Workspace: ws + "/"}, fmt.Sprintf("workspace %q: it is reached through a symbolic link or a detour: use %q", ws+"/", ws)},
		{"the root", Config{Workspace: "/"}, `workspace "/": ` + wide},
		{"a system folder", Config{Workspace: "/usr"}, `workspace "/usr": ` + wide},
		{"the shared temporary folder", Config{Workspace: "/tmp"}, `workspace "/tmp": ` + wide},
		{"inside the kernel's folders", Config{Workspace: "/proc/self/task"}, ""},
		{"inside /etc", Config{Workspace: "/etc/alternatives"}, `workspace "/etc/alternatives": ` + wide},
		{"a home", Config{Workspace: home}, fmt.Sprintf("workspace %q: %s", home, wide)},
		{"what holds a home", Config{Workspace: filepath.Dir(home)}, fmt.Sprintf("workspace %q: %s", filepath.Dir(home), wide)},
		{
			"what holds a hidden folder",
			Config{Workspace: top, Hidden: []string{state}},
			fmt.Sprintf("workspace %q: %s", top, wide),
		},
		{
			"a hidden folder",
			Config{Workspace: state, Hidden: []string{state}},
			fmt.Sprintf("workspace %q: it overlaps %q, which must stay hidden: choose a folder apart from it", state, state),
		},
		{
			"what holds nothing but a hidden folder",
			Config{Workspace: state, Hidden: []string{state + "/log"}},
			fmt.Sprintf("workspace %q: it overlaps %q, which must stay hidden: choose a folder apart from it", state, state+"/log"),
		},
		{"an unknown profile", Config{Workspace: ws, Profile: "yolo"}, `unknown profile "yolo": use "read-only", "workspace-write" or "full-access"`},
		{"an unknown vcs", Config{Workspace: ws, VCS: "none"}, `unknown vcs "none": use "readonly" or leave it out`},
		{"an unknown opening", Config{Workspace: ws, Allow: []string{"all"}}, `cannot allow "all": use "unix-sockets" or "ptrace"`},
		{"too little memory", Config{Workspace: ws, Limits: Limits{Memory: 1}}, "limits: 1 bytes of memory are too few: allow 16 MiB at least"},
		{"too few processes", Config{Workspace: ws, Limits: Limits{Processes: -1}}, "limits: -1 processes are too few: allow 8 at least"},
		{"too few open files", Config{Workspace: ws, Limits: Limits{OpenFiles: 3}}, "limits: 3 open files are too few: allow 16 at least"},
		{"less than nothing", Config{Workspace: ws, Limits: Limits{FileSize: -1}}, "limits: a file cannot have -1 bytes"},
		{"no time", Config{Workspace: ws, Limits: Limits{CPU: 1}}, "limits: a processor time of 1ns is too short: allow a second at least"},
		{"a rung that cannot be required", Config{Workspace: ws, Require: Landlock}, `cannot require "landlock": only "bwrap" can be`},
		{
			"a cache inside the workspace",
			Config{Workspace: ws, CacheDir: ws + "/cache"},
			fmt.Sprintf("cache folder %q: it is writable for commands: choose a folder of its own, apart from the workspace", ws+"/cache"),
		},
		{
			"a home as cache",
			Config{Workspace: ws, CacheDir: home},
			fmt.Sprintf("cache folder %q: it is writable for commands: choose a folder of its own, apart from the workspace", home),
		},
		{"a relative cache", Config{Workspace: ws, CacheDir: "cache"}, `cache folder "cache": it is not absolute: name the whole path`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.cfg)
			if err == nil || (tt.want != "" && err.Error() != "configure sandbox: "+tt.want) {
				t.Errorf("New error = %v; want %q", err, tt.want)
			}
		})
	}
	if _, err := os.Lstat(filepath.Join(ws, "cache")); err == nil {
		t.Error("a cache folder that was refused has been made")
	}
	for _, good := range []string{ws, filepath.Join(home, "project")} {
		if _, err := New(Config{Workspace: good, Hidden: []string{state}, CacheDir: filepath.Join(state, "cache")}); err != nil {
			t.Errorf("New(%q): %v", good, err)
		}
	}
}

// A workspace that was put in another's place after the check is not used.
func TestReplacedWorkspace(t *testing.T) {
	top := folder(t)
	ws := filepath.Join(top, "ws")
	write(t, filepath.Join(ws, "f"), "")
	s, err := New(Config{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("run command: workspace %q was replaced since the session began: start a new one", ws)
	replace := map[string]func() error{
		"by a folder": func() error { return os.Mkdir(ws, 0o755) },
		"by a link":   func() error { return os.Symlink("/usr", ws) },
	}
	if err := os.Rename(ws, ws+"-old"); err != nil {
		t.Fatal(err)
	}
	for how, put := range replace {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), Command{Line: "true"}); err == nil || err.Error() != want {
			t.Errorf("%s: Run error = %v; want %q", how, err, want)
		}
		if err := os.Remove(ws); err != nil {
			t.Fatal(err)
		}
	}
}
