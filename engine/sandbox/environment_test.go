package sandbox

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestGitIdentity(t *testing.T) {
	tests := []struct {
		name, xdg, home, want string
	}{
		{"nobody said", "", "", "[user]\n\tname = \"Wharf agent\"\n\temail = \"agent@localhost\"\n"},
		{"plain", "", "[user]\n\tname = Ann Lee # me\n\temail=ann@example.org\n", "[user]\n\tname = \"Ann Lee\"\n\temail = \"ann@example.org\"\n"},
		{"quoted", "", "[User]\nNAME = \"Ann; Lee\" ; x\n", "[user]\n\tname = \"Ann; Lee\"\n\temail = \"agent@localhost\"\n"},
		{"the home's file comes last", "[user]\nname = A\nemail = a@x\n", "[user]\nname = B\n", "[user]\n\tname = \"B\"\n\temail = \"a@x\"\n"},
		{"other sections do not count", "", "[core]\nname = A\n[user \"x\"]\nname = B\n", "[user]\n\tname = \"Wharf agent\"\n\temail = \"agent@localhost\"\n"},
		{"nothing else comes along", "", "[user]\nname = A\nsigningkey = K\n[credential]\nhelper = !steal\n", "[user]\n\tname = \"A\"\n\temail = \"agent@localhost\"\n"},
		{"what would need escapes is left out", "", "[user]\nname = A\\nB\nemail = \"a\n", "[user]\n\tname = \"Wharf agent\"\n\temail = \"agent@localhost\"\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			write(t, filepath.Join(home, ".config", "git", "config"), tt.xdg)
			write(t, filepath.Join(home, ".gitconfig"), tt.home)
			got := gitConfig(func(name string) string { return map[string]string{"HOME": home}[name] })
			if got != tt.want {
				t.Errorf("gitConfig = %q; want %q", got, tt.want)
			}
		})
	}
}

// Whatever a git configuration holds, what comes of it is one section with two
// plain values, and reading it again finds the same.
func FuzzReadIdentity(f *testing.F) {
	f.Add("[user]\nname = a\nemail = b\n")
	f.Add("[user]\nname = \"a # b\" c\n[x]\n")
	f.Add("[user]\nname = a\\\n\tb\n")
	f.Fuzz(func(t *testing.T, text string) {
		found := map[string]string{"name": "n", "email": "e"}
		readIdentity(text, found)
		for key, value := range found {
			if value == "" || strings.ContainsAny(value, "\n\r\x00\"\\") {
				t.Fatalf("%s = %q", key, value)
			}
			again := map[string]string{key: ""}
			readIdentity("[user]\n"+key+" = \""+value+"\"\n", again)
			if again[key] != value {
				t.Errorf("%s = %q, read again %q", key, value, again[key])
			}
		}
	})
}

// The environment inside is exactly this, whatever Wharf's own holds.
func TestEnvironment(t *testing.T) {
	for _, v := range []string{
		"BASH_ENV", "ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_OPTIONS", "GIT_DIR", "GOFLAGS",
		"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HTTPS_PROXY", "OPENAI_API_KEY", "BASH_FUNC_ls%%",
	} {
		if v == "LD_PRELOAD" || v == "LD_LIBRARY_PATH" {
			t.Setenv(v, "/nonexistent")
			continue
		}
		t.Setenv(v, canary)
	}
	onEachRung(t, func(t *testing.T, rung Rung) {
		out, _ := sh(t, open(t, rung, Config{}), "env")
		known := " PATH HOME TMPDIR USER LOGNAME SHELL LANG TERM XDG_CACHE_HOME GOCACHE GOTOOLCHAIN GOPROXY npm_config_cache " +
			"GIT_TERMINAL_PROMPT GIT_CONFIG_NOSYSTEM GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 GOMODCACHE WHARF_SANDBOX PWD OLDPWD SHLVL _ "
		for _, name := range names(strings.Split(strings.TrimSpace(out), "\n")) {
			if !strings.Contains(known, " "+name+" ") {
				t.Errorf("%q is set inside", name)
			}
		}
		if strings.Contains(out, canary) || !strings.Contains(out, "HOME=") {
			t.Errorf("the environment inside:\n%s", out)
		}
	})
}
