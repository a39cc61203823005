package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRun is the cost of a confined command, the program true. The floor
// is started bare: for bubblewrap the same bubblewrap with the same arguments
// and descriptors, for the other rungs the program itself.
func BenchmarkRun(b *testing.B) {
	workspace, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Config{Workspace: workspace})
	if err != nil {
		b.Fatal(err)
	}
	none := unconfined{env: openEnvironment(os.Getenv, string(Unconfined))}
	for _, grouped := range groupChoices() {
		b.Run(fmt.Sprintf("rung=bwrap,group=%v", grouped), func(b *testing.B) {
			program := firstProgram(bwrapPaths)
			needs(b, program != "", "bubblewrap is not installed: apt install bubblewrap")
			by := bwrap{program: program, sandbox: s, noNested: true, grouped: grouped}
			duel(b, by, by)
		})
	}
	b.Run("rung=landlock", func(b *testing.B) {
		abi := landlockVersion()
		needs(b, abi > 0, "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK")
		duel(b, none, landlock{sandbox: s, abi: abi})
	})
	b.Run("rung=none", func(b *testing.B) { duel(b, none, none) })
}

func needs(b *testing.B, there bool, what string) {
	b.Helper()
	switch {
	case there:
	case os.Getenv("WHARF_TEST_STRICT") == "1":
		b.Fatal(what)
	default:
		b.Skip(what)
	}
}

// duel runs what floor launches bare and by as a sandbox does, in turns, so
// that both see the same machine.
func duel(b *testing.B, floor, by confiner) {
	command := Command{Argv: []string{"/bin/true"}, Dir: "/", Timeout: time.Minute, Profile: WorkspaceWrite}
	var bare, confined time.Duration
	for b.Loop() {
		start := time.Now()
		runBare(b, floor, command)
		middle := time.Now()
		if res, err := run(b.Context(), by, command); err != nil || res.ExitCode != 0 {
			b.Fatalf("run = %+v, %v", res, err)
		}
		bare, confined = bare+middle.Sub(start), confined+time.Since(middle)
	}
	b.ReportMetric(float64(confined.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(confined.Seconds()/bare.Seconds(), "x-floor")
}

// runBare runs what by launches, and nothing around it but to read its output,
// whose end comes when a namespace is gone.
func runBare(b *testing.B, by confiner, c Command) {
	l, err := by.launch(c)
	if err != nil {
		b.Fatal(err)
	}
	defer l.close()
	if l.gate != nil { // nobody sets limits
		if _, err := l.gate.file.Write([]byte{1}); err != nil {
			b.Fatal(err)
		}
	}
	var out bytes.Buffer
	bare := &exec.Cmd{Path: l.path, Args: l.argv, Env: l.env, Dir: l.dir, ExtraFiles: l.files, Stdout: &out, Stderr: &out}
	if err := bare.Run(); err != nil {
		b.Fatalf("bare: %v\n%s", err, out.String())
	}
}

// BenchmarkNetwork is the cost of a way to the network, which the command does
// not use: the start of this program inside. The floor is the same command
// without it.
func BenchmarkNetwork(b *testing.B) {
	program := firstProgram(bwrapPaths)
	needs(b, program != "", "bubblewrap is not installed: apt install bubblewrap")
	workspace, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Config{Workspace: workspace})
	if err != nil {
		b.Fatal(err)
	}
	by := bwrap{program: program, sandbox: s, noNested: true}
	closed := Command{Argv: []string{"/bin/true"}, Dir: "/", Timeout: time.Minute}
	open := closed
	open.Network = allowed(b, "example.com")
	var took [2]time.Duration
	for b.Loop() {
		for i, c := range []Command{closed, open} {
			start := time.Now()
			if res, err := run(b.Context(), by, c); err != nil || res.ExitCode != 0 {
				b.Fatalf("run = %+v, %v", res, err)
			}
			took[i] += time.Since(start)
		}
	}
	b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "x-floor")
}
