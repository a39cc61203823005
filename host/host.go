// Package host runs extensions: .wasm guests that speak ABI 1, or Extism's.
//
// A [Host] loads a file into an [Extension]: it reads the manifest, refuses
// whatever does not fit the ABI, rewrites the module so that it can be stopped,
// and has it compiled once, into a cache on disk. An extension joins a session as a [Session], which is the session's
// hook and gives its tools; the engine knows neither this package nor Wasm.
//
// A guest is not trusted. It runs in an [instance] of its own for each
// session, under a deadline and the limits of this package, and reaches
// nothing but the operations that were granted to it (package capability).
// What it points at is checked, copied and decoded strictly. A guest that
// traps, loops or breaks the ABI is a failed call; its instance is dropped and
// the next call gets a fresh one.
//
// guest-sdk/ABI.md is the contract from the guest's side.
package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
)

// Config says where a Host keeps its files, and what compiles for it.
type Config struct {
	CacheDir string // for compiled modules; made with mode 0700; empty: a temporary one
	KVDir    string // for what extensions keep; made with mode 0700; empty makes kv operations fail
	// Compiler is the path of a wharf binary of the same version, or of a program
	// that calls [Init]: it is started to compile what is not in CacheDir yet. Empty:
	// such modules are interpreted instead, which is many times slower.
	Compiler string
}

// Host loads extensions. It is safe for concurrent use.
type Host struct {
	cache     wazero.CompilationCache
	cacheDir  string
	temporary bool // cacheDir is removed by Close
	kvDir     string

	compiler      string
	compileTime   time.Duration
	compileMemory uint64
	compiling     chan struct{} // held while a module is compiled: one at a time
	inProcess     bool          // for this package's tests: compiles here, whatever that takes
	loads         sync.WaitGroup

	mu     sync.Mutex
	loaded []*Extension
	closed bool
}

// Open makes a Host. Close it when its extensions' sessions are over.
func Open(cfg Config) (*Host, error) {
	h := &Host{kvDir: cfg.KVDir, cacheDir: cfg.CacheDir, compiler: cfg.Compiler, compileTime: limitCompileTime, compileMemory: limitCompileMemory, compiling: make(chan struct{}, 1)}
	var err error
	if h.cacheDir == "" {
		h.temporary = true
		if h.cacheDir, err = os.MkdirTemp("", "wharf-compiled-"); err != nil {
			return nil, fmt.Errorf("open the extension host: %w", err)
		}
	}
	for _, dir := range []string{h.cacheDir, cfg.KVDir} {
		if dir == "" {
			continue
		}
		if err := makePrivate(dir); err != nil {
			return nil, fmt.Errorf("open the extension host: %w", err)
		}
	}
	if h.cache, err = wazero.NewCompilationCacheWithDir(h.cacheDir); err != nil {
		return nil, fmt.Errorf("open the extension host: compile cache: %w", err)
	}
	return h, nil
}

// makePrivate makes a folder to which nobody else can write. Whoever could
// write to the compile cache would run code of theirs in this process.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return CheckPrivate(dir)
}

// CheckPrivate refuses a folder that is somebody else's, or to which others may write.
func CheckPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to the folder %q: chmod go-w, once it holds nothing of theirs", dir)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("the folder %q belongs to somebody else: name one of your own", dir)
	}
	return nil
}

// Close waits for loads that are under way, closes all extensions and frees what
// was compiled. Close their sessions before. Nothing can be loaded after it.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.loads.Wait()
	loaded := h.loaded
	h.loaded = nil
	ctx := context.Background() // freeing memory is not cut short
	var all []error
	for _, e := range loaded {
		all = append(all, e.runtime.Close(ctx))
	}
	all = append(all, h.cache.Close(ctx))
	if h.temporary {
		all = append(all, os.RemoveAll(h.cacheDir))
	}
	return errors.Join(all...)
}
