package egress

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/iotest"
)

// helloOf returns what a client with cfg says first.
func helloOf(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		_ = tls.Client(here, cfg).Handshake()
		here.Close()
	}()
	defer there.Close()
	header := make([]byte, 5)
	if _, err := io.ReadFull(there, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(there, body); err != nil {
		t.Fatal(err)
	}
	return append(header, body...)
}

// fragmented is hello in records of n bytes each.
func fragmented(hello []byte, n int) []byte {
	var all []byte
	for rest := hello[5:]; len(rest) > 0; rest = rest[min(n, len(rest)):] {
		all = append(all, hello[:3]...)
		all = binary.BigEndian.AppendUint16(all, uint16(min(n, len(rest))))
		all = append(all, rest[:min(n, len(rest))]...)
	}
	return all
}

func TestReadHello(t *testing.T) {
	plain := helloOf(t, &tls.Config{ServerName: "a.example"})
	unnamed := helloOf(t, &tls.Config{InsecureSkipVerify: true})
	cut := bytes.Replace(plain, []byte("a.example"), []byte("a.exam\x00le"), 1)
	tests := []struct {
		name, said string
		hello      []byte
		host       string
	}{
		{"as it is", "", plain, "a.example"},
		{"of TLS 1.2", "", helloOf(t, &tls.Config{ServerName: "a.example", MaxVersion: tls.VersionTLS12}), "a.example"},
		{"in capitals", "", bytes.Replace(plain, []byte("a.example"), []byte("A.EXAMPLE"), 1), "a.example"},
		{"in pieces of 7 bytes", "", fragmented(plain, 7), "a.example"},
		{"without a name", errNoName.Error(), unnamed, ""},
		{"with a name that is none", errNoName.Error(), cut, ""},
		{"cut off", errHello.Error(), plain[:len(plain)-1], ""},
		{"with a record of another kind", errHello.Error(), append([]byte{23}, plain[1:]...), ""},
		{"of plain HTTP", errHello.Error(), []byte("GET / HTTP/1.1\r\n\r\n"), ""},
		{"of an old SSL", errHello.Error(), append([]byte{0x80, 0x2e, 1, 3, 1}, make([]byte, 64)...), ""},
		{"without end", errHello.Error(), fragmented(append([]byte{22, 3, 1, 0, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 1<<20)...), 1<<14), ""},
		{"empty", errHello.Error(), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name, raw, err := readHello(iotest.HalfReader(bytes.NewReader(tt.hello)))
			if name != tt.host || problem(err) != tt.said {
				t.Errorf("readHello = %q, %v; want %q, %s", name, err, tt.host, tt.said)
			}
			if err == nil && !bytes.Equal(raw, tt.hello) {
				t.Errorf("of %d bytes %d are passed on", len(tt.hello), len(raw))
			}
			if len(raw) > 1<<17 {
				t.Errorf("it read %d bytes", len(raw))
			}
		})
	}
}

// What was read is passed on as it came, and a name is one that can be judged.
func FuzzHello(f *testing.F) {
	f.Add(helloOf(f, &tls.Config{ServerName: "a.example"}))
	f.Add(fragmented(helloOf(f, &tls.Config{ServerName: "a.example"}), 50))
	f.Fuzz(func(t *testing.T, said []byte) {
		name, raw, err := readHello(bytes.NewReader(said))
		if !bytes.HasPrefix(said, raw) {
			t.Errorf("passed on %x of %x", raw, said)
		}
		if (err == nil) != (name != "") || err == nil && !hostName.MatchString(name) {
			t.Errorf("readHello = %q, %v", name, err)
		}
	})
}
