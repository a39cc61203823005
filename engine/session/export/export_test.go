package export

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/wharf-agent/wharf/engine/session"
)

// hostile is what a model or a tool may write to break out of the page.
const hostile = "</pre></style></script><script>alert(1)</script><img src=http://evil.test/x onerror=alert(1)>" +
	"`````\n# Turn 9: completed\n![](http://evil.test/y)\"' {{.}} \x00\x1b[2J\u202eend"

// everywhere is a session with a text wherever a log has one.
func everywhere(text string) []session.Record {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	raw, _ := json.Marshal(text)
	events := []session.Event{
		session.Started{ID: session.ID(text), Cwd: text, Parent: session.ID(text), ForkedFrom: session.ID(text), Versions: session.Versions{Wharf: text}},
		session.ExtensionLogged{Extension: text, Level: text, Text: text},
		session.TurnStarted{Turn: 1, Origin: text},
		session.UserMessage{Content: text, Origin: text, Images: []session.Image{{MediaType: "image/png", Data: []byte("png")}, {MediaType: "image/svg+xml" + text, Data: []byte(text)}}},
		session.UserMessage{Content: text, Origin: "call"},
		session.StepStarted{Turn: 1, Step: 1},
		session.Header{System: text, Model: text},
		session.RequestSent{Step: 1},
		session.RequestRetried{Attempt: 1, DelayMS: 1000, Cause: text},
		session.RequestSent{Step: 1},
		session.AssistantMessage{Text: text, Reasoning: text, Calls: []session.Call{{ID: "a", Name: text, Arguments: text}, {ID: "b", Name: "exec"}}, Usage: session.Usage{InputTokens: 7}},
		session.ToolCall{CallID: "a", Name: text, Arguments: text, Step: 1},
		session.HookVerdict{Point: text, Extension: text, CallID: "a", Decision: text, Reason: text, Replaced: raw},
		session.ToolCall{CallID: "b", Name: "exec", Arguments: "{}", Step: 1},
		session.ToolResult{CallID: "a", CallSeq: 11, Content: text, IsError: true, Code: text, DurationMS: 4000},
		session.ToolResult{CallID: "b", CallSeq: 13, Content: "done", DurationMS: 1000},
		session.HookFailed{Point: text, Extension: text, Failure: text, OnFailure: text},
		session.SandboxRefused{Reason: text},
		session.ExtensionUsed{Extension: text, Operation: text, Target: text, Reason: text},
		session.EgressChecked{Host: text, Rule: text},
		session.ExtensionEmitted{Extension: text, Name: text, Data: raw},
		session.ExtensionAsked{Extension: text, Model: text, Prompt: text},
		session.ExtensionAnswered{Extension: text, Text: text, Error: text},
		session.ExtensionQuarantined{Extension: text, Reason: text},
		session.ApprovalAsked{CallID: "c", Tool: text, Arguments: text, Reason: text},
		session.ApprovalDecided{CallID: "c", Message: text},
		session.PermissionGranted{Rule: text, Scope: text},
		session.ContextReplaced{By: text, Content: text},
		session.CompactionStarted{Reason: text},
		session.CompactionEnded{By: text, Error: text},
		session.SubagentStarted{Session: session.ID(text), Task: text},
		session.SubagentEnded{Session: session.ID(text), Reason: session.Reason(text), Error: text},
		session.Unknown{Type: text, Data: raw},
		session.StepEnded{Turn: 1, Step: 1},
		session.TurnEnded{Turn: 1, Reason: session.Reason(text), Error: text, Text: text},
		session.Repaired{What: text},
		session.GoalChanged{Turn: 1, Status: text, Note: text},
		session.TurnStarted{Turn: 2, Origin: "user"},
		session.StepStarted{Turn: 2, Step: 1},
		session.RequestSent{Step: 1},
	}
	records := make([]session.Record, len(events))
	for i, e := range events {
		records[i] = session.Record{Seq: int64(i), Time: at.Add(time.Duration(i) * time.Second), Event: e}
	}
	return records
}

func page(t *testing.T, records []session.Record) string {
	t.Helper()
	var b strings.Builder
	if err := HTML(&b, records); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// shape returns a page's elements with the names and, where they matter, values
// of their attributes, and all its text.
func shape(t *testing.T, page string) (elements []string, text string) {
	t.Helper()
	var all strings.Builder
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return elements, all.String()
		case html.TextToken:
			all.Write(z.Text())
			all.WriteByte('\n')
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			element := token.Data
			for _, a := range token.Attr {
				element += " " + a.Key
				if a.Key == "src" || a.Key == "href" || a.Key == "style" {
					element += "=" + a.Val
				}
			}
			elements = append(elements, element)
		}
	}
}

// Whatever stands in the log is text: the page of a hostile session has the
// elements of a harmless one's, no script, and refers to nothing outside itself.
func TestNothingInALogIsMarkup(t *testing.T) {
	elements, text := shape(t, page(t, everywhere(hostile)))
	harmless, _ := shape(t, page(t, everywhere("harmless")))
	if got, want := strings.Join(elements, "\n"), strings.Join(harmless, "\n"); got != want {
		t.Errorf("the elements are\n%s\nand of a harmless session\n%s", got, want)
	}
	inside := regexp.MustCompile(`^(a|img|article|p|section|link|div|meta)?.*(href=#e?(turn-)?\d+|src=data:image/png;base64,cG5n)`)
	for _, e := range elements {
		if strings.HasPrefix(e, "script") || strings.Contains(e, " on") || strings.Contains(e, "style=") {
			t.Errorf("the page has the element %s", e)
		}
		if (strings.Contains(e, "href=") || strings.Contains(e, "src=")) && !inside.MatchString(e) {
			t.Errorf("the page refers to something outside: %s", e)
		}
	}
	for _, r := range "\x00\x1b\u202e" {
		if strings.ContainsRune(text, r) {
			t.Errorf("the page shows the character %q", r)
		}
	}
	if !strings.Contains(html.UnescapeString(text), "<script>alert(1)</script>") {
		t.Error("the page does not show what was said")
	}
}

// The policy lets the page's own style through, and nothing else.
func TestPolicyFitsTheStyle(t *testing.T) {
	text := page(t, everywhere("x"))
	_, after, _ := strings.Cut(text, "<style>")
	style, _, found := strings.Cut(after, "</style>")
	sum := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'"
	_, after, _ = strings.Cut(text, `http-equiv="Content-Security-Policy" content="`)
	policy, _, _ := strings.Cut(after, `"`)
	if got := html.UnescapeString(policy); !found || got != want {
		t.Errorf("the policy is %s; want %s", got, want)
	}
}

// Calls that ran side by side stand so in the timeline, and a request that was
// sent again has a bar for each time.
func TestTimeline(t *testing.T) {
	c := read(everywhere("x"))
	var got []string
	for _, b := range c.Turns[0].Bars() {
		got = append(got, fmt.Sprintf("%s %s %d+%d", b.Label, b.Kind, b.X, b.Width))
	}
	want := []string{"x, step 1 model failed 156+31", "x, step 1 model 218+31", "x call failed 281+125", "exec call 343+31"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the bars are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if open := c.Turns[1]; open.State() != "open" || len(open.Bars()) != 1 || open.Took != 2*time.Second {
		t.Errorf("the open turn is %s, of %v, with the bars %v", open.State(), open.Took, open.Bars())
	}
}

// withoutCode takes the pieces of code out of a line, as a reader of Markdown does:
// each ends at the next run of as many backticks as it begins with.
func withoutCode(line string) string {
	runs := regexp.MustCompile("`+").FindAllStringIndex(line, -1)
	outside, at := "", 0
	for i := 0; i < len(runs); i++ {
		for j := i + 1; j < len(runs); j++ {
			if runs[j][1]-runs[j][0] == runs[i][1]-runs[i][0] {
				outside, at, i = outside+line[at:runs[i][0]], runs[j][1], j
				break
			}
		}
	}
	return outside + line[at:]
}

// In Markdown no text of the log is outside of a block or a piece of code.
func TestMarkdownShowsTextAsText(t *testing.T) {
	var b strings.Builder
	if err := Markdown(&b, everywhere(hostile)); err != nil {
		t.Fatal(err)
	}
	fence, blocks := "", 0
	for line := range strings.Lines(b.String()) {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "" && strings.TrimSpace(line) == fence:
			fence = ""
		case fence == "" && strings.HasSuffix(line, "text\n") && len(ticks) >= 3:
			fence = ticks
			blocks++
		case fence == "":
			outside := withoutCode(line)
			if strings.Contains(outside, "script") || strings.Contains(outside, "evil") || strings.Contains(line, "\x1b") {
				t.Errorf("outside of blocks stands %q", line)
			}
		}
	}
	if fence != "" || blocks < 20 {
		t.Errorf("%d blocks, and one of them open: %t", blocks, fence != "")
	}
	if !strings.Contains(b.String(), "\n## Turn 2: `open`\n") {
		t.Error("no heading of the second turn")
	}
}

// The logs of every format are pages too.
func TestExportOfEveryFormat(t *testing.T) {
	paths, err := filepath.Glob("../testdata/format/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var records []session.Record
		for line := range strings.Lines(string(content)) {
			r, err := session.Decode([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if title, _, _ := describe(r.Event); title == "" {
				switch r.Event.(type) {
				case session.Started, session.TurnStarted, session.TurnEnded, session.StepStarted, session.StepEnded, session.Header,
					session.RequestSent, session.RequestRetried, session.UserMessage, session.AssistantMessage, session.ToolCall, session.ToolResult:
				default:
					t.Errorf("nobody is told of %s", r.Type())
				}
			}
			records = append(records, r)
		}
		if text := page(t, records); !strings.Contains(text, "</html>") {
			t.Errorf("%s: the page has no end", path)
		}
	}
}

func TestInlineIsPaddedOnlyForBackticks(t *testing.T) {
	for text, want := range map[string]string{
		"a b": "`a b`", "": "`  `", "a`b": "``a`b``", "`a": "`` `a ``", "a`": "`` a` ``", " a\nb ": "`a b`",
	} {
		if got := inline(text); got != want {
			t.Errorf("inline(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestOneIsNoPlural(t *testing.T) {
	c := conversation{Requests: 3, Calls: 1}
	if got := c.Facts()[1].Value; got != "3, and 1 call of tools" {
		t.Errorf("the requests are told as %q", got)
	}
}
