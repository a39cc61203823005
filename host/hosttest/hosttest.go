// Package hosttest helps tests of extensions.
package hosttest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// versionOfTests has the program call itself what wazero calls a test binary, which
// knows no versions of modules: code of another version is not used.
const versionOfTests = "-X github.com/tetratelabs/wazero/internal/version.version=dev"

// folder is where this test binary's compiler is; empty unless Main runs.
var folder string

// Main runs the tests of a package that uses [Compiler], from its TestMain, and
// returns the exit status.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wharf-test-compiler-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	folder = dir
	return m.Run()
}

// Compiler returns the path of a program that compiles modules for a host. It is
// built without the race detector, whatever the tests are built with: under it a
// Go guest takes a minute and a gigabyte to compile.
func Compiler() (string, error) { return compiler() }

var compiler = sync.OnceValues(func() (string, error) {
	if folder == "" {
		return "", errors.New("hosttest: TestMain does not call Main")
	}
	path := filepath.Join(folder, "compiler")
	argv := []string{"go", "build", "-o", path}
	if info, ok := debug.ReadBuildInfo(); !ok || len(info.Deps) == 0 { // the tests of a command do know versions
		argv = append(argv, "-ldflags", versionOfTests)
	}
	_, err := sandbox.Trusted(context.Background(), sandbox.TrustedCommand{
		Argv: append(argv, "github.com/wharf-agent/wharf/host/hosttest/compiler"),
		Env:  append(os.Environ(), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0"),
	})
	return path, err
})
