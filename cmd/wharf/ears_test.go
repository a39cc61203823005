package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ears listen at all places outside where a command might call.
type ears struct {
	places []place
	over   sync.Once

	mu   sync.Mutex
	came []string
}

// place is where a socket listens.
type place struct {
	variable, network, address string
	done                       chan struct{} // closed when it listens no more
}

// listen opens the ears of a stage, and names them to its lines.
func listen(t *testing.T, s *stage) *ears {
	t.Helper()
	e := &ears{}
	abstract := "@" + filepath.Base(s.top)
	for _, p := range []place{
		{"TCP", "tcp", "127.0.0.1:0", nil},
		{"CLOSED", "tcp", "127.0.0.1:0", nil},
		{"TCP6", "tcp6", "[::1]:0", nil},
		{"UDP", "udp", "127.0.0.1:0", nil},
		{"UDP6", "udp6", "[::1]:0", nil},
		{"AGENT", "unix", s.top + "/run/agent", nil},
		{"INNER", "unix", s.ws + "/socket", nil},
		{"ABSTRACT", "unix", abstract, nil},
		{"DATAGRAM", "unixgram", s.ws + "/datagram", nil},
	} {
		if err := e.open(t, p); err != nil {
			t.Logf("this machine has no %s: %v", p.variable, err)
		}
	}
	for _, p := range e.places {
		address := strings.Replace(p.address, s.top+"/run/", "/run/", 1)
		s.vars += fmt.Sprintf(" %s=%s", p.variable, address)
	}
	return e
}

func (e *ears) open(t *testing.T, p place) error {
	p.done = make(chan struct{})
	if strings.HasPrefix(p.network, "udp") || p.network == "unixgram" {
		conn, err := net.ListenPacket(p.network, p.address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { conn.Close(); <-p.done })
		p.address = conn.LocalAddr().String()
		go func() {
			defer close(p.done)
			for text := make([]byte, 1<<10); ; {
				n, _, err := conn.ReadFrom(text)
				if err != nil || !e.hear(p.variable, text[:n]) {
					return
				}
			}
		}()
		e.places = append(e.places, p)
		return nil
	}
	l, err := net.Listen(p.network, p.address)
	if err != nil {
		return err
	}
	t.Cleanup(func() { l.Close(); <-p.done })
	p.address = l.Addr().String()
	go func() {
		defer close(p.done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			text := make([]byte, 1<<10)
			n, _ := conn.Read(text) // a proxy that looks before it speaks says nothing, and closes
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			conn.Close()
			if !e.hear(p.variable, text[:n]) {
				return
			}
		}
	}()
	e.places = append(e.places, p)
	return nil
}

// at is the address of an ear.
func (e *ears) at(variable string) string {
	for _, p := range e.places {
		if p.variable == variable {
			return p.address
		}
	}
	return ""
}

const goodbye = "that is all"

// hear takes down what was said, and reports whether more may come.
func (e *ears) hear(at string, text []byte) bool {
	if string(text) == goodbye {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(text) > 0 {
		e.came = append(e.came, fmt.Sprintf("%q came at %s", text, at))
	}
	return true
}

// heard says what came, up to now, and closes the ears.
func (e *ears) heard() []string {
	e.over.Do(func() {
		for _, p := range e.places {
			if conn, err := net.Dial(p.network, p.address); err == nil {
				_, _ = conn.Write([]byte(goodbye))
				conn.Close()
				<-p.done
			}
		}
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.came
}
