package governance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/session"
)

// How much an extract holds.
const (
	maxPrompts  = 20
	maxFiles    = 50
	maxCommands = 20
	maxResults  = 3
	maxLine     = 300 // bytes
	maxText     = 1_500
)

// extract says what can be said of blocks without a model: what the user asked, the files and
// commands of calls, the last results, and what was said last.
func extract(blocks []session.Block) string {
	var x extraction
	for _, b := range blocks {
		x.add(b)
	}
	var out strings.Builder
	section := func(title string, items []string, most int) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(&out, "%s:\n", title)
		if left := len(items) - most; left > 0 {
			fmt.Fprintf(&out, "- (%d earlier ones)\n", left)
			items = items[left:]
		}
		for _, item := range items {
			fmt.Fprintf(&out, "- %s\n", item)
		}
		out.WriteString("\n")
	}
	if x.before != "" {
		fmt.Fprintf(&out, "%s\n\n", middleOut(x.before, maxSummary/4))
	}
	section("The user asked, in this order", x.prompts, maxPrompts)
	section("Files that calls named", x.files, maxFiles)
	section("Commands that were run", x.commands, maxCommands)
	section("The last results", x.results, maxResults)
	if x.said != "" {
		fmt.Fprintf(&out, "You said last:\n%s\n", middleOut(x.said, maxText))
	}
	return out.String()
}

// extraction collects what an extract says.
type extraction struct {
	before                            string // an earlier summary
	prompts, files, commands, results []string
	said                              string
}

func (x *extraction) add(b session.Block) {
	switch {
	case b.By == ByCompaction:
		x.before = b.Message.Content
	case b.Message.Role == session.User:
		x.prompts = append(x.prompts, oneLine(b.Message.Content))
	case strings.TrimSpace(b.Message.Content) != "":
		x.said = b.Message.Content
	}
	for i, c := range b.Message.Calls {
		x.addCall(c, b.Results[i].Message)
	}
}

func (x *extraction) addCall(c session.Call, result session.Message) {
	var args struct {
		Path    string `json:"path"`
		Command string `json:"command"`
	}
	if json.Unmarshal([]byte(c.Arguments), &args) == nil {
		if file := c.Name + " " + oneLine(args.Path); args.Path != "" && !slices.Contains(x.files[max(0, len(x.files)-maxFiles):], file) {
			x.files = append(x.files, file)
		}
		if args.Command != "" {
			outcome := ""
			if result.IsError {
				outcome = " (failed)"
			}
			x.commands = append(x.commands, oneLine(args.Command)+outcome)
		}
	}
	x.results = append(x.results, oneLine(c.Name+": "+result.Content))
}

// oneLine returns the beginning of text in one line.
func oneLine(text string) string {
	short := strings.ToValidUTF8(text[:min(len(text), maxLine)], "")
	short = strings.Join(strings.Fields(short), " ")
	if len(text) > maxLine {
		short += " […]"
	}
	return short
}
