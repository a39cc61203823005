package extensions_test

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
)

// Whatever follows it, a command that touches a protected path is denied, and the
// guard answers.
func FuzzProtectPaths(f *testing.F) {
	for _, file := range []string{"denied", "allowed"} {
		for _, command := range lines(f, "no-rm/testdata/"+file+".txt") {
			f.Add(command)
		}
	}
	for _, command := range []string{"${", "$((", "`", "{a,{b,c", "<<", "<<'", "$'", "{1..", "\\", "a=[", "\"$(\"", "{,}{,}{,}{,}{,}{,}{,}{,}"} {
		f.Add(command)
	}
	s := join(f, extensions.ProtectPaths, host.Options{})
	f.Fuzz(func(t *testing.T, command string) {
		command = strings.ToValidUTF8(command, "")
		if v := execCall(t, s, command); v.Error != "" {
			t.Errorf("it cannot judge %q: %+v", command, v)
		}
		if v := execCall(t, s, "cat .env; "+command); v.Decision != hook.Deny {
			t.Errorf("what follows hides the command: %q: %+v", command, v)
		}
	})
}

// A pattern is for the names that Go's path.Match finds it to be for.
func TestProtectPathsPatterns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pattern := rapid.StringMatching(`[ab.*?]{0,5}(\[[ab]\]|\[a-c\])?[abc.*?]{1,5}`).Draw(rt, "pattern")
		name := rapid.StringMatching(`[abc.]{1,10}`).Draw(rt, "name")
		if name == "." || name == ".." {
			rt.Skip("no name")
		}
		s := join(t, extensions.ProtectPaths, host.Options{Config: map[string]any{"paths": []any{pattern}}})
		v := ask(t, s, hook.BeforeExecuteTool, map[string]any{"call_id": "c", "tool": "write_file", "arguments": map[string]any{"path": name}})
		want, err := path.Match(pattern, name)
		if got := v.Decision == hook.Deny; err == nil && got != want {
			rt.Fatalf("%q is for %q: %v, and should be %v", pattern, name, got, want)
		}
	})
}

// A long command is judged in time, whatever it is made of.
func TestProtectPathsIsQuick(t *testing.T) {
	s := join(t, extensions.ProtectPaths, host.Options{})
	for _, part := range []string{"a", "a ", "*", "* ", "{", "{a,", "$(", "`", "\"", "\\", "a/", "../", "=", "<<a\n", "[", "$x "} {
		command := strings.Repeat(part, 20_000/len(part))
		if v := execCall(t, s, command); v.Error != "" {
			t.Errorf("%q again and again: %+v", part, v)
		}
	}
}
