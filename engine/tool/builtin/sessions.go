package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/tool"
)

// The most sessions at once.
const (
	maxRunning = 8
	maxEnded   = 16 // whose end nobody has looked at
)

// endedBecause is why Wharf ended a command, as it reads after "ended".
type endedBecause string

func (e endedBecause) Error() string { return "the command was ended " + string(e) }

const (
	asAsked  endedBecause = "as you asked"
	withTurn endedBecause = "with the turn that began it: keep would have kept it"
	withAll  endedBecause = "with the session"
)

// sessions are the commands that the model works beside. Their processes live
// no longer than the tools are open.
type sessions struct {
	box     Runner
	refused refused

	mu       sync.Mutex
	starting int
	named    int // session ids given so far
	closed   bool
	all      []*execSession // those that run, and those whose end was not looked at yet
}

// execSession is a command that runs beside the model's work.
type execSession struct {
	id      string // empty until the model knows of it
	args    execArgs
	began   time.Time
	process *sandbox.Process
	end     context.CancelCauseFunc
	unread  headTail
	held    chan struct{} // by whoever looks at it
}

// begin starts a command and looks at it a first time. When ctx ends meanwhile, so does
// the command.
func (ss *sessions) begin(ctx context.Context, args execArgs) (tool.Result, error) {
	if refusal := ss.reserve(); refusal != nil {
		return *refusal, nil
	}
	s := &execSession{args: args, began: time.Now(), held: make(chan struct{}, 1)}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s.end = end
	command, err := args.widened(sandbox.Command{Line: args.Command, Dir: args.Dir, Stdout: &s.unread, Stderr: &s.unread, Timeout: args.limit(), Input: true})
	if args.TTY {
		command.Terminal = sandbox.Terminal{Rows: terminalHeight, Columns: terminalWidth}
	}
	if err == nil {
		s.process, err = ss.box.Start(life, command)
	}
	ss.started(s, err == nil)
	if err != nil {
		end(nil)
		return finished("", sandbox.Result{}, err, 0)
	}
	result, err := ss.look(ctx, s, args.yield())
	if err != nil && ctx.Err() != nil {
		end(context.Cause(ctx))
		<-s.process.Done()
		ss.forget(s)
	}
	return result, err
}

// reserve makes room for a command, or says why there is none.
func (ss *sessions) reserve() *tool.Result {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return &tool.Result{Content: "the session is over: no command is started any more", IsError: true}
	}
	var running, ended []*execSession
	for _, s := range ss.all {
		if s.over() {
			ended = append(ended, s)
		} else {
			running = append(running, s)
		}
	}
	if len(running)+ss.starting >= maxRunning {
		return &tool.Result{IsError: true, Content: fmt.Sprintf(
			"%d commands run already, and that is the most: end one with write_stdin and kill: %s", maxRunning, strings.Join(describeAll(running), "; "))}
	}
	for _, s := range ended[:max(0, len(ended)-maxEnded)] { // nobody asked for so long
		ss.all = slices.DeleteFunc(ss.all, func(other *execSession) bool { return other == s })
	}
	ss.starting++
	return nil
}

// started takes in a command that was to be started.
func (ss *sessions) started(s *execSession, runs bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.starting--
	if runs {
		ss.all = append(ss.all, s)
	}
	if ss.closed {
		s.end(withAll)
	}
}

// look waits for the end of a command, for so long at most, and returns what is new of
// it. After the end there is no session any more.
func (ss *sessions) look(ctx context.Context, s *execSession, wait time.Duration) (tool.Result, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.process.Done():
	case <-timer.C:
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
	if s.over() {
		ss.forget(s)
		r, err := s.process.Wait()
		ss.refused.note(s.args, r)
		s.args.tellWidened(&r)
		return finished(s.news(true), r, err, s.args.limit())
	}
	return text("%s[still running; session %s; use write_stdin to poll or type, to end its input or to end it]", s.news(false), ss.name(s)), nil
}

// name gives a session its id, if it has none.
func (ss *sessions) name(s *execSession) string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.id == "" {
		ss.named++
		s.id = fmt.Sprintf("exec-%d", ss.named)
	}
	return s.id
}

func (ss *sessions) forget(s *execSession) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.all = slices.DeleteFunc(ss.all, func(other *execSession) bool { return other == s })
	s.end(nil)
}

// list returns the sessions that the model knows of.
func (ss *sessions) list() (known []*execSession) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.all {
		if s.id != "" {
			known = append(known, s)
		}
	}
	return known
}

// find returns the session of that id, or why there is none.
func (ss *sessions) find(id string) (*execSession, *tool.Result) {
	known := ss.list()
	if i := slices.IndexFunc(known, func(s *execSession) bool { return s.id == id }); i >= 0 {
		return known[i], nil
	}
	content := fmt.Sprintf("there is no session %q: its end has been told, or it ended with the Wharf that ran it; ", id)
	if len(known) == 0 {
		return nil, &tool.Result{Content: content + "none is left", IsError: true}
	}
	return nil, &tool.Result{Content: content + "there are " + strings.Join(describeAll(known), "; "), IsError: true}
}

// endTurn ends what is not kept, and waits for that until ctx ends.
func (ss *sessions) endTurn(ctx context.Context) {
	ss.endAll(ctx.Done(), withTurn, func(s *execSession) bool { return !s.args.Keep })
}

// close ends all commands, for good.
func (ss *sessions) close() error {
	ss.mu.Lock()
	ss.closed = true
	ss.mu.Unlock()
	ss.endAll(nil, withAll, func(*execSession) bool { return true })
	return nil
}

// endAll ends commands and waits for that, unless it comes too late.
func (ss *sessions) endAll(late <-chan struct{}, why endedBecause, which func(*execSession) bool) {
	ss.mu.Lock()
	all := slices.Clone(ss.all)
	ss.mu.Unlock()
	all = slices.DeleteFunc(all, func(s *execSession) bool { return !which(s) })
	for _, s := range all {
		s.end(why)
	}
	for _, s := range all {
		select {
		case <-s.process.Done():
		case <-late:
			return
		}
	}
}

// over reports whether the command has ended.
func (s *execSession) over() bool {
	select {
	case <-s.process.Done():
		return true
	default:
		return false
	}
}

// news returns what came since the last look, as lines.
func (s *execSession) news(last bool) string {
	text := s.unread.take(last)
	if s.args.TTY {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return lines(text)
}

// hold waits until nobody else looks at a session, or ctx ends.
func (s *execSession) hold(ctx context.Context) error {
	select {
	case s.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *execSession) release() { <-s.held }

// describeAll tells sessions apart, for the model.
func describeAll(all []*execSession) []string {
	described := make([]string, len(all))
	for i, s := range all {
		described[i] = fmt.Sprintf("%s (%s)", cmp.Or(s.id, "one that has just begun"), s.title())
	}
	return described
}

// title is the beginning of the command, in one line.
func (s *execSession) title() string {
	const longest = 80
	command := []rune(s.args.Command)
	if len(command) <= longest {
		return fmt.Sprintf("%q", string(command))
	}
	return fmt.Sprintf("%q…", string(command[:longest]))
}

// String tells of a session, for the list.
func (s *execSession) String() string {
	state := "running for " + time.Since(s.began).Round(time.Second).String()
	if s.over() {
		state = "ended"
		if r, err := s.process.Wait(); err == nil && !r.TimedOut {
			state += fmt.Sprintf(" with exit status %d", r.ExitCode)
		} else if ended, ok := errors.AsType[endedBecause](err); ok {
			state += " " + string(ended)
		}
	}
	if s.args.Keep {
		state += ", kept"
	}
	if s.args.TTY {
		state += ", at a terminal"
	}
	return fmt.Sprintf("%s: %s, %d bytes unread: %s", s.id, state, s.unread.size(), s.title())
}
