package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// connectionHeaders are those that belong to one connection, not to the request.
var connectionHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Expect", "Http2-Settings",
}

// endToEnd takes out of headers what belongs to the connection that they came by.
func endToEnd(h http.Header) http.Header {
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range connectionHeaders {
		h.Del(name)
	}
	return h
}

// forward carries out a request for an http:// URL. It is made anew of what was
// read, for the host that was judged, whatever its header says.
func (p *Proxy) forward(client *metered, in *bufio.Reader, h head, raw []byte) {
	got, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(raw), in)))
	if err != nil {
		p.malformed(client, errHead)
		return
	}
	server, no := p.reach(h, client.flow)
	if no != nil {
		client.answer(no)
		return
	}
	defer server.watch()()
	if strings.EqualFold(got.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(client, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return
		}
	}
	answer, err := p.send(got, h, server)
	if err != nil {
		client.answer(&refusal{http.StatusBadGateway, h.to.String() + ": " + p.plain(err).Error()})
		return
	}
	defer func() { _ = answer.Body.Close() }()
	endToEnd(answer.Header)
	if answer.ContentLength < 0 && got.ProtoAtLeast(1, 1) {
		answer.TransferEncoding = []string{"chunked"} // so that an end is told from breaking off
	}
	answer.ProtoMajor, answer.ProtoMinor = 1, 1
	answer.Close, answer.Trailer = true, nil
	_ = answer.Write(client)
}

// send sends a request on the connection to its server.
func (p *Proxy) send(got *http.Request, h head, server net.Conn) (*http.Response, error) {
	body := got.Body
	if got.ContentLength == 0 {
		body = http.NoBody
	}
	request, err := http.NewRequestWithContext(p.ctx, h.method, h.url.String(), body)
	if err != nil {
		return nil, err
	}
	request.ContentLength, request.Header, request.Close = got.ContentLength, endToEnd(got.Header), true
	if _, has := request.Header["User-Agent"]; !has {
		request.Header["User-Agent"] = nil // Go would name itself
	}
	once := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return server, nil },
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	answer, err := once.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusSwitchingProtocols {
		_ = answer.Body.Close()
		return nil, errNoAnswer
	}
	return answer, err
}

// plain is plainFailure, and says whether it was the budget.
func (p *Proxy) plain(err error) error {
	if errors.Is(err, errSpent) || p.left.Load() < 0 {
		return errors.New(p.spent())
	}
	return plainFailure(err)
}
