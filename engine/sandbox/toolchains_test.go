package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindToolchains(t *testing.T) {
	top := folder(t)
	home := filepath.Join(top, "me")
	for _, f := range []string{
		"bin/tool", ".cargo/bin/cargo", ".cargo/credentials.toml", ".pyenv/shims/python", ".pyenv/versions/3/bin/python",
		"sdk/go1.26/bin/go", "sdk/go1.26/pkg/tool/compile", "go/pkg/mod/cache/x", ".ssh/bin/x", ".config/app/bin/x", "state/bin/x",
		"../elsewhere/go/bin/go", "../elsewhere/go/pkg/tool/compile", "private/bin/x", "ws/bin/x", "ws/mod/x", "cache/x",
	} {
		write(t, filepath.Join(home, f), "")
	}
	for name, target := range map[string]string{
		"gobin": "elsewhere/go/bin", "to-home": home, "me/by-ws": "ws/out", "me/ws/out": "../private", "me/ws/back": home,
		"me/ws/loop": "loop", "me/ws/bin/go": "../../sdk/go1.26/bin/go", "me/ws/gobin": "../sdk/go1.26/bin", "me/cache/out": "../private",
	} {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name       string
		path       string // :-separated; ~ is the home folder, ^ the folder above it
		configured []string
		env        map[string]string
		want       toolchains // without the system's PATH
	}{
		{name: "a plain PATH needs nothing", path: "/usr/bin:/bin"},
		{name: "a folder of programs in the home", path: "~/bin", want: toolchains{roots: []string{"~/bin"}, path: []string{"~/bin"}}},
		{name: "its neighbours stay hidden", path: "~/.cargo/bin", want: toolchains{roots: []string{"~/.cargo/bin"}, path: []string{"~/.cargo/bin"}}},
		{name: "a version manager comes whole", path: "~/.pyenv/shims", want: toolchains{roots: []string{"~/.pyenv"}, path: []string{"~/.pyenv/shims"}}},
		{name: "Go in sdk", path: "~/sdk/go1.26/bin", want: toolchains{roots: []string{"~/sdk"}, path: []string{"~/sdk/go1.26/bin"}}},
		{name: "Go elsewhere, by a link", path: "^/gobin", want: toolchains{roots: []string{"^/elsewhere/go"}, path: []string{"^/elsewhere/go/bin"}}},
		{name: "never the home itself", path: "~"},
		{name: "nor by a link", path: "^/to-home"},
		{name: "nor what holds it", path: "^", configured: []string{"^"}},
		{name: "nor a secret", path: "~/.ssh/bin:~/.config/app/bin"},
		{name: "nor what holds a secret", configured: []string{"~/.cargo"}},
		{name: "nor what is hidden", path: "~/state/bin", configured: []string{"~/state"}},
		{name: "a relative entry is nobody's", path: "bin:.:"},
		{name: "what is configured is seen", configured: []string{"^/elsewhere"}, want: toolchains{roots: []string{"^/elsewhere"}}},
		{name: "the kernel's and the system's folders are not", configured: []string{"/proc", "/etc", "/var/lib", "/", "/run"}},
		{
			name: "the module cache by HOME", env: map[string]string{"HOME": "~"},
			want: toolchains{roots: []string{"~/go/pkg/mod"}, modCache: "~/go/pkg/mod"},
		},
		{
			name: "the module cache by GOMODCACHE", env: map[string]string{"GOMODCACHE": "^/elsewhere", "HOME": "~"},
			want: toolchains{roots: []string{"^/elsewhere"}, modCache: "^/elsewhere"},
		},
		{name: "a folder of programs in the workspace", path: "~/ws/bin", want: toolchains{path: []string{"~/ws/bin"}}},
		{
			name: "a module cache in the workspace", env: map[string]string{"GOMODCACHE": "~/ws/mod", "HOME": "~"},
			want: toolchains{modCache: "~/ws/mod"},
		},
		{name: "a link in the workspace shows nothing outside", path: "~/ws/out/bin:~/ws/out:~/ws/back/ws/out", configured: []string{"~/ws/out"}},
		{name: "nor does one outside that leads through it", path: "~/by-ws"},
		{name: "nor one to a Go that is outside", path: "~/ws/gobin:~/ws/bin", want: toolchains{path: []string{"~/ws/bin"}}},
		{name: "nor one to a module cache", env: map[string]string{"GOMODCACHE": "~/ws/out", "HOME": "~"}},
		{name: "nor one in the workspace's cache", path: "~/cache/out", configured: []string{"~/cache/out"}},
		{name: "a link that leads back into the workspace", path: "~/ws/back/ws/bin", want: toolchains{path: []string{"~/ws/bin"}}},
		{name: "links without end", path: "~/ws/loop:~/ws/loop/x"},
		{name: "a module cache that is no such thing", env: map[string]string{"GOMODCACHE": "~", "HOME": "~"}},
	}
	fill := func(s string) string {
		return strings.NewReplacer("~", home, "^", top).Replace(s)
	}
	fillAll := func(all []string) []string {
		var filled []string
		for _, s := range all {
			filled = append(filled, fill(s))
		}
		return filled
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := finder{
				getenv: func(name string) string {
					if name == "PATH" {
						return fill(tt.path)
					}
					return fill(tt.env[name])
				},
				homes: []string{home}, hidden: []string{filepath.Join(home, "state")},
				workspace: filepath.Join(home, "ws"), cache: filepath.Join(home, "cache"),
			}
			got := f.find(fillAll(tt.configured))
			got.path = slices.DeleteFunc(got.path, func(dir string) bool { return within(dir, "/usr") || slices.Contains(systemPath, dir) })
			want := toolchains{roots: fillAll(tt.want.roots), path: fillAll(tt.want.path), modCache: fill(tt.want.modCache)}
			if len(got.path) == 0 {
				got.path = nil
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(toolchains{})); diff != "" {
				t.Errorf("find (-want +got):\n%s", diff)
			}
		})
	}
}
