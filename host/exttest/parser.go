package exttest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

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
	if _, asIs := form.Payload.(string); !asIs {
		if err := Asked(s.hook, p.manifest.Hooks[s.hook.Point], s.payload); err != nil {
			return nil, p.refuse(path+".payload", "payload: %v", err)
		}
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
