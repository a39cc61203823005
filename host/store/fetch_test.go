package store

import (
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/egress"
)

// files is a server of files; a text that begins with -> is a redirect, and with a
// number a status.
type files map[string]string

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := f[r.URL.Path]
	var status int
	if to, redirect := strings.CutPrefix(text, "-> "); redirect {
		http.Redirect(w, r, to, http.StatusFound)
	} else if n, _ := fmt.Sscanf(text, "status %d", &status); n == 1 {
		w.WriteHeader(status)
	} else if !ok {
		http.NotFound(w, r)
	} else {
		fmt.Fprint(w, text)
	}
}

func TestFetch(t *testing.T) {
	wasm := string(module(t, "one", "1.0.0", ""))
	key, _ := newKey(t)
	signature := string(sign(t, key, []byte(wasm)))
	served := files{
		"/one.wasm":                wasm,
		"/signed/one.wasm":         wasm,
		"/signed/one.wasm.minisig": signature,
		"/signed/minisign.pub":     key.Public().String(),
		"/bare/one.wasm":           wasm,
		"/bare/one.wasm.minisig":   signature,
		"/soft/one.wasm":           wasm,
		"/soft/one.wasm.minisig":   "<html>not found",
		"/shy/one.wasm":            wasm,
		"/shy/one.wasm.minisig":    "status 403",
		"/ill/one.wasm":            wasm,
		"/ill/one.wasm.minisig":    "status 500",
		"/moved/one.wasm":          "-> /signed/one.wasm",
		"/inward/one.wasm":         "-> https://127.0.0.1:1/one.wasm",
		"/named/one.wasm":          "-> https://localhost/one.wasm",
		"/down/one.wasm":           "-> http://ext.example/one.wasm",
		"/round/one.wasm":          "-> /round/one.wasm",
		"/page.wasm":               "<html>",
		"/none.wasm":               "\x00asm\x01\x00\x00\x00",
		"/large.wasm":              strings.Repeat("x", fetchModule+1),
	}
	secure := httptest.NewTLSServer(served)
	defer secure.Close()
	open := httptest.NewServer(served)
	defer open.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	f := Fetcher{RootCAs: roots}
	s, o := secure.URL, open.URL
	tests := []struct {
		name, url string
		want      string // what was found beside it, or the error
	}{
		{"by https", s + "/one.wasm", "nothing"},
		{"by http from this machine", o + "/one.wasm", "nothing"},
		{"with a signature and a key", s + "/signed/one.wasm", "signature key"},
		{"with a signature alone", s + "/bare/one.wasm", "signature"},
		{"with a page that says there is none", s + "/soft/one.wasm", "nothing"},
		{"from a server that does not say what it has", s + "/shy/one.wasm", "nothing"},
		{"moved", s + "/moved/one.wasm", "nothing"},
		{"from a server that fails", s + "/ill/one.wasm", "its signature: the server answers with status 500: try again later"},
		{"not there", s + "/two.wasm", "the server answers with status 404: is the URL right?"},
		{"a page", s + "/page.wasm", "it is no WebAssembly module: it does not begin with \\0asm"},
		{"no manifest", s + "/none.wasm", "it has no manifest (custom section wharf.manifest): build it with wharf ext build, or embed one"},
		{"too large", s + "/large.wasm", "over a limit: the response has more than 33554432 bytes"},
		{"a redirect to this machine", s + "/inward/one.wasm", "?not allowed: the address 127.0.0.1 is loopback"},
		{"a redirect to a name of this machine", s + "/named/one.wasm", "?localhost is a name of this machine"},
		{"a redirect to http", s + "/down/one.wasm", "redirect: not allowed: it leads from https to http"},
		{"a redirect without end", s + "/round/one.wasm", "over a limit: more than 5 redirects"},
		{"a redirect away from this machine, by http", o + "/down/one.wasm", "GET http://ext.example/one.wasm: not allowed: it is not https"},
		{"by http", "http://ext.example/one.wasm", "GET http://ext.example/one.wasm: not allowed: it is not https"},
		{"a private name", "https://wiki.internal/one.wasm", "?wiki.internal is a name of this machine"},
		{"a query", s + "/one.wasm?token=geheim", "the URL has a query, which could be a password, and wharf.lock would hold it: fetch the file yourself and install that"},
		{"a user", "https://me:geheim@ext.example/one.wasm", "?it names a user"},
		{"another scheme", "ftp://ext.example/one.wasm", "?it does not begin with https://host or http://host"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := f.Fetch(t.Context(), tt.url)
			got := beside(c)
			if err != nil {
				got = err.Error()
			}
			want, part := strings.CutPrefix(tt.want, "?") // then the rest has a port in it
			if got != want && !(part && strings.Contains(got, want)) {
				t.Errorf("Fetch:\n got %s\nwant %s", got, tt.want)
			}
			if err == nil && c.Source != tt.url || strings.Contains(got, "geheim") {
				t.Errorf("source %q", c.Source)
			}
		})
	}
	if _, err := (Fetcher{}).Fetch(t.Context(), s+"/one.wasm"); err == nil {
		t.Error("a server was believed for whom nobody vouches")
	}
	if _, err := f.Fetch(t.Context(), s+"/inward/one.wasm"); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("a redirect to this machine: %v", err)
	}
}

// beside says what was found beside a candidate.
func beside(c Candidate) string {
	var found []string
	if c.Signature != nil {
		found = append(found, "signature")
	}
	if !c.Offered.IsZero() {
		found = append(found, "key")
	}
	if found == nil {
		return "nothing"
	}
	return strings.Join(found, " ")
}

func TestReadFile(t *testing.T) {
	wasm := module(t, "one", "1.0.0", "")
	key, _ := newKey(t)
	good := map[string]string{"one.wasm": string(wasm), "one.wasm.minisig": string(sign(t, key, wasm)), "minisign.pub": key.Public().String()}
	tests := []struct {
		name  string
		other map[string]string
		want  string
	}{
		{"signed", nil, "signature key"},
		{"a key that is none is no offer", map[string]string{"minisign.pub": "x"}, "signature"},
		{"a file that is no module", map[string]string{"one.wasm": "x"}, "it is no WebAssembly module: it does not begin with \\0asm"},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		for _, layer := range []map[string]string{good, tt.other} {
			for name, text := range layer {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		c, err := ReadFile(filepath.Join(dir, "one.wasm"))
		got := beside(c)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
	}
	if _, err := ReadFile("/nowhere/one.wasm"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A signature says nothing of a manifest that stands beside the module.
func TestManifestsBesideAreNotSigned(t *testing.T) {
	dir := t.TempDir()
	wasm, err := os.ReadFile("../testdata/extism.wasm")
	if err != nil {
		t.Fatal(err)
	}
	key, _ := newKey(t)
	for name, text := range map[string]string{
		"one.wasm":         string(wasm),
		"one.toml":         "name = \"one\"\nversion = \"1\"\nabi = \"extism\"\n[hooks.before_execute_tool]\n",
		"one.wasm.minisig": string(sign(t, key, wasm)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ReadFile(filepath.Join(dir, "one.wasm"))
	if err != nil || c.Signature != nil || c.Manifest.Name != "one" {
		t.Errorf("it counts as signed: %v", err)
	}
}

// Who has signed it, and where it is from, decides whether it is taken.
func TestTrust(t *testing.T) {
	first, _ := newKey(t)
	second, _ := newKey(t)
	a, b := first.Public(), second.Public()
	by := func(k SecretKey, offered Key, source string) Candidate {
		c := candidate(t, "one", "2.0.0", "")
		c.Source, c.Signature, c.Offered = source, sign(t, k, c.Wasm), offered
		return c
	}
	unsigned := candidate(t, "one", "2.0.0", "")
	const web, elsewhere = "https://ext.example/v2/one.wasm", "https://other.example/one.wasm"
	unsigned.Source = web
	shipped, err := Shipped("one", unsigned.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	broken := by(first, a, web)
	broken.Wasm = candidate(t, "one", "2.0.1", "").Wasm
	tests := []struct {
		name  string
		c     Candidate
		trust Trust
		want  string // signer and whether that is a new key, or the end of the error
	}{
		{"by the pinned key", by(first, a, web), Trust{}, "pinned"},
		{"by the pinned key, with nothing beside it", by(first, Key{}, web), Trust{}, "pinned"},
		{"by another key, which lies beside it", by(second, b, web), Trust{}, "if its publisher says to have another key now, name that by --pubkey"},
		{"by another key, which the user names", by(second, Key{}, web), Trust{Key: b}, "named"},
		{"by another key than the user names", by(first, a, web), Trust{Key: b}, "and not by " + b.String()},
		{"not signed", unsigned, Trust{}, "get a signed one (wharf ext remove --forget-key one ends that)"},
		{"not signed, and the user names a key", unsigned, Trust{Key: a}, "it is not signed, and is to be by " + a.String()},
		{"changed", broken, Trust{}, "if its publisher says to have another key now, name that by --pubkey"},
		{"from elsewhere, by a new key", by(second, b, elsewhere), Trust{}, "new"},
		{"from elsewhere, by a key that nobody knows", by(second, Key{}, elsewhere), Trust{}, "unchecked"},
		{"the same, where signatures are required", by(second, Key{}, elsewhere), Trust{RequireSigned: true}, "and there is no key to check that with: name it by --pubkey"},
		{"from elsewhere, not signed", func() Candidate { c := unsigned; c.Source = elsewhere; return c }(), Trust{}, "unsigned"},
		{"the same, where signatures are required", func() Candidate { c := unsigned; c.Source = elsewhere; return c }(), Trust{RequireSigned: true}, "(--require-signed, or require_signed under [install])"},
		{"shipped, where signatures are required", shipped, Trust{RequireSigned: true}, "unsigned"},
		{"shipped, and the user names a key", shipped, Trust{Key: a}, "leave --pubkey out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(t.TempDir())
			one := candidate(t, "one", "1.0.0", "")
			one.Source, one.Signature = "https://ext.example/v1/one.wasm", sign(t, first, one.Wasm)
			p, err := s.Propose(one, Trust{Key: a})
			if err == nil {
				_, err = s.Accept(p, p.New)
			}
			if err != nil {
				t.Fatal(err)
			}
			p, err = s.Propose(tt.c, tt.trust)
			got := "unsigned"
			switch {
			case err != nil:
				got = err.Error()
			case p.NewKey:
				got = "new"
			case p.Unchecked != "":
				got = "unchecked"
			case p.Signer == a:
				got = "pinned"
			case p.Signer == b:
				got = "named"
			}
			if got != tt.want && (err == nil || !strings.HasSuffix(got, tt.want)) {
				t.Errorf("Propose: %s; want %s", got, tt.want)
			}
			if err != nil {
				return
			}
			if _, err = s.Accept(p, p.New); err != nil {
				t.Fatal(err)
			}
			modules, err := s.Read()
			if err != nil || modules[0].Verify() != nil || modules[0].Signer != p.Signer {
				t.Errorf("installed: signer %s, %v, %v", modules[0].Signer, modules[0].Verify(), err)
			}
			l, err := s.readLock()
			if pinned := l.pinned("one", origin(tt.c.Source)); err != nil || !p.Signer.IsZero() && pinned != p.Signer {
				t.Errorf("pinned is %s, %v", pinned, err)
			}
		})
	}
}

// withManifest puts a manifest in front of a module that no tool would put there.
func withManifest(wasm []byte, manifest string) []byte {
	body := append([]byte{byte(len("wharf.manifest"))}, "wharf.manifest"+manifest...)
	out := append([]byte("\x00asm\x01\x00\x00\x00"), 0)
	out = append(binary.AppendUvarint(out, uint64(len(body))), body...)
	return append(out, wasm[8:]...)
}

// A manifest that is meant to deceive does not get so far as to be shown.
func TestHostileManifests(t *testing.T) {
	bare, err := os.ReadFile("../testdata/least.wasm")
	if err != nil {
		t.Fatal(err)
	}
	good := manifest("one", "1.0.0", "")
	change := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the manifest has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	many := strings.Repeat(`"A",`, 10_000)
	tests := []struct{ name, manifest, want string }{
		{"a name with escape codes", change(`"one"`, `"one\u001b[2K"`), `manifest line 1: name "one\x1b[2K": give it one of up to 64 characters a-z, 0-9 and -`},
		{"a name with parts of a path", change(`"one"`, `"../../one"`), `manifest line 1: name "../../one": give it one of up to 64 characters a-z, 0-9 and -`},
		{"a name with a letter of another alphabet", change(`"one"`, `"оne"`), `manifest line 1: name "оne": give it one of up to 64 characters a-z, 0-9 and -`},
		{"a version that reads like more", change(`"1.0.0"`, `"1.0.0 (signed)"`), `manifest line 2: version "1.0.0 (signed)": give it one of up to 64 letters, digits, dots, + and -`},
		{"a description that turns the line around", change("abi = 1", "description = \"\u202egood\"\nabi = 1"), "manifest line 3: the description has control characters: take them out"},
		{"more than anybody reads", good + "env = [" + many + "]\n", "manifest line 8: capability env has 10000 entries, and 200 is the most: ask for wider ones"},
		{"a capability with control characters", good + "exec = [\"ls \\u001b[2K\"]\n", `manifest line 8: capability exec: "ls \x1b[2K" is empty or has control characters`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newCandidate("/one.wasm", withManifest(bare, tt.manifest))
			if err == nil || err.Error() != tt.want {
				t.Errorf("newCandidate:\n got %v\nwant %s", err, tt.want)
			}
		})
	}
}
