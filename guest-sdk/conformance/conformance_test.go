package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/guest-sdk/conformance"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/hosttest"
)

func TestMain(m *testing.M) { os.Exit(hosttest.Main(m)) }

// guest is an extension that obeys scripts.
type guest struct {
	host   *host.Host
	loaded map[string]*host.Extension // by grant
}

func loadGuest(t *testing.T, wasm []byte) *guest {
	t.Helper()
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Config{KVDir: filepath.Join(t.TempDir(), "kv"), Compiler: compiler})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	g := &guest{h, map[string]*host.Extension{}}
	for name, grant := range map[string]capability.Grant{"": capability.All(), "none": {}} {
		g.loaded[name], err = h.LoadBytes(t.Context(), "conformance.wasm", wasm, host.Options{
			Grant: grant, Config: map[string]any{"greeting": "hello"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// outcome is what came of a vector.
type outcome struct {
	Answer, Result any
	Failure        string
	Logged         [][2]string
}

// do runs a vector in a session of its own.
func (g *guest) do(t *testing.T, v conformance.Vector) outcome {
	t.Helper()
	var o outcome
	var mu sync.Mutex
	record := func(e session.Event) error {
		if l, ok := e.(session.ExtensionLogged); ok {
			mu.Lock()
			defer mu.Unlock()
			o.Logged = append(o.Logged, [2]string{l.Level, l.Text})
		}
		return nil
	}
	s, err := g.loaded[v.Grant].Session(t.Context(), host.SessionConfig{Record: record, Env: func(string) (string, bool) { return "yes", true }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if v.Tool != "" {
		o.Result = callTool(t, s, v)
		return o
	}
	point := hook.Point(v.Point)
	answer, err := s.Call(t.Context(), point, payload(t, v))
	if err == nil {
		_, err = hook.ParseVerdict(point, answer)
	}
	if err != nil {
		o.Failure = err.Error()
	} else if len(answer) > 0 {
		o.Answer = decode(t, answer)
	}
	return o
}

// payload puts the script where the guest looks for it.
func payload(t *testing.T, v conformance.Vector) []byte {
	t.Helper()
	if v.Payload == nil {
		return []byte(v.Do)
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(v.Payload, &object); err != nil {
		t.Fatal(err)
	}
	script, err := json.Marshal(v.Do)
	if err != nil {
		t.Fatal(err)
	}
	object["session_id"], object["turn"], object["step"] = script, []byte("1"), []byte("1")
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func callTool(t *testing.T, s *host.Session, v conformance.Vector) any {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"do": v.Do})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Tools()[0].Run(t.Context(), tool.Call{ID: "c1", Name: v.Tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]any{"content": r.Content, "is_error": r.IsError}
	if r.Code != "" {
		result["code"] = string(r.Code)
	}
	return result
}

func decode(t *testing.T, raw []byte) any {
	t.Helper()
	if raw == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// settle puts what a vector leaves open in the place of the …, where all else fits.
func settle(got, want string) string {
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$"
	if strings.Contains(want, "…") && regexp.MustCompile(pattern).MatchString(got) {
		return want
	}
	return got
}

// check runs the vectors that a guest is able to obey.
func (g *guest) check(t *testing.T, able func(conformance.Vector) bool) {
	vectors, err := conformance.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if !able(v) {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			want := outcome{Answer: decode(t, v.Answer), Result: decode(t, v.Result), Failure: v.Failure, Logged: v.Logged}
			got := g.do(t, v)
			got.Failure = settle(got.Failure, want.Failure)
			for i := range min(len(got.Logged), len(want.Logged)) {
				got.Logged[i][1] = settle(got.Logged[i][1], want.Logged[i][1])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// guests are the extensions that prove host and SDKs: each obeys every script, or
// those that the types of its language let it.
var guests = []struct {
	name     string
	folder   string
	language string // its name on the command line
	able     func(conformance.Vector) bool
}{
	{"C", "guest-c", "c", everything},
	{"Go", "guest-go", "go", inGo},
	{"Rust", "guest-rust", "rust", everything},
	{"AssemblyScript", "guest-assemblyscript", "assemblyscript", everything},
	{"Zig", "guest-zig", "zig", everything},
}

func everything(conformance.Vector) bool { return true }

// inGo leaves out what cannot be said with the types of the SDK for Go.
func inGo(v conformance.Vector) bool {
	verb, _, _ := strings.Cut(v.Do, " ")
	switch {
	case verb == "operate", verb == "trap":
		return false
	case v.Tool != "":
		return verb == "spin" || strings.HasPrefix(v.Do, `answer {"content":"`) || strings.HasPrefix(v.Do, `answer {"structured"`) || strings.HasPrefix(v.Do, `answer {"error"`)
	}
	return v.Failure == "" && string(v.Answer) != "{}" && v.Do != "answer " || verb == "spin" || strings.HasPrefix(v.Do, `answer {"error"`)
}

// Each guest passes all vectors that it is able to obey.
func TestGuests(t *testing.T) {
	for _, g := range guests {
		t.Run(g.name, func(t *testing.T) {
			need(t, g.language)
			loadGuest(t, buildGuest(t, g.folder)).check(t, g.able)
		})
	}
}

// need skips a test where the compiler of a language is missing.
func need(t *testing.T, language string) {
	t.Helper()
	languages := build.Languages()
	i := slices.IndexFunc(languages, func(l build.Language) bool { return l.ID == language })
	for _, p := range languages[i].Missing(t.Context(), os.Environ()) {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatalf("%s is missing: %s", p.Name, p.Install)
		}
		t.Skipf("%s is missing: %s", p.Name, p.Install)
	}
}

// buildGuest builds an extension from a copy of its folder.
func buildGuest(t *testing.T, folder string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	r, err := build.Extension(t.Context(), build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Wasm
}

// Each hook point has vectors for all that it takes, and for something that it
// does not.
func TestVectorsCoverThePoints(t *testing.T) {
	vectors, err := conformance.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	said := map[hook.Point][]string{}
	for _, v := range vectors {
		said[hook.Point(v.Point)] = append(said[hook.Point(v.Point)], string(v.Answer)+v.Failure)
	}
	for _, info := range hook.Points {
		var want []string
		for _, d := range info.Decisions {
			want = append(want, `"decision": "`+string(d)+`"`)
		}
		for _, key := range info.Replace {
			want = append(want, `"replace": {"`+key+`"`)
		}
		if info.Context {
			want = append(want, `"context": `)
		}
		for _, w := range append(want, "does not take the decision") {
			if !slices.ContainsFunc(said[info.Point], func(text string) bool { return strings.Contains(text, w) }) {
				t.Errorf("%s: no vector says %s", info.Point, w)
			}
		}
	}
}
