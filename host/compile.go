package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// This file holds how guests are compiled. wazero cannot be stopped within a
// function, and some functions take it more time and memory than anybody has,
// so what is not in the cache yet is compiled by a process of its own, which
// can be ended. It leaves the code in a folder of its own, from which it moves
// to the cache as a whole: a kill at any moment leaves nothing half-written,
// and a damaged entry is replaced.

// The limits of that process.
const (
	limitCompileTime   = 60 * time.Second * slowdown
	limitCompileMemory = 1 << 30
)

// compileCommand is the first argument of a wharf binary that is started to
// compile a module; the others are the folder for the code and the bytes of
// memory that it may take.
const compileCommand = "compile-module"

// Init must be called first thing in main of a program that a [Config] names
// as Compiler, and in TestMain of tests that name themselves: where the program
// was started to compile a module, it does that and does not return.
func Init() {
	if len(os.Args) == 4 && os.Args[1] == compileCommand {
		os.Exit(compileInto(os.Args[2], os.Args[3], os.Stdin, os.Stdout))
	}
}

// The words with which the compiling process answers; the second is followed
// by what is wrong with the module.
const (
	answerDone    = "compiled"
	answerInvalid = "invalid: "
)

// compileInto compiles the module that in holds into a new cache in dir.
func compileInto(dir, memory string, in io.Reader, out io.Writer) int {
	limit, err := strconv.ParseUint(memory, 10, 63)
	if err == nil {
		err = limitThisProcess(limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	wasm, err := io.ReadAll(in)
	if err == nil {
		err = compileAnew(context.Background(), dir, wasm)
	}
	if disk, ok := errors.AsType[*fs.PathError](err); ok { // this is not about the module
		fmt.Fprintln(os.Stderr, disk)
		return 1
	}
	if err != nil {
		fmt.Fprint(out, answerInvalid, oneLine(err))
		return 0
	}
	fmt.Fprint(out, answerDone)
	return 0
}

func compileAnew(ctx context.Context, dir string, wasm []byte) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	defer cache.Close(ctx)
	r := wazero.NewRuntimeWithConfig(ctx, guestRuntime(wazero.NewRuntimeConfigCompiler()).WithCompilationCache(cache))
	defer r.Close(ctx)
	_, err = compileModule(experimental.WithCompilationWorkers(ctx, compileWorkers), r, wasm)
	return err
}

// compileWorkers is how many functions are compiled side by side. There must be
// two at least: with one, wazero does not look at the context between functions,
// and onlyCached would compile.
const compileWorkers = 2

// limitThisProcess bounds what compiling may take: memory beyond what the
// process has mapped already, and processor time, should nobody be left to end it.
func limitThisProcess(more uint64) error {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 6 {
		return errors.New("/proc/self/statm has no data size")
	}
	pages, err := strconv.ParseUint(fields[5], 10, 64)
	if err != nil {
		return err
	}
	memory := pages*uint64(os.Getpagesize()) + more
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}); err != nil {
		return err
	}
	debug.SetMemoryLimit(int64(more / 4 * 3)) // collect harder before the wall is hit
	seconds := uint64(limitCompileTime/time.Second) * compileWorkers
	return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds})
}

// errNotCached is why code was not taken from the cache.
var errNotCached = errors.New("not compiled yet")

// onlyCached returns a context under which compiling finds code in the cache, or
// fails at once with errNotCached: it is over before the first function is begun.
func onlyCached(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(experimental.WithCompilationWorkers(ctx, compileWorkers))
	cancel(errNotCached)
	return ctx
}

// compile makes e's runtime and the compiled module in it.
func (h *Host) compile(ctx context.Context, e *Extension, wasm []byte) error {
	compiler := wazero.NewRuntimeConfigCompiler().WithCompilationCache(h.cache)
	if h.inProcess {
		return e.compile(ctx, wasm, compiler)
	}
	if e.compile(onlyCached(ctx), wasm, compiler) == nil {
		return nil
	}
	if h.compiler == "" {
		return e.compile(ctx, wasm, wazero.NewRuntimeConfigInterpreter())
	}
	select {
	case h.compiling <- struct{}{}:
		defer func() { <-h.compiling }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if e.compile(onlyCached(ctx), wasm, compiler) == nil {
		return nil // somebody else had the same module compiled meanwhile
	}
	begin := time.Now()
	if err := h.compileApart(ctx, wasm); err != nil {
		return err
	}
	e.CompileTime = time.Since(begin)
	if err := e.compile(onlyCached(ctx), wasm, compiler); err != nil {
		return fmt.Errorf("the compiler %q made code that is not this program's: name the wharf binary of this version: %w", h.compiler, err)
	}
	return nil
}

// compileApart has the module compiled into the cache by another process,
// unless it is known to be too much for that.
func (h *Host) compileApart(ctx context.Context, wasm []byte) error {
	sum := sha256.Sum256(wasm)
	refused := filepath.Join(h.cacheDir, "refused-"+hex.EncodeToString(sum[:]))
	if text, err := ReadFile(refused); err == nil && len(text) > 0 {
		return errors.New(oneLine(errors.New(string(text))))
	}
	h.removeAbandoned()
	dir, err := os.MkdirTemp(h.cacheDir, "new-")
	if err != nil {
		return fmt.Errorf("compile it: %w", err)
	}
	defer os.RemoveAll(dir)
	err = h.runCompiler(ctx, dir, wasm)
	if over, ok := errors.AsType[*compileLimit](err); ok {
		return errors.Join(over, replaceFile(refused, []byte(over.Error()), dir))
	}
	if err != nil {
		return err
	}
	return moveCode(dir, h.cacheDir)
}

// removeAbandoned removes what a process that was killed while it compiled left.
func (h *Host) removeAbandoned() {
	folders, _ := filepath.Glob(filepath.Join(h.cacheDir, "new-*"))
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > 2*limitCompileTime {
			_ = os.RemoveAll(folder) // the next one tries again
		}
	}
}

// compileLimit is a module that takes too much to compile, whenever it is tried.
type compileLimit struct{ what string }

func (e *compileLimit) Error() string {
	return fmt.Sprintf("compiling it takes more than %s: that is over the limit compile: make its functions smaller", e.what)
}

// runCompiler runs the compiling process and makes an error of what it says.
func (h *Host) runCompiler(ctx context.Context, dir string, wasm []byte) error {
	timed, cancel := context.WithTimeout(ctx, h.compileTime)
	defer cancel()
	out, err := sandbox.Trusted(timed, sandbox.TrustedCommand{
		Argv: []string{h.compiler, compileCommand, dir, strconv.FormatUint(h.compileMemory, 10)}, Stdin: bytes.NewReader(wasm),
	})
	answer := string(out.Stdout)
	invalid, isInvalid := strings.CutPrefix(answer, answerInvalid)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case timed.Err() != nil:
		return &compileLimit{h.compileTime.String()}
	case isInvalid:
		return fmt.Errorf("it is no valid module: %s", invalid)
	case err == nil && answer == answerDone:
		return nil
	case outOfMemory.Match(out.Stderr):
		return &compileLimit{fmt.Sprintf("%d MiB of memory", h.compileMemory>>20)}
	case err == nil:
		err = errors.New("it gave no answer: it is no wharf binary")
	}
	return fmt.Errorf("compile it with %q: %s", h.compiler, oneLine(err))
}

// outOfMemory is how Go's runtime words that it got no more memory.
var outOfMemory = regexp.MustCompile("out of memory|cannot allocate memory|failed to (create new OS thread|allocate)")

// moveCode moves the one file of a new cache to the cache, in the place of an
// older one.
func moveCode(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*", "*"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("compile it: there are %d files of code, not one: %v", len(files), err)
	}
	name, err := filepath.Rel(from, files[0])
	if err != nil {
		return err
	}
	target := filepath.Join(to, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	return os.Rename(files[0], target)
}

// replaceFile writes a file whole or not at all; dir is on the same disk.
func replaceFile(path string, data []byte, dir string) error {
	temporary := filepath.Join(dir, "text")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
