package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseSettings(t *testing.T) {
	tests := []struct {
		name, text string
		want       settings
	}{
		{"as git writes it", "[core]\n\thooksPath = .husky\n", settings{hooks: []string{".husky"}}},
		{"in any letters", "[CoRe]\nHOOKSPATH=.husky", settings{hooks: []string{".husky"}}},
		{"in quotes, with a comment", "[core] # x\n hooksPath = \".hus\"ky ; [core]\n", settings{hooks: []string{".husky"}}},
		{"on lines that go on", "[core]\nhooksPath = .hus\\\nky\n[core]\nhooksPath = .git\\\r\nhooks\r\n", settings{hooks: []string{".husky", ".githooks"}}},
		{"a comment does not go on", "# \\\n[core]\nhooksPath = a", settings{hooks: []string{"a"}}},
		{"each of several", "[core]\nhooksPath=a\n[x]\n[core]\nhooksPath=b\n", settings{hooks: []string{"a", "b"}}},
		{"of a subsection it is another", "[core \"x\"]\nhooksPath = a\n", settings{}},
		{"without a value", "[core]\nhooksPath\nhooksPath=\n", settings{}},
		{"behind a mark of the byte order", "\xef\xbb\xbf[core]\nhooksPath = a\n", settings{hooks: []string{"a"}}},
		{"what is included, and where", "[include]\npath = ../x\n[includeIf \"onbranch:main\"]\nPath = ~/y\n", settings{includes: []string{"../x", "~/y"}}},
		{"another working tree", "[core]\nworktree = ../../sub\n", settings{trees: []string{"../../sub"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := parseSettings([]byte(tt.text)); fmt.Sprint(got) != fmt.Sprint(tt.want) || err != nil {
				t.Errorf("parseSettings(%q) = %v, %v; want %v", tt.text, got, err, tt.want)
			}
		})
	}
}

// A hostile text neither breaks the parser nor takes long.
func FuzzParseSettings(f *testing.F) {
	for _, seed := range []string{"[core]\nhooksPath = a\\\nb", "[core \"\\", "[a]b=\"", "[a]b=\\", "\x00", "[", "[a]\nb=\"\\x\"", "[a \"\\\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseSettings(text); err != nil && strings.Contains(err.Error(), "broke down") {
			t.Logf("parseSettings(%q): %v", text, err) // which it says instead
		}
	})
}

func TestParseSettingsIsQuick(t *testing.T) {
	for _, piece := range []string{"\x00", "[a", "[a]\n", "[a]\nb=\"", "\xff", "[core]\nhooksPath=a\n", "\\\n", "[a \"\\", "#", "[a]\nb=\xff"} {
		began := time.Now()
		_, _ = parseSettings([]byte(strings.Repeat(piece, longestConfig/len(piece))))
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q, repeated, takes %v", piece, took)
		}
	}
}

// What the configuration names is found however it is written, and wherever it is.
func TestLookAtSettings(t *testing.T) {
	tests := []struct {
		name   string
		files  map[string]string
		hooks  []string // below the workspace
		config []string
	}{
		{"no configuration", map[string]string{".git/HEAD": ""}, nil, nil},
		{"relative to the top", map[string]string{".git/config": "[core]\nhooksPath = .husky"}, []string{".husky"}, nil},
		{"absolute", map[string]string{".git/config": "[core]\nhooksPath = WS/tools/../hooks/"}, []string{"hooks"}, nil},
		{"in the home", map[string]string{".git/config": "[core]\nhooksPath = ~/ws/hooks\nhooksPath = ~somebody/ws/other"}, []string{"hooks", "other"}, nil},
		{"through a link outside", map[string]string{".git/config": "[core]\nhooksPath = WS-link/hooks/new"}, []string{"hooks/new"}, nil},
		{"of the working tree", map[string]string{".git/config.worktree": "[core]\nhooksPath = hooks"}, []string{"hooks"}, nil},
		{"of husky, whose own folder is one below", map[string]string{".git/config": "[core]\nhooksPath = web/.husky/_"}, []string{"web/.husky"}, nil},
		{
			"in what is included, and in what that includes",
			map[string]string{
				".git/config": "[include]\npath = ../.gitconfig", ".gitconfig": "[includeIf \"gitdir:/\"]\npath = conf/more", "conf/more": "[core]\nhooksPath = hooks",
			},
			[]string{"hooks"},
			[]string{".gitconfig", "conf/more"},
		},
		{"in a circle", map[string]string{".git/config": "[include]\npath = config\n[core]\nhooksPath = a"}, []string{"a"}, []string{".git/config"}},
		{"of a repository that is pointed to", map[string]string{".git": "gitdir: .bare\n", ".bare/config": "[core]\nhooksPath = hooks"}, []string{"hooks"}, nil},
		{
			"of a working tree of another",
			map[string]string{
				".git": "gitdir: WS/main/.git/worktrees/w\n", "main/.git/worktrees/w/commondir": "../..\n", "main/.git/config": "[core]\nhooksPath = hooks",
			},
			[]string{"hooks"},
			nil,
		},
		{"of a working tree elsewhere", map[string]string{".git/config": "[core]\nworktree = ../sub\nhooksPath = hooks"}, []string{"hooks", "sub/hooks"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := folder(t)
			ws := filepath.Join(home, "ws")
			write(t, filepath.Join(ws, "hooks/old"), "")
			if err := os.Symlink("ws", ws+"-link"); err != nil {
				t.Fatal(err)
			}
			for path, text := range tt.files {
				write(t, filepath.Join(ws, path), strings.ReplaceAll(text, "WS", ws))
			}
			n := lookAtSettings(filepath.Join(ws, ".git"), ws, []string{home})
			n.hooks = slices.DeleteFunc(n.hooks, func(path string) bool { return !within(path, ws) })
			if got := relative(ws, n.hooks); !slices.Equal(got, tt.hooks) || len(n.doubts) > 0 {
				t.Errorf("hooks = %q, %q; want %q", got, n.doubts, tt.hooks)
			}
			if got := relative(ws, n.files); !slices.Equal(got, tt.config) {
				t.Errorf("files = %q; want %q", got, tt.config)
			}
		})
	}
}

// relative returns paths relative to dir, sorted, each once.
func relative(dir string, paths []string) (all []string) {
	for _, path := range paths {
		rel, _ := filepath.Rel(dir, path)
		all = append(all, rel)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Where a folder of hooks holds what must stay writable, its hooks count one by one.
func TestHooksAmongOtherThings(t *testing.T) {
	ws := folder(t)
	write(t, filepath.Join(ws, "sub/.git/config"), "[core]\nhooksPath = ..")
	write(t, filepath.Join(ws, ".git/config"), "[core]\nhooksPath = sub\n")
	for top, want := range map[string]string{".": "sub/pre-commit", "sub": "pre-commit"} {
		top = filepath.Join(ws, top)
		got := relative(ws, lookAtSettings(filepath.Join(top, ".git"), top, nil).hooks)
		if !slices.Contains(got, want) || len(got) != len(hookNames) {
			t.Errorf("%s: hooks = %q", top, got)
		}
	}
}

// What cannot be read as git does has the usual folders count.
func TestDoubtfulSettings(t *testing.T) {
	for _, tt := range []struct {
		name, why string
		make      func(config string) error
	}{
		{"what is no configuration", `1:1: illegal character U+0021 '!'`, func(config string) error { return os.WriteFile(config, []byte("!"), 0o600) }},
		{"a pipe", "it is no regular file", func(config string) error { return unix.Mkfifo(config, 0o600) }},
		{"a link", "CONFIG is a symbolic link", func(config string) error { return os.Symlink("HEAD", config) }},
		{"a large one", "it is larger than 256 KiB", func(config string) error { return os.WriteFile(config, make([]byte, longestConfig+1), 0o600) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws := folder(t)
			config := filepath.Join(filepath.Dir(write(t, filepath.Join(ws, ".git/HEAD"), "")), "config")
			if err := tt.make(config); err != nil {
				t.Fatal(err)
			}
			n := lookAtSettings(filepath.Join(ws, ".git"), ws, nil)
			want := config + " could not be read as git does (" + strings.ReplaceAll(tt.why, "CONFIG", config)
			if len(n.doubts) != 1 || !strings.HasPrefix(n.doubts[0], want) || !slices.Equal(relative(ws, n.hooks), []string{".githooks", ".husky"}) {
				t.Errorf("doubts %q, hooks %q; want %q", n.doubts, n.hooks, want)
			}
		})
	}
}

// A chain of includes ends, and what is not read any more is said.
func TestManyIncludes(t *testing.T) {
	ws := folder(t)
	write(t, filepath.Join(ws, ".git/config"), "[include]\npath = 0")
	for i := range mostConfigs + 5 {
		write(t, filepath.Join(ws, ".git", fmt.Sprint(i)), fmt.Sprintf("[include]\npath = %d", i+1))
	}
	if n := lookAtSettings(filepath.Join(ws, ".git"), ws, nil); len(n.doubts) != 1 || len(n.files) != mostConfigs-1 {
		t.Errorf("doubts %q, files %q", n.doubts, n.files)
	}
}

// configured makes a workspace with folders of hooks that configurations name.
func configured(t *testing.T) string {
	t.Helper()
	ws := repository(t)
	for path, text := range map[string]string{
		".git/config": "[core]\n\thooksPath = tools/.husky/_\n[include]\n\tpath = ../included\n", "included": "[core]\nhooksPath = new/hooks\n", "tools/.husky/pre-commit": canary,
		"tools/.husky/_/pre-commit": canary, "vendor/lib/.git/config": "[core]\n\thooksPath = .githooks\n", "tools/own": "x", "vendor/lib/own": "x",
		"mirror/HEAD": "ref: refs/heads/main\n", "mirror/config": "[core]\n\tbare = true\n", "mirror/hooks/post-update": canary, "mirror/objects/x": "", "mirror/refs/x": "",
	} {
		write(t, filepath.Join(ws, path), text)
	}
	return ws
}

// Hooks that lie elsewhere are held as those of .git/hooks are, and the rest stays writable.
func TestRefusesConfiguredHooks(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	for _, line := range []string{
		"echo x > tools/.husky/pre-commit", "echo x > tools/.husky/_/pre-push", "mv tools/.husky t; mkdir -p tools/.husky/_", "mv tools t && mkdir -p tools/.husky/_ && echo x > tools/.husky/_/pre-commit",
		"rm -rf tools/.husky", "echo '[core]' > included; mv included s", "mkdir -p new/hooks; echo x > new/hooks/pre-commit", "mv new n; mkdir n2; ln -s n2 new; mkdir n2/hooks",
		"mkdir vendor/lib/.githooks; echo x > vendor/lib/.githooks/pre-commit", "ln -s ../../tools vendor/lib/.githooks", "echo x > mirror/hooks/post-update", "echo x > mirror/config", "mv mirror m; mkdir -p mirror/hooks",
	} {
		t.Run(line, func(t *testing.T) {
			ws := configured(t)
			s := open(t, Bubblewrap, Config{Workspace: ws})
			before := snapshot(t, ws)
			out, _ := sh(t, s, line+"\necho y > tools/own; echo y > vendor/lib/own; echo y > mirror/own; echo tried")
			if !has(out, "tried") {
				t.Fatalf("the attempt did not run:\n%s", out)
			}
			after := snapshot(t, ws)
			for path := range after {
				_, was := before[path]
				for _, held := range []string{"tools/.husky/", "new/hooks", "vendor/lib/.githooks", "mirror/hooks/"} {
					if !was && strings.HasPrefix(path, held) {
						t.Errorf("%s is new", path)
					}
				}
			}
			for _, own := range []string{"tools/own", "vendor/lib/own", "mirror/own"} {
				if after[own] != "y\n" {
					t.Errorf("%s could not be written", own)
				}
			}
			for path, text := range before {
				if filepath.Base(path) != "own" && after[path] != text {
					t.Errorf("%s is %q; want %q", path, after[path], text)
				}
			}
		})
	}
}

// What a command makes where hooks are looked for is moved away, under both rungs.
func TestQuarantinesConfiguredHooks(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		ws := configured(t)
		s := open(t, rung, Config{Workspace: ws})
		_, res := sh(t, s, "mkdir new/hooks; echo planted > new/hooks/pre-commit")
		if len(res.Notes) != 1 || !strings.HasPrefix(res.Notes[0], "the command made new/hooks, which is protected: it was moved to .wharf/quarantine/") {
			t.Errorf("Notes = %q", res.Notes)
		}
		if _, err := os.Lstat(filepath.Join(ws, "new/hooks")); !os.IsNotExist(err) {
			t.Errorf("new/hooks: %v", err)
		}
	})
}

// A configuration that cannot be read is told once, and commands run.
func TestDoubtIsToldOnce(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		ws := folder(t)
		config := write(t, filepath.Join(ws, ".git/config"), "[core] hooksPath = x\n")
		s := open(t, rung, Config{Workspace: ws})
		_, res := sh(t, s, "true")
		want := config + " could not be read as git does (1:8: expected EOL, EOF, or comment): of the hooks that it may name, only those in .husky and .githooks are protected"
		if len(res.Notes) != 1 || res.Notes[0] != want {
			t.Errorf("Notes = %q; want %q", res.Notes, want)
		}
		if _, res := sh(t, s, "mkdir .husky"); len(res.Notes) != 1 || !strings.HasPrefix(res.Notes[0], "the command made .husky, which is protected") {
			t.Errorf("then Notes = %q", res.Notes)
		}
	})
}

// A folder of hooks may hold a repository, and be one that is held anyway.
func TestHooksAroundOthers(t *testing.T) {
	need(t, firstProgram(bwrapPaths) != "", "bubblewrap is not installed: apt install bubblewrap")
	ws := repository(t)
	write(t, filepath.Join(ws, ".git/config"), "[core]\nhooksPath = vendor\nhooksPath = .git/hooks\nhooksPath = .git\nhooksPath = .vscode/hooks\nhooksPath = .\n")
	s := open(t, Bubblewrap, Config{Workspace: ws})
	out, _ := sh(t, s, "echo x > vendor/lib/x; echo x > vendor/lib/.git/x; echo x > .git/hooks/x; echo x > .git/index && echo x > own.txt && echo tried; echo x > pre-commit")
	if !has(out, "tried") {
		t.Errorf("what is free could not be written:\n%s", out)
	}
	for _, path := range []string{"vendor/lib/x", "vendor/lib/.git/x", ".git/hooks/x", "pre-commit"} {
		if _, err := os.Lstat(filepath.Join(ws, path)); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}

// File tools are refused what commands are.
func TestRootSparesConfigured(t *testing.T) {
	ws := configured(t)
	root, err := OpenRoot(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	hooks, config := "core.hooksPath of git's configuration", "include.path of git's configuration"
	for name, why := range map[string]string{
		"tools/.husky/pre-commit": hooks, "tools/.HUSKY/new": hooks, "new/hooks/pre-commit": hooks, "vendor/lib/.githooks/x": hooks, "included": config,
		"mirror/config": "config of a bare repository", "mirror/hooks/x": "hooks of a bare repository", "tools/own": "", ".githooks/x": "", "mirror/description": "", "new/x": "",
	} {
		_, err := root.Write(name, []byte("x"), nil)
		want := fmt.Sprintf("refused: %s is protected (%s): trusted programs read it outside the sandbox; ask the user to change it", name, why)
		if why == "" && err != nil || why != "" && (err == nil || err.Error() != want) {
			t.Errorf("Write(%q): %v; want %s", name, err, want)
		}
	}
}
