package egress

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustPattern(t testing.TB, text string) Pattern {
	t.Helper()
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePattern(t *testing.T) {
	const shape = ` is no pattern: write "METHOD https://host/path"; the method may be *, the path may end in *`
	const host = ` is no host: write it in lower case; *. may stand before it`
	tests := []struct{ name, text, want string }{
		{"all parts", "GET https://api.example.com:8443/v1/*", "GET https://api.example.com:8443/v1/*"},
		{"any method and subdomain", "* http://*.example.com/", "* http://*.example.com/"},
		{"the scheme's own port is not printed", "GET https://a.example:443/", "GET https://a.example/"},
		{"the other scheme's port is", "GET http://a.example:443/", "GET http://a.example:443/"},
		{"an address", "GET http://127.0.0.1:8080/", "GET http://127.0.0.1:8080/"},
		{"an IPv6 address gets one spelling", "GET http://[0:0::1]:80/*", "GET http://[::1]/*"},
		{"no path", "GET https://a.example", `error: "GET https://a.example"` + shape},
		{"no method", "https://a.example/", `error: "https://a.example/"` + shape},
		{"a method in lower case", "get https://a.example/", `error: "get https://a.example/"` + shape},
		{"another scheme", "GET ftp://a.example/", `error: "GET ftp://a.example/"` + shape},
		{"nothing", "", `error: ""` + shape},
		{"a host in upper case", "GET https://A.example/", `error: "GET https://A.example/": "A.example"` + host},
		{"a host that ends in a dot", "GET https://a.example./", `error: "GET https://a.example./": "a.example."` + host},
		{"any host", "GET https://*/", `error: "GET https://*/": "*"` + host},
		{"the subdomains of nothing", "GET https://*./", `error: "GET https://*./": ""` + host},
		{"the subdomains of an address", "GET https://*.1.2.3.4/", `error: "GET https://*.1.2.3.4/": an address has no subdomains`},
		{"an address in a short form", "GET http://127.1/", `error: "GET http://127.1/": "127.1" is no address: write its four numbers in decimal`},
		{"an address as one number", "GET http://2130706433/", `error: "GET http://2130706433/": "2130706433" is no address: write its four numbers in decimal`},
		{"an octal address", "GET http://0177.0.0.1/", `error: "GET http://0177.0.0.1/": "0177.0.0.1" is no address: write its four numbers in decimal`},
		{"a hexadecimal address", "GET http://127.0.0.0x1/", `error: "GET http://127.0.0.0x1/": "127.0.0.0x1" is no address: write its four numbers in decimal`},
		{"a mapped address", "GET http://[::ffff:127.0.0.1]/", `error: "GET http://[::ffff:127.0.0.1]/": "[::ffff:127.0.0.1]" is no address`},
		{"an address with a zone", "GET http://[fe80::1%eth0]/", `error: "GET http://[fe80::1%eth0]/": "[fe80::1%eth0]" is no address`},
		{"an empty port", "GET http://a.example:/", `error: "GET http://a.example:/": "" is no port`},
		{"a port with a zero before it", "GET http://a.example:080/", `error: "GET http://a.example:080/": "080" is no port`},
		{"a dot segment with parameters", "GET http://a.example/..;x/", `error: "GET http://a.example/..;x/": the path has a dot segment`},
		{"a query", "GET http://a.example/?a", `error: "GET http://a.example/?a": the path has characters that a path pattern must not have`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ParsePattern(tt.text)
			got := p.String()
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want {
				t.Errorf("ParsePattern(%q):\n got %s\nwant %s", tt.text, got, tt.want)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	tests := []struct {
		name, pattern, method, url string
		want                       bool
	}{
		{"the very URL", "GET https://a.example/x", "GET", "https://a.example/x", true},
		{"with a query", "GET https://a.example/x", "GET", "https://a.example/x?y=/z", true},
		{"another method", "GET https://a.example/x", "POST", "https://a.example/x", false},
		{"any method", "* https://a.example/x", "POST", "https://a.example/x", true},
		{"another scheme", "GET https://a.example/x", "GET", "http://a.example/x", false},
		{"another port", "GET https://a.example/x", "GET", "https://a.example:8443/x", false},
		{"the port by its number", "GET https://a.example/x", "GET", "https://a.example:443/x", true},
		{"the host in upper case", "GET https://a.example/x", "GET", "https://A.EXAMPLE/x", true},
		{"a longer path", "GET https://a.example/x", "GET", "https://a.example/x/y", false},
		{"below a path", "GET https://a.example/x/*", "GET", "https://a.example/x/y", true},
		{"beside a path", "GET https://a.example/x/*", "GET", "https://a.example/xy", false},
		{"the path itself is not below it", "GET https://a.example/x/*", "GET", "https://a.example/x", false},
		{"letters that need no escape", "GET https://a.example/x/*", "GET", "https://a.example/%78/y", true},
		{"a subdomain", "GET https://*.a.example/", "GET", "https://b.c.a.example/", true},
		{"the apex is no subdomain", "GET https://*.a.example/", "GET", "https://a.example/", false},
		{"a name that only ends alike", "GET https://*.a.example/", "GET", "https://ba.example/", false},
		{"an address in another spelling", "GET http://[::1]/", "GET", "http://[0:0:0:0:0:0:0:1]/", true},
		{"no path is the root", "GET https://a.example/", "GET", "https://a.example", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := ParseURL(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := mustPattern(t, tt.pattern).Matches(tt.method, u); got != tt.want {
				t.Errorf("%s matches %s %s: %v; want %v", tt.pattern, tt.method, tt.url, got, tt.want)
			}
		})
	}
	if u, _ := ParseURL("https://a.example/"); (Pattern{}).Matches("GET", u) {
		t.Error("the zero pattern matches")
	}
}

func TestParseHost(t *testing.T) {
	tests := []struct {
		pattern, host string
		port          uint16
		want          bool
	}{
		{"a.example", "a.example", 443, true},
		{"a.example", "a.example", 80, true},
		{"a.example", "a.example", 22, false},
		{"a.example:22", "a.example", 22, true},
		{"a.example:22", "a.example", 443, false},
		{"*.a.example", "b.a.example", 443, true},
		{"*.a.example", "a.example", 443, false},
		{"[::1]:8080", "::1", 8080, true},
	}
	for _, tt := range tests {
		h, err := ParseHost(tt.pattern)
		if err != nil || h.String() != tt.pattern {
			t.Fatalf("ParseHost(%q) = %v, %v", tt.pattern, h, err)
		}
		if got := h.Matches(tt.host, tt.port); got != tt.want {
			t.Errorf("%s matches %s at %d: %v; want %v", tt.pattern, tt.host, tt.port, got, tt.want)
		}
	}
	if (HostPattern{}).Matches("", 80) {
		t.Error("the zero pattern matches")
	}
}

// drawPattern makes patterns from few parts, so that they often overlap.
func drawPattern(t *rapid.T, label string) Pattern {
	text := rapid.SampledFrom([]string{"GET", "POST", "*"}).Draw(t, label+" method") + " " +
		rapid.SampledFrom([]string{"http", "https"}).Draw(t, label+" scheme") + "://" +
		drawHost(t, label) + drawPath(t, label)
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func drawHost(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a.example", "*.a.example", "b.a.example", "*.b.a.example", "[::1]", "1.2.3.4"}).Draw(t, label+" host") +
		rapid.SampledFrom([]string{"", ":443", ":8080"}).Draw(t, label+" port")
}

func drawPath(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"/", "/*", "/v1", "/v1*", "/v1/*", "/v1/x"}).Draw(t, label+" path")
}

// What is printed reads as the same.
func TestPatternsArePrintedAsTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPattern(t, "p")
		if again, err := ParsePattern(p.String()); err != nil || again != p {
			t.Fatalf("%v reads as %v, %v", p, again, err)
		}
	})
}

// A request matches an intersection if and only if it matches both.
func TestIntersectionNeitherWidensNorNarrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPattern(t, "a"), drawPattern(t, "b")
		both, any := a.Intersect(b)
		if swapped, other := b.Intersect(a); swapped != both || other != any {
			t.Fatalf("%v ∩ %v = %v; the other way %v", a, b, both, swapped)
		}
		if any && (!a.Covers(both) || !b.Covers(both)) {
			t.Fatalf("%v ∩ %v = %v, which is more", a, b, both)
		}
		url := rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme") + "://" +
			strings.TrimPrefix(drawHost(t, "url"), "*.") + strings.TrimSuffix(drawPath(t, "url"), "*")
		u, err := ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		method := rapid.SampledFrom([]string{"GET", "POST", "PUT"}).Draw(t, "method")
		if got, want := any && both.Matches(method, u), a.Matches(method, u) && b.Matches(method, u); got != want {
			t.Fatalf("%s %s: %v ∩ %v = %v matches: %v; want %v", method, url, a, b, both, got, want)
		}
		if a.Covers(b) && b.Matches(method, u) && !a.Matches(method, u) {
			t.Fatalf("%v covers %v, and does not match %s %s", a, b, method, url)
		}
	})
}

// What a pattern covers, its intersection with it leaves whole.
func TestCoversIsIntersectionWithoutLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPattern(t, "a"), drawPattern(t, "b")
		if both, any := a.Intersect(b); a.Covers(b) != (any && both == b) {
			t.Fatalf("%v covers %v: %v; their intersection is %v", a, b, a.Covers(b), both)
		}
	})
}

func FuzzParsePattern(f *testing.F) {
	f.Add("GET https://*.a.example:8443/v1/*")
	f.Add("* http://[::1]/")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		if again, err := ParsePattern(p.String()); err != nil || again != p {
			t.Errorf("%q prints as %q, which reads as %v, %v", text, p, again, err)
		}
	})
}
