package egress

import (
	"errors"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	const odd = "error: url: it has characters that must be escaped, or a host that must be written in its xn-- form"
	const start = "error: url: it does not begin with https://host or http://host"
	const dots = "error: url: its path has a dot segment"
	tests := []struct{ name, text, want string }{
		{"as it is", "https://a.example/x?y=1&z", "https://a.example/x?y=1&z"},
		{"scheme and host in upper case", "HTTPS://A.Example/X", "https://a.example/X"},
		{"no path", "https://a.example?q", "https://a.example/?q"},
		{"the scheme's own port", "https://a.example:443/", "https://a.example/"},
		{"another port", "http://a.example:443/", "http://a.example:443/"},
		{"a fragment is not sent", "https://a.example/#x\\y", odd},
		{"a fragment", "https://a.example/#x", "https://a.example/"},
		{"an IPv6 address", "http://[0::0:1]:8080/", "http://[::1]:8080/"},
		{"escapes in a path", "https://a.example/a%20b", "https://a.example/a%20b"},
		{"a user", "https://me@a.example/", "error: url: it names a user: a password belongs into a header, by secrets"},
		{"a user and a password", "https://me:pw@a.example/", "error: url: it names a user: a password belongs into a header, by secrets"},
		{"an empty user", "https://@a.example/", "error: url: it names a user: a password belongs into a header, by secrets"},
		{"a backslash", "https://a.example\\@b.example/", odd},
		{"a line break", "https://a.example/\r\nX: y", odd},
		{"a blank", "https://a.example/a b", odd},
		{"a host that is not ASCII", "https://ä.example/", odd},
		{"an escaped host", "https://%61.example/", "error: url: it cannot be read"},
		{"a host that escapes other letters", "https://%c3%a4.example/", `error: url: "ä.example" is no host`},
		{"a host that ends in a dot", "https://a.example./", `error: url: "a.example." is no host`},
		{"no host", "https:///x", start},
		{"no scheme", "//a.example/", start},
		{"another scheme", "file:///etc/passwd", start},
		{"a scheme without slashes", "https:a.example", start},
		{"an octal address", "http://0177.0.0.1/", `error: url: "0177.0.0.1" is no address: write its four numbers in decimal`},
		{"an address as one number", "http://2130706433/", `error: url: "2130706433" is no address: write its four numbers in decimal`},
		{"a hexadecimal address", "http://0x7F000001/", `error: url: "0x7f000001" is no address: write its four numbers in decimal`},
		{"a short address", "http://127.1/", `error: url: "127.1" is no address: write its four numbers in decimal`},
		{"a mapped address", "http://[::ffff:7f00:1]/", `error: url: "[::ffff:7f00:1]" is no address`},
		{"a zone", "http://[fe80::1%25eth0]/", `error: url: "[fe80::1%eth0]" is no address`},
		{"an empty port", "http://a.example:/", `error: url: "" is no port`},
		{"port 0", "http://a.example:0/", `error: url: "0" is no port`},
		{"a dot segment", "https://a.example/v1/../x", dots},
		{"an escaped dot segment", "https://a.example/v1/%2e%2E/x", dots},
		{"a dot segment with parameters", "https://a.example/v1/..;a=b/x", dots},
		{"a dot segment with a blank", "https://a.example/v1/..%20/x", dots},
		{"a dot in more bytes than it needs", "https://a.example/v1/%c0%ae%c0%ae/x", "error: url: its path is not UTF-8"},
		{"an escaped slash", "https://a.example/v1%2Fx", "error: url: its path has %2f, which servers read in different ways"},
		{"an escaped percent sign", "https://a.example/%252e%252e/", "error: url: its path has %25, which servers read in different ways"},
		{"a broken escape", "https://a.example/%zz", "error: url: it cannot be read"},
		{"too long", "https://a.example/" + strings.Repeat("x", 9000), "error: url: it has 9018 bytes, and may have 8192"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parsed(t, tt.text); got != tt.want {
				t.Errorf("ParseURL(%.100q):\n got %s\nwant %s", tt.text, got, tt.want)
			}
		})
	}
}

func parsed(t testing.TB, text string) string {
	t.Helper()
	u, err := ParseURL(text)
	if err == nil {
		return u.String()
	}
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("the error %v is not ErrInvalid", err)
	}
	return "error: " + err.Error()
}

// The form that is sent reads as itself.
func FuzzParseURL(f *testing.F) {
	f.Add("https://a.example:8443/x%20y?z#f")
	f.Add("http://[::1]/;a")
	f.Fuzz(func(t *testing.T, text string) {
		once := parsed(t, text)
		if !strings.HasPrefix(once, "error: ") && parsed(t, once) != once {
			t.Errorf("%q reads as %q, and that as %q", text, once, parsed(t, once))
		}
	})
}
