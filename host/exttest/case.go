package exttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// File is a file of cases. ParseFile makes it.
type File struct {
	Name   string // as it is shown
	Cases  []*Case
	layout *layout
}

// Case is a few calls in one session, and the world that the session is in.
type Case struct {
	Name  string
	Line  int // counts from 1
	Steps []*Step

	world worldForm
	grant capability.Grant
	share string // the same for cases that share a loaded extension
	env   map[string]string
}

// Step is one call of a handler, and what is expected of it.
type Step struct {
	Line int
	path string // in the file
	form stepForm

	hook    hook.Info // of a hook
	payload []byte    // or a tool's arguments
}

// fileForm is a file as TOML.
type fileForm struct {
	Grant  any            `toml:"grant"`
	Config map[string]any `toml:"config"`
	Cases  []caseForm     `toml:"case"`
}

type caseForm struct {
	Name string `toml:"name"`
	worldForm
	stepForm
	Steps []stepForm `toml:"step"`
}

// worldForm is the world as a case gives it.
type worldForm struct {
	Grant    any               `toml:"grant"`
	Config   map[string]any    `toml:"config"`
	Now      time.Time         `toml:"now"`
	Seed     uint64            `toml:"seed"`
	Env      map[string]string `toml:"env"`
	Secrets  map[string]string `toml:"secrets"`
	Kept     map[string]any    `toml:"kept"`
	Files    map[string]string `toml:"files"`
	Session  sessionForm       `toml:"session"`
	Messages []messageForm     `toml:"messages"`
	HTTP     []httpForm        `toml:"http"`
	Exec     []execForm        `toml:"exec"`
	Calls    []callForm        `toml:"tool_call"`
	LLM      []llmForm         `toml:"llm"`
	Faults   []faultForm       `toml:"fault"`
}

type sessionForm struct {
	ID    string `toml:"id"`
	Cwd   string `toml:"cwd"`
	Model string `toml:"model"`
	Turn  int    `toml:"turn"`
}

type messageForm struct {
	Role    string `toml:"role"`
	Content string `toml:"content"`
	CallID  string `toml:"call_id"`
	IsError bool   `toml:"is_error"`
}

// answerForm is what all answers have.
type answerForm struct {
	Times  int    `toml:"times"`  // how often it is given; 0 is once
	Denied string `toml:"denied"` // the reason why the agent does not do it
}

type httpForm struct {
	Method      string            `toml:"method"` // empty is GET
	URL         string            `toml:"url"`
	SentHeaders map[string]string `toml:"sent_headers"` // that the request must have
	SentBody    *string           `toml:"sent_body"`
	Status      int               `toml:"status"` // 0 is 200
	Headers     map[string]string `toml:"headers"`
	Body        string            `toml:"body"`
	Times       int               `toml:"times"`
}

type execForm struct {
	answerForm
	Command string `toml:"command"`
	Exit    int    `toml:"exit"`
	Stdout  string `toml:"stdout"`
	Stderr  string `toml:"stderr"`
}

type callForm struct {
	answerForm
	Name      string `toml:"name"`
	Arguments any    `toml:"arguments"` // nil: any
	Content   string `toml:"content"`
	IsError   bool   `toml:"is_error"`
	Code      string `toml:"code"`
}

type llmForm struct {
	answerForm
	Prompt       string `toml:"prompt"` // empty: any
	Text         string `toml:"text"`
	InputTokens  int64  `toml:"input_tokens"`
	OutputTokens int64  `toml:"output_tokens"`
}

type faultForm struct {
	Operation string `toml:"operation"`
	Target    string `toml:"target"` // empty: any
	Code      string `toml:"code"`   // empty is FAILED
	Message   string `toml:"message"`
	Times     int    `toml:"times"`
}

// stepForm is a step as TOML. Of the expectations, which are verbs but for the
// answer itself, a nil is none; no answer and no failure are expected by default.
type stepForm struct {
	Hook      string `toml:"hook"`
	Tool      string `toml:"tool"`
	Payload   any    `toml:"payload"`
	Arguments any    `toml:"arguments"`

	Verdict any               `toml:"verdict"`
	Result  any               `toml:"result"`
	Fails   *string           `toml:"fails"`
	Logs    *[]string         `toml:"logs"`
	Tries   *[]string         `toml:"tries"`
	Emits   *[]map[string]any `toml:"emits"`
	Keeps   map[string]any    `toml:"keeps"`
	Writes  map[string]string `toml:"writes"`
}

// given reports whether a case has a step of its own, without [[case.step]].
func (s stepForm) given() bool {
	return s.Hook != "" || s.Tool != "" || s.Payload != nil || s.Arguments != nil || s.Verdict != nil || s.Result != nil || s.Fails != nil ||
		s.Logs != nil || s.Tries != nil || s.Emits != nil || s.Keeps != nil || s.Writes != nil
}

// ReadDir reads the files of cases in a folder, NAME.toml each. There must be one.
func ReadDir(dir string, m *host.Manifest) ([]*File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []*File
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".toml" {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		text, err := host.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := ParseFile(path, string(text), m)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no cases in %s: write a NAME.toml there, with a [[case]]", dir)
	}
	return all, nil
}

// ParseFile reads a file of cases for an extension with that manifest. It is
// strict, and the error has the line; name is for messages.
func ParseFile(name, text string, m *host.Manifest) (*File, error) {
	f, err := parseFile(name, text, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func parseFile(name, text string, m *host.Manifest) (*File, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d MiB: make several of it", maxFile>>20)
	}
	l, err := readLayout(text)
	if err != nil {
		return nil, err
	}
	var form fileForm
	meta, err := toml.Decode(text, &form)
	if err != nil {
		return nil, tomlError(err)
	}
	p := &parser{file: &File{Name: name, layout: l}, manifest: m}
	if unknown := slices.DeleteFunc(meta.Undecoded(), free); len(unknown) > 0 {
		return nil, p.unknown(unknown[0])
	}
	if err := p.tables(text); err != nil {
		return nil, err
	}
	if len(form.Cases) == 0 {
		return nil, errors.New("it has no [[case]]")
	}
	for i, c := range form.Cases {
		if err := p.add(form, i, c); err != nil {
			return nil, err
		}
	}
	return p.file, nil
}

// free reports whether a key is within a value that may hold any keys: of those
// the library does not know whether they were read.
func free(key toml.Key) bool {
	return slices.ContainsFunc(key[:len(key)-1], func(table string) bool {
		return slices.Contains([]string{"grant", "config", "payload", "arguments", "verdict", "result", "kept", "keeps", "emits"}, table)
	})
}

// typeError is how the TOML library words a value of the wrong type.
var typeError = regexp.MustCompile(`^toml: line (\d+) \(last key "([^"]*)"\): (.*)$`)

func tomlError(err error) error {
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		return fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
	}
	if m := typeError.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("line %s: %s: %s", m[1], m[2], m[3])
	}
	return err
}

// parser checks what was decoded, and makes cases of it.
type parser struct {
	file     *File
	manifest *host.Manifest
}

func (p *parser) refuse(path, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.file.layout.line(path), fmt.Sprintf(format, args...))
}

var index = regexp.MustCompile(`\.\d+`)

// unknown tells a key that there is not, which the library names without the
// numbers of tables.
func (p *parser) unknown(key toml.Key) error {
	path := keyName(strings.Join(key, "."))
	for _, at := range p.file.layout.places {
		if index.ReplaceAllString(at.path, "") == path {
			path = at.path
			break
		}
	}
	name := key[len(key)-1]
	return p.refuse(path, "unknown key %q%s: docs/extensions/testing.md has them all", name, didYouMean(name, keysBeside(key)))
}

// keysBeside lists the keys that there are in the table of an unknown one.
func keysBeside(key toml.Key) []string {
	known := map[string][]string{
		"": {"grant", "config", "case"},
		"case": {
			"name", "grant", "config", "now", "seed", "env", "secrets", "kept", "files", "session", "messages", "http", "exec", "tool_call", "llm", "fault", "step",
			"hook", "tool", "payload", "arguments", "verdict", "result", "fails", "logs", "tries", "emits", "keeps", "writes",
		},
		"step":      {"hook", "tool", "payload", "arguments", "verdict", "result", "fails", "logs", "tries", "emits", "keeps", "writes"},
		"session":   {"id", "cwd", "model", "turn"},
		"messages":  {"role", "content", "call_id", "is_error"},
		"http":      {"method", "url", "sent_headers", "sent_body", "status", "headers", "body", "times"},
		"exec":      {"command", "exit", "stdout", "stderr", "denied", "times"},
		"tool_call": {"name", "arguments", "content", "is_error", "code", "denied", "times"},
		"llm":       {"prompt", "text", "input_tokens", "output_tokens", "denied", "times"},
		"fault":     {"operation", "target", "code", "message", "times"},
	}
	if len(key) == 1 {
		return known[""]
	}
	return known[key[len(key)-2]]
}

// mapKeys are the keys whose values are tables of anything.
var mapKeys = []string{"config", "env", "secrets", "kept", "files", "sent_headers", "headers", "keeps", "writes"}

// tables refuses what is no table where one belongs: the library leaves that out
// without a word.
func (p *parser) tables(text string) error {
	var whole map[string]any
	if _, err := toml.Decode(text, &whole); err != nil {
		return tomlError(err)
	}
	var look func(value any, path string) error
	look = func(value any, path string) error {
		switch v := value.(type) {
		case []map[string]any:
			for i, item := range v {
				if err := look(item, fmt.Sprintf("%s.%d", path, i)); err != nil {
					return err
				}
			}
		case map[string]any:
			for _, key := range sortedKeys(v) {
				_, table := v[key].(map[string]any)
				if slices.Contains(mapKeys, key) && !table {
					return p.refuse(join(path, key), "%s must be a table", key)
				}
				if slices.Contains([]string{"case", "step", "http"}, key) {
					if err := look(v[key], join(path, key)); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	return look(whole, "")
}

// add makes a case of what was decoded.
func (p *parser) add(file fileForm, i int, form caseForm) error {
	path := fmt.Sprintf("case.%d", i)
	c := &Case{Name: form.Name, Line: p.file.layout.line(path), world: form.worldForm, env: form.Env}
	if strings.TrimSpace(c.Name) == "" {
		return p.refuse(path, "the case has no name: say what it shows, as a sentence")
	}
	for _, other := range p.file.Cases {
		if other.Name == c.Name {
			return p.refuse(path+".name", "there are two cases of the name %q, the other in line %d: rename one", c.Name, other.Line)
		}
	}
	if err := p.settle(file, c, path); err != nil {
		return err
	}
	if err := p.checkWorld(c.world, path); err != nil {
		return err
	}
	steps := form.Steps
	switch {
	case form.given() && len(steps) > 0:
		return p.refuse(path, "the case has a call of its own and [[case.step]] too: make a step of the first")
	case !form.given() && len(steps) == 0:
		return p.refuse(path, "the case calls nothing: give it hook and payload, or tool and arguments, or [[case.step]] with them")
	case form.given():
		steps = []stepForm{form.stepForm}
	}
	for j, s := range steps {
		at := path
		if !form.given() {
			at = fmt.Sprintf("%s.step.%d", path, j)
		}
		step, err := p.step(s, at)
		if err != nil {
			return err
		}
		c.Steps = append(c.Steps, step)
	}
	p.file.Cases = append(p.file.Cases, c)
	return nil
}

// settle finds what a case is granted and configured with: its own, or the file's.
func (p *parser) settle(file fileForm, c *Case, path string) (err error) {
	at := path + ".grant"
	if c.world.Grant == nil {
		c.world.Grant, at = file.Grant, "grant"
	}
	if c.world.Grant == nil {
		c.world.Grant = "all"
	}
	if c.world.Config == nil {
		c.world.Config = file.Config
	}
	if c.grant, err = capability.ParseValue(c.world.Grant); err != nil {
		return p.refuse(at, "%v", err)
	}
	share, err := encode([]any{c.world.Grant, c.world.Config})
	if err != nil {
		return p.refuse(path+".config", "config: %v", err)
	}
	c.share = string(share)
	return nil
}

// checkWorld checks what would otherwise only show, or never, when a guest asks.
func (p *parser) checkWorld(w worldForm, path string) error {
	for i, h := range w.HTTP {
		at := fmt.Sprintf("%s.http.%d", path, i)
		if _, err := egress.ParseURL(h.URL); err != nil {
			return p.refuse(at+".url", "%v", err)
		}
		if h.Status != 0 && (h.Status < 200 || h.Status > 599) {
			return p.refuse(at+".status", "status %d: it is 200 to 599", h.Status)
		}
	}
	for i, e := range w.Exec {
		if e.Command == "" {
			return p.refuse(fmt.Sprintf("%s.exec.%d", path, i), "exec needs the command that it answers")
		}
	}
	for i, c := range w.Calls {
		if c.Name == "" {
			return p.refuse(fmt.Sprintf("%s.tool_call.%d", path, i), "tool_call needs the name of the tool that it answers for")
		}
	}
	for i, f := range w.Faults {
		at := fmt.Sprintf("%s.fault.%d", path, i)
		if !slices.Contains(host.Operations(), f.Operation) {
			return p.refuse(at+".operation", "there is no operation %q%s: there are %s", f.Operation, didYouMean(f.Operation, host.Operations()), strings.Join(host.Operations(), ", "))
		}
		codes := []string{"", abi.Failed.Code(), abi.OverLimit.Code(), abi.Denied, host.TimedOut}
		if !slices.Contains(codes, f.Code) {
			return p.refuse(at+".code", "code %q: it is one of %s; what is not granted is so by grant", f.Code, strings.Join(codes[1:], ", "))
		}
	}
	for _, key := range sortedKeys(w.Kept) {
		if _, err := encode(w.Kept[key]); err != nil {
			return p.refuse(path+".kept", "kept %q: %v", key, err)
		}
	}
	return nil
}

// step checks a step and makes its payload.
func (p *parser) step(form stepForm, path string) (*Step, error) {
	s := &Step{Line: p.file.layout.line(path), path: path, form: form}
	switch {
	case form.Hook != "" && form.Tool != "":
		return nil, p.refuse(path+".tool", "a step calls a hook or a tool: make two of it")
	case form.Hook == "" && form.Tool == "":
		return nil, p.refuse(path, "a step needs a hook or a tool to call")
	case form.Tool != "" && (form.Payload != nil || form.Verdict != nil):
		return nil, p.refuse(path+".tool", "a tool has arguments and a result; payload and verdict are a hook's")
	case form.Hook != "" && (form.Arguments != nil || form.Result != nil):
		return nil, p.refuse(path+".hook", "a hook has a payload and a verdict; arguments and result are a tool's")
	case form.Fails != nil && (form.Verdict != nil || form.Result != nil):
		return nil, p.refuse(path+".fails", "what fails answers nothing: expect one of both")
	}
	for _, key := range []string{"verdict", "result"} {
		if err := checkAnswer(map[string]any{"verdict": form.Verdict, "result": form.Result}[key]); err != nil {
			return nil, p.refuse(path+"."+key, "%s: %v", key, err)
		}
	}
	var err error
	if form.Tool != "" {
		if err := p.tool(form.Tool); err != nil {
			return nil, p.refuse(path+".tool", "%v", err)
		}
		s.payload, err = p.arguments(form)
		if err != nil {
			return nil, p.refuse(path+".arguments", "arguments: %v", err)
		}
		return s, nil
	}
	if s.hook, err = p.point(form.Hook); err != nil {
		return nil, p.refuse(path+".hook", "%v", err)
	}
	if s.payload, err = payloadOf(s.hook, form.Payload); err != nil {
		return nil, p.refuse(path+".payload", "payload: %v", err)
	}
	return s, nil
}

// checkAnswer refuses an expected answer that no answer could be.
func checkAnswer(value any) error {
	if value == nil {
		return nil
	}
	normal, err := normalize(value)
	if err != nil {
		return err
	}
	if _, ok := normal.(map[string]any); !ok {
		return errors.New("write a table, or a string with a JSON object")
	}
	return nil
}

// tool refuses a tool that the extension has not. What a plugin lists itself is
// not known yet.
func (p *parser) tool(name string) error {
	if p.manifest.Extism && len(p.manifest.Tools) == 0 {
		return nil
	}
	var names []string
	for _, t := range p.manifest.Tools {
		if t.Name == name {
			return nil
		}
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("the extension has no tools, and so not %q", name)
	}
	return fmt.Errorf("the extension has no tool %q: it has %s", name, strings.Join(names, ", "))
}

// point finds a hook point that the extension handles.
func (p *parser) point(name string) (hook.Info, error) {
	info, known := hook.Lookup(hook.Point(name))
	if _, handled := p.manifest.Hooks[info.Point]; known && handled {
		return info, nil
	}
	var points []string
	for _, point := range p.manifest.Points() {
		points = append(points, string(point))
	}
	if len(points) == 0 {
		return info, fmt.Errorf("the extension handles no hook point, and so not %q", name)
	}
	return info, fmt.Errorf("the extension does not handle the hook point %q: it handles %s", name, strings.Join(points, ", "))
}

// payloadOf makes the payload of a hook: a table is completed and checked, a
// string is sent as it is.
func payloadOf(info hook.Info, value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return []byte(v), nil
	case nil:
		value = map[string]any{}
	case map[string]any:
	default:
		return nil, errors.New("write a table with its keys, or a string to be sent as it is")
	}
	if info.Raw {
		return nil, fmt.Errorf("%s gets plain text: write a string", info.Point)
	}
	raw, err := encodeTOML(value)
	if err != nil {
		return nil, err
	}
	return ParsePayload(info, raw)
}

// arguments makes the arguments of a tool.
func (p *parser) arguments(form stepForm) ([]byte, error) {
	switch v := form.Arguments.(type) {
	case string:
		return []byte(v), nil
	case nil:
		return []byte("{}"), nil
	case map[string]any:
		return encodeTOML(v)
	default:
		return nil, errors.New("write a table, or a string with them as the model wrote them")
	}
}

// encodeTOML makes JSON of a value of TOML, which has more kinds of them.
func encodeTOML(value any) (json.RawMessage, error) {
	if err := checkJSON(value); err != nil {
		return nil, err
	}
	return encode(value)
}

func checkJSON(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if err := checkJSON(v[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkJSON(item); err != nil {
				return err
			}
		}
	case []map[string]any:
		for _, item := range v {
			if err := checkJSON(item); err != nil {
				return err
			}
		}
	case time.Time:
		return errors.New("JSON has no dates: write a string")
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("JSON has no such number")
		}
	}
	return nil
}
