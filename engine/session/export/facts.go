package export

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/session"
)

// fact is a line of what is known about a session.
type fact struct{ Name, Value string }

// Facts are for the top of the page.
func (c *conversation) Facts() []fact {
	facts := []fact{
		{"folder", c.Start.Cwd},
		{"started", c.Begun.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"model", c.Model},
		{"requests", fmt.Sprintf("%d, and %s of tools", c.Requests, count(c.Calls, "call"))},
		{"tokens", tokens(c.Usage)},
		{"written by", "wharf " + c.Start.Versions.Wharf},
	}
	if c.Start.ForkedFrom != "" {
		facts = append(facts, fact{"fork of", fmt.Sprintf("%s, after turn %d", c.Start.ForkedFrom, c.Start.ForkedAt)})
	}
	if c.Start.Parent != "" {
		facts = append(facts, fact{"subagent of", string(c.Start.Parent)})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

func tokens(u session.Usage) string {
	text := fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens)
	if u.CacheReadTokens > 0 {
		text += fmt.Sprintf(", %d from a cache", u.CacheReadTokens)
	}
	return text
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// State says how a turn ended.
func (t *turn) State() string {
	if t.Reason == "" {
		return "open"
	}
	return string(t.Reason)
}

// Measure says what a turn took.
func (t *turn) Measure() string {
	return fmt.Sprintf("%s in %s; tokens: %s", count(t.Steps, "step"), took(t.Took), tokens(t.Usage))
}

// State says how a call ended.
func (c *call) State() string {
	switch {
	case !c.Done:
		return "no result"
	case c.IsError && c.Code != "":
		return "failed, " + c.Code
	case c.IsError:
		return "failed"
	}
	return "done in " + took(c.Took)
}

// Good reports whether a turn completed.
func (t *turn) Good() bool { return t.Reason == session.Completed }

// Good reports whether a call has a result that is no error.
func (c *call) Good() bool { return c.Done && !c.IsError }

// Tokens are those of an assistant's message.
func (i *item) Tokens() string {
	if i.Usage == nil || *i.Usage == (session.Usage{}) {
		return ""
	}
	return tokens(*i.Usage)
}

// took returns a duration as short as it can be read.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	}
	return d.Round(time.Second).String()
}

// at returns a moment within a turn.
func at(d time.Duration) string { return fmt.Sprintf("%.3f s", max(d, 0).Seconds()) }

// laneWidth is how many units wide a timeline is.
const laneWidth = 1000

// bar is a lane with its place in the timeline.
type bar struct {
	*lane
	X, Width int
}

// Bars returns the lanes of a turn's timeline, side by side by time.
func (t *turn) Bars() []bar {
	whole := t.Took
	for _, l := range t.Lanes {
		whole = max(whole, l.From+l.Took)
	}
	bars := make([]bar, len(t.Lanes))
	for i, l := range t.Lanes {
		b := bar{lane: l, Width: 4}
		if whole > 0 {
			b.X = int(l.From * laneWidth / whole)
			b.Width = max(b.Width, int(l.Took*laneWidth/whole))
		}
		b.X = min(b.X, laneWidth-b.Width)
		bars[i] = b
	}
	return bars
}
