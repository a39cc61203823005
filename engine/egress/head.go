package egress

import (
	"bufio"
	"bytes"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// head is the head of a request to a proxy: a CONNECT, or one for a URL.
type head struct {
	method string
	to     endpoint
	url    *url.URL // as it is sent; nil for CONNECT
}

var (
	errHeadLong = errors.New("the head of the request is too long")
	errHead     = errors.New("the request is malformed")
	errHost     = errors.New("its host is neither a name nor an address in the one spelling that all programs read alike")
	errForm     = errors.New("this is a proxy for CONNECT host:port and for http:// URLs")
)

// readHead reads the head of a request with the empty line that ends it. A line
// that does not end as HTTP wants it ends the reading.
func readHead(in *bufio.Reader) ([]byte, error) {
	var raw []byte
	for {
		piece, err := in.ReadSlice('\n')
		raw = append(raw, piece...)
		switch {
		case len(raw) > maxHeader:
			return nil, errHeadLong
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		case !bytes.HasSuffix(raw, []byte("\r\n")):
			return nil, errHead
		case bytes.HasSuffix(raw, []byte("\r\n\r\n")):
			return raw, nil
		}
	}
}

// parseHead reads what readHead returned, strictly: whatever two programs could
// take for two different requests is refused. No error quotes anything of it.
func parseHead(raw []byte) (head, error) {
	first, rest, _ := strings.Cut(strings.TrimSuffix(string(raw), "\r\n\r\n"), "\r\n")
	parts := strings.Split(first, " ")
	if len(parts) != 3 || !methodName.MatchString(parts[0]) || parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0" {
		return head{}, errHead
	}
	if err := checkFields(rest, parts[2]); err != nil {
		return head{}, err
	}
	return parseTarget(parts[0], parts[1])
}

// checkFields refuses header lines by which a body could end in two places.
func checkFields(text, version string) error {
	if text == "" {
		return nil
	}
	seen := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return errHead
		}
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		_, again := seen[name]
		switch name {
		case "host":
			ok = !again
		case "content-length":
			ok = !again && value != "" && strings.Trim(value, "0123456789") == ""
		case "transfer-encoding":
			ok = !again && strings.EqualFold(value, "chunked") && version == "HTTP/1.1"
		}
		if !ok {
			return errHead
		}
		seen[name] = value
	}
	_, length := seen["content-length"]
	if _, chunked := seen["transfer-encoding"]; chunked && length {
		return errHead
	}
	return nil
}

// parseTarget reads where a request is to go.
func parseTarget(method, target string) (head, error) {
	if len(target) > maxURL || strings.ContainsFunc(target, mustBeEscaped) {
		return head{}, errHead
	}
	if method == "CONNECT" {
		to, err := parseEndpoint(target, 0)
		return head{method: method, to: to}, err
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" || u.Opaque != "" || u.Host == "" || method == "TRACE" {
		return head{}, errForm
	}
	if u.User != nil || strings.Contains(target, "#") {
		return head{}, errHead
	}
	to, err := parseEndpoint(u.Host, 80)
	u.Host = HostPattern{host: to.host, port: to.port}.String()
	if to.port == 80 {
		u.Host = HostPattern{host: to.host}.String()
	}
	return head{method, to, u}, err
}

// parseEndpoint reads a host with its port, or with the one that is meant where
// there is none.
func parseEndpoint(text string, port uint16) (endpoint, error) {
	host, named, err := splitPort(strings.ToLower(text))
	if named != 0 {
		port = named
	}
	if err != nil || port == 0 {
		return endpoint{}, errForm
	}
	host, literal, err := parseHost(host)
	if err != nil {
		return endpoint{}, errHost
	}
	return endpoint{host, literal, port}, nil
}
