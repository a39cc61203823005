package permission

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Question is what a person is asked about a call.
type Question struct {
	Call
	Why  string // by which rule, profile or hook
	Rule string // what a yes for longer than this call allows; empty: there is no such yes
}

// Scope is for how long an answer counts.
type Scope string

// The scopes.
const (
	Once    Scope = ""
	Session Scope = "session"
	Project Scope = "project"
)

// Answer is a person's answer. The zero value is a no.
type Answer struct {
	Allowed bool
	Scope   Scope
	Message string // why not, for the model
}

// grants are what a person allowed while a policy was in use.
type grants struct {
	mu    sync.Mutex
	rules []Rule
}

// Grant has the policy, and those that were made of it, answer questions by a rule
// that [Policy.Suggest] named: no deny, and no doubt, gives way to it.
func (p *Policy) Grant(rule string) error {
	r, err := ParseRule(Allow, rule, "granted")
	if err != nil {
		return err
	}
	p.granted.mu.Lock()
	defer p.granted.mu.Unlock()
	p.granted.rules = append(p.granted.rules, r)
	return nil
}

// answered returns the grant that answers a question about a call, or nothing.
func (p *Policy) answered(s subject) string {
	p.granted.mu.Lock()
	rules := p.granted.rules
	p.granted.mu.Unlock()
	if len(rules) == 0 || p.fleeting(s.Call) {
		return ""
	}
	by := p.allows(s, rules)
	if by == readsOnly {
		return ""
	}
	return by
}

// fleeting reports whether a yes to a call counts for nothing else: a command that
// nothing confines, or a call that goes beyond what does.
func (p *Policy) fleeting(c Call) bool {
	return c.Widens != "" || c.Effect == Executes && (p.profile == FullAccess || p.unconfined)
}

// Suggest returns the narrowest rule that allows a call, for a person to grant; empty
// if there is none: what such a rule would stand for is not known, or nothing confines it.
func (p *Policy) Suggest(c Call) string {
	if p.fleeting(c) {
		return ""
	}
	s := p.subjectOf(c)
	rule := c.Tool
	switch s.kind {
	case onCommand:
		text, ok := s.line.exactly()
		if !ok {
			return ""
		}
		rule = fmt.Sprintf("exec(%s)", text)
	case onHost:
		if s.host == "" {
			return ""
		}
		rule = fmt.Sprintf("%s(domain:%s)", c.Tool, s.host)
	case onRead, onWrite:
		var arguments struct {
			Path string `json:"path"`
		}
		if json.Unmarshal(c.Arguments, &arguments) != nil || arguments.Path == "" || strings.ContainsAny(arguments.Path, `~*?[]{}\()`) {
			return ""
		}
		rule = fmt.Sprintf("%s(/%s)", c.Tool, strings.TrimPrefix(p.at.place().within(arguments.Path), "/"))
	}
	if _, err := ParseRule(Allow, rule, ""); err != nil {
		return ""
	}
	return rule
}

// exactly returns the one plain command that a line is, if it is one that a rule can
// name.
func (l commandLine) exactly() (string, bool) {
	if l.open != "" || len(l.files) > 0 || len(l.commands) != 1 || len(l.commands[0].sets) > 0 || l.commands[0].more {
		return "", false
	}
	var all []string
	for _, w := range l.commands[0].words {
		quoted, err := syntax.Quote(w.text, syntax.LangPOSIX)
		if w.kind != known || err != nil || quoted != w.text || strings.ContainsAny(w.text, "*():") {
			return "", false
		}
		all = append(all, w.text)
	}
	return strings.Join(all, " "), true
}
