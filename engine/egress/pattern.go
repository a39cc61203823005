package egress

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pattern stands for requests: "METHOD scheme://host[:port]/path". METHOD may
// be *, *. before the host stands for its subdomains of any depth but not for
// itself, a port that is missing is the scheme's, and a path that ends in *
// stands for all that begin with what is before it. Equal patterns are equal
// values. The zero Pattern matches nothing.
type Pattern struct {
	method string // or "*"
	scheme string
	host   HostPattern
	path   string // without the * at its end
	prefix bool   // whether there was one
}

var methodName = regexp.MustCompile(`^[A-Z]+$`)

// ParsePattern reads a pattern. Each has one spelling: lower-case host, no
// escapes, no dot segments.
func ParsePattern(text string) (Pattern, error) {
	method, address, _ := strings.Cut(text, " ")
	scheme, rest, _ := strings.Cut(address, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 || defaultPort(scheme) == 0 || method != "*" && !methodName.MatchString(method) {
		return Pattern{}, fmt.Errorf(`%q is no pattern: write "METHOD https://host/path"; the method may be *, the path may end in *`, text)
	}
	host, err := ParseHost(rest[:slash])
	if err == nil {
		err = checkPatternPath(rest[slash:])
	}
	if err != nil {
		return Pattern{}, fmt.Errorf("%q: %w", text, err)
	}
	if host.port == 0 {
		host.port = defaultPort(scheme)
	}
	p := Pattern{method: method, scheme: scheme, host: host}
	p.path, p.prefix = strings.CutSuffix(rest[slash:], "*")
	return p, nil
}

func checkPatternPath(path string) error {
	if i := strings.IndexByte(path, '*'); i >= 0 && i != len(path)-1 {
		return errors.New("* may stand only at the end of the path")
	}
	odd := func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }
	if strings.ContainsAny(path, "?#\\% ") || strings.ContainsFunc(path, odd) {
		return errors.New("the path has characters that a path pattern must not have")
	}
	if hasDotSegment(path) {
		return errors.New("the path has a dot segment")
	}
	return nil
}

// hasDotSegment reports whether a path has a segment that some server takes
// for "." or "..", with or without parameters or blanks.
func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name = strings.TrimSpace(name); name == "." || name == ".." {
			return true
		}
	}
	return false
}

// String prints p as [ParsePattern] reads it, without a port that is the
// scheme's own.
func (p Pattern) String() string {
	host := p.host
	if host.port == defaultPort(p.scheme) {
		host.port = 0
	}
	text := p.method + " " + p.scheme + "://" + host.String() + p.path
	if p.prefix {
		text += "*"
	}
	return text
}

// Matches reports whether p stands for a request of method to u, which is as
// [ParseURL] returns it.
func (p Pattern) Matches(method string, u *url.URL) bool {
	host, port := Endpoint(u)
	return (p.method == "*" || p.method == method) && p.scheme == u.Scheme && p.host.Matches(host, port) &&
		(p.path == u.Path || p.prefix && strings.HasPrefix(u.Path, p.path))
}

// Covers reports whether p stands for all that other stands for.
func (p Pattern) Covers(other Pattern) bool {
	return (p.method == "*" || p.method == other.method) && p.scheme == other.scheme && p.host.Covers(other.host) &&
		(p.path == other.path && p.prefix == other.prefix || p.prefix && strings.HasPrefix(other.path, p.path))
}

// Intersect returns what both p and other stand for, if there is anything.
func (p Pattern) Intersect(other Pattern) (Pattern, bool) {
	both := p
	if p.method == "*" {
		both.method = other.method
	}
	if p.host.Covers(other.host) {
		both.host = other.host
	}
	if p.prefix && strings.HasPrefix(other.path, p.path) {
		both.path, both.prefix = other.path, other.prefix
	}
	if !p.Covers(both) || !other.Covers(both) {
		return Pattern{}, false
	}
	return both, true
}

// Literal reports whether p names one address instead of a name. A caller may
// let such a pattern open an address that [CheckAddress] refuses.
func (p Pattern) Literal() bool { return p.host.literal }
