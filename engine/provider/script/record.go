package script

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// Source is a provider that is recorded.
type Source interface {
	Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error]
}

// Recorder passes requests on to another provider, and writes each reply as a line
// of a script when it ends: also one that fails or is given up. Played back, the
// script gives the same replies after the same waits. It may be used by several
// goroutines at once; lines stand in the order of the requests.
type Recorder struct {
	source Source
	out    io.Writer

	mu      sync.Mutex
	begun   int            // requests so far
	written int            // lines
	ended   map[int][]byte // lines that wait for those of earlier requests
}

// Record returns a provider that asks source and writes the script to out, each line
// in one piece.
func Record(source Source, out io.Writer) *Recorder {
	return &Recorder{source: source, out: out, ended: map[int][]byte{}}
}

// Stream asks the source. A reply that cannot be written down ends with an error
// of class provider.Script.
func (r *Recorder) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		t := take{began: time.Now()}
		n := r.begin()
		for d, err := range r.source.Stream(ctx, req) {
			if err != nil {
				t.fail(ctx, err)
				_ = r.end(n, t.line()) // there is an error already
				yield(provider.Delta{}, err)
				return
			}
			t.add(d)
			if !yield(d, nil) {
				t.fail(ctx, errGivenUp)
				_ = r.end(n, t.line()) // nobody is there to be told
				return
			}
		}
		if err := r.end(n, t.line()); err != nil {
			yield(provider.Delta{}, scriptError("the reply could not be recorded: "+err.Error(), "record to a file elsewhere, or not at all"))
		}
	}
}

func (r *Recorder) begin() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	return r.begun - 1
}

// end writes a line, and those that waited for it.
func (r *Recorder) end(n int, line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[n] = line
	for {
		line, ok := r.ended[r.written]
		if !ok {
			return nil
		}
		delete(r.ended, r.written)
		r.written++
		if _, err := r.out.Write(line); err != nil {
			return err
		}
	}
}

var errGivenUp = errors.New("the request was given up here")

// take is a reply that is being recorded.
type take struct {
	began           time.Time
	delay           time.Duration
	answered        bool
	text, reasoning strings.Builder
	reply           written
}

// written is a line as the recorder writes it: what [Parse] reads.
type written struct {
	Text         string          `json:"text,omitempty"`
	Reasoning    string          `json:"reasoning,omitempty"`
	Calls        []call          `json:"calls,omitempty"`
	FinishReason string          `json:"finish_reason,omitempty"`
	Usage        *session.Usage  `json:"usage,omitempty"`
	Extra        json.RawMessage `json:"extra,omitempty"`
	DelayMS      int64           `json:"delay_ms,omitempty"`
	Error        *Failure        `json:"error,omitempty"`
}

func (t *take) add(d provider.Delta) {
	if !t.answered {
		t.delay, t.answered = time.Since(t.began), true
	}
	t.text.WriteString(d.Text)
	t.reasoning.WriteString(d.Reasoning)
	if d.Call != nil {
		arguments, _ := json.Marshal(d.Call.Arguments) // a string always has a JSON form; as one, each byte of it stays
		t.reply.Calls = append(t.reply.Calls, call{CallID: d.Call.ID, Name: d.Call.Name, Arguments: arguments, Extra: d.Call.Extra})
	}
	t.reply.FinishReason = cmp.Or(d.Finish, t.reply.FinishReason)
	if d.Usage != nil {
		t.reply.Usage = d.Usage
	}
	if d.Extra != nil {
		t.reply.Extra = d.Extra
	}
}

// fail notes why the reply is not whole.
func (t *take) fail(ctx context.Context, err error) {
	if !t.answered {
		t.delay = time.Since(t.began)
	}
	t.reply.Error = &Failure{Message: errGivenUp.Error()}
	if known := (*provider.Error)(nil); errors.As(err, &known) && ctx.Err() == nil {
		t.reply.Error = &Failure{
			Status: known.Status, Message: known.Message, Class: known.Class, Advice: known.Advice,
			RetryAfterMS: known.RetryAfter.Milliseconds(), Permanent: known.Permanent,
		}
	}
}

func (t *take) line() []byte {
	t.reply.Text, t.reply.Reasoning, t.reply.DelayMS = t.text.String(), t.reasoning.String(), t.delay.Milliseconds()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t.reply); err != nil { // an extra that is no JSON is left out
		t.reply.Extra = nil
		for i := range t.reply.Calls {
			t.reply.Calls[i].Extra = nil
		}
		line.Reset()
		_ = enc.Encode(t.reply)
	}
	return line.Bytes()
}
