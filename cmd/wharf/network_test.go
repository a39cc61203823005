package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wharf-agent/wharf/host"
)

const fetchManifest = `name = "fetch"
version = "0.1.0"
abi = 1

[[tools]]
name = "fetch"
description = "Fetches"
input_schema = '{"type":"object"}'

[capabilities]
http = ["GET http://%[1]s/*"]
secrets = [{ name = "TOKEN", host = "127.0.0.1", header = "X-Token", format = "Token {}" }]
`

// The scripts of testdata/network have an extension, fetch.wasm, whose tool
// sends a secret to a server that gives back in many forms what it gets. Its
// address is in $SERVER, what it got goes into the file got.txt.
func TestNetworkScripts(t *testing.T) {
	fixture, err := os.ReadFile("../../host/testdata/fetch.wasm")
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	testscript.Run(t, testscript.Params{
		Dir:       "testdata/network",
		Condition: func(name string) (bool, error) { return isThere(t, name), nil },
		Setup: func(env *testscript.Env) error {
			home, err := os.MkdirTemp("", "wharf-home-")
			if err != nil {
				return err
			}
			server := echoServer(filepath.Join(env.WorkDir, "got.txt"))
			env.Defer(func() { server.Close(); os.RemoveAll(home) })
			at := server.Listener.Addr().String()
			for name, value := range map[string]string{"HOME": home, "XDG_CACHE_HOME": cache, "SERVER": at} {
				env.Setenv(name, value)
			}
			wasm := bytes.Replace(fixture, []byte("127.0.0.1:00000"), []byte(at), 1)
			if wasm, err = host.EmbedManifest(wasm, fmt.Sprintf(fetchManifest, at)); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "fetch.wasm"), wasm, 0o644)
		},
	})
}

// echoServer listens on a port of five digits, of which the fixture has room.
// Behind its answer it says more than anybody asked for.
func echoServer(into string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		got := in.Header.Get("X-Token")
		if err := os.WriteFile(into, []byte(got+"\n"), 0o644); err != nil {
			http.Error(out, err.Error(), http.StatusInternalServerError)
			return
		}
		said := fmt.Sprintf("you said %s, %s, %s, %s", got, hex.EncodeToString([]byte(got)),
			base64.StdEncoding.EncodeToString([]byte(got)), url.QueryEscape(got))
		conn, _, err := out.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX-Echo: %s\r\nContent-Length: %d\r\n\r\n%s", got, len(said), said)
		fmt.Fprintf(conn, "and nobody asked for %s", got)
	}))
}
