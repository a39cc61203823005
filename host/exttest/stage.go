package exttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/abi"
)

// stage is the world of one case: what lies behind the host's checks. It is safe
// for concurrent use.
type stage struct {
	world   worldForm
	dir     string // of the workspace
	root    *sandbox.Root
	network *network

	mu      sync.Mutex
	now     time.Time
	given   map[any]int // how often each answer was given, by its address
	missing []string    // what had no answer
	tokens  int64
}

var _ host.Gate = (*stage)(nil)

// defaultNow is the time at which a case happens that does not say.
var defaultNow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// openStage builds the world of a case. Close it.
func openStage(c *Case) (s *stage, err error) {
	s = &stage{world: c.world, now: c.world.Now, given: map[any]int{}}
	if s.now.IsZero() {
		s.now = defaultNow
	}
	if s.dir, err = os.MkdirTemp("", "wharf-case-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.root, err = sandbox.OpenRoot(s.dir); err != nil {
		return nil, err
	}
	s.network, err = openNetwork(s)
	return s, err
}

// close takes the world down.
func (s *stage) close() error {
	if s.network != nil {
		s.network.close()
	}
	if s.root != nil {
		s.root.Close()
	}
	return os.RemoveAll(s.dir)
}

// furnish writes the files that the workspace begins with.
func (s *stage) furnish() error {
	for _, name := range sortedKeys(s.world.Files) {
		if err := s.write(name, s.world.Files[name]); err != nil {
			return fmt.Errorf("files: %w", err)
		}
	}
	return nil
}

// write writes a file of the workspace, at the case's time.
func (s *stage) write(name, content string) error {
	rel, err := s.root.Write(name, []byte(content), nil)
	if err != nil {
		return err
	}
	return os.Chtimes(filepath.Join(s.dir, rel), s.time(), s.time())
}

// session is what a session of the case meets.
func (s *stage) session(c *Case, r *Recorder) (host.SessionConfig, error) {
	secrets, err := secret.NewStore(secret.Config{LookupEnv: lookup(c.world.Secrets)})
	return host.SessionConfig{
		Record: r.Record, Gate: s, Root: s.root, Env: lookup(c.env), Secrets: secrets, Network: s.network.config(),
		Trial: &host.Trial{Now: s.time, Slept: s.pass, Random: s.random, Fault: s.fault},
	}, err
}

func lookup(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func (s *stage) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// random is the same for each instance.
func (s *stage) random() io.Reader {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(s.world.Seed >> (8 * i))
	}
	return rand.NewChaCha8(seed)
}

// fault finds what the case has go wrong.
func (s *stage) fault(operation, target string) *host.TrialFault {
	f := take(s, s.world.Faults, func(f *faultForm) bool {
		return f.Operation == operation && (f.Target == "" || f.Target == target)
	}, func(f *faultForm) int { return f.Times })
	if f == nil {
		return nil
	}
	return &host.TrialFault{Code: f.Code, Message: f.Message}
}

// take finds the first answer that fits and is not used up.
func take[T any](s *stage, answers []T, fits func(*T) bool, times func(*T) int) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range answers {
		if a := &answers[i]; fits(a) && s.given[a] < max(times(a), 1) {
			s.given[a]++
			return a
		}
	}
	return nil
}

// lacks notes what a guest asked for and the case has no answer to.
func (s *stage) lacks(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := err.Error(); !slices.Contains(s.missing, text) {
		s.missing = append(s.missing, text)
	}
	return err
}

// takeMissing returns what had no answer since the last time.
func (s *stage) takeMissing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.missing
	s.missing = nil
	return all
}

// unused lists the answers that nobody asked for often enough, by their paths in
// the case.
func (s *stage) unused() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	note := func(kind string, i int, answer any, times int, what string) {
		if got, want := s.given[answer], max(times, 1); got < want {
			all[fmt.Sprintf("%s.%d", kind, i)] = fmt.Sprintf("the answer to %s was asked for %d of %d times", what, got, want)
		}
	}
	for i := range s.world.HTTP {
		h := &s.world.HTTP[i]
		note("http", i, h, h.Times, h.method()+" "+h.URL)
	}
	for i := range s.world.Exec {
		e := &s.world.Exec[i]
		note("exec", i, e, e.Times, "the command "+e.Command)
	}
	for i := range s.world.Calls {
		c := &s.world.Calls[i]
		note("tool_call", i, c, c.Times, "a call of "+c.Name)
	}
	for i := range s.world.LLM {
		l := &s.world.LLM[i]
		note("llm", i, l, l.Times, "llm.complete")
	}
	for i := range s.world.Faults {
		f := &s.world.Faults[i]
		note("fault", i, f, f.Times, "the operation "+f.Operation)
	}
	return all
}

// Call answers tool.call, exec.run and fs.write.
func (s *stage) Call(_ context.Context, _ string, call tool.Call) (tool.Result, error) {
	arguments, err := decode(call.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	fields, _ := arguments.(map[string]any)
	text := func(key string) string { value, _ := fields[key].(string); return value }
	if call.Name == "exec" {
		if e := s.command(text("command")); e != nil {
			return e.result()
		}
	}
	if c := s.toolCall(call.Name, arguments); c != nil {
		if c.Denied != "" {
			return denied(c.Denied), nil
		}
		return tool.Result{Content: c.Content, IsError: c.IsError, Code: tool.Code(c.Code)}, nil
	}
	switch call.Name {
	case "write_file":
		if err := s.write(text("path"), text("content")); err != nil {
			return tool.Result{Content: err.Error(), IsError: true}, nil
		}
		return tool.Result{Content: "written"}, nil
	case "exec":
		return tool.Result{}, s.lacks("the case has no [[case.exec]] for %q", text("command"))
	default:
		return tool.Result{}, s.lacks("the case has no [[case.tool_call]] for %s %s", call.Name, call.Arguments)
	}
}

func denied(reason string) tool.Result {
	return tool.Result{Content: reason, IsError: true, Code: tool.Denied}
}

func (s *stage) command(command string) *execForm {
	return take(s, s.world.Exec, func(e *execForm) bool { return e.Command == command }, func(e *execForm) int { return e.Times })
}

// result is how a command ended, as the tool exec gives it to a program.
func (e *execForm) result() (tool.Result, error) {
	if e.Denied != "" {
		return denied(e.Denied), nil
	}
	structured, err := encode(abi.ExecResponse{Exit: e.Exit, Stdout: e.Stdout, Stderr: e.Stderr})
	return tool.Result{Content: e.Stdout, IsError: e.Exit != 0, Structured: string(structured)}, err
}

func (s *stage) toolCall(name string, arguments any) *callForm {
	return take(s, s.world.Calls, func(c *callForm) bool {
		if c.Name != name || c.Arguments == nil {
			return c.Name == name
		}
		want, err := normalize(c.Arguments)
		return err == nil && reflect.DeepEqual(want, plain(arguments))
	}, func(c *callForm) int { return c.Times })
}

// Info answers session.info.
func (s *stage) Info() abi.SessionInfo {
	i := s.world.Session
	out := abi.SessionInfo{ID: i.ID, Cwd: i.Cwd, Model: i.Model, Turn: i.Turn}
	if out.ID == "" {
		out.ID = "trial"
	}
	if out.Cwd == "" {
		out.Cwd = "/workspace"
	}
	if out.Turn == 0 {
		out.Turn = 1
	}
	return out
}

// Messages answers session.messages.
func (s *stage) Messages() []session.Message {
	var all []session.Message
	for _, m := range s.world.Messages {
		all = append(all, session.Message{Role: session.Role(m.Role), Content: m.Content, CallID: session.CallID(m.CallID), IsError: m.IsError})
	}
	return all
}

// Tokens returns what was spent by llm.complete.
func (s *stage) Tokens(string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens
}

// Complete answers llm.complete.
func (s *stage) Complete(_ context.Context, _ string, _ session.CallID, question abi.CompleteRequest, _ int64) (abi.CompleteResponse, error) {
	l := take(s, s.world.LLM, func(l *llmForm) bool { return l.Prompt == "" || l.Prompt == question.Prompt }, func(l *llmForm) int { return l.Times })
	if l == nil {
		return abi.CompleteResponse{}, s.lacks("the case has no [[case.llm]] for the prompt %q", question.Prompt)
	}
	if l.Denied != "" {
		return abi.CompleteResponse{}, errors.New(l.Denied)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens += l.InputTokens + l.OutputTokens
	return abi.CompleteResponse{Text: l.Text, Usage: abi.Usage{InputTokens: l.InputTokens, OutputTokens: l.OutputTokens}}, nil
}

// written returns the files of the workspace that are not as the case gave them.
func (s *stage) written() (map[string]any, error) {
	all := map[string]any{}
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if before, was := s.world.Files[rel]; err == nil && (!was || before != string(content)) {
			all[rel] = string(content)
		}
		return err
	})
	return all, err
}

// keptForm is what a case says is kept, as a store has it.
func keptForm(values map[string]any) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for key, value := range values {
		raw, err := encodeTOML(value)
		if err != nil {
			return nil, fmt.Errorf("kept %q: %w", key, err)
		}
		out[key] = raw
	}
	return out, nil
}
