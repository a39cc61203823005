package quirks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server plays a case's server, on loopback.
type Server struct {
	URL string // for base_url

	c Case

	mu       sync.Mutex
	came     chan struct{} // has an element if there was a request
	run      int
	replied  int   // replies of the run's script that were used
	before   int   // requests of earlier runs
	guarded  []int // how often each guard has answered
	requests []Request
}

// NewServer starts a server for the first run of c; it ends with the test.
func NewServer(t testing.TB, c Case) *Server {
	s := &Server{c: c, came: make(chan struct{}, 1), guarded: make([]int, len(c.Guards))}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections() // ends what a stall keeps open
		h.Close()
	})
	s.URL = h.URL + "/v1"
	return s
}

// NextRun turns to the script of the next run.
func (s *Server) NextRun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run++
	s.replied, s.before = 0, len(s.requests)
}

// Await waits until the run's n-th request came, or until done.
func (s *Server) Await(n int, done <-chan struct{}) bool {
	for {
		s.mu.Lock()
		there := len(s.requests)-s.before >= n
		s.mu.Unlock()
		if there {
			return true
		}
		select {
		case <-s.came:
		case <-done:
			return false
		}
	}
}

// Requests returns what has been asked so far, in all runs.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers a model request with the next reply.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	req := parseRequest(body)
	var reply Reply
	if err := json.Unmarshal([]byte(s.pick(req)), &reply); err != nil {
		http.Error(w, "the case's reply cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	reply.write(w, r, req)
}

const endOfScript = `{"chunks":[{"delta":{"content":"(end of script)"}},{"finish":"stop"}]}`

// pick records req and returns the reply to it.
func (s *Server) pick(req Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	select {
	case s.came <- struct{}{}:
	default:
	}
	n := len(s.requests)
	for i, g := range s.c.Guards {
		if (g.Max == 0 || s.guarded[i] < g.Max) && g.When.holds(req, n, len(s.requests[0].Body)) {
			s.guarded[i]++
			return expand(string(g.Reply), &req, n)
		}
	}
	script := s.c.Runs[min(s.run, len(s.c.Runs)-1)].Replies
	if s.replied >= len(script) {
		return endOfScript
	}
	raw := script[s.replied]
	var reply Reply
	if json.Unmarshal(raw, &reply) != nil || !reply.Loop {
		s.replied++
	}
	return expand(string(raw), &req, n)
}

var placeholder = regexp.MustCompile(`\{\{(noarg|n|fill (\d+)|date\+(\d+))\}\}`)

// expand replaces the placeholders in text; req is nil outside of a reply.
func expand(text string, req *Request, n int) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		parts := placeholder.FindStringSubmatch(found)
		number, _ := strconv.Atoi(cmp.Or(parts[2], parts[3]))
		switch {
		case parts[2] != "":
			return strings.Repeat("x", number)
		case parts[3] != "":
			return time.Now().Add(time.Duration(number) * time.Second).UTC().Format(http.TimeFormat)
		case parts[1] == "n":
			return strconv.Itoa(n)
		case req != nil:
			return req.toolWithoutArguments()
		}
		return found
	})
}

func (r Request) toolWithoutArguments() string {
	for _, t := range r.tools {
		if len(t.Function.Parameters.Required) == 0 {
			return t.Function.Name
		}
	}
	return "no_such_tool"
}

// write sends the reply, and ends the connection as it says.
func (p Reply) write(w http.ResponseWriter, r *http.Request, req Request) {
	if p.End == "drop" {
		hangUp(w, false)
		return
	}
	p.writeHeader(w, req)
	switch {
	case p.Body != nil:
		_, _ = io.WriteString(w, *p.Body)
	case p.Completion != nil && !req.stream:
		_, _ = w.Write(p.Completion)
	case p.Completion != nil:
		_, _ = io.WriteString(w, asEvent(p.Completion)+"data: [DONE]\n\n")
	default:
		p.writeChunks(w)
	}
	_ = http.NewResponseController(w).Flush()
	switch p.End {
	case "cut", "reset":
		hangUp(w, p.End == "reset")
	case "stall":
		<-r.Context().Done()
	}
}

func (p Reply) writeHeader(w http.ResponseWriter, req Request) {
	kind := "application/json"
	if p.Body == nil && (p.Completion == nil || req.stream) {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	for name, value := range p.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(cmp.Or(p.Status, http.StatusOK))
}

func (p Reply) writeChunks(w http.ResponseWriter) {
	done := p.End != ""
	for _, c := range p.Chunks {
		if c.PauseMS > 0 {
			time.Sleep(time.Duration(c.PauseMS) * time.Millisecond)
		}
		done = done || c.Done
		c.write(w)
	}
	if !done {
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
}

func (c Chunk) write(w http.ResponseWriter) {
	text := c.text()
	step := cmp.Or(c.Split, max(len(text), 1))
	for ; text != ""; text = text[min(step, len(text)):] {
		_, _ = io.WriteString(w, text[:min(step, len(text))])
		_ = http.NewResponseController(w).Flush()
	}
}

func (c Chunk) text() string {
	const envelope = `{"id":"1","object":"chat.completion.chunk","created":1,"model":"mock","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`
	event := oneLine(c.JSON)
	switch {
	case c.Done:
		event = "[DONE]"
	case c.Raw != "":
		return c.Raw
	case c.Finish != "":
		event = fmt.Sprintf(envelope, "{}", strconv.Quote(c.Finish))
	case c.Delta != nil:
		event = fmt.Sprintf(envelope, oneLine(c.Delta), "null")
	}
	return "data: " + event + "\n\n"
}

func oneLine(raw json.RawMessage) string { return strings.ReplaceAll(string(raw), "\n", " ") }

// asEvent turns a whole answer into one event of a stream.
func asEvent(completion json.RawMessage) string {
	var answer map[string]any
	if json.Unmarshal(completion, &answer) != nil {
		return "data: " + oneLine(completion) + "\n\n"
	}
	choices, _ := answer["choices"].([]any)
	for _, choice := range choices {
		if fields, ok := choice.(map[string]any); ok {
			fields["delta"] = fields["message"]
			delete(fields, "message")
		}
	}
	event, _ := json.Marshal(answer) // of JSON that was just read
	return "data: " + string(event) + "\n\n"
}

// hangUp ends the connection without ending the answer.
func hangUp(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
