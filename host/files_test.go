package host

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/engine/tool/builtin"
)

// workspace makes a workspace with folders that agentManifest names, a canary
// beside each wall, and ways through the walls.
func workspace(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	for _, folder := range []string{"notes/deep", "out", "private", "notes/.git", "out/.vscode"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("notes/a.txt", "über alles")
	put("notes/raw", "\xff\x00\x01")
	put("notes/controls", strings.Repeat("\x01", limitRead))
	put("notes/large", strings.Repeat("0123456789abcdef", limitRead/16)+"ä")
	put("notes/.git/config", "canary")
	put("out/old.txt", "old")
	put("private/canary", "canary")
	put("private/beside", "canary")
	put("../canary", "canary")
	links := map[string]string{
		"notes/inside": "a.txt", "notes/elsewhere": "../private/canary", "notes/outside": "../../canary", "notes/absolute": dir + "/../canary",
		"notes/folder": "../private", "notes/loop": "loop", "notes/mode": "../out/old.txt", "notes/config": ".git/config",
		"out/leak": "../private", "out/editor": ".vscode/tasks.json", "out/notes": "../notes/a.txt", "out/gone": "../private/new",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "private/canary"), filepath.Join(dir, "out/hard")); err != nil {
		t.Fatal(err)
	}
	_ = unix.Mknod(filepath.Join(dir, "notes/device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) // the null device; only root can
	for _, name := range []string{"notes/pipe", "out/pipe"} {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// joinFiles joins a session that has a workspace, with the native tools behind its gate.
func joinFiles(t testing.TB, dir string) (*Session, *journal) {
	t.Helper()
	root, err := sandbox.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	tools := builtin.Tools(builtin.Config{Root: root})
	gate := &fakeGate{run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		for _, native := range tools {
			if native.Spec().Name == c.Name {
				r, err := native.Run(ctx, c)
				if err != nil {
					r = tool.Result{Content: err.Error(), IsError: true}
				}
				return r, nil
			}
		}
		return tool.Result{}, fmt.Errorf("no tool %s", c.Name)
	}}
	return joinGate(t, SessionConfig{Gate: gate, Root: root})
}

func TestReadingFiles(t *testing.T) {
	dir := workspace(t)
	s, _ := joinFiles(t, dir)
	tests := []struct{ name, op, request, want string }{
		{"a file", "fs.read", `{"path":"notes/a.txt"}`, `0{"content":"über alles","size":11}`},
		{"a part of it", "fs.read", `{"path":"./notes//a.txt","offset":6,"limit":3}`, `0{"content":"all","size":11}`},
		{"a character that is cut is left for later", "fs.read", `{"path":"notes/large","offset":524280,"limit":9}`, `0{"content":"89abcdef","size":524290}`},
		{"and a limit of less than a character gives bytes", "fs.read", `{"path":"notes/a.txt","limit":1}`, `0{"content_base64":"ww==","size":11}`},
		{"the end", "fs.read", `{"path":"notes/a.txt","offset":11}`, `0{"content":"","size":11}`},
		{"behind the end", "fs.read", `{"path":"notes/a.txt","offset":99}`, `0{"content":"","size":11}`},
		{"what is no text", "fs.read", `{"path":"notes/raw"}`, `0{"content_base64":"/wAB","size":3}`},
		{"a link within", "fs.read", `{"path":"notes/inside"}`, `0{"content":"über alles","size":11}`},
		{"a folder that is written to is read too", "fs.read", `{"path":"out/old.txt"}`, `0{"content":"old","size":3}`},
		{"a link to where else it may read", "fs.read", `{"path":"notes/mode"}`, `0{"content":"old","size":3}`},
		{"a folder", "fs.list", `{"path":"out"}`, `0{"entries":[{"name":".vscode","kind":"folder"},{"name":"editor","kind":"link"},{"name":"gone","kind":"link"},{"name":"hard","kind":"file"},{"name":"leak","kind":"link"},{"name":"notes","kind":"link"},{"name":"old.txt","kind":"file"},{"name":"pipe","kind":"other"}]}`},
		{"an empty folder", "fs.list", `{"path":"notes/deep"}`, `0{"entries":[]}`},
		{"too much at once", "fs.read", `{"path":"notes/a.txt","limit":524289}`, `2{"code":"BAD_REQUEST","message":"fs.read: bad request: \"offset\" must be 0 or more, and \"limit\" 0 to 524288"}`},
		{"a file that is not there", "fs.read", `{"path":"notes/no"}`, `3{"code":"FAILED","message":"fs.read: \"notes/no\": no such file or directory"}`},
		{"a folder as a file", "fs.read", `{"path":"notes/deep"}`, `3{"code":"FAILED","message":"fs.read: \"notes/deep\" is a folder"}`},
		{"a file as a folder", "fs.list", `{"path":"notes/a.txt"}`, `3{"code":"FAILED","message":"fs.list: \"notes/a.txt\": not a directory"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := operate(t, s, tt.op, tt.request); got != tt.want {
				t.Errorf("got  %.300s\nwant %s", got, tt.want)
			}
		})
	}
	if got := operate(t, s, "fs.read", `{"path":"notes/controls"}`); got != `0{"content_base64":"`+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01", limitRead)))+`","size":524288}` {
		t.Errorf("what would be large as JSON: %.100s", got)
	}
	if err := os.Chtimes(filepath.Join(dir, "notes/a.txt"), unixEpoch, unixEpoch); err != nil {
		t.Fatal(err)
	}
	want := `0{"size":11,"mode":"-rw-r--r--","mtime":"1970-01-01T00:00:00Z"}`
	if got := operate(t, s, "fs.stat", `{"path":"notes/inside"}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// No way leads out of what was granted, or into what is protected, and nothing
// is waited for. What is refused stands in the log.
func TestFilesAreContained(t *testing.T) {
	dir := workspace(t)
	listener, err := net.Listen("unix", filepath.Join(dir, "notes", "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ask := func(more string) string {
		return `: the manifest does not ask for it: add ` + more + ` to fs under [capabilities], and grant it"}`
	}
	const not, denied = `1{"code":"NOT_GRANTED","message":"`, `1{"code":"DENIED","message":"`
	read := func(op, path string) string { return op + "\n" + `{"path":"` + path + `"}` }
	write := func(path string) string { return "fs.write\n" + `{"path":"` + path + `","content":"spoiled"}` }
	tests := []struct{ name, request, want string }{
		{"a file beside the granted folders", read("fs.read", "private/canary"), not + `fs.read: capability not granted: fs` + ask(`{ path = \"private/canary\", mode = \"read\" }`)},
		{"the workspace itself", read("fs.list", "."), not + `fs.list: capability not granted: fs` + ask(`{ path = \".\", mode = \"read\" }`)},
		{"a name that begins like a granted one", read("fs.stat", "notes2"), not + `fs.stat: capability not granted: fs` + ask(`{ path = \"notes2\", mode = \"read\" }`)},
		{"dots", read("fs.read", "notes/../private/canary"), `2{"code":"BAD_REQUEST","message":"fs.read: bad request: path \"notes/../private/canary\": write a path below the workspace, without .. in it"}`},
		{"an absolute path", read("fs.read", "/etc/hostname"), `2{"code":"BAD_REQUEST","message":"fs.read: bad request: path \"/etc/hostname\": write a path below the workspace, without .. in it"}`},
		{"a zero byte", read("fs.read", `notes/a\u0000`), `2{"code":"BAD_REQUEST","message":"fs.read: bad request: \"path\" must have 1 to 4096 bytes, and no control characters"}`},
		{"a link to elsewhere", read("fs.read", "notes/elsewhere"), not + `fs.read: \"notes/elsewhere\" leads to \"private/canary\": capability not granted: fs` + ask(`{ path = \"private/canary\", mode = \"read\" }`)},
		{"through a link to elsewhere", read("fs.read", "notes/folder/canary"), not + `fs.read: \"notes/folder/canary\" leads to \"private/canary\": capability not granted: fs` + ask(`{ path = \"private/canary\", mode = \"read\" }`)},
		{"a folder by a link", read("fs.list", "notes/folder"), not + `fs.list: \"notes/folder\" leads to \"private\": capability not granted: fs` + ask(`{ path = \"private\", mode = \"read\" }`)},
		{"a link out of the workspace", read("fs.read", "notes/outside"), denied + `fs.read: refused: \"notes/outside\" is outside the workspace"}`},
		{"an absolute link", read("fs.stat", "notes/absolute"), denied + `fs.stat: refused: \"notes/absolute\" is outside the workspace"}`},
		{"a loop of links", read("fs.read", "notes/loop"), denied + `fs.read: refused: \"notes/loop\": too many links"}`},
		{"a protected file", read("fs.read", "notes/.git/config"), denied + `fs.read: refused: notes/.git/config is protected (.git/config)"}`},
		{"a link to a protected file", read("fs.read", "notes/config"), denied + `fs.read: refused: notes/.git/config is protected (.git/config)"}`},
		{"a pipe", read("fs.read", "notes/pipe"), denied + `fs.read: refused: \"notes/pipe\" is no regular file"}`},
		{"a socket", read("fs.read", "notes/socket"), denied + `fs.read: refused: \"notes/socket\" is no regular file"}`},
		{"a device", read("fs.read", "notes/device"), denied + `fs.read: refused: \"notes/device\" is no regular file"}`},
		{"a pipe as a folder", read("fs.list", "notes/pipe"), `3{"code":"FAILED","message":"fs.list: \"notes/pipe\": not a directory"}`},
		{"writing where it may only read", write("notes/new"), not + `fs.write: capability not granted: fs` + ask(`{ path = \"notes/new\", mode = \"write\" }`)},
		{"writing by a link to where it may only read", write("out/notes"), not + `fs.write: \"out/notes\" leads to \"notes/a.txt\": capability not granted: fs` + ask(`{ path = \"notes/a.txt\", mode = \"write\" }`)},
		{"writing through a link", write("out/leak/canary"), not + `fs.write: \"out/leak/canary\" leads to \"private/canary\": capability not granted: fs` + ask(`{ path = \"private/canary\", mode = \"write\" }`)},
		{"writing to where a link leads that nothing is at", write("out/gone"), not + `fs.write: \"out/gone\" leads to \"private/new\": capability not granted: fs` + ask(`{ path = \"private/new\", mode = \"write\" }`)},
		{"writing a protected file by a link", write("out/editor"), denied + `fs.write: refused: out/.vscode/tasks.json is protected (.vscode): trusted programs read it outside the sandbox; ask the user to change it"}`},
		{"writing a file with other names", write("out/hard"), denied + `fs.write: refused: \"out/hard\" has 2 names (hard links), and the others may be elsewhere: copy it first"}`},
		{"writing to a pipe", write("out/pipe"), denied + `fs.write: refused: \"out/pipe\" is no regular file"}`},
		{"writing in the place of a folder", write("out"), `3{"code":"FAILED","message":"fs.write: \"out\" is a folder"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, j := joinFiles(t, dir)
			if _, err := os.Lstat(filepath.Join(dir, "notes/device")); err != nil && tt.name == "a device" {
				t.Skip("only root can make a device")
			}
			op, request, _ := strings.Cut(tt.request, "\n")
			if got := operate(t, s, op, request); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			refusals := 0
			for _, e := range j.events {
				if used, ok := e.(session.ExtensionUsed); ok && !used.Allowed && used.Reason != "" {
					refusals++
				}
			}
			if refused := tt.want[0] == '1'; refused != (refusals == 1) {
				t.Errorf("%d refusals are in the log:\n%s", refusals, j.lines())
			}
		})
	}
	for name, want := range map[string]string{"private/canary": "canary", "../canary": "canary", "notes/a.txt": "über alles", "notes/.git/config": "canary"} {
		if raw, err := os.ReadFile(filepath.Join(dir, name)); string(raw) != want || err != nil {
			t.Errorf("%s holds %q, %v", name, raw, err)
		}
	}
	for _, name := range []string{"private/new", "out/.vscode/tasks.json", "notes/new"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v; want nothing there", name, err)
		}
	}
}

func TestWritingFiles(t *testing.T) {
	dir := workspace(t)
	s, _ := joinFiles(t, dir)
	if got := operate(t, s, "fs.write", `{"path":"out/new/b.txt","content":"one\n"}`); got != "0{}" {
		t.Errorf("a new file: %s", got)
	}
	if err := os.Chmod(filepath.Join(dir, "out/old.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := operate(t, s, "fs.write", `{"path":"out/old.txt","content":"two"}`); got != "0{}" {
		t.Errorf("another content: %s", got)
	}
	for name, want := range map[string]string{"out/new/b.txt": "one\n", "out/old.txt": "two"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if string(raw) != want || err != nil {
			t.Errorf("%s holds %q, %v; want %q", name, raw, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "out/old.txt")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode changed: %v, %v", info.Mode(), err)
	}
}

// What an extension writes in a session is limited, whatever it writes over.
func TestWrittenLimit(t *testing.T) {
	dir := workspace(t)
	s, _ := joinFiles(t, dir)
	s.instance.session.written.Store(limitWritten - 3)
	steps := []struct{ request, want string }{
		{`{"path":"out/old.txt/x","content":"123"}`, `3{"code":"FAILED","message":"fs.write: \"out/old.txt/x\": not a directory"}`}, // does not count
		{`{"path":"out/a","content":"1234"}`, `4{"code":"OVER_LIMIT","message":"fs.write: over a limit: it would have written 67108865 bytes in this session, and the limit written is 67108864"}`},
		{`{"path":"out/a","content":"123"}`, `0{}`},
		{`{"path":"out/a","content":"1"}`, `4{"code":"OVER_LIMIT","message":"fs.write: over a limit: it would have written 67108865 bytes in this session, and the limit written is 67108864"}`},
	}
	for i, step := range steps {
		if got := operate(t, s, "fs.write", step.request); got != step.want {
			t.Errorf("step %d:\ngot  %s\nwant %s", i, got, step.want)
		}
	}
}

// A folder that is exchanged for a link while a guest reads in it leads to
// nothing else: what was opened is where it was resolved, or is not read.
func TestHammerExchangedFolders(t *testing.T) {
	dir := workspace(t)
	if err := os.WriteFile(filepath.Join(dir, "notes/deep/canary"), []byte("granted"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../private", filepath.Join(dir, "notes/other")); err != nil {
		t.Fatal(err)
	}
	s, _ := joinFiles(t, dir)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		deep, other := filepath.Join(dir, "notes/deep"), filepath.Join(dir, "notes/other")
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, deep, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			}
		}
	}()
	read := 0
	for range 2000 {
		if got := operate(t, s, "fs.list", `{"path":"notes/deep"}`); strings.Contains(got, "beside") {
			t.Fatalf("it listed what a link led to: %s", got)
		}
		got := operate(t, s, "fs.read", `{"path":"notes/deep/canary"}`)
		if strings.Contains(got, `"content":"canary"`) {
			t.Fatalf("it read what a link led to: %s", got)
		}
		if strings.Contains(got, "granted") && got[0] == '0' {
			read++
		}
	}
	close(stop)
	<-stopped
	if read == 0 {
		t.Error("nothing could be read at all")
	}
}
