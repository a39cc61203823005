package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// bench is a workspace with the tools on it.
type bench struct {
	t     *testing.T
	dir   string
	tools tool.Registry
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := newBenchOn(t, sandbox.Config{})
	for name, content := range files {
		b.put(name, content)
	}
	return b
}

// newBenchOn returns a bench whose commands run in a sandbox of that configuration.
func newBenchOn(t *testing.T, cfg sandbox.Config) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	dir, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	root, err := sandbox.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	cfg.Workspace = dir
	box, err := sandbox.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	hidden := func(name string) bool { return filepath.Base(name) == ".hidden" }
	for _, tl := range Tools(Config{Root: root, Box: box, Hidden: hidden}) {
		if err := b.tools.Add(tl); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { b.tools.Close() })
	return b
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

// call runs a tool as the engine does. An error is shown as "error: text".
func (b *bench) call(name string, args any) string {
	b.t.Helper()
	result := b.run(b.t.Context(), name, args)
	if result.IsError {
		return strings.TrimSpace(fmt.Sprintf("error: %s %s", result.Content, result.Code))
	}
	return result.Content
}

func (b *bench) run(ctx context.Context, name string, args any) tool.Result {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	target, bad := b.tools.Lookup(name)
	if bad != nil {
		b.t.Fatal(bad.Content)
	}
	checked, bad := b.tools.Check(name, string(raw))
	if bad != nil {
		return *bad
	}
	result, err := target.Run(ctx, tool.Call{Name: name, Arguments: checked})
	if err != nil {
		return tool.Result{Content: err.Error(), IsError: true}
	}
	return result
}

// program runs a tool as one that an extension calls.
func (b *bench) program(name string, args any) (tool.Result, error) {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	target, bad := b.tools.Lookup(name)
	if bad != nil {
		b.t.Fatal(bad.Content)
	}
	return target.Run(b.t.Context(), tool.Call{Name: name, Arguments: raw, Program: true})
}

type args = map[string]any

func (b *bench) want(name string, a args, want string) {
	b.t.Helper()
	if got := b.call(name, a); got != want {
		b.t.Errorf("%s %v:\n got %q\nwant %q", name, a, got, want)
	}
}

func (b *bench) content(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

func TestReadFile(t *testing.T) {
	b := newBench(t, map[string]string{
		"abc": "a\nb\r\nc", "empty": "", "bin": "x\x00y", "latin": "caf\xe9",
		"long": strings.Repeat("é", 1500) + "\n", "many": strings.Repeat("line\n", 2005), "d/x": "",
	})
	b.want("read_file", args{"path": "abc"}, "     1\ta\n     2\tb\n     3\tc\n")
	b.want("read_file", args{"path": "abc", "offset": 2, "limit": 1}, "     2\tb\n[lines 2 to 2 of 3; read on with offset 3]\n")
	b.want("read_file", args{"path": "abc", "offset": 3, "limit": math.MaxInt64}, "     3\tc\n")
	b.want("read_file", args{"path": "abc", "offset": 9}, "[the file has 3 lines]")
	b.want("read_file", args{"path": "empty"}, "[the file is empty]")
	b.want("read_file", args{"path": "bin"}, `error: "bin" is no text (3 bytes of binary data)`)
	b.put("picture", "GIF89a…")
	if r := b.run(t.Context(), "read_file", args{"path": "picture"}); r.Content != "[image/gif, 9 bytes]" || len(r.Images) != 1 || r.Images[0].MediaType != "image/gif" {
		t.Errorf("read_file of an image = %+v; want the image", r)
	}
	b.want("edit_file", args{"path": "picture", "old_text": "GIF", "new_text": "gif"}, "replaced 1 occurrence(s) in picture\n@@ -1,1 +1,1 @@\n-GIF89a…\n\\ No newline at end of file\n+gif89a…\n\\ No newline at end of file")
	b.put("huge", "GIF89a"+strings.Repeat("x", session.MaxImage))
	b.want("read_file", args{"path": "huge"}, `error: "huge" cannot be shown: the image has 3932166 bytes, and a model is shown at most 3932160: make it smaller`)
	b.want("read_file", args{"path": "latin"}, `error: "latin" is no text (4 bytes of binary data)`)
	b.want("read_file", args{"path": "long"}, "     1\t"+strings.Repeat("é", 1000)+" […1000 bytes more]\n")
	b.want("read_file", args{"path": "d"}, `error: "d" is a folder`)
	b.want("read_file", args{"path": "nowhere"}, `error: "nowhere": no such file or directory`)
	b.want("read_file", args{"path": "../x"}, `error: refused: "../x" is outside the workspace`)
	b.want("read_file", args{"file": "abc"}, `error: the arguments of read_file do not fit: missing "path"; unknown field "file" INVALID_ARGS`)
	b.want("read_file", args{"path": "abc", "offset": 0}, `error: the arguments of read_file do not fit: "offset": minimum: got 0, want 1 INVALID_ARGS`)
	if got := b.call("read_file", args{"path": "many"}); !strings.HasSuffix(got, "  2000\tline\n[lines 1 to 2000 of 2005; read on with offset 2001]\n") {
		t.Errorf("a file of many lines ends with %q", got[len(got)-80:])
	}
}

func TestWriteAndEditFile(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one two two\n", "b": "x", ".git/config": "[core]"})
	b.want("write_file", args{"path": "new/n", "content": "hello"}, "wrote 5 bytes to new/n")
	if got := b.content("new/n"); got != "hello" {
		t.Errorf("new/n holds %q", got)
	}
	const unread = `error: "a" was not read in this session: read it, then change it`
	b.want("edit_file", args{"path": "a", "old_text": "one", "new_text": "1"}, unread)
	b.want("edit_file", args{"path": "a", "old_text": "not there", "new_text": "1"}, unread)
	b.want("write_file", args{"path": "a", "content": "1"}, unread)
	b.want("write_file", args{"path": "a", "content": "one two two\n"}, "wrote 12 bytes to a") // as it is
	if r, err := b.program("write_file", args{"path": "b", "content": "y"}); err != nil || r.IsError || b.content("b") != "y" {
		t.Errorf("a program writes without reading: %+v, %v", r, err)
	}
	b.call("read_file", args{"path": "a"})
	b.want("edit_file", args{"path": "a", "old_text": "one", "new_text": "1"}, "replaced 1 occurrence(s) in a\n@@ -1,1 +1,1 @@\n-one two two\n+1 two two")
	b.want("edit_file", args{"path": "a", "old_text": "two", "new_text": "2"},
		`error: old_text occurs 2 times in "a": add lines around it until it is unique, or set count to 2 to replace all`)
	b.want("edit_file", args{"path": "a", "old_text": "two", "new_text": "2", "count": 3}, `error: old_text occurs 2 times in "a", not 3`)
	b.want("edit_file", args{"path": "a", "old_text": "two", "new_text": "2", "count": 2}, "replaced 2 occurrence(s) in a\n@@ -1,1 +1,1 @@\n-1 two two\n+1 2 2")
	b.want("edit_file", args{"path": "a", "old_text": "three", "new_text": "3"}, `error: old_text does not occur in "a": read the file and copy the text exactly`)
	b.want("edit_file", args{"path": "a", "old_text": "1", "new_text": "1"}, "error: old_text and new_text are the same: there is nothing to change")
	if got := b.content("a"); got != "1 2 2\n" {
		t.Errorf("a holds %q", got)
	}
	b.want("write_file", args{"path": ".git/config", "content": "[alias]"},
		"error: refused: .git/config is protected (.git/config): trusted programs read it outside the sandbox; ask the user to change it")
	if got := b.content(".git/config"); got != "[core]" {
		t.Errorf(".git/config holds %q", got)
	}
}

// What somebody else changed since the model read it is not written over.
func TestStaleFilesAreRefused(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n"})
	b.call("read_file", args{"path": "a"})
	b.put("a", "one, changed\n")
	const stale = `error: "a" changed since it was read: read it again, then change it`
	b.want("edit_file", args{"path": "a", "old_text": "one", "new_text": "1"}, stale)
	b.want("write_file", args{"path": "a", "content": "1"}, stale)
	if got := b.content("a"); got != "one, changed\n" {
		t.Errorf("a holds %q", got)
	}
	b.call("read_file", args{"path": "a"})
	b.want("edit_file", args{"path": "a", "old_text": "one", "new_text": "1"}, "replaced 1 occurrence(s) in a\n@@ -1,1 +1,1 @@\n-one, changed\n+1, changed")
	b.want("write_file", args{"path": "a", "content": "2\n"}, "wrote 2 bytes to a\n@@ -1,1 +1,1 @@\n-1, changed\n+2")
}

// A text that was shown with the mark of a secret in it does not get into a file.
func TestMarksAreNotWritten(t *testing.T) {
	const before = "KEY=sk-0123456789\nMODE=a\n"
	b := newBench(t, map[string]string{".env": before})
	tests := []struct {
		tool string
		args any
		want string
	}{
		{"write_file", map[string]any{"path": ".env", "content": "KEY=[redacted:API_KEY]\nMODE=b\n"}, `error: write ".env": the text holds [redacted:API_KEY], which stands for a secret: leave the lines with it as they are, and change others by edit_file`},
		{"edit_file", map[string]any{"path": ".env", "old_text": "MODE=a", "new_text": "KEY=[redacted:API_KEY]"}, `error: edit ".env": the text holds [redacted:API_KEY], which stands for a secret: leave the lines with it as they are, and change others by edit_file`},
		{"edit_file", map[string]any{"path": ".env", "old_text": "KEY=[redacted:API_KEY]\nMODE=a", "new_text": "MODE=b"}, `error: edit ".env": the text holds [redacted:API_KEY], which stands for a secret: leave the lines with it as they are, and change others by edit_file`},
	}
	for _, tt := range tests {
		if got := b.call(tt.tool, tt.args); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.tool, got, tt.want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(b.dir, ".env")); err != nil || string(got) != before {
		t.Errorf("the file is %q, %v", got, err)
	}
	b.call("read_file", args{"path": ".env"})
	if got := b.call("edit_file", map[string]any{"path": ".env", "old_text": "MODE=a", "new_text": "MODE=b"}); !strings.HasPrefix(got, "replaced 1 occurrence(s) in .env\n") {
		t.Errorf("another line: %s", got)
	}
}

// What may not be read is not found in a folder either.
func TestHidden(t *testing.T) {
	b := newBench(t, map[string]string{"a": "key\n", ".hidden": "key\n", "sub/.hidden": "key\n", "x/.hidden/b": "key\n"})
	b.want("grep", args{"pattern": "key"}, "a:1: key\n")
	b.want("grep", args{"pattern": "key", "path": "sub"}, "[no line matches]")
	b.want("find_files", args{"pattern": "**/*"}, "a")
}

func TestLookingAround(t *testing.T) {
	b := newBench(t, map[string]string{
		"main.go": "package main\n\nfunc main() {\n\tprintln(\"Hello\")\n}\n", "README": "hello\n", "sub/a.go": "package sub\n",
		"sub/deep/a_test.go": "package deep\n", "out/gen.go": "package out\n", "sub/tmp.log": "hello", "sub/keep.log": "hello",
		".gitignore": "/out/\n*.log\n", "sub/.gitignore": "!keep.log\n", ".git/HEAD": "hello", "bin": "hello\x00",
	})
	if err := os.Symlink("sub", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	b.want("list_dir", args{}, ".git/\n.gitignore\t12\nREADME\t6\nbin\t6\nlink@\nmain.go\t48\nout/\nsub/\n")
	b.want("list_dir", args{"path": "link"}, ".gitignore\t10\na.go\t12\ndeep/\nkeep.log\t5\ntmp.log\t5\n")
	b.want("list_dir", args{"path": "main.go"}, `error: "main.go": not a directory`)
	b.want("find_files", args{"pattern": "*.go"}, "main.go\nsub/a.go\nsub/deep/a_test.go")
	b.want("find_files", args{"pattern": "sub/**/*.go"}, "sub/a.go\nsub/deep/a_test.go")
	b.want("find_files", args{"pattern": "deep/*", "path": "sub"}, "sub/deep/a_test.go")
	b.want("find_files", args{"pattern": "*.log"}, "sub/keep.log")
	b.want("find_files", args{"pattern": "*.rs"}, "[no file matches]")
	b.want("find_files", args{"pattern": "[a"}, `error: pattern "[a" is no glob: see the tool's description`)
	b.want("grep", args{"pattern": "hello"}, "README:1: hello\nsub/keep.log:1: hello\n")
	b.want("grep", args{"pattern": "hello", "ignore_case": true, "glob": "*.go"}, "main.go:4: \tprintln(\"Hello\")\n")
	b.want("grep", args{"pattern": "^func|^}", "path": "main.go", "context": 1},
		"main.go-2- \nmain.go:3: func main() {\nmain.go-4- \tprintln(\"Hello\")\nmain.go:5: }\n")
	b.want("grep", args{"pattern": "package", "limit": 1}, "main.go:1: package main\n[there may be more; narrow the pattern, or raise the limit]\n")
	b.want("grep", args{"pattern": "x("}, "error: pattern \"x(\" is no regular expression: error parsing regexp: missing closing ): `x(`")
	b.want("grep", args{"pattern": "zebra"}, "[no line matches]")
	b.want("grep", args{"pattern": "hello", "path": "bin"}, `error: "bin" is no text (6 bytes of binary data)`)
}

// A name cannot pass for two.
func TestNamesAreOneLine(t *testing.T) {
	b := newBench(t, map[string]string{"a\nb.txt": "hit\n", "é x": "hit\n"})
	b.want("list_dir", args{}, "\"a\\nb.txt\"\t4\né x\t4\n")
	b.want("find_files", args{"pattern": "*"}, "\"a\\nb.txt\"\né x")
	b.want("grep", args{"pattern": "hit"}, "\"a\\nb.txt\":1: hit\né x:1: hit\n")
	b.want("read_file", args{"path": "é x", "offset": json.RawMessage("1.0")}, `error: the arguments of read_file do not fit: "offset": got number 1.0, want int INVALID_ARGS`)
}

// confined returns the rung that commands run on here; without one, it skips.
func (b *bench) confined() string {
	b.t.Helper()
	result := b.run(b.t.Context(), "exec", args{"command": "true"})
	if result.Code == tool.SandboxUnavailable {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			b.t.Fatal(result.Content)
		}
		b.t.Skip(result.Content + " (apt install bubblewrap)")
	}
	rung, ok := strings.CutPrefix(result.Content, "[exit status 0; sandbox: ")
	if !ok {
		b.t.Fatalf("exec true: %q", result.Content)
	}
	return strings.TrimSuffix(rung, "]")
}

func TestExec(t *testing.T) {
	b := newBench(t, map[string]string{"sub/x": "y"})
	rung := b.confined()
	end := func(status int) string { return fmt.Sprintf("[exit status %d; sandbox: %s]", status, rung) }
	b.want("exec", args{"command": "echo out; echo err >&2"}, "out\nerr\n"+end(0))
	b.want("exec", args{"command": "cat x; exit 3", "dir": "sub"}, "error: y\n"+end(3))
	b.want("exec", args{"command": `printf '\320'; printf '\277\360\237'; printf '\232\200'`}, "п🚀\n"+end(0))
	b.want("exec", args{"command": `printf 'a\377b'`}, "a�b\n"+end(0))
	b.want("exec", args{"command": "sleep 60", "timeout_seconds": 1}, "error: [Ended after the 1s time limit; sandbox: "+rung+"] TOOL_TIMEOUT")
	b.want("exec", args{"command": "true", "dir": "/"}, `error: run command: folder "/" lies outside the workspace "`+b.dir+`"`)
	target, _ := b.tools.Lookup("exec")
	apart, err := target.Run(t.Context(), tool.Call{Name: "exec", Arguments: json.RawMessage(`{"command":"echo err >&2; printf out; exit 3"}`), Program: true})
	if want := (tool.Result{Content: "out\nerr\n" + end(3), IsError: true, Structured: `{"exit":3,"stdout":"out","stderr":"err\n"}`}); !reflect.DeepEqual(apart, want) || err != nil {
		t.Errorf("for a program: %+v, %v\nwant %+v", apart, err, want)
	}
	got := b.call("exec", args{"command": "i=0; while [ $i -lt 20000 ]; do echo 0123456789$i; i=$((i+1)); done"})
	if len(got) > maxOutput+200 || !strings.HasPrefix(got, "01234567890\n01234567891\n") ||
		!strings.Contains(got, " bytes left out …]\n") || !strings.HasSuffix(got, "012345678919999\n"+end(0)) {
		t.Errorf("long output: %d bytes, from %q to %q", len(got), got[:40], got[len(got)-80:])
	}
}

// A cancelled command is gone when the call returns.
func TestExecCancel(t *testing.T) {
	b := newBench(t, nil)
	b.confined()
	ctx, cancel := context.WithCancelCause(t.Context())
	started := filepath.Join(b.dir, "started")
	go func() {
		for _, err := os.Stat(started); err != nil && t.Context().Err() == nil; _, err = os.Stat(started) {
			<-time.After(5 * time.Millisecond)
		}
		cancel(errors.New("enough"))
	}()
	result := b.run(ctx, "exec", args{"command": "touch started; sleep 60; touch survived"})
	if !result.IsError || result.Content != "enough" {
		t.Errorf("a cancelled exec: %+v; want the cause", result)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "survived")); err == nil {
		t.Error("the command went on")
	}
}

func FuzzHeadTail(f *testing.F) {
	f.Add("abc", "é🚀", 3)
	f.Add(strings.Repeat("é", maxOutput), "x", 7)
	f.Add("x"+strings.Repeat("é", maxOutput), "", maxOutput/2+2)
	f.Fuzz(func(t *testing.T, a, b string, step int) {
		var h, looked headTail
		var pieces strings.Builder
		all := strings.Repeat(a, 3) + b
		step = max(1, step%(1<<16))
		for rest := all; rest != ""; {
			n := min(step, len(rest))
			h.Write([]byte(rest[:n]))
			looked.Write([]byte(rest[:n]))
			pieces.WriteString(looked.take(false))
			rest = rest[n:]
		}
		pieces.WriteString(looked.take(true))
		if utf8.ValidString(all) && pieces.String() != all {
			t.Errorf("output that was looked at piece by piece came as %.100q, want %.100q", pieces.String(), all)
		}
		got := h.String()
		if len(all) <= maxOutput {
			if want := strings.ToValidUTF8(all, "�"); strings.TrimSuffix(got, "\n") != strings.TrimSuffix(want, "\n") {
				t.Errorf("output that fits came back as %q, want %q", got, want)
			}
		}
		if len(got) > 4*maxOutput {
			t.Errorf("%d bytes were kept", len(got))
		}
	})
}

// A pattern that a model chose must not keep a tool from ending with its time
// limit or a cancel.
func TestHostilePatterns(t *testing.T) {
	name := strings.Repeat("a", 200)
	b := newBench(t, map[string]string{name: "", "long": strings.Repeat("x", 1<<20)})
	b.want("find_files", args{"pattern": strings.Repeat("*{a,aa}", 6) + "b"}, "[no file matches]")
	b.want("find_files", args{"pattern": strings.Repeat("{a,a}", 7) + "b"}, `error: pattern "`+strings.Repeat("{a,a}", 7)+`b" stands for more than 100 globs: use fewer {…}`)
	b.want("grep", args{"pattern": strings.Repeat("x", 1001)}, "error: the pattern has 1001 bytes: at most 1000 are taken")
	b.want("grep", args{"pattern": "x{5}$", "path": "long"}, "long:1: "+strings.Repeat("x", 2000)+" […1046576 bytes more]\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
	begun := time.Now()
	result := b.run(ctx, "grep", args{"pattern": strings.Repeat("(x?){900}", 50) + "y"})
	if took := time.Since(begun); result.Content != "enough" || took > 10*time.Second {
		t.Errorf("a cancelled grep ended after %v with %+v; want the cause, soon", took, result)
	}
}

// Folders without end must not take a tool's whole time.
func TestDeepFolders(t *testing.T) {
	b := newBench(t, map[string]string{
		strings.Repeat("d/", maxDepth) + "in": "", strings.Repeat("d/", maxDepth+5) + "out": "",
	})
	b.want("find_files", args{"pattern": "{in,out}"}, strings.Repeat("d/", maxDepth)+"in")
	b.want("find_files", args{"pattern": "out", "path": strings.Repeat("d/", maxDepth+5)},
		`error: "`+strings.Repeat("d/", maxDepth+5)+`" lies more than 100 folders deep: look from a folder nearer to the workspace`)
}

func TestAlternatives(t *testing.T) {
	tests := []struct{ glob, want string }{
		{"*.go", "*.go"},
		{"{a,b}/*.{c,d}", "b/*.d b/*.c a/*.d a/*.c"},
		{"x{a,{b,c}d}{}", "xcd xbd xa"},
		{`\{a,b\}[{,}]`, `\{a,b\}[{,}]`},
	}
	for _, tt := range tests {
		if got := strings.Join(alternatives(tt.glob), " "); got != tt.want {
			t.Errorf("alternatives(%q) = %s; want %s", tt.glob, got, tt.want)
		}
	}
}
