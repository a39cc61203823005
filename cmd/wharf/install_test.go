package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/hosttest"
)

// The scripts of testdata/install are about extensions of strangers. What is in their
// folder www can be fetched from $SERVER. "embed FILE.wasm MANIFEST" makes a module
// of a manifest with a hook at before_execute_tool, or with tools, "keys NAME" makes NAME.key and
// NAME.pub.
func TestInstallScripts(t *testing.T) {
	compiler, err := hosttest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/install",
		Setup: func(env *testscript.Env) error {
			home, err := os.MkdirTemp("", "wharf-home-")
			if err != nil {
				return err
			}
			server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(env.WorkDir, "www"))))
			env.Defer(func() { server.Close(); os.RemoveAll(home) })
			for name, value := range map[string]string{
				"HOME": home, "XDG_CACHE_HOME": cache, "SERVER": server.URL, "WHARF_TEST_COMPILER": compiler,
			} {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"embed": embed, "keys": keys},
		Condition: func(name string) (bool, error) {
			_, err := exec.LookPath(name)
			if err != nil && os.Getenv("WHARF_TEST_STRICT") == "1" {
				t.Errorf("%s is not installed, and nothing is skipped here", name)
			}
			return err == nil, nil
		},
	})
}

func embed(ts *testscript.TestScript, _ bool, args []string) {
	base, manifest := extensions.NoRM, ts.ReadFile(args[1])
	if strings.Contains(manifest, "[[tools]]") {
		base = extensions.CountWords
	}
	wasm, err := host.EmbedManifest(base, manifest)
	ts.Check(err)
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, wasm, 0o644))
}

func keys(ts *testscript.TestScript, _ bool, args []string) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	ts.Check(err)
	text, err := private.MarshalText()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".key"), text, 0o600))
	text, err = public.MarshalText()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pub"), text, 0o644))
	ts.Setenv(strings.ToUpper(args[0]), public.String())
}

// The commands of docs/extensions/installing.md work as they stand there, but for the
// question that nobody is there to answer.
func TestInstallingPage(t *testing.T) {
	const page = "docs/extensions/installing.md"
	work := t.TempDir()
	run := func(block string) string {
		return runnerOf(t, work, "sh")("-ec", block)
	}
	block := codeBlockOf(t, page, "sh", "ext list --shipped")
	told := run(strings.Replace(block, "install --shipped no-rm ", "install --shipped no-rm --yes ", 1))
	for _, want := range []string{"installed no-rm 0.1.0", "no-rm 0.1.0 is installed already", "no-rm 0.1.0 is what was installed", "removed no-rm"} {
		if !strings.Contains(told, want) {
			t.Errorf("the page's commands do not say %q:\n%s", want, told)
		}
	}
	if _, err := exec.LookPath("minisign"); err != nil {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatal("minisign is not installed, and nothing is skipped here: apt install minisign")
		}
		t.Skip("minisign is needed: apt install minisign")
	}
	if err := os.WriteFile(filepath.Join(work, "house-rules.wasm"), extensions.NoRM, 0o644); err != nil {
		t.Fatal(err)
	}
	block = codeBlockOf(t, page, "sh", "minisign -G")
	told = run(strings.Replace(block, "minisign -G ", "minisign -G -W ", 1)) // without a password, which would have to be typed
	if want := fmt.Sprintf("%s is signed by RW", "house-rules.wasm"); !strings.Contains(told, want) {
		t.Errorf("the page's commands do not say %q:\n%s", want, told)
	}
}
