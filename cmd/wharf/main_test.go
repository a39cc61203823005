package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wharf-agent/wharf/cmd/wharf/internal/cli"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/hosttest"
)

func TestMain(m *testing.M) {
	sandbox.Init() // or what keeps a command in bounds runs the tests anew, and they run commands
	host.Init()
	testscript.Main(tests{m}, map[string]func(){"wharf": func() {
		if path := os.Getenv("WHARF_TEST_COMPILER"); path != "" {
			cli.Compiler = path
		}
		os.Exit(cli.Main())
	}})
}

// tests runs the tests with a compiler that is built without the race detector.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	// Whoever started the tests by nohup has SIGHUP ignored; the commands here are not to.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	defer func() { _ = os.RemoveAll(plainDir) }()
	return hosttest.Main(t.m)
}

// TestScript runs the command line as its users do. One compile cache serves
// all scripts.
func TestScript(t *testing.T) {
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// Beside the workspace: a folder that holds a home folder is none.
			home, err := os.MkdirTemp("", "wharf-home-")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(home) })
			env.Setenv("HOME", home)
			env.Setenv("XDG_CACHE_HOME", cache)
			env.Setenv("WHARF_TEST_COMPILER", compiler)
			env.Setenv("GOCACHE", os.Getenv("GOCACHE"))
			return nil
		},
		Condition: func(name string) (bool, error) { return isThere(t, name), nil },
	})
}

// isThere is installed, and where nothing is skipped it complains.
func isThere(t *testing.T, name string) bool {
	there := installed(t, name)
	if !there && os.Getenv("WHARF_TEST_STRICT") == "1" {
		t.Errorf("%s is not installed, and nothing is skipped here", name)
	}
	return there
}

// installed reports whether there is a program of that name, or all that a
// language of that name needs.
func installed(t *testing.T, name string) bool {
	for _, l := range build.Languages() {
		if l.ID == name {
			return len(l.Missing(t.Context(), os.Environ())) == 0
		}
	}
	_, err := exec.LookPath(name)
	return err == nil
}
