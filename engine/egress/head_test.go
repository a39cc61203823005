package egress

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// readWhole reads and parses a head as the proxy does.
func readWhole(text string) (head, error) {
	raw, err := readHead(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return head{}, err
	}
	return parseHead(raw)
}

func TestHead(t *testing.T) {
	const malformed, host, form = "the request is malformed", "its host is neither a name nor an address in the one spelling that all programs read alike",
		"this is a proxy for CONNECT host:port and for http:// URLs"
	tests := []struct{ name, text, want string }{
		{"a tunnel", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "a.example:443"},
		{"a tunnel without a header", "CONNECT a.example:443 HTTP/1.0\r\n\r\n", "a.example:443"},
		{"capitals", "CONNECT A.EXAMPLE:443 HTTP/1.1\r\n\r\n", "a.example:443"},
		{"an address", "CONNECT [::1]:80 HTTP/1.1\r\n\r\n", "[::1]:80"},
		{"a URL", "GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example:80 http://a.example/x?y"},
		{"a URL with a port", "GET http://A.example:8080 HTTP/1.1\r\n\r\n", "a.example:8080 http://a.example:8080"},
		{"a URL with the port of its scheme", "GET http://a.example:80/ HTTP/1.1\r\n\r\n", "a.example:80 http://a.example/"},
		{"another Host", "GET http://a.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "a.example:80 http://a.example/"},
		{"a tunnel without a port", "CONNECT a.example HTTP/1.1\r\n\r\n", form},
		{"a tunnel to a URL", "CONNECT http://a.example/ HTTP/1.1\r\n\r\n", form},
		{"a tunnel for a user", "CONNECT me:pw@a.example:443 HTTP/1.1\r\n\r\n", host},
		{"a URL for a user", "GET http://me:pw@a.example/ HTTP/1.1\r\n\r\n", malformed},
		{"no URL", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", form},
		{"an https URL", "GET https://a.example/ HTTP/1.1\r\n\r\n", form},
		{"a URL of another kind", "GET ftp://a.example/ HTTP/1.1\r\n\r\n", form},
		{"an opaque URL", "GET http:a.example HTTP/1.1\r\n\r\n", form},
		{"a fragment", "GET http://a.example/#x HTTP/1.1\r\n\r\n", malformed},
		{"a request that comes back", "TRACE http://a.example/ HTTP/1.1\r\n\r\n", form},
		{"an address in short", "CONNECT 127.1:80 HTTP/1.1\r\n\r\n", host},
		{"an address as a number", "CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", host},
		{"an address in hex", "GET http://0x7f.1/ HTTP/1.1\r\n\r\n", host},
		{"an address in octal", "GET http://0177.0.0.1/ HTTP/1.1\r\n\r\n", host},
		{"a mapped address", "CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\r\n\r\n", host},
		{"an address with a zone", "CONNECT [fe80::1%25eth0]:80 HTTP/1.1\r\n\r\n", host},
		{"a name in brackets", "CONNECT [a.example]:80 HTTP/1.1\r\n\r\n", host},
		{"a name with a dot behind it", "CONNECT a.example.:443 HTTP/1.1\r\n\r\n", host},
		{"a name that is no ASCII", "CONNECT bücher.example:443 HTTP/1.1\r\n\r\n", malformed},
		{"an escaped name", "GET http://a%2eexample/ HTTP/1.1\r\n\r\n", form},
		{"a backslash", "GET http://a.example\\@evil.example/ HTTP/1.1\r\n\r\n", malformed},
		{"a port too high", "CONNECT a.example:65536 HTTP/1.1\r\n\r\n", form},
		{"a port that is none", "CONNECT a.example:0443 HTTP/1.1\r\n\r\n", form},
		{"two blanks", "GET  http://a.example/ HTTP/1.1\r\n\r\n", malformed},
		{"a tab", "GET\thttp://a.example/ HTTP/1.1\r\n\r\n", malformed},
		{"a lower-case method", "connect a.example:443 HTTP/1.1\r\n\r\n", malformed},
		{"another version", "GET http://a.example/ HTTP/2.0\r\n\r\n", malformed},
		{"no version", "GET http://a.example/\r\n\r\n", malformed},
		{"an empty line first", "\r\nGET http://a.example/ HTTP/1.1\r\n\r\n", malformed},
		{"a bare line feed", "GET http://a.example/ HTTP/1.1\nHost: a\r\n\r\n", malformed},
		{"a bare carriage return", "GET http://a.example/ HTTP/1.1\r\nX: a\rY: b\r\n\r\n", malformed},
		{"a zero byte", "GET http://a.example/ HTTP/1.1\r\nX: a\x00\r\n\r\n", malformed},
		{"a folded line", "GET http://a.example/ HTTP/1.1\r\nX: a\r\n b\r\n\r\n", malformed},
		{"a blank before the colon", "GET http://a.example/ HTTP/1.1\r\nContent-Length : 4\r\n\r\n", malformed},
		{"a line without a colon", "GET http://a.example/ HTTP/1.1\r\nX\r\n\r\n", malformed},
		{"two hosts", "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", malformed},
		{"two lengths", "POST http://a.example/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n", malformed},
		{"two lengths in one", "POST http://a.example/ HTTP/1.1\r\nContent-Length: 4, 4\r\n\r\n", malformed},
		{"a length with a sign", "POST http://a.example/ HTTP/1.1\r\nContent-Length: +4\r\n\r\n", malformed},
		{"a length and chunks", "POST http://a.example/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", malformed},
		{"chunks twice", "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", malformed},
		{"another coding", "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", malformed},
		{"a coding with a tab in it", "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", malformed},
		{"chunks in HTTP/1.0", "POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", malformed},
		{"a long head", "GET http://a.example/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHeader) + "\r\n\r\n", "the head of the request is too long"},
		{"a long URL", "GET http://a.example/" + strings.Repeat("x", maxURL) + " HTTP/1.1\r\n\r\n", malformed},
		{"a head that breaks off", "GET http://a.example/ HTTP/1.1\r\n", "EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := readWhole(tt.text)
			got := problem(err)
			if err == nil {
				got = h.to.String()
				if h.url != nil {
					got += " " + h.url.String()
				}
			}
			if got != tt.want {
				t.Errorf("got %s; want %s", got, tt.want)
			}
		})
	}
}

// What the proxy takes, Go's own parser takes, and for the same host; and the
// errors are of a closed set, so that they hold nothing of what came.
func FuzzHead(f *testing.F) {
	f.Add("CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n")
	f.Add("POST http://a.example:8080/x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
	f.Add("POST http://[::1]:80/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := readHead(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		h, err := parseHead(raw)
		if err != nil {
			if !errors.Is(err, errHead) && !errors.Is(err, errHost) && !errors.Is(err, errForm) {
				t.Errorf("parseHead(%q): %v", raw, err)
			}
			return
		}
		got, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // it is refused, by forward
		}
		at, err := parseEndpoint(got.URL.Host, 80)
		if err != nil || at != h.to || got.Method != h.method {
			t.Errorf("parseHead(%q) = %s %v; Go reads %s %v, %v", raw, h.method, h.to, got.Method, at, err)
		}
	})
}
