package permission

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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
	prefixes = []string{
		"env ", "env -i PATH=\"$PATH\" A=b ", "timeout 9 ", "timeout -s KILL 9 ", "nice ", "nice -n 1 ", "nohup ", "stdbuf -oL ", "setsid -w ", "command ", "A=b ", "echo x | xargs ", "xargs -n 1 </dev/null ", "find . -maxdepth 0 -exec ",
		"env - PATH=\"$PATH\" ", "env --unset A ", "timeout --sig KILL 9 ", "nice --adj 1 ", "stdbuf --out L ", "xargs --max-a 1 </dev/null ", "xargs -te </dev/null ", "setarch x86_64 ", "prlimit --nofile=99 ",
		"exec ", "time ", "setsid -w -- ", "env -- ", "exec 3>&1; ", "A='$x' ",
	}
	wraps = []func(script string) string{
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
		func(s string) string {
			end := "D" + strconv.Itoa(len(s))
			return "cat <<" + end + "\n$( " + s + "\n)\n" + end
		},
		func(s string) string { return "sh -c " + quote(s) },
		func(s string) string { return "eval " + quote(s) },
		func(s string) string { return "env sh -ec " + quote(s) },
		func(s string) string { return "sh -c " + quote("trap "+quote(s)+" EXIT") },
		func(s string) string { return "! { " + s + "\n} >/dev/null 2>&1" },
		func(s string) string { return "sh -c -- " + quote(s) },
		func(s string) string { return "sh -co errexit " + quote(s) },
		func(s string) string { return "sh -c -o errexit " + quote(s) },
		func(s string) string { return "sh -c " + quote("trap -- "+quote(s)+" EXIT") },
		func(s string) string {
			return "printf '%s\\n' " + quote(s) + " >s" + strconv.Itoa(len(s)) + "; sh ./s" + strconv.Itoa(len(s))
		},
		func(s string) string { return "printf '%s\\n' " + quote(s) + " | sh" },
		func(s string) string {
			end := "E" + strconv.Itoa(len(s))
			return "sh <<'" + end + "'\n" + s + "\n" + end
		},
		func(s string) string { return "x=" + quote(s) + "; eval \"$x\"" },
		func(s string) string {
			end := "E" + strconv.Itoa(len(s))
			return "cat <<" + end + "\n${none:-$( " + s + "\n)}\n" + end
		},
		func(s string) string { return "while :; do " + s + "\nbreak; done" },
		func(s string) string { return "set -- sh -c " + quote(s) + "; \"$@\"" },
		func(s string) string { return "xargs -a /dev/null sh -c " + quote(s) },
		func(s string) string { return "printf x | xargs -0I{} sh -c " + quote(s) },
	}
)

// However a denied command is wrapped and spelled, and a real shell runs it, it
// stays denied.
func TestDeniedStaysDenied(t *testing.T) { rapid.Check(t, staysDenied(t)) }

// The same, with wraps and spellings that the fuzzer looks for.
func FuzzDeniedStaysDenied(f *testing.F) {
	for step := range byte(8) { // what is drawn from: without enough of it an input is none
		seed := make([]byte, 4<<10)
		for i := range seed {
			seed[i] = byte(i) * (step*2 + 1) >> (i % 3)
		}
		f.Add(seed)
	}
	f.Fuzz(rapid.MakeFuzz(staysDenied(f)))
}

// staysDenied is what holds for each way to wrap and spell the denied command.
func staysDenied(t testing.TB) func(t *rapid.T) {
	shells := []string{"/bin/sh", "/bin/bash"}
	bin, ran := canaryIn(t)
	p := policyOf(t, WorkspaceWrite, "deny exec(canary sings *)", "allow exec")
	return func(t *rapid.T) {
		script := spell(t, "canary") + " " + spell(t, "sings")
		end := ""
		for range rapid.IntRange(0, 2).Draw(t, "prefixes") {
			prefix := rapid.SampledFrom(prefixes).Draw(t, "prefix")
			if strings.HasPrefix(script, "A=") || strings.HasPrefix(script, "exec") || strings.HasPrefix(script, "time ") || strings.HasPrefix(script, "echo x") || end != "" || strings.HasPrefix(script, "command") {
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
	}
}

// canaryIn makes a folder with a program that leaves a mark when it sings.
func canaryIn(t testing.TB) (bin, mark string) {
	bin = t.TempDir()
	mark = filepath.Join(bin, "ran")
	if err := os.WriteFile(filepath.Join(bin, "canary"), []byte("#!/bin/sh\n[ \"$1\" = sings ] && echo >>"+mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin, mark
}

// What only some shells and programs run is known to be run, too. A line that no shell
// of this machine runs is still not allowed.
func TestDeniedByWayOfOthers(t *testing.T) {
	bin, mark := canaryIn(t)
	p := policyOf(t, WorkspaceWrite, "deny exec(canary sings *)", "allow exec")
	ways, err := os.ReadFile("testdata/denied.txt")
	if err != nil {
		t.Fatal(err)
	}
	for script := range strings.SplitSeq(strings.TrimSuffix(string(ways), "\n"), "\n%\n") {
		if verdict, by := p.Decide(execCall(script)); verdict == Allow {
			t.Errorf("allowed by %s:\n%s", by, script)
		}
		ran := false
		for _, shell := range []string{"/bin/sh", "/bin/bash"} {
			_ = os.Remove(mark)
			runScript(t, shell, bin, script)
			_, err := os.Stat(mark)
			ran = ran || err == nil
		}
		if !ran {
			t.Logf("no shell here runs it:\n%s", script)
		}
	}
}

// runScript runs a script in a folder of its programs. How it ends is not told.
func runScript(t *testing.T, shell, dir, script string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-c", script)
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir}
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	_ = cmd.Run()
}

// What a rule that allows does not name is asked about, however a shell comes to it.
func TestNotAllowed(t *testing.T) {
	p := policyOf(t, asking, "allow exec(make)", "allow exec(go build *)")
	for _, script := range []string{
		"for PATH in .; do make; done", ": $((PATH=1)); make", "((PATH=1)); make", "((PATH++)); make", "exec {PATH}</dev/null; make", "printf -v PATH .; make", "echo ${a[PATH=1]}; make", "x[PATH=1]=y; make",
		"x=$(cat f); echo $((x))", "bash -c 'x=$(cat f); echo $((x))'", "x=$(cat f); [[ $x -eq 0 ]]", "x=$(cat f); echo ${PATH:x}", `x=$(cat f); [ -v "$x" ]`, "x=$(cat f); echo ${!x}", `x='$(rm y)'; echo "${x@P}"`,
		"for x in 'a[$(rm y)]'; do echo $((x)); done", "test -v 'a[$(rm y)]'", "printf -v 'a[$(rm y)]' x", "[[ 'a[$(rm y)]' -eq 0 ]]", "[[ -v 'a[$(rm y)]' ]]",
		"ls | xargs -te rm cat", "ls | xargs -ti rm cat", "env --uns make rm", "command time -o x ls", "git diff --outp=x", "git log --out x", "sort --outp=x y", "sort --compress-p=./x y", "file -C -m x", "tree -R", "date 01010000",
		"npm_config_script_shell=./x make", "http_proxy=x make", "cat </dev/tcp/127.0.0.1/9", `echo "${x:-'$(rm y)'}"`, "PS4='$(rm y)'; set -x; ls", "fd -x rm", "fd -Hx rm", "make >x", "{ar\"\",rm} x",
	} {
		if verdict, by := p.Decide(execCall(script)); verdict != Ask {
			t.Errorf("%q is %v by %s; want ask", script, verdict, by)
		}
	}
	for _, script := range []string{
		"[ -f x ] && make", `if [ "$x" = 1 ]; then make; fi`, "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done", "for f in *.go; do echo $f; done", "printf '%s' x", "date +%s", "ls ~", "sort --reverse x", "echo ${x:-y}",
		"timeout --foreground 5 make", "xargs -0 cat", "env -u A make", "echo $((1 + 2))", "echo ${a[0]} ${a[@]}", "x=$(cat f); echo $x",
	} {
		if verdict, by := p.Decide(execCall(script)); verdict != Allow {
			t.Errorf("%q is %v by %s; want allow", script, verdict, by)
		}
	}
}

// A rule about options finds them in any order, and among others.
func TestDeniedOptions(t *testing.T) {
	p := policyOf(t, WorkspaceWrite, "deny exec(rm -rf *)", "deny exec(git push --force *)")
	for script, want := range map[string]Verdict{
		"rm -rf x": Deny, "rm -fr x": Deny, "rm -r -f x": Deny, "rm -v -rf x": Deny, "rm x -rfv": Deny, "rm -r x": Allow, "git push origin --force": Allow, "git push -q --force": Deny, "git push": Allow,
		"rm $X": Ask, "cp /bin/rm x": Ask, "python3 -c 'os.system(\"rm -rf x\")'": Ask, "git rm -rf x": Allow, "docker run --rm -rf x": Allow,
	} {
		if got, by := p.Decide(execCall(script)); got != want {
			t.Errorf("%q is %v by %s; want %v", script, got, by, want)
		}
	}
}

// No line takes long to be judged.
func TestJudgingIsQuick(t *testing.T) {
	p := policyOf(t, WorkspaceWrite, "deny exec(git push * --force x y z)", "deny Read(.env)", "allow exec(git *)")
	for _, unit := range []string{"-a ", "-a$x ", "a;", "eval ", "sh -c ", "xargs ", "*", "a="} {
		start := time.Now()
		p.Decide(execCall("git " + strings.Repeat(unit, 9_900/len(unit))))
		p.Decide(execCall(strings.Repeat(unit, 9_900/len(unit)) + "git push"))
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("lines of %q take %v", unit, took)
		}
	}
}
