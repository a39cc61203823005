package guestsdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/tool/builtin"
	"github.com/wharf-agent/wharf/guest-sdk/conformance"
	"github.com/wharf-agent/wharf/host/capability"
)

const (
	hooksPath        = "../docs/extensions/hooks.md"
	capabilitiesPath = "../docs/extensions/capabilities.md"
	toolsPath        = "../docs/tools.md"
)

// hooksPage brings the reference of the hook points up to date. Its examples are
// vectors, which every SDK passes.
func hooksPage() ([]byte, error) {
	vectors, err := conformance.Vectors()
	if err != nil {
		return nil, err
	}
	lines := []string{"| point | when | may answer |", "| --- | --- | --- |"}
	for _, info := range hook.Points {
		may := strings.Join(answers(info), ", ")
		lines = append(lines, strings.Replace(fmt.Sprintf("| [`%s`](#%s) | %s | %s |", info.Point, info.Point, info.When, may), "|  |", "| |", 1))
	}
	for _, info := range hook.Points {
		lines = append(lines, pointSection(info, vectors)...)
	}
	return section(hooksPath, lines)
}

// answers names what may be answered at a point.
func answers(info hook.Info) []string {
	var all []string
	for _, d := range info.Decisions {
		all = append(all, "`"+string(d)+"`")
	}
	for _, key := range info.Replace {
		all = append(all, "replace `"+key+"`")
	}
	if info.Context {
		all = append(all, "`context`")
	}
	return all
}

// pointSection describes a point.
func pointSection(info hook.Info, vectors []conformance.Vector) []string {
	lines := []string{"", "## " + string(info.Point), "", strings.ToUpper(info.When[:1]) + info.When[1:] + "."}
	if info.Later {
		lines = append(lines, "This release has no such moment yet, and `wharf run` refuses an extension that waits for one.")
	}
	lines = append(lines, "")
	if info.Raw {
		lines = append(lines, "The payload is the text itself.")
	} else {
		lines = append(lines, "| key | holds | |", "| --- | --- | --- |")
		for _, key := range info.Keys {
			lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", key.Name, key.Type, key.Doc))
		}
	}
	lines = append(lines, "")
	if !info.Deciding() {
		return append(lines, "It hears, and answers nothing.")
	}
	lines = append(lines, "```json")
	for _, v := range vectors {
		if v.Point == string(info.Point) && v.Answer != nil {
			lines = append(lines, oneLine(v.Answer))
		}
	}
	lines = append(lines, "```", "")
	guard, observer := hook.DefaultOnFailure(true, info.Point), hook.DefaultOnFailure(false, info.Point)
	if guard == observer {
		return append(lines, fmt.Sprintf("If it cannot be asked: `%s`.", guard))
	}
	return append(lines, fmt.Sprintf("If it cannot be asked: `%s` for a guard, `%s` for an observer.", guard, observer))
}

// oneLine is JSON in a line.
func oneLine(raw []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return err.Error()
	}
	return b.String()
}

// capabilityExamples are lines of [capabilities], and the operations that need them.
var capabilityExamples = []struct{ line, operations string }{
	{`http = ["GET https://api.example.com/v1/*"]`, "`http.fetch`"},
	{`secrets = [{ name = "TOKEN", host = "api.example.com", header = "Authorization", format = "Bearer {}" }]`, "`http.fetch` with `secrets`"},
	{`fs = [{ path = "notes", mode = "read" }]`, "`fs.read`, `fs.list`, `fs.stat`"},
	{`fs = [{ path = "out", mode = "write" }]`, "these and `fs.write`"},
	{`kv = "64KiB"`, "`kv.get`, `kv.set`, `kv.delete`, `kv.list`"},
	{`exec = ["gofmt -l *"]`, "`exec.run`"},
	{`tools = ["grep", "read_file"]`, "`tool.call`"},
	{`session = "read"`, "`session.info`, `session.messages`"},
	{`llm = { tokens = 20000 }`, "`llm.complete`"},
	{`env = ["LANG"]`, "`env.get`"},
	{`events = true`, "`event.emit`"},
	{`approve = true`, "none: it makes `allow` count at `before_execute_tool` and `permission_request`"},
}

// capabilitiesPage brings the reference of the capabilities up to date: what a
// user is told of each is what wharf ext inspect says.
func capabilitiesPage() ([]byte, error) {
	lines := []string{"| what it asks for | what the user is told: it may … | what needs it |", "| --- | --- | --- |"}
	seen := map[string]bool{}
	for _, example := range capabilityExamples {
		var f map[string]any
		if _, err := toml.Decode(example.line, &f); err != nil {
			return nil, err
		}
		set, err := capability.FromTable(f)
		if err != nil {
			return nil, err
		}
		for key := range f {
			seen[key] = true
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", example.line, strings.Join(set.Words(), "; "), example.operations))
	}
	for _, key := range capability.Keys {
		if !seen[key] {
			return nil, fmt.Errorf("the capability %s has no example", key)
		}
	}
	return section(capabilitiesPath, lines)
}

// effects are what tools do to the world, in words.
var effects = map[permission.Effect]string{
	permission.Reads: "reads", permission.Writes: "changes files", permission.Executes: "runs commands", permission.Network: "talks to other machines",
}

// toolsPage brings the page of the built-in tools up to date with what they say of themselves.
func toolsPage() ([]byte, error) {
	lines := []string{"| tool | what it does to the world | arguments |", "| --- | --- | --- |"}
	var sections []string
	for _, t := range builtin.Tools(builtin.Config{}) { // to be looked at, not run
		spec := t.Spec()
		arguments, err := toolArguments(spec.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec.Name, err)
		}
		var names []string
		sections = append(sections, "", "## "+spec.Name, "", spec.Description)
		if len(arguments) > 0 {
			sections = append(sections, "", "| argument | is | |", "| --- | --- | --- |")
		}
		for _, a := range arguments {
			names = append(names, "`"+a.name+"`")
			sections = append(sections, strings.Replace(fmt.Sprintf("| `%s` | %s | %s |", a.name, a.kind, a.doc), "|  |", "| |", 1))
		}
		lines = append(lines, fmt.Sprintf("| [`%s`](#%s) | %s | %s |", spec.Name, spec.Name, effects[spec.Effect], strings.Join(names, ", ")))
	}
	return section(toolsPath, append(lines, sections...))
}

// toolArgument is an argument as the page has it.
type toolArgument struct{ name, kind, doc string }

// toolArguments lists the arguments of a schema: those that are needed in their order, and
// the others, by their names, with a question mark.
func toolArguments(schema json.RawMessage) ([]toolArgument, error) {
	var s struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type        string `json:"type"`
			Description string `json:"description"`
			Minimum     *int   `json:"minimum"`
			Maximum     *int   `json:"maximum"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(names, func(a, b string) int { return order(s.Required, a) - order(s.Required, b) })
	var all []toolArgument
	for _, name := range names {
		p := s.Properties[name]
		kind := p.Type
		if p.Minimum != nil {
			kind += fmt.Sprintf(", at least %d", *p.Minimum)
		}
		if p.Maximum != nil {
			kind += fmt.Sprintf(", at most %d", *p.Maximum)
		}
		if !slices.Contains(s.Required, name) {
			name += "?"
		}
		all = append(all, toolArgument{name, kind, p.Description})
	}
	return all, nil
}

// order is where a name stands in a list; what is not in it comes last.
func order(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}
