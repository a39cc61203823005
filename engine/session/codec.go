package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Version is the version of the log's envelope, its key "v".
const Version = 1

// ErrCorrupt reports a line that is no event.
var ErrCorrupt = errors.New("corrupt event")

// ErrUnknownType reports an event whose type this version of Wharf does not
// know and whose writer did not mark it as ignorable.
var ErrUnknownType = errors.New("unknown event type")

// Record is an event with its place in the log.
type Record struct {
	Seq   int64 // from 0, without holes
	Time  time.Time
	Event Event
}

// Type returns the name of the event's kind, as written to disk.
func (r Record) Type() string { return r.Event.kind() }

const timeLayout = "2006-01-02T15:04:05.000Z"

type envelope struct {
	V         int             `json:"v"`
	Seq       int64           `json:"seq"`
	Time      string          `json:"time"`
	Type      string          `json:"type"`
	Ignorable bool            `json:"ignorable,omitempty"`
	Data      json.RawMessage `json:"data"`
}

// Encode returns r as one line of a log, its newline included.
func Encode(r Record) ([]byte, error) {
	name, err := marshal(r.Type())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Type(), err)
	}
	data, err := marshal(r.Event)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Type(), err)
	}
	line := make([]byte, 0, len(data)+128)
	line = append(line, beforeSeq...)
	line = strconv.AppendInt(line, r.Seq, 10)
	line = append(line, beforeTime...)
	line = r.Time.UTC().AppendFormat(line, timeLayout)
	line = append(line, afterTime...)
	line = append(line, bytes.TrimSuffix(name, []byte("\n"))...)
	if ignorable(r.Event) {
		line = append(line, `,"ignorable":true`...)
	}
	line = append(line, beforeData...)
	line = append(line, bytes.TrimSuffix(data, []byte("\n"))...)
	return append(line, "}\n"...), nil
}

// Fits reports whether raw is JSON that an event can hold: from within a line of
// the log too, it is not nested deeper than what JSON readers take.
func Fits(raw []byte) bool {
	const around = 8
	return json.Valid(slices.Concat(bytes.Repeat([]byte("["), around), raw, bytes.Repeat([]byte("]"), around)))
}

// The envelope of an event as Encode writes it, around what changes.
const (
	beforeSeq  = `{"v":1,"seq":`
	beforeTime = `,"time":"`
	afterTime  = `","type":`
	beforeData = `,"data":`
)

// Decode reads one line of a log. Its errors are [ErrCorrupt] and [ErrUnknownType].
func Decode(line []byte) (Record, error) {
	if r, ok := decodeOwn(line); ok {
		return r, nil
	}
	return decodeAny(line)
}

// decodeOwn reads a line whose envelope is letter for letter as Encode writes
// it, which nearly all are, in half the time. Any other line it leaves to
// decodeAny, which reads the same in those that decodeOwn does read.
func decodeOwn(line []byte) (r Record, ok bool) {
	rest, ok1 := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte(beforeSeq))
	digits, rest, ok2 := bytes.Cut(rest, []byte(beforeTime))
	at, rest, ok3 := bytes.Cut(rest, []byte(afterTime+`"`))
	kind, rest, ok4 := bytes.Cut(rest, []byte(`"`+beforeData))
	data, ok5 := bytes.CutSuffix(rest, []byte("}"))
	decode, known := decoders[string(kind)]
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !known {
		return Record{}, false
	}
	seq, err := strconv.ParseUint(string(digits), 10, 63)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		return Record{}, false
	}
	r.Seq = int64(seq)
	if r.Time, err = time.Parse(timeLayout, string(at)); err != nil {
		return Record{}, false
	}
	r.Event, err = decode(data)
	return r, err == nil
}

// decodeAny reads a line in whatever way its JSON is written.
func decodeAny(line []byte) (Record, error) {
	var env envelope
	if err := json.Unmarshal(line, &env); err != nil {
		if bytes.IndexByte(line, 0) >= 0 {
			return Record{}, fmt.Errorf("%w: it holds NUL bytes, as a power cut leaves them", ErrCorrupt)
		}
		return Record{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if env.V != Version {
		return Record{}, fmt.Errorf("%w: its version is %d, this Wharf reads %d", ErrCorrupt, env.V, Version)
	}
	at, err := time.Parse(timeLayout, env.Time)
	if err != nil || env.Seq < 0 || env.Type == "" || env.Data == nil {
		return Record{}, fmt.Errorf("%w: no time, sequence number, type or data", ErrCorrupt)
	}
	r := Record{Seq: env.Seq, Time: at}
	decode, known := decoders[env.Type]
	switch {
	case known:
		r.Event, err = decode(env.Data)
	case env.Ignorable:
		r.Event = Unknown{Type: env.Type, Data: env.Data}
	default:
		return Record{}, fmt.Errorf("%w %q: written by a newer Wharf", ErrUnknownType, env.Type)
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: data of %s: %w", ErrCorrupt, env.Type, err)
	}
	return r, nil
}

func ignorable(e Event) bool {
	switch e.(type) {
	case ExtensionLogged, ExtensionEmitted, Unknown:
		return true
	}
	return false
}

var decoders = map[string]func(json.RawMessage) (Event, error){
	"session.started":       decodeAs[Started],
	"session.repaired":      decodeAs[Repaired],
	"turn.started":          decodeAs[TurnStarted],
	"turn.ended":            decodeAs[TurnEnded],
	"step.started":          decodeAs[StepStarted],
	"step.ended":            decodeAs[StepEnded],
	"request.header":        decodeAs[Header],
	"request.sent":          decodeAs[RequestSent],
	"request.retried":       decodeAs[RequestRetried],
	"assistant.message":     decodeAs[AssistantMessage],
	"user.message":          decodeAs[UserMessage],
	"tool.call":             decodeAs[ToolCall],
	"tool.result":           decodeAs[ToolResult],
	"context.replaced":      decodeAs[ContextReplaced],
	"compaction.started":    decodeAs[CompactionStarted],
	"compaction.ended":      decodeAs[CompactionEnded],
	"hook.verdict":          decodeAs[HookVerdict],
	"hook.failed":           decodeAs[HookFailed],
	"sandbox.refused":       decodeAs[SandboxRefused],
	"extension.used":        decodeAs[ExtensionUsed],
	"egress.checked":        decodeAs[EgressChecked],
	"extension.logged":      decodeAs[ExtensionLogged],
	"extension.emitted":     decodeAs[ExtensionEmitted],
	"extension.asked":       decodeAs[ExtensionAsked],
	"extension.answered":    decodeAs[ExtensionAnswered],
	"extension.quarantined": decodeAs[ExtensionQuarantined],
	"approval.asked":        decodeAs[ApprovalAsked],
	"approval.decided":      decodeAs[ApprovalDecided],
	"goal.changed":          decodeAs[GoalChanged],
	"permission.granted":    decodeAs[PermissionGranted],
	"subagent.started":      decodeAs[SubagentStarted],
	"subagent.ended":        decodeAs[SubagentEnded],
}

func decodeAs[E Event](data json.RawMessage) (Event, error) {
	var e *E
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e == nil {
		return nil, errors.New("it is null")
	}
	return *e, nil
}

// marshal encodes v on one line, leaving <, > and & as they are: a log is read
// by people too.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
