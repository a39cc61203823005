package egress

import (
	"strings"
	"testing"
)

func TestParseEntry(t *testing.T) {
	tests := []struct{ text, want string }{
		{"api.github.com", ""},
		{"api.github.com:8443", ""},
		{"*.pypi.org", ""},
		{"*.pypi.org:443", ""},
		{"127.0.0.1:8080", ""},
		{"[::1]:8080", ""},
		{"*", ""},
		{"", `"": "" is no host: write it in lower case; *. may stand before it`},
		{"API.github.com", `"API.github.com": "API.github.com" is no host: write it in lower case; *. may stand before it`},
		{"https://api.github.com", `"https://api.github.com": write the host alone, without https:// and without a path`},
		{"api.github.com/v1", `"api.github.com/v1": write the host alone, without https:// and without a path`},
		{"me@api.github.com", `"me@api.github.com": "me@api.github.com" is no host: write it in lower case; *. may stand before it`},
		{"bücher.example", `"bücher.example": "bücher.example" is no host: write it in lower case; *. may stand before it`},
		{"api.github.com:0", `"api.github.com:0": "0" is no port`},
		{"api.github.com:99999", `"api.github.com:99999": "99999" is no port`},
		{"*:8080", `"*:8080": "*" is any host at the ports 443 and 80: write it alone, or name the hosts`},
		{"*.*", `"*.*": "*" is no host: write it in lower case; *. may stand before it`},
		{"api.*.com", `"api.*.com": "api.*.com" is no host: write it in lower case; *. may stand before it`},
		{"127.0.0.1", `"127.0.0.1": an address needs its port: write 127.0.0.1:8080`},
		{"[::1]", `"[::1]": an address needs its port: write [::1]:8080`},
		{"127.1:80", `"127.1:80": "127.1" is no address: write its four numbers in decimal`},
		{"0x7f.1:80", `"0x7f.1:80": "0x7f.1" is no address: write its four numbers in decimal`},
		{"*.127.0.0.1:80", `"*.127.0.0.1:80": an address has no subdomains`},
		{"localhost:8080", `"localhost:8080": it is a name of this machine or of a local network: write the address and the port, such as 127.0.0.1:8080`},
		{"printer.local", `"printer.local": it is a name of this machine or of a local network: write the address and the port, such as 127.0.0.1:8080`},
	}
	for _, tt := range tests {
		e, err := ParseEntry(tt.text)
		if got := problem(err); got != tt.want {
			t.Errorf("ParseEntry(%q) = %s; want %s", tt.text, got, tt.want)
		}
		if err == nil && e.String() != tt.text {
			t.Errorf("ParseEntry(%q) prints as %q", tt.text, e)
		}
	}
}

func problem(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEntryMatches(t *testing.T) {
	tests := []struct{ entry, yes, no string }{
		{"a.example", "a.example:443 a.example:80", "a.example:8080 b.a.example:443 aa.example:443"},
		{"a.example:8443", "a.example:8443", "a.example:443 a.example:80"},
		{"*.a.example", "b.a.example:443 c.b.a.example:80", "a.example:443 ba.example:443 b.a.example:22"},
		{"*", "a.example:443 b.example:80", "a.example:22 93.184.216.34:443 127.0.0.1:80 [2606:4700::1111]:443"},
		{"127.0.0.1:80", "127.0.0.1:80", "127.0.0.1:443 127.0.0.2:80"},
		{"[::1]:80", "[::1]:80", "[::1]:443 127.0.0.1:80"},
	}
	for _, tt := range tests {
		list := entries(t, tt.entry)
		for want, texts := range map[bool]string{true: tt.yes, false: tt.no} {
			for text := range strings.FieldsSeq(texts) {
				at, err := parseEndpoint(text, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, got := find(list, at); got != want {
					t.Errorf("%s stands for %s: %v; want %v", tt.entry, text, got, want)
				}
			}
		}
	}
	if _, any := find([]Entry{{}}, endpoint{host: "a.example", port: 443}); any {
		t.Error("the zero Entry allows something")
	}
}

func entries(t testing.TB, texts ...string) (all []Entry) {
	t.Helper()
	for _, text := range texts {
		e, err := ParseEntry(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// What is read as an entry prints as it was read, and one that names no address
// leads to none.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{"a.example:443", "*.a.example", "*", "[::1]:80", "127.0.0.1:80", "0x7f.1:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEntry(text)
		if err != nil {
			return
		}
		again, err := ParseEntry(e.String())
		if err != nil || again != e {
			t.Errorf("ParseEntry(%q) prints as %q, which is read as %v, %v", text, e, again, err)
		}
		_, address := e.Address()
		if at := (endpoint{host: "127.0.0.1", literal: true, port: 80}); !address && e.matches(at) {
			t.Errorf("%q stands for %v", text, at)
		}
	})
}
