package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// BenchmarkResume opens a session for going on with it: its whole log is read,
// checked and turned into history. The floor reads the file and asks of each
// line whether it is JSON.
func BenchmarkResume(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("events=%d", size), func(b *testing.B) {
			store := testStore(b)
			id := writeAll(b, store, longSession(size/eventsPerTurn))
			path, err := store.path(id)
			if err != nil {
				b.Fatal(err)
			}
			var floor, resume time.Duration
			for b.Loop() {
				start := time.Now()
				readBare(b, path)
				middle := time.Now()
				log, err := store.Resume(id, nil)
				if err == nil {
					err = log.Close()
				}
				if err != nil {
					b.Fatal(err)
				}
				floor, resume = floor+middle.Sub(start), resume+time.Since(middle)
			}
			b.ReportMetric(float64(resume.Nanoseconds())/float64(b.N), "ns/op")
			b.ReportMetric(resume.Seconds()/floor.Seconds(), "x-floor")
		})
	}
}

func readBare(b *testing.B, path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		if !json.Valid(line) {
			b.Fatalf("no JSON: %s", line)
		}
	}
}

// BenchmarkHistory computes the history of so many turns from nothing.
func BenchmarkHistory(b *testing.B) {
	for _, turns := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			events := longSession(turns)
			b.ReportAllocs()
			for b.Loop() {
				historyOf(events)
			}
		})
	}
}

// BenchmarkStep is what one more step costs after so many turns: a reply and
// its call's result are added, and the next request is asked for, digest
// included. The number of turns should not matter.
func BenchmarkStep(b *testing.B) {
	for _, turns := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			h := historyOf(longSession(turns))
			seq := int64(len(h.blocks)) * eventsPerTurn // more than were used
			step := longStep(1, 1)
			b.ReportAllocs()
			for b.Loop() {
				for _, e := range step {
					seq++
					if result, ok := e.(ToolResult); ok {
						result.CallSeq = seq - 1
						e = result
					}
					h.Add(Record{Seq: seq, Event: e})
				}
				h.Messages()
				h.Digest()
			}
		})
	}
}

func historyOf(events []Event) *History {
	h := &History{}
	for i, e := range events {
		h.Add(Record{Seq: int64(i), Event: e})
	}
	return h
}

// stepsPerTurn and eventsPerTurn are the measure of longSession's turns.
const (
	stepsPerTurn  = 3
	eventsPerTurn = 3 + stepsPerTurn*6
)

// longSession returns a session of so many turns, of three steps with a call each.
func longSession(turns int) []Event {
	events := []Event{everyKind[0]}
	for turn := 1; turn <= turns; turn++ {
		events = append(events, TurnStarted{Turn: turn, Origin: "user"}, UserMessage{Content: "make the tests pass", Origin: "user", Delivery: "turn"})
		for step := 1; step <= stepsPerTurn; step++ {
			for _, e := range longStep(turn, step) {
				if result, ok := e.(ToolResult); ok {
					result.CallSeq = int64(len(events)) - 1
					e = result
				}
				events = append(events, e)
			}
		}
		events = append(events, TurnEnded{Turn: turn, Reason: MaxSteps, Steps: stepsPerTurn})
	}
	return events
}

// longStep returns a step's events. Its call has a result of some 300 bytes.
func longStep(turn, step int) []Event {
	id, arguments := CallID(fmt.Sprintf("call_%d_%d", turn, step)), `{"command":"go test ./..."}`
	return []Event{
		StepStarted{Turn: turn, Step: step},
		RequestSent{Step: step, Digest: strings.Repeat("0", 64), Scheme: Scheme},
		AssistantMessage{
			Text: "I run the tests and look at what they say.", FinishReason: "tool_calls",
			Calls: []Call{{ID: id, Name: "exec", Arguments: arguments}}, Usage: Usage{InputTokens: 300, OutputTokens: 20},
		},
		ToolCall{CallID: id, Name: "exec", Arguments: arguments, Step: step},
		ToolResult{CallID: id, Content: strings.Repeat("ok  \texample.com/calc\t0.012s\n", 10), DurationMS: 12},
		StepEnded{Turn: turn, Step: step},
	}
}
