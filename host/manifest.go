package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// Manifest is what an extension says of itself.
type Manifest struct {
	Name         string
	Version      string
	Description  string
	License      string
	ABI          int                          // of Wharf; 0 if Extism
	Extism       bool                         // it speaks Extism's ABI instead
	Guard        bool                         // role = "guard"; else it is an observer
	Hooks        map[hook.Point]hook.Handling // the points that it handles
	Tools        []ManifestTool
	Capabilities capability.Set  // what it asks for
	Memory       capability.Size // the most that an instance may use
}

// ABIName is the value of abi: a number, or "extism".
func (m *Manifest) ABIName() any {
	if m.Extism {
		return "extism"
	}
	return m.ABI
}

// ManifestTool is a [[tools]] entry.
type ManifestTool struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	Parallel    bool // safe beside other calls
	Timeout     time.Duration
	PerSession  bool // instance = "session": runs in the session's instance

	export  string // which runs it
	dialect dialect
}

// Points lists the points that the extension handles, in the order in which a
// turn reaches them.
func (m *Manifest) Points() []hook.Point {
	var points []hook.Point
	for _, info := range hook.Points {
		if _, ok := m.Hooks[info.Point]; ok {
			points = append(points, info.Point)
		}
	}
	return points
}

// file is a manifest as TOML.
type file struct {
	Name         string              `toml:"name"`
	Version      string              `toml:"version"`
	Description  string              `toml:"description"`
	License      string              `toml:"license"`
	ABI          any                 `toml:"abi"` // 1 or "extism"
	Role         string              `toml:"role"`
	Hooks        map[string]fileHook `toml:"hooks"`
	Tools        []fileTool          `toml:"tools"`
	Capabilities map[string]any      `toml:"capabilities"`
	Limits       struct {
		Memory string `toml:"memory"`
	} `toml:"limits"`
}

type fileHook struct {
	Tools     []string `toml:"tools"`
	Timeout   string   `toml:"timeout"`
	OnFailure string   `toml:"on_failure"`
}

type fileTool struct {
	Name        string `toml:"name"`
	Description string `toml:"description"`
	InputSchema string `toml:"input_schema"`
	Parallel    bool   `toml:"parallel"`
	Timeout     string `toml:"timeout"`
	Instance    string `toml:"instance"`
	Export      string `toml:"export"`
}

// ParseManifest reads a manifest. It is strict; an error names the line.
func ParseManifest(text string) (*Manifest, error) {
	if len(text) > limitManifest {
		return nil, fmt.Errorf("the manifest has %d bytes: that is over the limit manifest, %d KiB", len(text), limitManifest>>10)
	}
	if line, err := checkNesting(text); err != nil {
		return nil, fmt.Errorf("manifest line %d: %w", line, err)
	}
	var f file
	meta, err := toml.Decode(text, &f)
	if err != nil {
		return nil, tomlError(err)
	}
	p := &manifestParser{text: text, m: &Manifest{
		Name: f.Name, Version: f.Version, Description: f.Description, License: f.License,
		Guard: f.Role == "guard", Hooks: map[hook.Point]hook.Handling{},
	}}
	// Package capability is strict about its own tables, of which the library
	// does not know whether they were read.
	unknown := slices.DeleteFunc(meta.Undecoded(), func(k toml.Key) bool { return k[0] == "capabilities" })
	if len(unknown) > 0 {
		return nil, p.unknownKey(unknown[0])
	}
	for _, table := range []string{"hooks", "capabilities"} { // of which the library passes over anything else without a word
		if kind := meta.Type(table); kind != "" && kind != "Hash" { // empty: it is not there, or there in its parts
			return nil, p.refuse(table, -1, "%s must be a table: write [%s] and what is in it below", table, table)
		}
	}
	for _, step := range []func(*file) error{p.head, p.hooks, p.tools, p.reach} {
		if err := step(&f); err != nil {
			return nil, err
		}
	}
	return p.m, nil
}

// typeError is how the TOML library words a value of the wrong type.
var typeError = regexp.MustCompile(`^toml: line (\d+) \(last key "[^"]*"\): (.*)$`)

// tomlError says on which line a text is no TOML, or has a value of the wrong type.
func tomlError(err error) error {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("manifest line %d: %s", parse.Position.Line, parse.Message)
	}
	if m := typeError.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("manifest line %s: %s", m[1], m[2])
	}
	return fmt.Errorf("manifest: %w", err)
}

// manifestParser checks a decoded manifest and fills in its defaults.
type manifestParser struct {
	text string
	m    *Manifest
}

// refuse makes an error that names the line of a key.
func (p *manifestParser) refuse(key string, item int, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if line := lineOf(p.text, key, item); line > 0 {
		return fmt.Errorf("manifest line %d: %s", line, message)
	}
	return fmt.Errorf("manifest: %s", message)
}

// known lists the keys of each table, to name the nearest.
var known = map[string]string{
	"":       "name, version, description, license, abi, role, hooks, tools, capabilities, limits",
	"hooks":  "tools, timeout, on_failure",
	"tools":  "name, description, input_schema, parallel, timeout, instance, export",
	"limits": "memory",
}

func (p *manifestParser) unknownKey(key toml.Key) error {
	path, name, table := strings.Join(key, "."), key[len(key)-1], ""
	if len(key) > 1 {
		table = key[0]
	}
	if known[table] == "" { // the table itself is unknown
		name, table = key[0], ""
	}
	return p.refuse(path, -1, "unknown key %q: there are %s", name, known[table])
}

var (
	extensionName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	versionText   = regexp.MustCompile(`^[A-Za-z0-9.+-]{1,64}$`)
	toolName      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	toolPattern   = regexp.MustCompile(`^[A-Za-z0-9_.:*-]{1,128}$`)
)

// CheckName refuses what is no name of an extension.
func CheckName(name string) error {
	if !extensionName.MatchString(name) {
		return fmt.Errorf("name %q: give it one of up to 64 characters a-z, 0-9 and -", name)
	}
	return nil
}

func (p *manifestParser) head(f *file) error {
	switch {
	case CheckName(f.Name) != nil:
		return p.refuse("name", -1, "%v", CheckName(f.Name))
	case f.Version == "":
		return p.refuse("version", -1, `version is missing: add version = "0.1.0"`)
	case !versionText.MatchString(f.Version):
		return p.refuse("version", -1, "version %q: give it one of up to 64 letters, digits, dots, + and -", f.Version)
	case hasControls(f.Description):
		return p.refuse("description", -1, "the description has control characters: take them out")
	case hasControls(f.License):
		return p.refuse("license", -1, "the license has control characters: take them out")
	case f.Role != "" && f.Role != "guard" && f.Role != "observer":
		return p.refuse("role", -1, "role %q: it is guard or observer", f.Role)
	}
	return p.abi(f.ABI)
}

// abi reads which ABI the module speaks.
func (p *manifestParser) abi(value any) error {
	switch value {
	case nil:
		return p.refuse("abi", -1, "abi is missing: add abi = %d", abi.Version)
	case int64(abi.Version):
		p.m.ABI = abi.Version
	case "extism":
		p.m.Extism = true
	default:
		return p.refuse("abi", -1, `abi = %s: this host speaks ABI %d and "extism": rebuild it with the guest SDK of this release`, strings.TrimSpace(fmt.Sprintf("%#v", value)), abi.Version)
	}
	return nil
}

func (p *manifestParser) hooks(f *file) error {
	for _, name := range sortedKeys(f.Hooks) {
		info, ok := hook.Lookup(hook.Point(name))
		if !ok {
			return p.refuse("hooks."+name, -1, "unknown hook point %q: %s", name, nearestPoints(name))
		}
		handling, err := p.handling(info, f.Hooks[name])
		if err != nil {
			return err
		}
		p.m.Hooks[info.Point] = handling
	}
	return nil
}

func (p *manifestParser) handling(info hook.Info, h fileHook) (hook.Handling, error) {
	key := "hooks." + string(info.Point)
	handling := hook.Handling{
		Tools: h.Tools, Timeout: DefaultHookTimeout, OnFailure: hook.DefaultOnFailure(p.m.Guard, info.Point),
	}
	if info.Raw {
		handling.Timeout = DefaultStreamTimeout
	}
	if len(h.Tools) > 0 && !info.Has("tool") {
		return handling, p.refuse(key+".tools", -1, "tools at %s: that point is not about one tool: leave it out", info.Point)
	}
	for _, pattern := range h.Tools { // one that could never match would be a guard that is never asked
		if !toolPattern.MatchString(pattern) {
			return handling, p.refuse(key+".tools", -1, "tool pattern %q: write a tool's name, in which * stands for anything", pattern)
		}
	}
	if err := p.timeout(&handling.Timeout, key, -1, h.Timeout); err != nil {
		return handling, err
	}
	switch policy := hook.OnFailure(h.OnFailure); policy {
	case "":
	case hook.Isolate, hook.AbortTurn:
		handling.OnFailure = policy
	case hook.DenyIt: // where nothing can be denied, the nearest thing to it
		handling.OnFailure = hook.DefaultOnFailure(true, info.Point)
	default:
		return handling, p.refuse(key+".on_failure", -1, "on_failure %q: it is isolate, deny or abort", h.OnFailure)
	}
	return handling, nil
}

// timeout reads an optional time-out into limit.
func (p *manifestParser) timeout(limit *time.Duration, key string, item int, text string) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxTimeout {
		return p.refuse(key+".timeout", item, `timeout %q: write a time such as "20ms", of at most %s`, text, maxTimeout)
	}
	*limit = d
	return nil
}

func (p *manifestParser) tools(f *file) error {
	for i, t := range f.Tools {
		made := ManifestTool{
			Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.InputSchema),
			Parallel: t.Parallel, Timeout: DefaultToolTimeout, PerSession: t.Instance == "session",
			export: abi.CallTool,
		}
		if t.Export != "" {
			made.export, made.dialect = t.Export, mapped
		}
		if t.Export != "" && !p.m.Extism {
			return p.refuse("tools.export", i, "export of tool %q: only a module with abi = \"extism\" has it: handle the tool in call_tool", t.Name)
		}
		if key, err := made.check(p.m.Tools); err != nil {
			return p.refuse(key, i, "%v", err)
		}
		if err := p.timeout(&made.Timeout, "tools", i, t.Timeout); err != nil {
			return err
		}
		if t.Instance != "" && t.Instance != "call" && t.Instance != "session" {
			return p.refuse("tools.instance", i, "instance %q: it is call or session", t.Instance)
		}
		p.m.Tools = append(p.m.Tools, made)
	}
	return nil
}

// check checks what a model is to be told of a tool that comes after others. Its
// error is about that key.
func (t *ManifestTool) check(others []ManifestTool) (key string, err error) {
	switch {
	case !toolName.MatchString(t.Name):
		return "tools.name", fmt.Errorf("tool name %q: give it one of up to 64 letters, digits, _ and -", t.Name)
	case slices.ContainsFunc(others, func(o ManifestTool) bool { return o.Name == t.Name }):
		return "tools.name", fmt.Errorf("there are two tools of the name %q: rename one", t.Name)
	case t.Description == "":
		return "tools", fmt.Errorf("tool %q has no description: the model needs one to know when to call it", t.Name)
	case hasControls(t.Description):
		return "tools", fmt.Errorf("the description of tool %q has control characters: take them out", t.Name)
	case len(t.InputSchema) > limitSchema:
		return "tools.input_schema", fmt.Errorf("input_schema of tool %q has %d bytes, and %d is the most: make it shorter", t.Name, len(t.InputSchema), limitSchema)
	}
	if err = checkSchemaNesting(string(t.InputSchema)); err == nil {
		_, err = tool.CompileSchema(t.InputSchema)
	}
	if err != nil {
		return "tools.input_schema", fmt.Errorf("input_schema of tool %q is no JSON Schema: %s", t.Name, oneLine(err))
	}
	return "", nil
}

// reach reads what the extension asks for and what it may use.
func (p *manifestParser) reach(f *file) error {
	for _, key := range sortedKeys(f.Capabilities) {
		if list, ok := f.Capabilities[key].([]any); ok && len(list) > limitAsked {
			return p.refuse("capabilities."+key, -1, "capability %s has %d entries, and %d is the most: ask for wider ones", clean(key), len(list), limitAsked)
		}
	}
	asked, err := capability.FromTable(f.Capabilities)
	var bad *capability.KeyError
	if errors.As(err, &bad) {
		return p.refuse("capabilities."+bad.Key, -1, "capability %s", oneLine(bad))
	}
	p.m.Capabilities = asked
	p.m.Memory = DefaultMemory
	if f.Limits.Memory == "" {
		return nil
	}
	size, err := capability.ParseSize(f.Limits.Memory)
	if err != nil {
		return p.refuse("limits.memory", -1, "memory %v", err)
	}
	p.m.Memory = min(size, DefaultMemory)
	return nil
}

// nearestPoints names the points that a misspelt one may stand for, or all.
func nearestPoints(name string) string {
	all := make([]string, len(hook.Points))
	for i, info := range hook.Points {
		all[i] = string(info.Point)
	}
	if near := tool.Nearest(name, all); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "there are " + strings.Join(all, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// hasControls reports whether a text for people holds what could make a
// terminal show another one.
func hasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' })
}

// oneLine is an error's text in one line.
func oneLine(err error) string { return clean(err.Error()) }

// clean makes one line of a text that may quote a guest: what cannot be
// printed is replaced, and what is too long is cut short.
func clean(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.Join(strings.Fields(text), " "))
}
