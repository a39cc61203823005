package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/capability"
)

// shared is the one host of this package's tests, with one compile cache.
var shared *Host

func TestMain(m *testing.M) {
	Init()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wharf-host-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	shared, err = Open(Config{CacheDir: filepath.Join(dir, "cache"), KVDir: filepath.Join(dir, "kv")})
	if err != nil {
		panic(err)
	}
	shared.inProcess = true // a process for each of the tests' many modules takes too long
	defer shared.Close()
	return m.Run()
}

// missing skips a test for want of something; where everything must be there
// it fails instead.
func missing(t testing.TB, what, install string) {
	t.Helper()
	if os.Getenv("WHARF_TEST_STRICT") == "1" {
		t.Fatalf("%s is missing: %s", what, install)
	}
	t.Skipf("%s is missing: %s", what, install)
}

// ownFolder names a folder that a host is to make.
func ownFolder(t testing.TB) string { return filepath.Join(t.TempDir(), "own") }

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// leastManifest fits the fixtures that handle one hook.
const leastManifest = `name = "least"
version = "0.1.0"
abi = 1

[hooks.before_execute_tool]
timeout = "200ms"
`

// guestManifest fits guest.wasm.
const guestManifest = `name = "guest"
version = "0.1.0"
abi = 1

[hooks.before_execute_tool]
timeout = "200ms"

[hooks.on_stream]

[[tools]]
name = "do"
description = "Does what it is told"
input_schema = '{"type":"object"}'
timeout = "200ms"

[[tools]]
name = "on"
description = "Does it in the session's instance"
input_schema = '{"type":"object"}'
timeout = "200ms"
instance = "session"

[capabilities]
kv = "1KiB"
`

func embed(t testing.TB, wasm []byte, manifest string) []byte {
	t.Helper()
	out, err := EmbedManifest(wasm, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// journal collects what a session records.
type journal struct {
	mu     sync.Mutex
	events []session.Event
}

func (j *journal) record(e session.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
	return nil
}

// lines shows the events, one a line.
func (j *journal) lines() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []string
	for _, e := range j.events {
		switch e := e.(type) {
		case session.ExtensionLogged:
			all = append(all, e.Extension+" "+e.Level+": "+e.Text)
		case session.ExtensionUsed:
			word := "refused"
			if e.Allowed {
				word = "allowed"
			}
			all = append(all, e.Extension+" used "+e.Operation+" "+e.Target+": "+word)
		case session.EgressChecked:
			all = append(all, fmt.Sprintf("checked %s:%d %v: %s", e.Host, e.Port, e.Allowed, e.Rule))
		}
	}
	return strings.Join(all, "\n")
}

func load(t testing.TB, h *Host, name, manifest string, o Options) *Extension {
	t.Helper()
	e, err := h.LoadBytes(t.Context(), name+".wasm", embed(t, fixture(t, name), manifest), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// join loads a fixture and joins a session of it.
func join(t testing.TB, name, manifest string, o Options) (*Session, *journal) {
	t.Helper()
	j := &journal{}
	return joinExtension(t, load(t, shared, name, manifest, o), j), j
}

func joinExtension(t testing.TB, e *Extension, j *journal) *Session {
	t.Helper()
	s, err := e.Session(t.Context(), SessionConfig{Record: j.record})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask calls the hook and shows the answer, or the error.
func ask(t testing.TB, s *Session, payload string) string {
	t.Helper()
	answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(payload))
	if err != nil {
		return "error: " + err.Error()
	}
	return string(answer)
}

// The committed modules are what their sources make.
func TestFixturesAreBuiltFromTheirSources(t *testing.T) {
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		missing(t, "wat2wasm", "apt install wabt")
	}
	var sources []string
	for _, pattern := range []string{"testdata/*.wat", "testdata/hostile/*.wat"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatalf("no sources %s: %v", pattern, err)
		}
		sources = append(sources, some...)
	}
	for _, source := range sources {
		name := strings.TrimSuffix(strings.TrimPrefix(source, "testdata/"), ".wat")
		out := filepath.Join(t.TempDir(), "out.wasm")
		// Some are invalid on purpose, so nothing is checked here.
		if text, err := exec.CommandContext(t.Context(), "wat2wasm", "--no-check", source, "-o", out).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", source, err, text)
			continue
		}
		built, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if string(built) != string(fixture(t, name)) {
			t.Errorf("testdata/%s.wasm is not what %s makes: build it again", name, source)
		}
	}
}

func TestOpenMakesPrivateFolders(t *testing.T) {
	dir := ownFolder(t)
	cache, kv := filepath.Join(dir, "a", "cache"), filepath.Join(dir, "a", "kv")
	h, err := Open(Config{CacheDir: cache, KVDir: kv, Compiler: "/proc/self/exe"})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{cache, kv} {
		info, err := os.Stat(d)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %o; want 700", filepath.Base(d), info.Mode().Perm())
		}
	}
	load(t, h, "least", leastManifest, Options{})
	if files, _ := filepath.Glob(cache + "/*/*"); len(files) != 1 {
		t.Errorf("the compile cache has %d files; want 1", len(files))
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	_, err = h.LoadBytes(t.Context(), "late.wasm", embed(t, fixture(t, "least"), leastManifest), Options{})
	if err == nil {
		t.Error("a closed host loads an extension")
	}
}

// A folder that others can write to is refused: what is in the cache runs in
// this process.
func TestFoldersOfOthers(t *testing.T) {
	open, dir := filepath.Join(t.TempDir(), "open"), ownFolder(t)
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o770); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []Config{{CacheDir: open}, {KVDir: open}, {CacheDir: dir, KVDir: open}} {
		h, err := Open(cfg)
		if want := `open the extension host: others may write to the folder "` + open + `": chmod go-w, once it holds nothing of theirs`; err == nil || err.Error() != want {
			t.Errorf("Open(%+v) = %v, %v\nwant %s", cfg, h, err, want)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can give a folder away
	}
	if err := errors.Join(os.Chmod(open, 0o700), os.Chown(open, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{CacheDir: open})
	if want := `open the extension host: the folder "` + open + `" belongs to somebody else: name one of your own`; err == nil || err.Error() != want {
		t.Errorf("Open: %v\nwant %s", err, want)
	}
}

func all(t testing.TB, config map[string]any) Options {
	t.Helper()
	return Options{Grant: capability.All(), Config: config}
}

// cancelled returns a context that is over, for a reason.
func cancelled(t testing.TB, cause string) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New(cause))
	return ctx
}
