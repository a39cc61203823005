package permission

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spell writes a word in one of the ways that a shell reads as that word.
func spell(t *rapid.T, text string) string {
	at := rapid.IntRange(0, len(text)).Draw(t, "at")
	switch rapid.SampledFrom([]string{"plain", "single", "double", "escape", "split", "empty", "line"}).Draw(t, "spelling") {
	case "single":
		return "'" + text + "'"
	case "double":
		return `"` + text[:at] + `"` + text[at:]
	case "escape":
		at = min(at, len(text)-1)
		return text[:at] + `\` + text[at:]
	case "split":
		return text[:at] + "''" + text[at:]
	case "empty":
		return `""` + text
	case "line":
		at = max(1, min(at, len(text)-1))
		return text[:at] + "\\\n" + text[at:]
	}
	return text
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// prefixes run the simple command behind them, and wraps any script.
var (
	prefixes = []string{"env ", "env -i PATH=\"$PATH\" A=b ", "timeout 9 ", "timeout -s KILL 9 ", "nice ", "nice -n 1 ", "nohup ", "stdbuf -oL ", "setsid -w ", "command ", "A=b ", "echo x | xargs ", "xargs -n 1 </dev/null ", "find . -maxdepth 0 -exec "}
	wraps    = []func(script string) string{
		func(s string) string { return "true && " + s },
		func(s string) string { return "false || " + s },
		func(s string) string { return "echo a; " + s },
		func(s string) string { return "echo a | { " + s + "\n}" },
		func(s string) string { return "( " + s + "\n)" },
		func(s string) string { return "if true; then " + s + "\nfi" },
		func(s string) string { return "for i in 1; do " + s + "\ndone" },
		func(s string) string { return "case a in *) " + s + "\n;; esac" },
		func(s string) string { return "f() {\n" + s + "\n}\nf" },
		func(s string) string { return "echo \"$( " + s + "\n)\"" },
		func(s string) string { return "x=$( " + s + "\n)" },
		func(s string) string { return "cat <<E\n$( " + s + "\n)\nE" },
		func(s string) string { return "sh -c " + quote(s) },
		func(s string) string { return "eval " + quote(s) },
		func(s string) string { return "env sh -ec " + quote(s) },
		func(s string) string { return "sh -c " + quote("trap "+quote(s)+" EXIT") },
		func(s string) string { return "! { " + s + "\n} >/dev/null 2>&1" },
	}
)

// However a denied command is wrapped and spelled, and a real shell runs it, it
// stays denied.
func TestDeniedStaysDenied(t *testing.T) {
	shells := []string{"/bin/sh", "/bin/bash"}
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	if err := os.WriteFile(filepath.Join(bin, "canary"), []byte("#!/bin/sh\n[ \"$1\" = sings ] && echo >>"+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := policyOf(t, WorkspaceWrite, "deny exec(canary sings *)", "allow exec")
	rapid.Check(t, func(t *rapid.T) {
		script := spell(t, "canary") + " " + spell(t, "sings")
		end := ""
		for range rapid.IntRange(0, 2).Draw(t, "prefixes") {
			prefix := rapid.SampledFrom(prefixes).Draw(t, "prefix")
			if strings.Contains(script, "=") && strings.HasPrefix(script, "A=b") || strings.HasPrefix(script, "echo x") || end != "" || strings.HasPrefix(script, "command") {
				break // only a program can stand behind a prefix
			}
			if strings.HasPrefix(prefix, "find") {
				end = ` \;`
			}
			script = prefix + script
		}
		script += end
		for range rapid.IntRange(0, 4).Draw(t, "wraps") {
			script = rapid.SampledFrom(wraps).Draw(t, "wrap")(script)
		}
		if verdict, by := p.Decide(execCall(script)); verdict == Allow {
			t.Fatalf("allowed by %s:\n%s", by, script)
		}
		shell := rapid.SampledFrom(shells).Draw(t, "shell")
		_ = os.Remove(ran)
		cmd := exec.Command(shell, "-c", script)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		cmd.Dir = bin
		out, _ := cmd.CombinedOutput()
		if _, err := os.Stat(ran); err != nil {
			t.Fatalf("%s does not run it, so this proves nothing:\n%s\n%s", shell, script, out)
		}
	})
}
