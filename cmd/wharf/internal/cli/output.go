package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/session"
)

// The output formats of wharf run.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatStream = "stream-json"
)

// output is standard output in one of the formats.
type output struct {
	format string
	w      io.Writer
	err    error                   // the first failure to write
	lost   context.CancelCauseFunc // ends the run then: nobody is there to see the rest
}

func newOutput(format string, w io.Writer, lost context.CancelCauseFunc) (*output, error) {
	formats := []string{formatText, formatJSON, formatStream}
	if !slices.Contains(formats, format) {
		return nil, usagef("--output-format %q: not one of text, json, stream-json", format)
	}
	return &output{format: format, w: w, lost: lost}, nil
}

// event shows an event of the log as it happens.
func (o *output) event(r session.Record) {
	if o.format != formatStream || o.err != nil {
		return
	}
	line, err := session.Encode(r)
	if err == nil {
		_, err = o.w.Write(line)
	}
	if err != nil {
		o.err = fmt.Errorf("write to standard output: %w", err)
		o.lost(o.err)
	}
}

// result shows how the turn ended, and is the last thing to be shown.
func (o *output) result(id session.ID, r engine.Result) error {
	if o.err != nil {
		return o.err
	}
	if o.format == formatText {
		if r.Text == "" {
			return nil
		}
		text := r.Text
		if isTerminal(o.w) {
			text = printable(text)
		}
		_, err := fmt.Fprintln(o.w, text)
		return err
	}
	enc := json.NewEncoder(o.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(newResultObject(id, r))
}

// resultObject ends the output of the JSON formats; its field names are those
// of Claude Code's, so that tools for it work.
type resultObject struct {
	Type              string             `json:"type"`
	Subtype           string             `json:"subtype"`
	IsError           bool               `json:"is_error"`
	Result            string             `json:"result"`
	SessionID         session.ID         `json:"session_id"`
	NumTurns          int                `json:"num_turns"`
	StopReason        session.Reason     `json:"stop_reason"`
	Usage             session.Usage      `json:"usage"`
	PermissionDenials []permissionDenial `json:"permission_denials"`
	StructuredOutput  json.RawMessage    `json:"structured_output,omitempty"` // with --output-schema
}

type permissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID session.CallID  `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
	Reason    string          `json:"reason"`
}

func newResultObject(id session.ID, r engine.Result) resultObject {
	object := resultObject{
		Type: "result", Subtype: subtype(r.Reason), IsError: r.Reason != session.Completed,
		Result: r.Text, SessionID: id, NumTurns: r.Steps, StopReason: r.Reason, Usage: r.Usage,
		PermissionDenials: []permissionDenial{}, StructuredOutput: r.Output,
	}
	if object.Result == "" && r.Err != nil {
		object.Result = r.Err.Error()
	}
	for _, d := range r.Denials {
		input := json.RawMessage(d.Arguments)
		if !json.Valid(input) {
			input, _ = json.Marshal(d.Arguments) // a string always encodes
		}
		object.PermissionDenials = append(object.PermissionDenials, permissionDenial{d.Tool, d.CallID, input, d.Reason})
	}
	return object
}

func subtype(reason session.Reason) string {
	switch reason {
	case session.Completed:
		return "success"
	case session.MaxSteps:
		return "error_max_turns"
	case session.MaxTokens:
		return "error_max_tokens"
	case session.Budget:
		return "error_max_budget"
	case session.Blocked:
		return "error_blocked"
	case session.Cancelled, session.Interrupted:
		return "error_interrupted"
	}
	return "error_during_execution"
}

// status returns the exit status of a turn's end; cause is why its context
// ended, if it did.
func status(reason session.Reason, cause error) int {
	switch reason {
	case session.Completed:
		return exitOK
	case session.MaxSteps, session.MaxTokens, session.Budget:
		return exitLimit
	case session.Blocked:
		return exitBlocked
	case session.Cancelled, session.Interrupted:
		if s, ok := cause.(signalled); ok {
			return signalStatus(s.Signal)
		}
	}
	return exitFailed
}
