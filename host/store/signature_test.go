package store

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/scrypt"
)

// newKey makes a key, as it is and as its file.
func newKey(t testing.TB) (SecretKey, string) {
	t.Helper()
	_, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return SecretKey{private}, string(text)
}

func sign(t testing.TB, k SecretKey, data []byte) []byte {
	t.Helper()
	signature, err := k.Sign(data, "timestamp:1")
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func TestVerify(t *testing.T) {
	data := []byte("data")
	key, _ := newKey(t)
	other, _ := newKey(t)
	public := key.Public()
	good := sign(t, key, data)
	comment, err := public.Verify(data, good)
	if err != nil || comment != "timestamp:1" {
		t.Errorf("Verify = %q, %v", comment, err)
	}
	twin, err := ParseKey("untrusted comment: mine\n" + public.String() + "\n")
	if err != nil || twin != public {
		t.Errorf("a key's file is another key: %v", err)
	}
	changed := "bad signature: the file is not what the key " + public.String() + " signed: it was changed, or the signature is of another one"
	const form = "bad signature: it is not in minisign's format"
	tests := []struct {
		name      string
		data      string
		signature string
		want      string
	}{
		{"other data", "dat", string(good), changed},
		{"a comment that was changed", "data", strings.Replace(string(good), "timestamp:1", "timestamp:2", 1), changed},
		{"nothing", "data", "", form},
		{"a page instead", "data", "<html>\n<body>\nnot\nfound", form},
		{"escape codes", "data", strings.Replace(string(good), "timestamp:1", "\x1b[31m", 1), form},
		{"no end", "data", string(good) + strings.Repeat("x", maxSignature), form},
	}
	for _, tt := range tests {
		if _, err := public.Verify([]byte(tt.data), []byte(tt.signature)); !errors.Is(err, ErrSignature) || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
	_, err = public.Verify(data, sign(t, other, data))
	if !errors.Is(err, ErrSignature) || !strings.HasSuffix(err.Error(), ", and not by "+public.String()) {
		t.Errorf("another's signature: %v", err)
	}
	if _, err := (Key{}).Verify(data, good); err == nil {
		t.Error("nobody's key verified it")
	}
}

func TestParseSecretKey(t *testing.T) {
	_, text := newKey(t)
	if _, err := ParseSecretKey([]byte(text+"\n"), ""); err != nil || IsEncrypted([]byte(text)) {
		t.Errorf("an open key: %v", err)
	}
	const none = "it is no secret key of minisign's: minisign -G makes one"
	for _, bad := range []string{"", "x", text[:80], strings.Repeat("A", 500)} {
		if _, err := ParseSecretKey([]byte(bad), ""); err == nil || err.Error() != none {
			t.Errorf("ParseSecretKey(%.20q): %v", bad, err)
		}
	}
}

// The official program checks what is signed here, and the other way round; its
// keys, with a password and without one, are read.
func TestMinisign(t *testing.T) {
	program, err := exec.LookPath("minisign")
	if err != nil {
		if os.Getenv("WHARF_TEST_STRICT") == "1" {
			t.Fatal("minisign is not installed, and nothing is skipped here: apt install minisign")
		}
		t.Skip("minisign is needed: apt install minisign")
	}
	dir := t.TempDir()
	run := func(in string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("minisign %v: %v\n%s", args, err, out)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	data := module(t, "one", "1.0.0", "")
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one.wasm", data)
	run("", "-G", "-W", "-p", "minisign.pub", "-s", "open.key")
	const password = "correct horse"
	write("shut.key", encrypt(t, read("open.key"), password))
	for _, tt := range []struct{ name, file, password string }{
		{"without a password", "open.key", ""},
		{"with a password", "shut.key", password},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := read(tt.file)
			if IsEncrypted(text) != (tt.password != "") {
				t.Errorf("IsEncrypted = %v", IsEncrypted(text))
			}
			key, err := ParseSecretKey(text, tt.password)
			if err != nil {
				t.Fatal(err)
			}
			public, err := ParseKey(string(read("minisign.pub")))
			if err != nil || public != key.Public() {
				t.Fatalf("the public key is %s, and not %s: %v", key.Public(), public, err)
			}
			write("one.wasm.minisig", sign(t, key, data))
			run("", "-V", "-p", "minisign.pub", "-m", "one.wasm")
			if err := os.Remove(filepath.Join(dir, "one.wasm.minisig")); err != nil {
				t.Fatal(err)
			}
			for _, form := range []string{"-H", "-l"} {
				run(tt.password+"\n", "-S", form, "-s", tt.file, "-m", "one.wasm")
				if _, err := public.Verify(data, read("one.wasm.minisig")); err != nil {
					t.Errorf("minisign -S %s: %v", form, err)
				}
			}
			if tt.password == "" {
				return
			}
			if _, err := ParseSecretKey(text, "wrong"); !errors.Is(err, ErrPassword) {
				t.Errorf("with a wrong password: %v", err)
			}
		})
	}
}

// encrypt puts a password on a key of minisign's. The program itself would have its work
// take a second and a gigabyte, and under the race detector half a minute.
func encrypt(t *testing.T, text []byte, password string) []byte {
	t.Helper()
	comment, packed, _ := strings.Cut(string(text), "\n")
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(packed))
	if err != nil || len(key) != 158 {
		t.Fatalf("the key has %d bytes: %v", len(key), err)
	}
	salt, secret := key[6:38], key[54:]
	copy(key[2:], "Sc")
	binary.LittleEndian.PutUint64(key[38:], 32<<10) // work
	binary.LittleEndian.PutUint64(key[46:], 16<<20) // memory: together, scrypt with 1024, 8 and 1
	sum := blake2b.Sum256(append([]byte("Ed"), secret[:72]...))
	copy(secret[72:], sum[:])
	stream, err := scrypt.Key([]byte(password), salt, 1024, 8, 1, len(secret))
	if err != nil {
		t.Fatal(err)
	}
	subtle.XORBytes(secret, secret, stream)
	return []byte(comment + "\n" + base64.StdEncoding.EncodeToString(key) + "\n")
}

// fuzzKey is the same in all processes that fuzz.
const fuzzKey = "untrusted comment: of this test\n" +
	"RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA8X+ITxKUDb8Qws5aHUPjmYK9hnKxRvGdhqlxon0UMPCw17R8NyEuQWV9nFK1SE9t1gKf/L8JWiL4lZFSwf+9kZ/GSb4PEdPQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// Whatever a signature is, it is refused without a panic, unless it is the right one.
func FuzzVerify(f *testing.F) {
	var private minisign.PrivateKey
	_, text := newKey(f)
	if err := private.UnmarshalText([]byte(fuzzKey)); err != nil {
		f.Fatal(err)
	}
	key, data := SecretKey{private}, []byte("data")
	good := sign(f, key, data)
	f.Add(good, key.Public().String(), text)
	f.Add([]byte("untrusted comment: \n\ntrusted comment: \n"), "RW", "")
	f.Fuzz(func(t *testing.T, signature []byte, public, secret string) {
		k, err := ParseKey(public)
		if err == nil {
			if again, err := ParseKey(k.String()); err != nil || again != k {
				t.Errorf("%q is printed as %q: %v", public, k, err)
			}
			_, err = k.Verify(data, signature)
		}
		if err == nil && !bytes.Contains(signature, bytes.Split(good, []byte("\n"))[1]) {
			t.Errorf("%q is taken for a signature", signature)
		}
		if !IsEncrypted([]byte(secret)) { // which takes a gigabyte each
			_, _ = ParseSecretKey([]byte(secret), "")
		}
	})
}
