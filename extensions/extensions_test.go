package extensions_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/extensions"
	guestsdk "github.com/wharf-agent/wharf/guest-sdk"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/build"
	"github.com/wharf-agent/wharf/host/exttest"
	"github.com/wharf-agent/wharf/host/hosttest"
)

func TestMain(m *testing.M) { os.Exit(hosttest.Main(m)) }

func missing(t *testing.T, what, install string) {
	t.Helper()
	if os.Getenv("WHARF_TEST_STRICT") == "1" {
		t.Fatalf("%s is missing: %s", what, install)
	}
	t.Skipf("%s is missing: %s", what, install)
}

// shared is the one host of these tests: a module is compiled once.
var shared = sync.OnceValues(func() (*host.Host, error) {
	compiler, err := hosttest.Compiler()
	if err != nil {
		return nil, err
	}
	return host.Open(host.Config{Compiler: compiler})
})

// join loads a module and joins a session of it.
func join(t testing.TB, wasm []byte, o host.Options) *host.Session {
	t.Helper()
	h, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.LoadBytes(t.Context(), "x.wasm", wasm, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Session(t.Context(), host.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask calls a hook with a payload of these keys.
func ask(t testing.TB, s *host.Session, p hook.Point, payload map[string]any) hook.Verdict {
	t.Helper()
	payload["session_id"], payload["turn"], payload["step"] = "s", 1, 1
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Call(t.Context(), p, raw)
	if err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	var v hook.Verdict
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &v); err != nil {
			t.Fatalf("%s: answer %s: %v", raw, answer, err)
		}
	}
	return v
}

// lines reads a file of test data: a case a line, without comments. \n in it
// is a newline, \t a tab.
func lines(t testing.TB, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, line := range strings.Split(string(raw), "\n") {
		if line != "" && !strings.HasPrefix(line, "## ") {
			all = append(all, strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(line))
		}
	}
	return all
}

func execCall(t testing.TB, s *host.Session, command string) hook.Verdict {
	return ask(t, s, hook.BeforeExecuteTool, map[string]any{
		"call_id": "c", "tool": "exec", "arguments": map[string]any{"command": command},
	})
}

func TestNoRM(t *testing.T) {
	s := join(t, extensions.NoRM, host.Options{})
	for _, command := range lines(t, "no-rm/testdata/denied.txt") {
		if v := execCall(t, s, command); v.Decision != hook.Deny || !strings.HasPrefix(v.Reason, "this guard refuses recursive deletes, and the command has ") {
			t.Errorf("not denied: %q: %+v", command, v)
		}
	}
	for _, command := range lines(t, "no-rm/testdata/allowed.txt") {
		if v := execCall(t, s, command); v.Decision != "" || v.Error != "" {
			t.Errorf("not let pass: %q: %+v", command, v)
		}
	}
}

// What is too deep or too large to be judged is refused, not let pass.
func TestNoRMRefusesWhatItCannotRead(t *testing.T) {
	s := join(t, extensions.NoRM, host.Options{})
	for name, command := range map[string]string{
		"deep":  strings.Repeat("$(", 60) + "rm -rf x" + strings.Repeat(")", 60),
		"large": strings.Repeat("x", 1<<20+1),
		"many":  strings.Repeat("cat <<A ", 9),
	} {
		if v := execCall(t, s, command); v.Decision != hook.Deny {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := execCall(t, s, strings.Repeat("ls; ", 2000)); v.Decision != "" {
		t.Errorf("a long harmless command: %+v", v)
	}
}

// Whatever the command, the guard answers.
func FuzzNoRM(f *testing.F) {
	for _, file := range []string{"denied", "allowed"} {
		for _, command := range lines(f, "no-rm/testdata/"+file+".txt") {
			f.Add(command)
		}
	}
	s := join(f, extensions.NoRM, host.Options{})
	f.Fuzz(func(t *testing.T, command string) {
		before := execCall(t, s, command)
		if before.Error != "" {
			t.Errorf("it cannot judge %q: %+v", command, before)
		}
		if v := execCall(t, s, "rm -rf x; "+command); v.Decision != hook.Deny {
			t.Errorf("what follows hides the command: %q: %+v", command, v)
		}
	})
}

func TestRedact(t *testing.T) {
	s := join(t, extensions.Redact, host.Options{})
	for _, line := range lines(t, "redact/testdata/cases.txt") {
		in, want, ok := strings.Cut(line, " => ")
		if !ok {
			t.Fatalf("a case without =>: %q", line)
		}
		v := ask(t, s, hook.FinalizeContent, map[string]any{"text": in})
		got := in
		if raw, replaced := v.Replace["text"]; replaced {
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
		}
		if got != want || v.Error != "" {
			t.Errorf("%q becomes %q (%s)\nwant %q", in, got, v.Error, want)
		}
	}
}

// Masking takes time in proportion to the text, whatever is in it.
func TestRedactIsQuick(t *testing.T) {
	s := join(t, extensions.Redact, host.Options{})
	for _, part := range []string{"eyJ", "eyJ-", "://", "://a:", "-----BEGIN ", "bearer ", "ghp_", "sk-", "A", "\\"} {
		text := strings.Repeat(part, 100_000/len(part))
		if v := ask(t, s, hook.FinalizeContent, map[string]any{"text": text}); v.Error != "" {
			t.Errorf("%q again and again: %+v", part, v)
		}
	}
}

// What is no token comes out as it went in, whatever is in it.
func FuzzRedact(f *testing.F) {
	f.Add("a\x00\u2028\"\\ é 😀")
	s := join(f, extensions.Redact, host.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		v := ask(t, s, hook.FinalizeContent, map[string]any{"text": text + " ghp_0123456789abcdefghij"})
		var got string
		if err := json.Unmarshal(v.Replace["text"], &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, begin := range []string{"_", "-", "a", "eyj", "bearer", "basic", "secret", "hvs.", "://"} {
			if strings.Contains(strings.ToLower(text), begin) {
				return // perhaps there is a token
			}
		}
		if got != text+" [redacted: GitHub token]" {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

// A long text is counted to its end.
func TestCountWordsOfALongText(t *testing.T) {
	s := join(t, extensions.CountWords, host.Options{})
	arguments := []byte(`{"text":"` + strings.Repeat("word ", 100_000) + `"}`)
	got, err := s.Tools()[0].Run(t.Context(), tool.Call{Name: "count_words", Arguments: arguments})
	if err != nil || !reflect.DeepEqual(got, tool.Result{Content: "100000 words"}) {
		t.Errorf("count_words = %+v, %v", got, err)
	}
	got, err = s.Tools()[0].Run(t.Context(), tool.Call{Name: "count_words", Arguments: []byte(`{"text":3}`)})
	if err != nil || !reflect.DeepEqual(got, tool.Result{Content: "count_words needs a text", IsError: true}) {
		t.Errorf("without a text, which no engine lets through: %+v, %v", got, err)
	}
}

// The cases beside the sources of each shipped extension pass, as wharf ext test
// runs them.
func TestCases(t *testing.T) {
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range extensions.Names() {
		wasm, err := extensions.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		runner, err := exttest.Open(t.Context(), exttest.Config{Wasm: wasm, Compiler: compiler})
		if err != nil {
			t.Fatal(err)
		}
		defer runner.Close()
		files, err := exttest.ReadDir(filepath.Join(name, "testdata"), runner.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, c := range f.Cases {
				t.Run(name+"/"+c.Name, func(t *testing.T) {
					result, err := runner.Run(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					for _, failure := range result.Failures {
						t.Errorf("%s:%d: %s\n%s", f.Name, failure.Line, failure.What, failure.Diff)
					}
				})
			}
		}
	}
}

// Making text of HTML takes time in proportion to the HTML, whatever is in it.
func TestHTMLToTextIsQuick(t *testing.T) {
	s := join(t, extensions.HTMLToText, host.Options{})
	for _, part := range []string{
		"<", "</", "<!--", "<!-- -", "<a ", "<a href=\"", "<a href=x>", "<a href=x>y</a>", "<p hidden", "<p =", "<div hidden>", "<script>", "<script></scrip",
		"<ul><li>", "<ol>", "</ul>", "<table><tr><td>", "<td>", "&", "&amp", "&#x", "&#65;", "<pre>\n", "<title>", "<title>x</title>", " ", "<a b c d e=' f ", "ä", "\u202e",
	} {
		html := strings.Repeat(part, 300_000/len(part))
		arguments, err := json.Marshal(map[string]any{"html": html, "max_chars": 200_000})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		got, err := s.Tools()[0].Run(ctx, tool.Call{Name: "html_to_text", Arguments: arguments})
		cancel()
		if err != nil || got.IsError || len(got.Content) > 2<<20 {
			t.Errorf("%q again and again: %.200s, %v, %d bytes", part, got.Content, err, len(got.Content))
		}
	}
}

// Whatever the HTML, there is a text, and nothing of what is left out.
func FuzzHTMLToText(f *testing.F) {
	for _, html := range []string{"<p a='b\"c'>x", "a<script>b</script>c", "<!-->x", "<a href=\"javascript:x\">y</a>", "&#x110000;&#-1;&;", "<ä b>", "<p title=ä=>"} {
		f.Add(html)
	}
	s := join(f, extensions.HTMLToText, host.Options{})
	f.Fuzz(func(t *testing.T, html string) {
		html = strings.ToValidUTF8(html, "")
		arguments, err := json.Marshal(map[string]string{"html": html + "<script>canary()</script>"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Tools()[0].Run(t.Context(), tool.Call{Name: "html_to_text", Arguments: arguments})
		if err != nil || got.IsError || got.Content == "" {
			t.Fatalf("%q: %+v, %v", html, got, err)
		}
		if strings.ContainsAny(got.Content, "\u202e\u200b\x00\x1b") {
			t.Errorf("%q becomes %q", html, got.Content)
		}
	})
}

func TestKeepGenerated(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		missing(t, "go", "get Go from https://go.dev/dl")
	}
	wasm := rebuild(t, "keep-generated")
	s := join(t, wasm, host.Options{})
	edit := func(s *host.Session, path string) hook.Verdict {
		return ask(t, s, hook.BeforeExecuteTool, map[string]any{
			"call_id": "c", "tool": "edit_file", "arguments": map[string]any{"path": path},
		})
	}
	if v := edit(s, "api/x.pb.go"); v.Decision != hook.Deny || v.Reason != "api/x.pb.go is generated: change its source and run the generator" {
		t.Errorf("%+v", v)
	}
	if v := edit(s, "main.go"); v.Decision != "" {
		t.Errorf("%+v", v)
	}
	own := join(t, wasm, host.Options{Config: map[string]any{"patterns": []any{"main.go"}}})
	if v := edit(own, "cmd/main.go"); v.Decision != hook.Deny {
		t.Errorf("with patterns of the user's: %+v", v)
	}
	bad := join(t, wasm, host.Options{Config: map[string]any{"patterns": true}})
	if v := edit(bad, "main.go"); !strings.HasPrefix(v.Error, `config.get "patterns": json: cannot unmarshal bool`) {
		t.Errorf("with patterns that are none: %+v", v)
	}
}

// rebuild builds a copy of an extension's folder.
func rebuild(t *testing.T, name string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(name)); err != nil {
		t.Fatal(err)
	}
	r, err := build.Extension(t.Context(), build.Config{Dir: dir, SDK: guestsdk.SDK, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Wasm
}

var update = flag.Bool("update", false, "build the committed modules again")

// modules are the committed modules, by the language of their sources.
var modules = map[string][]string{
	"c":              {"no-rm", "redact", "count-words"},
	"zig":            {"budget", "protect-paths", "csv-query"},
	"rust":           {"audit", "html-to-text"},
	"assemblyscript": {"footer", "format-on-write"},
}

// compilers are what the committed modules were built with: the beginning of the
// compiler's name among what the language needs, how it is asked for its version,
// and what it says.
var compilers = map[string]struct{ program, ask, version string }{
	"c":              {"clang", "--version", "Debian clang version 14.0.6"},
	"zig":            {"zig", "version", "0.17.1"},
	"rust":           {"rustc", "--version", "rustc 1.63.0"},
	"assemblyscript": {"asc", "--version", "Version 0.28.20"},
}

// The committed modules are what their sources make. Where another compiler is
// installed than they were built with, their sources must at least be those
// that they were built from. With -update they are built again.
func TestModulesAreBuiltFromTheirSources(t *testing.T) {
	count := 0
	for language, names := range modules {
		for _, name := range names {
			count++
			t.Run(name, func(t *testing.T) { checkModule(t, language, name) })
		}
	}
	if count != len(extensions.Names()) {
		t.Errorf("%d modules are checked, and %d shipped", count, len(extensions.Names()))
	}
}

func checkModule(t *testing.T, language, name string) {
	file, record := filepath.Join(name, name+".wasm"), filepath.Join(name, "testdata", "sources.sha256")
	digest := sourceDigest(t, language, name)
	if *update {
		needCompiler(t, language)
		if err := errors.Join(os.WriteFile(file, rebuild(t, name), 0o644), os.WriteFile(record, []byte(digest+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(wasm) > 100<<10 {
		t.Errorf("it has %d bytes; at most 100 KiB", len(wasm))
	}
	recorded, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if digest != strings.TrimSpace(string(recorded)) {
		t.Errorf("the sources have the digest %s, and %s another: build again with tools/guests", digest, record)
	}
	needCompiler(t, language)
	if !bytes.Equal(rebuild(t, name), wasm) {
		t.Errorf("%s is not what its sources make: build it again with tools/guests", file)
	}
}

// needCompiler skips a test where another compiler is installed than the modules
// were built with.
func needCompiler(t *testing.T, language string) {
	t.Helper()
	c, languages := compilers[language], build.Languages()
	needs := languages[slices.IndexFunc(languages, func(l build.Language) bool { return l.ID == language })].Needs
	compiler := needs[slices.IndexFunc(needs, func(p build.Program) bool { return strings.HasPrefix(p.Name, c.program) })]
	argv, err := compiler.Command(t.Context(), os.Environ())
	if err != nil {
		missing(t, compiler.Name, compiler.Install)
	}
	out, err := exec.CommandContext(t.Context(), argv[0], append(argv[1:], c.ask)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(out), c.version) {
		t.Skipf("the modules were built with %s, and here is %.40q", c.version, out)
	}
}

// sourceDigest is the digest of what a module is built from: the files of its folder
// and the SDK.
func sourceDigest(t *testing.T, language, name string) string {
	t.Helper()
	sum := sha256.New()
	for _, root := range []fs.FS{os.DirFS(name), guestsdk.SDK(language)} {
		err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case entry.IsDir() || strings.HasSuffix(file, ".md") || strings.HasSuffix(file, ".wasm"):
				return nil
			}
			raw, err := fs.ReadFile(root, file)
			fmt.Fprintf(sum, "%s %d\n%s", file, len(raw), raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
