package engine_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// recorded plays a transcript and returns the events that it leaves.
func recorded(t *testing.T, name string) (records []session.Record) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/turn/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { _, records = playRecorded(t, archive) })
	return records
}

// resign gives each request the digest that the events before it add up to: the
// record holds then, whatever was changed in it.
func resign(records []session.Record) {
	var h session.History
	for i, r := range records {
		if e, ok := r.Event.(session.RequestSent); ok {
			e.Digest = h.Digest()
			records[i].Event = e
		}
		h.Add(records[i])
	}
}

// A log may hold, and yet be none that this engine writes. Replay shows the first
// event at which that is so.
func TestReplayNoticesWhatTheEngineWouldNotDo(t *testing.T) {
	tests := []struct {
		name, transcript string
		change           func([]session.Record)
		seq              int64
		want             string
	}{
		{"the engine says something else", "cut_off", func(rs []session.Record) {
			e := rs[7].Event.(session.UserMessage)
			e.Content = strings.Replace(e.Content, "Make the call again", "Give up", 1)
			rs[7].Event = e
		}, 10, `step 2 of turn 1 asks the model something else:
  message 3, recorded: …fore its tool call was complete, and nothing of it was run. Give up with less in it: write a large file in several parts."}
  message 3, replayed: …fore its tool call was complete, and nothing of it was run. Make the call again with less in it: write a large file in several parts."}`},
		{"calls of a reply are run that was cut off", "order_tools", func(rs []session.Record) {
			for i, r := range rs {
				if e, ok := r.Event.(session.AssistantMessage); ok && len(e.Calls) > 0 {
					e.FinishReason = "length"
					rs[i].Event = e
					return
				}
			}
		}, -1, "asks the model something else"},
		{"the turn ends otherwise", "text", func(rs []session.Record) {
			e := rs[len(rs)-1].Event.(session.TurnEnded)
			e.Reason = session.MaxTokens
			rs[len(rs)-1].Event = e
		}, -1, "turn 1 ends as completed with"},
		{"a reply goes on, and the record ends there", "text", func(rs []session.Record) {
			for i, r := range rs {
				if e, ok := r.Event.(session.AssistantMessage); ok {
					e.Text = ""
					rs[i].Event = e
				}
			}
		}, -1, "turn 1 takes a step 2 that the record does not have"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			records := recorded(t, tt.transcript)
			tt.change(records)
			resign(records)
			if problems := session.Verify(records).Problems; len(problems) > 0 {
				t.Fatalf("the changed record does not hold: %q", problems)
			}
			report, err := engine.Replay(t.Context(), records, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(report.Difference, tt.want) && !strings.Contains(report.Difference, tt.want) || tt.seq >= 0 && report.Seq != tt.seq {
				t.Errorf("from event %d on: %s\nwant, from %d on: %s", report.Seq, report.Difference, tt.seq, tt.want)
			}
		})
	}
}

// A record that was changed, so that it does not hold, is not replayed further.
func TestReplayOfAChangedRecord(t *testing.T) {
	records := recorded(t, "tool")
	for i, r := range records {
		if e, ok := r.Event.(session.ToolResult); ok {
			e.Content += "!"
			records[i].Event = e
			break
		}
	}
	report, err := engine.Replay(t.Context(), records, t.TempDir())
	if want := `the record does not hold: see "wharf session verify"`; err != nil || report.Difference != want {
		t.Errorf("Replay: %q, %v; want %s", report.Difference, err, want)
	}
}

// What ended a turn from outside is said, and the turns after it are replayed too;
// so is what there is of a record that ends anywhere.
func TestReplayUpToWhatCannotBe(t *testing.T) {
	records := recorded(t, "cancel")
	report := checkReplay(t, records)
	if len(report.Cut) != 1 || report.Cut[0] != "turn 1: it ended as cancelled" {
		t.Errorf("cut: %q; want the cancelled turn", report.Cut)
	}
	for _, name := range []string{"two_turns", "order_tools", "order_objection", "cut_off", "order_retried"} {
		records := recorded(t, name)
		for n := 1; n < len(records); n++ {
			if report, err := engine.Replay(t.Context(), records[:n], t.TempDir()); err != nil || report.Difference != "" {
				t.Errorf("%s up to event %d: %v, from event %d on: %s", name, n-1, err, report.Seq, report.Difference)
			}
		}
	}
}

// FuzzReplay replays whatever can be read as a log: that ends, and nothing panics.
func FuzzReplay(f *testing.F) {
	for _, name := range []string{"01", "02", "03", "04"} {
		content, err := os.ReadFile("session/testdata/format/" + name + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		var records []session.Record
		for line := range bytes.Lines(content) {
			r, err := session.Decode(line)
			if err != nil {
				break
			}
			records = append(records, r)
		}
		store := filepath.Join(dir, "replay")
		_, _ = engine.Replay(t.Context(), records, store) // a log that is none is an error or a difference
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
	})
}

// A summary that had to go at once is replayed like any other.
func TestReplayOfASummaryThatWentAtOnce(t *testing.T) {
	e, _ := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) { // which replays what it did
		c.Context.Window, c.Context.BlockLimit = 100, 75
		c.Provider = &model{says(provider.Delta{Text: "An answer of some length, " + strings.Repeat("and more of it ", 40)})}
	})
	for range 3 {
		if r := e.Turn(t.Context(), engine.Input{Text: "much to read, " + strings.Repeat("much to read, ", 20)}); r.Err != nil {
			t.Error(r.Err)
		}
	}
}

// What comes in beside an objection, and steps and a budget that are used up together,
// are replayed as they were.
func TestReplayOfWhatCoincides(t *testing.T) {
	var e *engine.Engine
	asked := 0
	e, _ = newEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
		c.Provider = &model{says(provider.Delta{Text: "One."}), says(provider.Delta{Text: "Two."})}
		c.Hooks = []hook.Hook{hook.Funcs{ID: "objects", On: map[hook.Point]hook.Func{
			hook.TurnStopping: func(context.Context, []byte) (hook.Verdict, error) {
				if asked++; asked > 1 {
					return hook.Verdict{}, nil
				}
				return hook.Verdict{Decision: hook.Continue, Message: "look again"}, e.Add(engine.Input{Text: "and this"}, engine.NextStep)
			},
		}}}
	})
	if r := e.Turn(t.Context(), engine.Input{Text: "go"}); r.Text != "Two." {
		t.Errorf("Turn = %s %q %v", r.Reason, r.Text, r.Err)
	}

	e, log := newEngine(t, `{"text":"unused"}`, func(c *engine.Config) {
		c.MaxSteps, c.Budget.Tokens = 2, 150
		call := says(provider.Delta{Call: &session.Call{Name: "echo", Arguments: `{"text":"x"}`}}, provider.Delta{Usage: &session.Usage{InputTokens: 100}})
		c.Provider = &model{call, call}
	})
	r := e.Turn(t.Context(), engine.Input{Text: "go"})
	if last := log.Messages()[len(log.Messages())-1]; r.Reason != session.Budget || last.Role != session.ToolRole {
		t.Errorf("Turn = %s %v, and the last message is %q", r.Reason, r.Err, last.Content)
	}
}
