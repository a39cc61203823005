package governance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine/governance"
	"github.com/wharf-agent/wharf/engine/session"
)

// govern does what the engine does before a request, with a summary in a few words.
func govern(g *governance.Governor, l *log) (steps []string, err error) {
	apply := func(events []session.ContextReplaced) {
		for _, e := range events {
			steps = append(steps, fmt.Sprintf("%s %v", e.By, e.Targets))
		}
		err = errors.Join(err, l.apply(events))
	}
	apply(g.Results(&l.history))
	if c := g.Compaction(&l.history, governance.Threshold, true); c != nil {
		apply([]session.ContextReplaced{{Targets: c.Targets, By: governance.ByCompaction, Content: c.Summary("done so far")}})
	}
	apply(g.Fit(&l.history, false))
	return steps, err
}

func TestResults(t *testing.T) {
	long := strings.Repeat("é", 16_001)
	tests := []struct {
		name, tool, content string
		keep                func(int64, string) (string, error)
		want                string // the beginning; empty: nothing is replaced
	}{
		{"one that is short enough stays", "exec", long[2:], keepAt("x"), ""},
		{"one of read_file stays", "read_file", long, keepAt("x"), ""},
		{"a long one is kept elsewhere, and its beginning stays", "exec", long, keepAt(".wharf/results/s/4.txt"), "[The result has 16001 characters. All of it is in .wharf/results/s/4.txt for 7 days: read there what you need. It begins:]\n" + strings.Repeat("é", 1200) + "\n[…]"},
		{"where it cannot be kept, its middle is left out", "exec", long, func(int64, string) (string, error) { return "", errors.New("disk full") }, strings.Repeat("é", 100)},
		{"where nothing is kept, too", "grep", long, nil, strings.Repeat("é", 100)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog("go")
			seq := l.call(tt.tool, tt.content)
			g := governance.New(governance.Config{Keep: tt.keep})
			events := g.Results(&l.history)
			if tt.want == "" {
				if len(events) > 0 {
					t.Errorf("Results = %+v; want none", events)
				}
				return
			}
			if len(events) != 1 || !slices.Equal(events[0].Targets, []int64{seq}) || !strings.HasPrefix(events[0].Content, tt.want) || utf8.RuneCountInString(events[0].Content) > 16_000 {
				t.Fatalf("Results = %.300v; want one of %d that begins %.100q", events, seq, tt.want)
			}
			if err := l.apply(events); err != nil {
				t.Fatal(err)
			}
			if again := append(g.Results(&l.history), governance.New(governance.Config{}).Results(&l.history)...); len(again) > 0 {
				t.Errorf("Results once more = %.300v; want none", again)
			}
		})
	}
}

func keepAt(path string) func(int64, string) (string, error) {
	return func(int64, string) (string, error) { return path, nil }
}

// What a result that comes after the others were looked at is looked at, too.
func TestResultsOfOneMessageThatComeOneByOne(t *testing.T) {
	l := newLog("go")
	g := governance.New(governance.Config{})
	l.add(session.AssistantMessage{Calls: []session.Call{{ID: "a", Name: "exec"}, {ID: "b", Name: "exec"}}})
	for _, id := range []session.CallID{"a", "b"} {
		l.add(session.ToolResult{CallID: id, Content: words(20_000)})
		if events := g.Results(&l.history); len(events) != 1 {
			t.Errorf("after the result of %s: %d replacements; want 1", id, len(events))
		} else if err := l.apply(events); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInFlight(t *testing.T) {
	tests := []struct {
		name   string
		budget int
		want   []int64 // of the results 4, 7, 10 and 13, which have 1,000 tokens each
	}{
		{"under the budget all stay", 4_200, nil},
		{"over it the oldest make way until the request is at 85 %", 4_000, []int64{4}},
		{"the newest is spared", 1_300, []int64{4, 7, 10}},
		{"unless it is still over", 1_000, []int64{4, 7, 10, 13}},
		{"a budget that is not positive means none", -1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog("go")
			for range 4 {
				l.call("exec", words(1_000))
			}
			events := governance.New(governance.Config{BlockLimit: tt.budget}).Fit(&l.history, false)
			var got []int64
			for _, e := range events {
				if e.By == governance.ByInFlight {
					got = append(got, e.Targets...)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the results %v make way (%+v); want %v", got, events, tt.want)
			}
		})
	}
}

// Only this turn's results make way, of tools that can be called again, and only
// where it is worth it.
func TestInFlightCandidates(t *testing.T) {
	l := newLog("go")
	l.call("exec", words(1_000)) // of an earlier turn
	l.add(session.UserMessage{Content: "again", Delivery: "turn"})
	l.call("todo_write", words(1_000))
	l.call("grep", strings.Repeat("x", 499))
	want := l.call("grep", words(1_000))
	l.call("exec", words(1_000))
	events := governance.New(governance.Config{BlockLimit: 4_100}).Fit(&l.history, false)
	if len(events) != 1 || !slices.Equal(events[0].Targets, []int64{want}) {
		t.Errorf("Fit = %+v; want the result %d", events, want)
	}
}

func TestSnip(t *testing.T) {
	earlier := func() *log {
		l := newLog("one" + words(1_000))
		l.add(session.AssistantMessage{Text: words(1_000)})
		l.add(session.UserMessage{Content: "two" + words(1_000), Delivery: "turn"}, session.AssistantMessage{Text: words(1_000)})
		l.add(session.UserMessage{Content: "three" + words(100), Delivery: "turn"})
		return l
	}
	steps := func(l *log) {
		for range 4 {
			l.call("todo_write", words(500))
		}
	}
	tests := []struct {
		name   string
		budget int
		more   func(*log)
		want   []int64
	}{
		{"what fits stays", 6_500, steps, nil},
		{"the oldest go, and what stays begins with the user", 5_000, steps, []int64{1, 2}},
		{"also where an answer would fit and its question does not", 4_000, steps, []int64{1, 2, 3, 4}},
		{"within the turn its prompt stays", 2_000, steps, []int64{1, 2, 3, 4, 6, 8}},
		{"the newest stays, whatever it has", 100, steps, []int64{1, 2, 3, 4, 6, 8, 9, 11, 12, 14}},
		{"also if it is the prompt", 50, func(*log) {}, []int64{1, 2, 3, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := earlier()
			tt.more(l)
			g := governance.New(governance.Config{BlockLimit: tt.budget})
			var got []int64
			for _, e := range g.Fit(&l.history, false) {
				got = append(got, e.Targets...)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the events %v go; want %v", got, tt.want)
			}
		})
	}
}

func TestCompaction(t *testing.T) {
	l := newLog("make it so")
	for range 8 {
		l.call("exec", words(1_000))
	}
	g := governance.New(governance.Config{Window: 12_000, MaxOutput: 1_000})
	if c := g.Compaction(&l.history, governance.Threshold, true); c != nil {
		t.Fatalf("at two thirds of the window a summary of %v is due; want none", c.Targets)
	}
	for range 2 {
		l.call("exec", words(1_000))
	}
	c := g.Compaction(&l.history, governance.Threshold, true)
	if c == nil {
		t.Fatal("at 80 % of the window no summary is due")
	}
	if err := l.apply([]session.ContextReplaced{{Targets: c.Targets, By: governance.ByCompaction, Content: c.Summary("The bridge is manned.")}}); err != nil {
		t.Fatal(err)
	}
	messages := l.history.Messages()
	want := fmt.Sprintf("[Earlier messages of this conversation (%d) were left out to make room. What follows sums them up; it is no message of the user's.]\n\nThe bridge is manned.", c.Messages)
	if messages[0].Content != "make it so" || messages[1].Content != want || len(messages) != 4 {
		t.Errorf("after it there are %d messages, the first %q, %q; want the prompt, the summary and one call with its result", len(messages), messages[0].Content, messages[1].Content)
	}
	if got := g.Compaction(&l.history, governance.Threshold, true); got != nil {
		t.Errorf("a second summary is due: %+v", got)
	}
	for _, part := range []string{"## call of exec\n{\"path\":\"file2.go\"}\n## result\n word", "That was the earlier part"} {
		if !strings.Contains(c.Prompt, part) {
			t.Errorf("the prompt lacks %q", part)
		}
	}
	for _, part := range []string{"Files that calls named:\n- exec file2.go\n", "The last results:\n- (6 earlier ones)\n- exec: word word"} {
		if !strings.Contains(c.Extract, part) {
			t.Errorf("the extract lacks %q:\n%s", part, c.Extract)
		}
	}
}

// Where the budget of a request is less than 80 % of the window, a summary is due
// before messages are left out without one.
func TestCompactionOfASmallWindow(t *testing.T) {
	l := newLog("make it so")
	g := governance.New(governance.Config{Window: 32_768})
	for range 26 {
		if g.Fit(&l.history, false) != nil {
			if g.Compaction(&l.history, governance.Threshold, true) == nil {
				t.Error("messages are left out, and no summary is due")
			}
			return
		}
		l.call("todo_write", words(1_000))
	}
	t.Error("26,000 tokens fit beside an answer of 8,192 in a window of 32,768")
}

// A summary is no longer than what there is room for, so that it need not go at once.
func TestASummaryFits(t *testing.T) {
	for _, window := range []int{8_192, 16_384, 200_000} {
		l := newLog("make it so")
		for range window * 9 / 10 / 500 {
			l.call("todo_write", words(500))
		}
		g := governance.New(governance.Config{Window: window})
		c := g.Compaction(&l.history, governance.Threshold, true)
		summary := session.ContextReplaced{Targets: c.Targets, By: governance.ByCompaction, Content: c.Summary(words(20_000))}
		if err := l.apply([]session.ContextReplaced{summary}); err != nil {
			t.Fatal(err)
		}
		if got := g.Fit(&l.history, false); got != nil {
			t.Errorf("in a window of %d: after the summary %+v has to go", window, got)
		}
	}
}

// Without a turn under way the last prompt is summarized as all else.
func TestCompactionByHand(t *testing.T) {
	l := newLog("make it so")
	l.call("exec", words(100))
	l.add(session.AssistantMessage{Text: "Done."})
	g := governance.New(governance.Config{})
	if c := g.Compaction(&l.history, governance.Manual, false); c == nil || !slices.Equal(c.Targets, []int64{1, 2, 4}) {
		t.Errorf("Compaction = %+v; want one of 1, 2 and 4", c)
	}
	if c := g.Compaction(&newLog("x").history, governance.Manual, false); c != nil {
		t.Errorf("Compaction of one message = %+v; want none", c)
	}
}

// A server's count is the measure; one that cannot be is not believed.
func TestEstimate(t *testing.T) {
	counted := func(tokens int64) *session.History {
		l := newLog(words(100))
		l.add(session.AssistantMessage{Text: words(50), Usage: session.Usage{InputTokens: tokens}}, session.UserMessage{Content: words(20)})
		return &l.history
	}
	g := governance.New(governance.Config{})
	for tokens, want := range map[int64]int{0: 186, 300: 378, 1 << 40: 1_922} {
		if got := g.Estimate(counted(tokens)); got != want {
			t.Errorf("after a request of %d tokens: Estimate = %d; want %d", tokens, got, want)
		}
	}
}

func TestRoom(t *testing.T) {
	l := newLog(words(10_000))
	if got := governance.New(governance.Config{Window: 32_768}).Room(&l.history, session.Header{}); got < 20_000 || got > 22_768 {
		t.Errorf("Room beside 10,000 tokens in 32,768 = %d", got)
	}
	if got := governance.New(governance.Config{Window: 100}).Room(&l.history, session.Header{}); got != 1 {
		t.Errorf("Room where there is none = %d; want 1", got)
	}
}

// randomLog draws a log as no Wharf would write it.
func randomLog(t *rapid.T) *log {
	l := newLog("go")
	id := rapid.SampledFrom([]session.CallID{"a", "b", "c", ""})
	text := rapid.SampledFrom([]string{"", " ", "short", words(120), words(400), "[previous assistant message omitted]"})
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			l.add(session.UserMessage{Content: text.Draw(t, "text"), Delivery: rapid.SampledFrom([]string{"turn", "step"}).Draw(t, "delivery")})
		case 1, 2:
			e := session.AssistantMessage{Text: text.Draw(t, "text"), Usage: session.Usage{InputTokens: rapid.SampledFrom([]int64{0, 0, 50, 3_000, 1 << 40}).Draw(t, "tokens")}}
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				e.Calls = append(e.Calls, session.Call{ID: id.Draw(t, "id"), Name: rapid.SampledFrom([]string{"exec", "read_file", "other", ""}).Draw(t, "name"), Arguments: "{"})
			}
			l.add(e)
		case 3:
			l.add(session.ToolCall{CallID: id.Draw(t, "id")})
		case 4:
			l.add(session.ToolResult{CallID: id.Draw(t, "id"), CallSeq: int64(rapid.IntRange(0, len(l.records)).Draw(t, "cited")), Content: text.Draw(t, "content")})
		case 5:
			l.call("exec", text.Draw(t, "content"))
		case 6:
			targets := rapid.SliceOfNDistinct(rapid.Int64Range(0, int64(len(l.records))), 1, 6, func(n int64) int64 { return n }).Draw(t, "targets")
			slices.Sort(targets)
			l.add(session.ContextReplaced{Targets: targets, By: "x", Content: text.Draw(t, "content")})
		}
	}
	return l
}

// Whatever a log holds, what is sent is legal for a strict server; all that is
// decided can be applied; deciding again decides nothing; and a reader of the log gets
// the same request.
func TestWhatIsSentIsLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := randomLog(t)
		if why := illegal(l.history.Messages()); why != "" {
			t.Fatalf("before governance: %s", why)
		}
		g := governance.New(governance.Config{
			Window: rapid.IntRange(100, 8_000).Draw(t, "window"), MaxOutput: 10,
			BlockLimit: rapid.IntRange(1, 4_000).Draw(t, "budget"), MaxResult: rapid.IntRange(1, 2_000).Draw(t, "result"),
		})
		steps, err := govern(g, l)
		if err != nil {
			t.Fatalf("%v: %v", steps, err)
		}
		if why := illegal(l.history.Messages()); why != "" {
			t.Fatalf("after %v: %s", steps, why)
		}
		if again, err := govern(g, l); len(again) > 0 || err != nil {
			t.Fatalf("after %v once more: %v, %v", steps, again, err)
		}
		var reader session.History
		for _, r := range l.records {
			reader.Add(r)
		}
		if diff := cmp.Diff(l.history.Messages(), reader.Messages()); diff != "" {
			t.Fatalf("a reader gets another request:\n%s", diff)
		}
	})
}

// A server's count that cannot be met, whatever is left out, makes nothing be left out
// again and again.
func TestACountThatStays(t *testing.T) {
	l := newLog("go")
	l.add(session.AssistantMessage{Text: words(400), Usage: session.Usage{InputTokens: 3_000}}, session.UserMessage{Content: words(400)})
	l.call("other", words(400))
	l.call("other", words(400))
	g := governance.New(governance.Config{BlockLimit: 2_900, Window: 1 << 20})
	first, err := govern(g, l)
	again, errAgain := govern(g, l)
	if len(first) == 0 || len(again) > 0 || err != nil || errAgain != nil {
		t.Errorf("at first %v, %v; once more %v, %v; want something, and then nothing", first, err, again, errAgain)
	}
}

// From request to request the prompt only grows at its end, but where something was
// replaced, and that is seldom.
func TestThePrefixStays(t *testing.T) {
	for _, tool := range []string{"exec", "todo_write"} { // results make way, or old messages
		t.Run(tool, func(t *testing.T) { prefixStays(t, tool) })
	}
}

func prefixStays(t *testing.T, tool string) {
	l := newLog("go")
	g := governance.New(governance.Config{BlockLimit: 6_000, Window: 1 << 20})
	var before []session.Message
	changes := 0
	for range 60 {
		l.call(tool, words(300))
		steps, err := govern(g, l)
		if err != nil {
			t.Fatal(err)
		}
		now := slices.Clone(l.history.Messages())
		if len(steps) > 0 {
			changes++
		} else if diff := cmp.Diff(before, now[:len(before):len(before)]); before != nil && diff != "" {
			t.Fatalf("nothing was replaced, and the prefix changed:\n%s", diff)
		}
		before = now
	}
	if changes == 0 || changes > 20 {
		t.Errorf("the prefix changed in %d of 60 requests; want it to happen, and seldom", changes)
	}
}
