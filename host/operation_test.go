package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// openKV makes a host with a kv folder of its own, and shares the compile cache.
func openKV(t testing.TB, dir string) *Host {
	t.Helper()
	h, err := Open(Config{KVDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	h.inProcess = true
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// operate lets the guest run an operation: the status as a digit, then the response.
func operate(t testing.TB, s *Session, op, request string) string {
	t.Helper()
	return ask(t, s, "c"+op+"\n"+request)
}

func TestConfigGet(t *testing.T) {
	config := map[string]any{"word": "yes", "list": []any{int64(1), "two"}, "deep": map[string]any{"a": true}}
	s, j := join(t, "guest", guestManifest, Options{Config: config})
	tests := []struct{ name, request, want string }{
		{"a text", `{"key":"word"}`, `0{"value":"yes"}`},
		{"a list", `{"key":"list"}`, `0{"value":[1,"two"]}`},
		{"a table", `{"key":"deep"}`, `0{"value":{"a":true}}`},
		{"what is not there", `{"key":"no"}`, `0{"value":null}`},
		{"no key", `{}`, `2{"code":"BAD_REQUEST","message":"config.get: bad request: \"key\" must have 1 to 512 bytes"}`},
		{"an unknown key", `{"key":"a","x":1}`, `2{"code":"BAD_REQUEST","message":"config.get: bad request: json: unknown field \"x\""}`},
		{"no JSON", `hello`, `2{"code":"BAD_REQUEST","message":"config.get: bad request: invalid character 'h' looking for beginning of value"}`},
		{"nothing", ``, `2{"code":"BAD_REQUEST","message":"config.get: bad request: EOF"}`},
		{"two requests", `{"key":"a"}{"key":"b"}`, `2{"code":"BAD_REQUEST","message":"config.get: bad request: there is more behind the JSON object"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := operate(t, s, "config.get", tt.request); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if j.lines() != "" {
		t.Errorf("config.get needs no grant, and was recorded: %s", j.lines())
	}
}

func TestOperationsThatDoNotRun(t *testing.T) {
	s, _ := join(t, "guest", strings.ReplaceAll(guestManifest, "200ms", "10s"), Options{})
	tests := []struct{ name, payload, want string }{
		{"an unknown one", "cno.such\n{}", `5{"code":"UNKNOWN_OPERATION","message":"unknown operation \"no.such\": this host has ` + strings.Join(Operations(), ", ") + `"}`},
		{"one too many", "sconfig.get\n{\"key\":\"a\"}", `4{"code":"OVER_LIMIT","message":"over the limit operations: 10000 in one call"}`},
		{"a name outside the memory", "k", `{"code":"BAD_REQUEST","message":"the operation's name or request is outside the guest's memory"}`},
		{"a large request", "cconfig.get\n" + strings.Repeat(" ", 1<<20+1), `4{"code":"OVER_LIMIT","message":"the request has 1048577 bytes: that is over the limit output, 1048576"}`},
		{"a request that is no UTF-8", "cconfig.get\n{\"key\":\"\xff\"}", `2{"code":"BAD_REQUEST","message":"the request is not UTF-8"}`},
		{"the next call counts anew", "cconfig.get\n{\"key\":\"a\"}", `0{"value":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ask(t, s, tt.payload); got != tt.want {
				t.Errorf("got  %.200s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestKV(t *testing.T) {
	dir := ownFolder(t)
	h := openKV(t, dir)
	grant := Options{Grant: capability.All()}
	j := &journal{}
	s := joinExtension(t, load(t, h, "guest", guestManifest, grant), j)
	large := strings.Repeat("x", 1020)
	steps := []struct{ op, request, want string }{
		{"kv.get", `{"key":"a"}`, `0{"value":null}`},
		{"kv.set", `{"key":"a","value":"1"}`, `0{}`},
		{"kv.set", `{"key":"ab","value":{ "n": [1, 2] }}`, `0{}`},
		{"kv.set", `{"key":"c","value":false}`, `0{}`},
		{"kv.get", `{"key":"ab"}`, `0{"value":{"n":[1,2]}}`},
		{"kv.list", `{"prefix":"a"}`, `0{"keys":["a","ab"]}`},
		{"kv.list", `{}`, `0{"keys":["a","ab","c"]}`},
		{"kv.delete", `{"key":"a"}`, `0{}`},
		{"kv.delete", `{"key":"a"}`, `0{}`},
		{"kv.list", `{"prefix":"z"}`, `0{"keys":[]}`},
		{"kv.set", `{"key":"a"}`, `2{"code":"BAD_REQUEST","message":"kv.set: bad request: \"value\" must be there and not null: kv.delete takes a key away"}`},
		{"kv.set", `{"key":"a","value":null}`, `2{"code":"BAD_REQUEST","message":"kv.set: bad request: \"value\" must be there and not null: kv.delete takes a key away"}`},
		{"kv.set", `{"key":"","value":1}`, `2{"code":"BAD_REQUEST","message":"kv.set: bad request: \"key\" must have 1 to 512 bytes"}`},
		{"kv.set", `{"key":"big","value":"` + large + `"}`, `4{"code":"OVER_LIMIT","message":"kv.set: over a limit: what is kept would be 1044 bytes, and the grant is kv = \"1KiB\": delete something, or ask for more"}`},
		{"kv.list", `{}`, `0{"keys":["ab","c"]}`},
	}
	for i, step := range steps {
		if got := operate(t, s, step.op, step.request); got != step.want {
			t.Errorf("step %d: %s %.60s\ngot  %s\nwant %s", i, step.op, step.request, got, step.want)
		}
	}
	if got, want := strings.SplitN(j.lines(), "\n", 3)[1], "guest used kv.set a: allowed"; got != want {
		t.Errorf("recorded %q; want %q", got, want)
	}
	if n := len(j.events); n != len(steps)-3 {
		t.Errorf("%d uses are recorded; want %d: bad requests reach nothing", n, len(steps)-3)
	}
	// Another session, by another host, as after a restart.
	again := joinExtension(t, load(t, openKV(t, dir), "guest", guestManifest, grant), j)
	if got, want := operate(t, again, "kv.list", `{}`), `0{"keys":["ab","c"]}`; got != want {
		t.Errorf("after a restart: %s; want %s", got, want)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) != 2 {
		t.Errorf("files: %v; want the store and its lock", files)
	}
	info, err := os.Stat(filepath.Join(dir, "guest.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the store: %v, %v; want mode 600", info, err)
	}
}

func TestKVRefused(t *testing.T) {
	without := strings.Replace(guestManifest, "[capabilities]\nkv = \"1KiB\"\n", "", 1)
	tests := []struct {
		name, manifest string
		grant          capability.Grant
		want           string
	}{
		{"not granted", guestManifest, capability.Grant{}, `1{"code":"NOT_GRANTED","message":"kv.set: capability not granted: kv: the user did not grant it: add --grant kv after --ext, or grant = { kv = \"1KiB\" } under [extensions.guest]"}`},
		{"not asked for", without, capability.All(), `1{"code":"NOT_GRANTED","message":"kv.set: capability not granted: kv: the manifest does not ask for it: add kv = \"1MiB\" under [capabilities], and grant it"}`},
		{"less was granted", guestManifest, capability.Only(capability.Set{KV: 4}), `4{"code":"OVER_LIMIT","message":"kv.set: over a limit: what is kept would be 6 bytes, and the grant is kv = \"4B\": delete something, or ask for more"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := ownFolder(t)
			j := &journal{}
			s := joinExtension(t, load(t, openKV(t, dir), "guest", tt.manifest, Options{Grant: tt.grant}), j)
			if got := operate(t, s, "kv.set", `{"key":"a","value":"123"}`); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "guest.json")); !errors.Is(err, os.ErrNotExist) {
				t.Error("something was written")
			}
			if tt.want[0] == '1' && j.lines() != "guest used kv.set a: refused" {
				t.Errorf("recorded %q", j.lines())
			}
		})
	}
}

func TestKVTrouble(t *testing.T) {
	dir := ownFolder(t)
	h := openKV(t, dir)
	s := joinExtension(t, load(t, h, "guest", guestManifest, all(t, nil)), &journal{})
	damaged := `3{"code":"FAILED","message":"kv.get: the file guest.json is damaged or from a later version: move it away"}`
	for _, content := range []string{"", "{", `{"version":2,"entries":{}}`, `{"version":1,"entries":null}`, `{"version":1,"entries":{},"x":1}`} {
		if err := os.WriteFile(filepath.Join(dir, "guest.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := operate(t, s, "kv.get", `{"key":"a"}`); got != damaged {
			t.Errorf("with a file %q:\ngot  %s\nwant %s", content, got, damaged)
		}
		if got := operate(t, s, "kv.set", `{"key":"a","value":1}`); got[0] != '3' {
			t.Errorf("a damaged file is overwritten: %s", got)
		}
	}
	// Somebody holds the lock: the guest's deadline ends the wait.
	lock, err := os.OpenFile(filepath.Join(dir, "guest.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if got := operate(t, s, "kv.get", `{"key":"a"}`); !strings.HasPrefix(got, "error: no answer in time") {
		t.Errorf("with the lock held: %s", got)
	}
	without := joinExtension(t, load(t, openKV(t, ""), "guest", guestManifest, all(t, nil)), &journal{})
	want := `3{"code":"FAILED","message":"kv.get: this host has no folder for what extensions keep"}`
	if got := operate(t, without, "kv.get", `{"key":"a"}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Values are kept as they are: what was let in does not grow over the quota
// later, and what could not be read again is not let in.
func TestKVKeepsValuesAsTheyAre(t *testing.T) {
	s := joinExtension(t, load(t, openKV(t, ownFolder(t)), "guest", guestManifest, all(t, nil)), &journal{})
	markup := `"` + strings.Repeat("<&>", 300) + `"`
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	steps := []struct{ op, request, want string }{
		{"kv.set", `{"key":"a","value":` + markup + `}`, `0{}`},
		{"kv.set", `{"key":"b","value":1}`, `0{}`},
		{"kv.get", `{"key":"a"}`, `0{"value":` + markup + `}`},
		{"kv.delete", `{"key":"a"}`, `0{}`},
		{"kv.set", `{"key":"deep","value":` + deep(9_999) + `}`, `2{"code":"BAD_REQUEST","message":"kv.set: bad request: the value is nested too deeply"}`},
		{"kv.get", `{"key":"b"}`, `0{"value":1}`},
	}
	for i, step := range steps {
		if step.op == "kv.set" && strings.Contains(step.request, "[[") { // it needs a larger quota
			s = joinExtension(t, load(t, openKV(t, s.extension.host.kvDir), "guest",
				strings.Replace(guestManifest, "1KiB", "1MiB", 1), all(t, nil)), &journal{})
		}
		if got := operate(t, s, step.op, step.request); got != step.want {
			t.Errorf("step %d: %s %.60s\ngot  %.200s\nwant %.200s", i, step.op, step.request, got, step.want)
		}
	}
}

// What lies in the place of the store's files is neither followed nor waited for.
func TestKVInTheWay(t *testing.T) {
	for _, file := range []string{"guest.json", "guest.lock", "guest.new"} {
		for name, put := range map[string]func(path, other string) error{
			"a link":   func(path, other string) error { return os.Symlink(other, path) },
			"a FIFO":   func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
			"a folder": func(path, _ string) error { return os.Mkdir(path, 0o700) },
		} {
			t.Run(name+" for "+file, func(t *testing.T) {
				dir, other := ownFolder(t), filepath.Join(t.TempDir(), "canary")
				if err := os.WriteFile(other, []byte("canary"), 0o600); err != nil {
					t.Fatal(err)
				}
				s := joinExtension(t, load(t, openKV(t, dir), "guest", guestManifest, all(t, nil)), &journal{})
				if err := put(filepath.Join(dir, file), other); err != nil {
					t.Fatal(err)
				}
				want := `3{"code":"FAILED","message":"kv.set: the store cannot be used: there is something else in the place of its file: take it away"}`
				if got := operate(t, s, "kv.set", `{"key":"a","value":1}`); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if raw, err := os.ReadFile(other); string(raw) != "canary" || err != nil {
					t.Errorf("the file behind the link: %q, %v", raw, err)
				}
			})
		}
	}
}

// What a killed process left of a new file is overwritten.
func TestKVAfterACrash(t *testing.T) {
	dir := ownFolder(t)
	s := joinExtension(t, load(t, openKV(t, dir), "guest", guestManifest, all(t, nil)), &journal{})
	if err := os.WriteFile(filepath.Join(dir, "guest.new"), []byte(`{"version":1,"entr`+strings.Repeat("x", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := operate(t, s, "kv.set", `{"key":"a","value":1}`); got != "0{}" {
		t.Errorf("kv.set: %s", got)
	}
	if got := operate(t, s, "kv.get", `{"key":"a"}`); got != `0{"value":1}` {
		t.Errorf("kv.get: %s", got)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) != 2 {
		t.Errorf("files: %v; want the store and its lock", files)
	}
}

// An operation whose audit cannot be written does not happen.
func TestKVNeedsItsAudit(t *testing.T) {
	dir := ownFolder(t)
	e := load(t, openKV(t, dir), "guest", guestManifest, all(t, nil))
	s, err := e.Session(t.Context(), SessionConfig{Record: func(session.Event) error { return errors.New("disk full") }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := `3{"code":"FAILED","message":"kv.set: disk full"}`
	if got := operate(t, s, "kv.set", `{"key":"a","value":1}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "guest.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error("something was written")
	}
}

// Several processes and several sessions in each change one store at once, and
// no change is lost.
func TestHammerKV(t *testing.T) {
	const processes, sessions, rounds = 2, 2, 5
	if dir := os.Getenv("WHARF_TEST_HAMMER_KV"); dir != "" {
		hammer(t, dir, sessions, rounds)
		return
	}
	dir := ownFolder(t)
	var running []*exec.Cmd
	for range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHammerKV$")
		cmd.Env = append(os.Environ(), "WHARF_TEST_HAMMER_KV="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "guest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f kvFile
	if err := json.Unmarshal(raw, &f); err != nil || len(f.Entries) != processes*sessions*rounds {
		t.Errorf("%d entries, %v; want %d", len(f.Entries), err, processes*sessions*rounds)
	}
}

func hammer(t *testing.T, dir string, sessions, rounds int) {
	patient := strings.ReplaceAll(guestManifest, "200ms", "30s")
	e := load(t, openKV(t, dir), "guest", patient, all(t, nil))
	done := make(chan bool)
	for i := range sessions {
		s := joinExtension(t, e, &journal{})
		go func() {
			for n := range rounds {
				key := strconv.Itoa(os.Getpid()) + "." + strconv.Itoa(i) + "." + strconv.Itoa(n)
				if got := operate(t, s, "kv.set", `{"key":"`+key+`","value":1}`); got != "0{}" {
					t.Error(got)
				}
			}
			done <- true
		}()
	}
	for range sessions {
		<-done
	}
}

// Whatever a guest asks for, there is a status with a response that is JSON, and
// the host goes on.
func FuzzOperate(f *testing.F) {
	for _, seed := range [][2]string{
		{"config.get", `{"key":"word"}`},
		{"kv.set", `{"key":"a","value":1}`},
		{"kv.list", `{"prefix":""}`},
		{"fs.read", `{"path":"notes/a","offset":-1,"limit":5}`},
		{"fs.write", `{"path":"out/a","content":"x"}`},
		{"fs.list", `{"path":"notes/../.."}`},
		{"fs.stat", `{"path":"notes\u0000"}`},
		{"exec.run", `{"command":"gofmt -l .","timeout_ms":1e400}`},
		{"tool.call", `{"name":"read_file","arguments":{}}`},
		{"session.info", `{}`},
		{"session.messages", `{"last":-1}`},
		{"llm.complete", `{"prompt":"x","max_tokens":9007199254740993}`},
		{"env.get", `{"name":"LANG="}`},
		{"event.emit", `{"name":"x","data":{"a":[[]]}}`},
		{"http.fetch", `{"method":"GET","url":"http://[::1]/"}`},
		{"", `[`},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	root, err := sandbox.OpenRoot(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = root.Close() })
	asks := "fs = [{ path = \"notes\", mode = \"read\" }, { path = \"out\", mode = \"write\" }]\nexec = [\"gofmt *\"]\ntools = [\"read_file\"]\n" +
		"session = \"read\"\nllm = { tokens = 100 }\nenv = [\"LANG\"]\nevents = true\n"
	e := load(f, openKV(f, f.TempDir()), "guest", guestManifest+asks, Options{Grant: capability.All()})
	s, err := e.Session(f.Context(), SessionConfig{Root: root, Env: func(string) (string, bool) { return "de", true }})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, op string, request []byte) {
		x := s.instance
		x.operations, x.events = 0, 0
		var status abi.Status
		err := x.under(t.Context(), time.Minute, func(ctx context.Context) error {
			status = x.operate(ctx, []byte(op), request)
			return nil
		})
		if err != nil || status > abi.UnknownOperation || !json.Valid(x.response) {
			t.Errorf("%s %q: status %d, %q, %v", op, request, status, x.response, err)
		}
	})
}
