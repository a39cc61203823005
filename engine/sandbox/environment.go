package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// place is where a command finds its private folders.
type place struct{ home, tmp, cache string }

// environment returns the environment of a command, made from nothing: no
// variable of Wharf's own is in it.
func (s *Sandbox) environment(at place, profile Profile) []string {
	env := []string{
		"PATH=" + strings.Join(s.tools.path, ":"),
		"HOME=" + at.home, "TMPDIR=" + at.tmp,
		"USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "LANG=C.UTF-8", "TERM=dumb",
		"XDG_CACHE_HOME=" + at.cache, // pip, and whatever else keeps to the convention
		"GOCACHE=" + filepath.Join(at.cache, "go-build"), "GOTOOLCHAIN=local", "GOPROXY=off",
		"npm_config_cache=" + filepath.Join(at.cache, "npm"),
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", // the host's own may name helpers and tokens
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}
	if s.tools.modCache != "" {
		env = append(env, "GOMODCACHE="+s.tools.modCache)
	}
	return append(env, "WHARF_SANDBOX="+string(profile))
}

// openEnvironment returns the environment of a command that has the host's files; word says
// how it is confined: the caller's PATH and account, and still none of its other variables, since
// keys and tokens are among them.
func openEnvironment(getenv func(string) string, word string) []string {
	env := []string{"TERM=dumb", "GIT_TERMINAL_PROMPT=0", "WHARF_SANDBOX=" + word}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR"} {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// gitConfig returns the configuration file of git in the sandbox's home: the
// user's name and e-mail and nothing else, so that commits work. A repository's
// own settings still come first.
func gitConfig(getenv func(string) string) string {
	home := getenv("HOME")
	xdg := cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	found := map[string]string{"name": "Wharf agent", "email": "agent@localhost"}
	for _, file := range []string{filepath.Join(xdg, "git", "config"), filepath.Join(home, ".gitconfig")} {
		if text, err := os.ReadFile(file); err == nil {
			readIdentity(string(text), found)
		}
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	return "[user]\n\tname = \"" + quote.Replace(found["name"]) + "\"\n\temail = \"" + quote.Replace(found["email"]) + "\"\n"
}

// readIdentity puts the user.name and user.email of a git configuration into
// found. What it does not understand it leaves out.
func readIdentity(text string, found map[string]string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(line)
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if _, wanted := found[key]; !ok || !wanted || section != "[user]" {
			continue
		}
		if value = plainValue(value); value != "" {
			found[key] = value
		}
	}
}

// plainValue returns a value of a git configuration without comment and
// quotes; it is empty if there is more to it than that.
func plainValue(value string) string {
	value = strings.TrimSpace(value)
	if inner, ok := strings.CutPrefix(value, `"`); ok {
		value, _, ok = strings.Cut(inner, `"`)
		if !ok {
			return ""
		}
	} else if i := strings.IndexAny(value, "#;"); i >= 0 {
		value = strings.TrimSpace(value[:i])
	}
	if strings.ContainsAny(value, "\\\"\x00\n\r") {
		return ""
	}
	return value
}
