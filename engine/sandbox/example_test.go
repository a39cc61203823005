package sandbox_test

import (
	"context"
	"fmt"
	"os"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// The file tools ask this before they write.
func ExampleProtected() {
	for _, path := range []string{"main.go", "vendor/dep/.git/hooks/post-merge"} {
		pattern, protected := sandbox.Protected(path, false)
		fmt.Printf("%s %v %q\n", path, protected, pattern)
	}
	// Output:
	// main.go false ""
	// vendor/dep/.git/hooks/post-merge true ".git/hooks"
}

// A program calls Init first thing in main; then it can run commands.
func ExampleSandbox_Run() {
	sandbox.Init()
	workspace, err := os.MkdirTemp("", "workspace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(workspace)
	s, err := sandbox.New(sandbox.Config{Workspace: workspace})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Run(context.Background(), sandbox.Command{Line: "cat /etc/shadow; echo done", Stdout: os.Stdout})
	fmt.Println(result.Rung, result.ExitCode, err)
}

// A command that is talked to while it runs. It ends when its input does.
func ExampleSandbox_Start() {
	sandbox.Init()
	workspace, err := os.MkdirTemp("", "workspace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(workspace)
	s, err := sandbox.New(sandbox.Config{Workspace: workspace})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	p, err := s.Start(ctx, sandbox.Command{Line: "cat", Input: true, Stdout: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, failed := p.Write(ctx, []byte("hello\n"))
	closed := p.CloseInput(ctx)
	result, err := p.Wait()
	fmt.Println(result.ExitCode, failed, closed, err)
}
