package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkStart is the time from the start of the process to its first
// request at the server, and the most memory that the process has had resident
// by then. What was compiled is in the cache. The floor is a program that
// sends one POST.
func BenchmarkStart(b *testing.B) {
	m := newMachine(b)
	for _, extensions := range [][]string{nil, {"no-rm"}, {"no-rm", "redact", "count-words"}} {
		b.Run(fmt.Sprintf("extensions=%d", len(extensions)), func(b *testing.B) {
			args := m.wharf("hi")
			for _, name := range extensions {
				args = append(args, "--ext", name)
			}
			m.run(b, 0, args...) // fills the caches
			var floor, start, resident []float64
			for b.Loop() {
				floor = append(floor, m.run(b, 0, m.program("post"), m.server.URL).start.Seconds())
				r := m.run(b, 0, args...)
				start, resident = append(start, r.start.Seconds()), append(resident, r.resident)
			}
			report(b, floor, start)
			b.ReportMetric(slices.Max(resident), "MiB")
		})
	}
}

// BenchmarkServerTurn is a tool turn as the server sees it: from a reply that
// calls for the command true to the request with its result. The floor is an
// agent with nothing around it.
func BenchmarkServerTurn(b *testing.B) {
	m := newMachine(b)
	const calls = 20
	var floor, turn []float64
	for b.Loop() {
		floor = append(floor, m.run(b, calls, m.program("loop"), m.server.URL, "hi").turns...)
		turn = append(turn, m.run(b, calls, append(m.wharf("hi"), "--no-sandbox")...).turns...)
	}
	report(b, floor, turn)
}

// report reports the median as ns/op, and as a multiple of the floor's.
func report(b *testing.B, floor, measured []float64) {
	b.ReportMetric(median(measured)*1e9, "ns/op")
	b.ReportMetric(median(measured)/median(floor), "x-floor")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// machine has the programs, a home and workspace for them, and the server that
// they talk to.
type machine struct {
	programs, home, workspace string
	server                    *httptest.Server

	calls    atomic.Int64   // that the server still makes
	arrivals chan time.Time // of requests
	sent     chan time.Time // of replies; each is given when the request may be answered
}

func newMachine(b *testing.B) *machine {
	m := &machine{
		programs: b.TempDir(), home: b.TempDir(), workspace: b.TempDir(),
		arrivals: make(chan time.Time), sent: make(chan time.Time),
	}
	for name, source := range map[string]string{
		"wharf": ".", "post": "testdata/bench/post/main.go", "loop": "testdata/bench/loop/main.go",
	} {
		build := exec.Command("go", "build", "-trimpath", "-o", m.program(name), source)
		build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0") // without the race detector, and as where there is no C compiler
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	m.server = httptest.NewServer(http.HandlerFunc(m.answer))
	b.Cleanup(m.server.Close)
	return m
}

func (m *machine) program(name string) string { return filepath.Join(m.programs, name) }

func (m *machine) wharf(prompt string) []string {
	return []string{m.program("wharf"), "run", "--base-url", m.server.URL, "--model", "m", prompt}
}

// answer makes the calls that are still to be made, and then ends the turn.
func (m *machine) answer(w http.ResponseWriter, r *http.Request) {
	m.arrivals <- time.Now()
	reply := `{"choices":[{"index":0,"delta":{"content":"It is done."},"finish_reason":"stop"}]}`
	if m.calls.Add(-1) >= 0 {
		reply = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function",` +
			`"function":{"name":"exec","arguments":"{\"command\":\"true\"}"}}]},"finish_reason":"tool_calls"}]}`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	m.sent <- time.Now()
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", reply)
}

// outcome is how a program's run was seen from outside.
type outcome struct {
	start    time.Duration // to the first request
	resident float64       // MiB, at most, up to the first request
	turns    []float64     // seconds from a reply with a call to the next request
}

// run runs a program against the server, which makes so many calls.
func (m *machine) run(b *testing.B, calls int, args ...string) outcome {
	b.Helper()
	m.calls.Store(int64(calls))
	var output bytes.Buffer
	command := exec.Command(args[0], args[1:]...)
	command.Dir, command.Stdout, command.Stderr = m.workspace, &output, &output
	command.Env = []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH")}
	began := time.Now()
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var o outcome
	var sent time.Time
	for request := range calls + 1 {
		select {
		case at := <-m.arrivals:
			if request == 0 {
				o.start, o.resident = at.Sub(began), resident(b, command.Process.Pid)
			} else {
				o.turns = append(o.turns, at.Sub(sent).Seconds())
			}
		case err := <-ended:
			b.Fatalf("%v ended after %d requests: %v\n%s", args, request, err, output.String())
		}
		sent = <-m.sent
	}
	if err := <-ended; err != nil {
		b.Fatalf("%v: %v\n%s", args, err, output.String())
	}
	return o
}

// resident returns the most memory that a running process has had resident, in
// MiB. What wait reports of a child counts its parent's memory too.
func resident(b *testing.B, pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(line, &kib); err != nil {
		b.Fatalf("read the memory of process %d: %v", pid, err)
	}
	return kib / 1024
}
