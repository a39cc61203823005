package egress

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// maxURL bounds a URL, in bytes.
const maxURL = 8 << 10

// ParseURL reads an absolute http or https URL into the form that is judged and
// sent: host in lower case, no port that is the scheme's own, no fragment, a
// path that begins with a slash. Whatever servers or libraries disagree about
// is refused: a user in it, other spellings of an address, escaped slashes, dot
// segments. The error is [ErrInvalid] and does not quote the URL.
func ParseURL(text string) (*url.URL, error) {
	u, err := parseURL(text)
	if err != nil {
		return nil, invalidf("url: %w", err)
	}
	return u, nil
}

func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(text), maxURL)
	}
	if strings.ContainsFunc(text, mustBeEscaped) {
		return nil, errors.New("it has characters that must be escaped, or a host that must be written in its xn-- form")
	}
	text, _, _ = strings.Cut(text, "#")
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case defaultPort(u.Scheme) == 0 || u.Opaque != "" || u.Host == "":
		return nil, errors.New("it does not begin with https://host or http://host")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return nil, errors.New("it names a user: a password belongs into a header, by secrets")
	}
	if u.Host, err = normalHost(u.Scheme, u.Host); err != nil {
		return nil, err
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, checkURLPath(u)
}

func mustBeEscaped(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }

// normalHost returns the host as it is sent.
func normalHost(scheme, text string) (string, error) {
	host, port, err := splitPort(strings.ToLower(text))
	if err != nil {
		return "", err
	}
	host, _, err = parseHost(host)
	if err != nil {
		return "", err
	}
	if port == defaultPort(scheme) {
		port = 0
	}
	return HostPattern{host: host, port: port}.String(), nil
}

// checkURLPath refuses a path that a server may read otherwise than it is matched.
func checkURLPath(u *url.URL) error {
	escaped := strings.ToLower(u.EscapedPath())
	for _, code := range []string{"%2f", "%5c", "%25", "%00"} {
		if strings.Contains(escaped, code) {
			return fmt.Errorf("its path has %s, which servers read in different ways", code)
		}
	}
	if !utf8.ValidString(u.Path) { // such as a dot in more bytes than it needs
		return errors.New("its path is not UTF-8")
	}
	if u.Path[0] != '/' || hasDotSegment(u.Path) {
		return errors.New("its path has a dot segment")
	}
	return nil
}

// Endpoint returns where a URL of [ParseURL] leads: a host without brackets,
// and a port.
func Endpoint(u *url.URL) (host string, port uint16) {
	_, port, err := splitPort(u.Host)
	if err != nil || port == 0 {
		port = defaultPort(u.Scheme)
	}
	return u.Hostname(), port
}
