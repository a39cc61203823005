package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/tool"
)

// How long write_stdin waits for news.
const (
	typedDefault  = time.Second
	pollDefault   = 5 * time.Second
	stdinCeiling  = 300 * time.Second
	killedCeiling = 30 * time.Second // for a killed command to be gone
)

type stdinArgs struct {
	Session string `json:"session_id"`
	Text    string `json:"text"`
	Close   bool   `json:"close"`
	Kill    bool   `json:"kill"`
	Yield   int    `json:"yield_ms"`
}

// polls reports whether the call only looks.
func (a stdinArgs) polls() bool { return a.Text == "" && !a.Close && !a.Kill }

func (a stdinArgs) yield() time.Duration {
	usual := typedDefault
	if a.polls() {
		usual = pollDefault
	}
	return cmp.Or(time.Duration(a.Yield)*time.Millisecond, usual)
}

// writeStdin is the tool that talks to sessions.
type writeStdin struct {
	function[stdinArgs]
	sessions *sessions
}

func newWriteStdin(all *sessions) tool.Tool {
	described := define("write_stdin",
		"Type into a command that exec left running, or look at it, and get what it printed since the last look; once, how it ended. Without text it only looks.",
		`"properties":{
			"session_id":{"type":"string","minLength":1,"description":"as exec named it"},
			"text":{"type":"string","maxLength":65536,"description":"as it is: end a line with \\n; at a terminal \\u0003 is Ctrl-C and \\u0004 Ctrl-D"},
			"close":{"type":"boolean","description":"end its input after the text; Ctrl-D at a terminal"},
			"kill":{"type":"boolean","description":"end it and all that it started"},
			"yield_ms":{"type":"integer","minimum":250,"maximum":300000,"description":"how long to wait for its end; 1000 if absent, 5000 without text"}
		},"required":["session_id"]`,
		permission.Executes, stdinCeiling+time.Minute, all.write)
	return writeStdin{described.(function[stdinArgs]), all}
}

// Polls reports whether the call looks at a session that is there: doing so again is
// no sign of a loop.
func (w writeStdin) Polls(arguments json.RawMessage) bool {
	var args stdinArgs
	if json.Unmarshal(arguments, &args) != nil || !args.polls() {
		return false
	}
	_, bad := w.sessions.find(args.Session)
	return bad == nil
}

// write does what write_stdin was asked for, while nobody else does so with that session.
func (ss *sessions) write(ctx context.Context, args stdinArgs) (tool.Result, error) {
	if args.Kill && (args.Text != "" || args.Close) {
		return invalid("kill goes with neither text nor close"), nil
	}
	s, bad := ss.find(args.Session)
	if bad != nil {
		return *bad, nil
	}
	if err := s.hold(ctx); err != nil {
		return tool.Result{}, err
	}
	defer s.release()
	if _, bad := ss.find(args.Session); bad != nil { // whoever looked just now has told its end
		return *bad, nil
	}
	began := time.Now()
	note := ""
	wait := args.yield()
	switch {
	case args.Kill:
		s.end(asAsked)
		wait = killedCeiling
	case !args.polls():
		note = s.enter(ctx, args)
		wait = max(0, wait-time.Since(began))
	}
	result, err := ss.look(ctx, s, wait)
	if err == nil && note != "" {
		result.Content += "\n" + note
	}
	return result, err
}

// enter types into a session; a note says what could not be.
func (s *execSession) enter(ctx context.Context, args stdinArgs) (note string) {
	if s.over() {
		return "[it had ended before: nothing was typed]"
	}
	ctx, cancel := context.WithTimeout(ctx, args.yield())
	defer cancel()
	if n, err := s.process.Write(ctx, []byte(args.Text)); args.Text != "" && err != nil {
		return fmt.Sprintf("[only %d of %d bytes were typed: %v]", n, len(args.Text), err)
	}
	if !args.Close {
		return ""
	}
	if err := s.process.CloseInput(ctx); err != nil {
		return fmt.Sprintf("[its input was not ended: %v]", err)
	}
	return ""
}

// listSessions is the tool that lists them.
type listSessions struct {
	function[struct{}]
	sessions *sessions
}

func newListSessions(all *sessions) tool.Tool {
	described := define("list_exec_sessions",
		"List the commands that exec left running, and those that have ended since and were not looked at.",
		`"properties":{}`, permission.Reads, 0, all.tell)
	return listSessions{described.(function[struct{}]), all}
}

// Polls reports whether there is something to look at again.
func (l listSessions) Polls(json.RawMessage) bool { return len(l.sessions.list()) > 0 }

func (ss *sessions) tell(context.Context, struct{}) (tool.Result, error) {
	known := ss.list()
	if len(known) == 0 {
		return text("[no sessions]"), nil
	}
	told := make([]string, len(known))
	for i, s := range known {
		told[i] = s.String()
	}
	return text("%s", strings.Join(told, "\n")), nil
}
