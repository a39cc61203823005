package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// metered is a connection of a Proxy: what comes in by it counts against the
// budget, and it ends when nothing has moved for a while, or at a set time.
type metered struct {
	net.Conn
	proxy *Proxy
	flow  *flow
	until atomic.Int64 // when reading ends, in nanoseconds; 0 is open
}

// flow is the two connections of a request, as a whole.
type flow struct {
	last atomic.Int64 // when something moved last, in nanoseconds
}

var errSpent = errors.New("the budget is used up")

func (m *metered) Read(b []byte) (int, error) {
	for {
		deadline, until := time.Now().Add(m.proxy.idle), m.until.Load()
		if until != 0 {
			deadline = time.Unix(0, until)
		}
		_ = m.SetReadDeadline(deadline)
		n, err := m.Conn.Read(b)
		if n > 0 {
			m.flow.last.Store(time.Now().UnixNano())
			if m.proxy.left.Add(-int64(n)) < 0 && until == 0 { // a head is read, so that it can be answered
				m.proxy.note("", m.proxy.spent(), false)
				return 0, errSpent
			}
			return n, err
		}
		quiet := time.Since(time.Unix(0, m.flow.last.Load()))
		if !errors.Is(err, os.ErrDeadlineExceeded) || until != 0 || quiet >= m.proxy.idle {
			return n, err
		}
	}
}

// endAfter has reading end after d; 0 takes that back.
func (m *metered) endAfter(d time.Duration) {
	if d == 0 {
		m.until.Store(0)
		return
	}
	m.until.Store(time.Now().Add(d).UnixNano())
}

func (m *metered) Write(b []byte) (int, error) {
	_ = m.SetWriteDeadline(time.Now().Add(m.proxy.idle))
	return m.Conn.Write(b)
}

// closeWrite tells the other side that nothing more will come.
func (m *metered) closeWrite() {
	if c, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
}

// watch closes m when the proxy ends; the function that it returns closes m now.
func (m *metered) watch() (over func()) {
	stop := context.AfterFunc(m.proxy.ctx, func() { _ = m.Close() })
	return func() {
		stop()
		_ = m.Close()
	}
}

// What is read of a client that was refused, so that the answer is not lost with
// what it still sends.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// answer answers a request that is not carried out.
func (m *metered) answer(r *refusal) {
	text := r.text + "\n"
	_, err := fmt.Fprintf(m, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		r.status, http.StatusText(r.status), len(text), text)
	if err != nil {
		return
	}
	m.closeWrite()
	m.endAfter(lingerTime)
	_, _ = io.CopyN(io.Discard, m, lingerBytes)
}
