package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

// apart makes a host that has modules compiled by this test's own program.
func apart(t testing.TB, dir string) *Host {
	t.Helper()
	h, err := Open(Config{CacheDir: dir, Compiler: "/proc/self/exe"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// echoes checks that the extension works.
func echoes(t testing.TB, h *Host) {
	t.Helper()
	s := joinExtension(t, load(t, h, "guest", guestManifest, Options{}), &journal{})
	if got := ask(t, s, "echo"); got != "echo" {
		t.Errorf("answer %q; want echo", got)
	}
}

func cached(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCompiledByAProcessOfItsOwn(t *testing.T) {
	dir := ownFolder(t)
	echoes(t, apart(t, dir))
	if n := len(cached(t, dir)); n != 1 {
		t.Fatalf("the cache has %d files; want 1", n)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%d entries beside the code, %v", len(left)-1, err)
	}
	// From now on nothing is compiled: a host whose compiler cannot run does.
	h, err := Open(Config{CacheDir: dir, Compiler: "/nonexistent/wharf"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	echoes(t, h)
}

// A damaged file in the cache costs time, nothing else.
func TestDamagedCache(t *testing.T) {
	dir := ownFolder(t)
	echoes(t, apart(t, dir))
	damages := map[string]func(file string, code []byte) error{
		"cut short": func(file string, _ []byte) error { return os.Truncate(file, 100) },
		"empty":     func(file string, _ []byte) error { return os.Truncate(file, 0) },
		"a flipped bit": func(file string, code []byte) error {
			code[len(code)/2] ^= 1
			return os.WriteFile(file, code, 0o600)
		},
		"of another version": func(file string, code []byte) error {
			return os.WriteFile(file, bytes.Replace(code, []byte("v1."), []byte("v0."), 1), 0o600)
		},
		"gone": func(file string, _ []byte) error { return os.Remove(file) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			file := cached(t, dir)[0]
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(file, slices.Clone(code)); err != nil {
				t.Fatal(err)
			}
			echoes(t, apart(t, dir))
			if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, code) {
				t.Errorf("the damaged entry was not replaced: %v", err)
			}
		})
	}
}

// Without a compiler modules run all the same, interpreted, and end in time.
func TestInterpreted(t *testing.T) {
	dir := ownFolder(t)
	h, err := Open(Config{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s := joinExtension(t, load(t, h, "guest", guestManifest, Options{}), &journal{})
	if got := ask(t, s, "echo"); got != "echo" {
		t.Errorf("answer %q; want echo", got)
	}
	want := "error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest"
	if got := ask(t, s, "loop"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := len(cached(t, dir)); n != 0 {
		t.Errorf("%d modules were compiled", n)
	}
}

// Hosts that share a cache, as processes do, do not get into each other's way;
// what a killed one left goes.
func TestSharedCache(t *testing.T) {
	dir := ownFolder(t)
	h := apart(t, dir)
	abandoned, fresh := filepath.Join(dir, "new-old"), filepath.Join(dir, "new-fresh")
	long := time.Now().Add(-24 * time.Hour)
	if err := errors.Join(os.MkdirAll(filepath.Join(abandoned, "x"), 0o700), os.Mkdir(fresh, 0o700), os.Chtimes(abandoned, long, long)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { echoes(t, apart(t, dir)) })
	}
	all.Wait()
	echoes(t, h)
	left, err := filepath.Glob(filepath.Join(dir, "new-*"))
	if err != nil || !slices.Equal(left, []string{fresh}) {
		t.Errorf("left over: %q, %v", left, err)
	}
	if n := len(cached(t, dir)); n != 1 {
		t.Errorf("the cache has %d files; want 1", n)
	}
}

// A module that is being compiled keeps no other waiting that is compiled already,
// and who waits for it can stop.
func TestSlowCompileHoldsUpNobody(t *testing.T) {
	h := apart(t, ownFolder(t))
	echoes(t, h) // compiled already
	h.compiling <- struct{}{}
	echoes(t, h)
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error)
	go func() {
		_, err := h.LoadBytes(ctx, "x.wasm", embed(t, fixture(t, "least"), leastManifest), Options{})
		failed <- err
	}()
	cancel(errors.New("enough"))
	if err := <-failed; err == nil || !strings.HasSuffix(err.Error(), "enough") {
		t.Errorf("who waits and stops: %v", err)
	}
	<-h.compiling
}

// A module that is too much to compile is refused, and the next time at once.
func TestCompileLimits(t *testing.T) {
	// 30,000 ifs over 50 local variables: within the limit code, and minutes of work.
	body := []byte{1, 50, 0x7f}
	for range 30_000 {
		body = append(body, 0x20, 0, opIf, 0x40, 0x20, 1, 0x21, 2, opEnd)
	}
	bomb := embed(t, forge(append(body, opI64Const, 0, opEnd)), leastManifest)
	tests := []struct {
		name   string
		time   time.Duration
		memory uint64
		want   string
	}{
		{"time", 300 * time.Millisecond, 1 << 30, "300ms"},
		{"memory", time.Minute, 24 << 20, "24 MiB of memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := ownFolder(t)
			h := apart(t, dir)
			h.compileTime, h.compileMemory = tt.time, tt.memory
			want := `load extension "least": compiling it takes more than ` + tt.want + `: that is over the limit compile: make its functions smaller`
			_, err := h.LoadBytes(t.Context(), "x.wasm", bomb, Options{})
			if err == nil || err.Error() != want {
				t.Fatalf("got  %v\nwant %s", err, want)
			}
			h.compiler = "/nonexistent/wharf" // would be another error, if it were asked
			if _, err := h.LoadBytes(t.Context(), "x.wasm", bomb, Options{}); err == nil || err.Error() != want {
				t.Errorf("again: %v\nwant   %s", err, want)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "new-*")); err != nil || len(left) > 0 {
				t.Errorf("left over: %q, %v", left, err)
			}
		})
	}
}

func TestCompilerThatIsNone(t *testing.T) {
	tests := []struct{ name, program, want string }{
		{"no program", "/nonexistent/wharf", `load extension "least": compile it with "/nonexistent/wharf": run "/nonexistent/wharf": fork/exec /nonexistent/wharf: no such file or directory`},
		{"another program", "/bin/true", `load extension "least": compile it with "/bin/true": it gave no answer: it is no wharf binary`},
		{"one that fails", "/bin/false", `load extension "least": compile it with "/bin/false": run "/bin/false": exit status 1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := apart(t, ownFolder(t))
			h.compiler = tt.program
			_, err := h.LoadBytes(t.Context(), "x.wasm", embed(t, fixture(t, "least"), leastManifest), Options{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestInvalidModuleInAProcessOfItsOwn(t *testing.T) {
	_, err := apart(t, ownFolder(t)).LoadBytes(t.Context(), "x.wasm", embed(t, fixture(t, "invalid"), leastManifest), Options{})
	if err == nil || !strings.HasPrefix(err.Error(), `load extension "least": it is no valid module: `) {
		t.Errorf("got %v", err)
	}
}

// A cancel ends the compiling, too.
func TestCancelledCompile(t *testing.T) {
	h := apart(t, ownFolder(t))
	_, err := h.LoadBytes(cancelled(t, "enough"), "x.wasm", embed(t, fixture(t, "least"), leastManifest), Options{})
	var failed *LoadError
	if !errors.As(err, &failed) || failed.Err.Error() != "enough" {
		t.Errorf("got %v", err)
	}
}

// A disk that takes no code is not the module's fault.
func TestNoRoomForCode(t *testing.T) {
	m, err := parseModule(fixture(t, "least"))
	if err != nil {
		t.Fatal(err)
	}
	rewritten, err := m.rewrite()
	if err != nil {
		t.Fatal(err)
	}
	dir := ownFolder(t)
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close(t.Context())
	if err := os.RemoveAll(dir); err != nil { // then nothing can be written into it
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache))
	defer r.Close(t.Context())
	_, err = compileModule(t.Context(), r, rewritten)
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		t.Errorf("got %v", err)
	}
}
