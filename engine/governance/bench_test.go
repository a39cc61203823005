package governance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/session"
)

// roomy is a model that takes whatever is in these histories.
var roomy = governance.Config{Window: 1 << 40}

// longLog is a log of so many messages: a prompt, and calls with results of 300 bytes.
func longLog(messages int) *log {
	l := newLog("make the tests pass")
	result := strings.Repeat("ok  \texample.com/calc\t0.012s\n", 10)
	for n := 1; n < messages; n += 2 {
		l.call("exec", result)
	}
	return l
}

// step adds what a step adds, and asks all that is asked before a request.
func step(g *governance.Governor, l *log, tokens int64) {
	n := len(l.records)
	id := session.CallID(fmt.Sprintf("c%d", n))
	l.add(
		session.AssistantMessage{Calls: []session.Call{{ID: id, Name: "exec"}}, Usage: session.Usage{InputTokens: tokens}},
		session.ToolResult{CallID: id, Content: "ok"},
	)
	g.Results(&l.history)
	g.Compaction(&l.history, governance.Threshold, true)
	g.Fit(&l.history, false)
}

// BenchmarkGovern is what governance takes before a request when nothing new is over
// budget. At first the whole history is new. The number of messages should not matter later,
// also where the tokens are near the limit: as the server counted, or, without its count, as
// a tokenizer does.
func BenchmarkGovern(b *testing.B) {
	for _, messages := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("first/messages=%d", messages), func(b *testing.B) {
			l := longLog(messages)
			for b.Loop() {
				g := governance.New(roomy)
				g.Results(&l.history)
				g.Compaction(&l.history, governance.Threshold, true)
				g.Fit(&l.history, false)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*messages), "ns/message")
		})
		for name, tokens := range map[string]int64{"counted": int64(messages) * 100, "tokenized": 0} {
			b.Run(fmt.Sprintf("step/%s/messages=%d", name, messages), func(b *testing.B) {
				l, g := nearTheLimit(messages, tokens)
				for steps := 1; b.Loop(); steps++ {
					step(g, l, tokens)
					if steps%(messages/10) == 0 { // it has come too near
						b.StopTimer()
						l, g = nearTheLimit(messages, tokens)
						b.StartTimer()
					}
				}
			})
		}
	}
}

// nearTheLimit is a history that a model just takes, about which the tokenizer was
// asked once, if it has to be.
func nearTheLimit(messages int, tokens int64) (*log, *governance.Governor) {
	l := longLog(messages)
	g := governance.New(governance.Config{Window: messages * 130, MaxOutput: 1})
	step(g, l, tokens)
	return l, g
}

// BenchmarkDigest is what a request's digest takes after the result of the last step
// was replaced.
func BenchmarkDigestAfterReplacement(b *testing.B) {
	for _, messages := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", messages), func(b *testing.B) {
			l := longLog(messages)
			for b.Loop() {
				seq := l.call("exec", "result")
				l.history.Digest()
				l.add(session.ContextReplaced{Targets: []int64{seq}, By: "x", Content: "gone"})
				l.history.Digest()
			}
		})
	}
}

// BenchmarkTokens is what the tokenizer takes for a kilobyte of code.
func BenchmarkTokens(b *testing.B) {
	text := strings.Repeat("func (g *Governor) Fit(h *session.History) []session.ContextReplaced {\n", 15)
	governance.Tokens("load it")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		governance.Tokens(text)
	}
}

// A step allocates the same, however long the history is: nothing is made anew of what
// was there before. What it takes is measured by BenchmarkGovern.
func TestAStepMakesNothingOfWhatIsOld(t *testing.T) {
	allocations := func(messages int) float64 {
		l := longLog(messages)
		g := governance.New(governance.Config{Window: messages * 130, MaxOutput: 1})
		tokens := int64(messages) * 100
		step(g, l, tokens)
		return testing.AllocsPerRun(100, func() { step(g, l, tokens) })
	}
	if short, long := allocations(300), allocations(10_000); long > short+10 {
		t.Errorf("a step makes %v allocations after 10,000 messages, and %v after 300; want the same", long, short)
	}
}
