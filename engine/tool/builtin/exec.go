package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/tool"
)

// The limits of exec (SANDBOX.md 3.8).
const (
	execDefault = 120 * time.Second
	execCeiling = 600 * time.Second
	maxOutput   = 64 << 10 // bytes of output that the model gets, half from each end
)

type execArgs struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_seconds"`
	Dir     string `json:"dir"`
}

// execTool runs commands. Its function has the spec alone.
type execTool struct {
	function[execArgs]
	box Runner
}

func newExec(box Runner) tool.Tool {
	described := define[execArgs]("exec",
		"Run a shell command in the workspace, confined, and get its output, standard output and error together. It has no terminal and nothing to read; what it leaves running ends with it. Of long output the beginning and the end are kept.",
		`"properties":{
			"command":{"type":"string","minLength":1,"description":"for sh -c"},
			"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"120 if absent"},
			"dir":{"type":"string","description":"the folder to run in, relative to the workspace"}
		},"required":["command"]`,
		// The tool's own limit is the one that counts; the engine's is a backstop.
		permission.Executes, execCeiling+time.Minute, nil)
	return execTool{described.(function[execArgs]), box}
}

// Run runs the command. For a model, the two streams come as they were
// written; for a program they are kept apart.
func (e execTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, bad := decode[execArgs](call)
	if bad != nil {
		return *bad, nil
	}
	var out, errs headTail
	second := &out
	if call.Program {
		second = &errs
	}
	limit := execDefault
	if args.Timeout > 0 {
		limit = time.Duration(args.Timeout) * time.Second
	}
	r, err := e.box.Run(ctx, sandbox.Command{Line: args.Command, Dir: args.Dir, Stdout: &out, Stderr: second, Timeout: limit})
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return tool.Result{Content: err.Error(), IsError: true, Code: tool.SandboxUnavailable}, nil
	case err != nil:
		return tool.Result{}, err
	case r.TimedOut:
		return tool.Result{
			Content: out.String() + errs.String() + fmt.Sprintf("[Ended after the %v time limit; sandbox: %s]", limit, r.Rung) + notes(r),
			IsError: true, Code: tool.TimedOut,
		}, nil
	}
	result := tool.Result{
		Content: out.String() + errs.String() + fmt.Sprintf("[exit status %d; sandbox: %s]", r.ExitCode, r.Rung) + notes(r),
		IsError: r.ExitCode != 0,
	}
	if call.Program {
		result.Structured, err = structured(r.ExitCode, out.kept(), errs.kept())
	}
	return result, err
}

func structured(exit int, stdout, stderr string) (string, error) {
	raw, err := json.Marshal(struct {
		Exit   int    `json:"exit"`
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}{exit, stdout, stderr})
	return string(raw), err
}

// headTail keeps the beginning and the end of what is written to it, and
// counts what was between. It is safe for concurrent use: output that comes
// after a command's end was waited for must not corrupt what is read.
type headTail struct {
	mu      sync.Mutex
	head    []byte
	tail    []byte
	dropped int
}

func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	room := min(maxOutput/2-len(h.head), len(p))
	h.head = append(h.head, p[:room]...)
	h.tail = append(h.tail, p[room:]...)
	if extra := len(h.tail) - maxOutput/2; extra > maxOutput { // seldom, so that it costs little
		h.drop(extra)
	}
	return n, nil
}

func (h *headTail) drop(n int) {
	h.dropped += n
	h.tail = append(h.tail[:0], h.tail[n:]...)
}

// String returns what was kept, ending in a newline unless it is empty.
func (h *headTail) String() string {
	text := h.kept()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// kept returns what was kept, as whole characters.
func (h *headTail) kept() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if extra := len(h.tail) - maxOutput/2; extra > 0 {
		h.drop(extra)
	}
	head, tail := h.head, h.tail
	if h.dropped == 0 {
		head, tail = append(head[:len(head):len(head)], tail...), nil
	} else {
		for len(head) > 0 && !endsWhole(head) {
			head = head[:len(head)-1]
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	var b strings.Builder
	b.WriteString(strings.ToValidUTF8(string(head), "�"))
	if h.dropped > 0 {
		fmt.Fprintf(&b, "\n[… %d bytes left out …]\n", h.dropped)
		b.WriteString(strings.ToValidUTF8(string(tail), "�"))
	}
	return b.String()
}

// endsWhole reports whether b does not end within a character.
func endsWhole(b []byte) bool {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return utf8.FullRune(b[i:])
		}
	}
	return true // no character is that long: it is not text
}

// notes is what the sandbox did besides, for the model.
func notes(r sandbox.Result) string {
	var b strings.Builder
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n[sandbox: %s]", note)
	}
	return b.String()
}
