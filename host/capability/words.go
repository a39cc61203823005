package capability

import (
	"fmt"
	"strings"
)

// Words says in plain words what s lets an extension do, a line for each, in
// the order of [Keys]: what a person reads before they grant it.
func (s Set) Words() []string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, p := range s.HTTP {
		method, address, _ := strings.Cut(p.String(), " ")
		if method == "*" {
			method = "any"
		}
		say("send %s requests to %s", method, address)
	}
	for _, secret := range s.Secrets {
		say("have the secret %s put into the header %s of requests to %s, without ever seeing it", secret.Name, secret.Header, secret.Host)
	}
	for _, f := range s.FS {
		if f.Write {
			say("read and write files in %s of the workspace, under your rules for writing", f.Path)
		} else {
			say("read files in %s of the workspace", f.Path)
		}
	}
	if s.KV > 0 {
		say("keep up to %s of its own between sessions", s.KV)
	}
	for _, pattern := range s.Exec {
		if pattern == "*" {
			say("run any command, in the sandbox and under your rules")
			continue
		}
		say("run commands such as %s, in the sandbox and under your rules", pattern)
	}
	if len(s.Tools) > 0 {
		say("call the tools %s, under your rules, as the model does", strings.Join(s.Tools, ", "))
	}
	if s.Session {
		say("read the conversation")
	}
	if s.LLM > 0 {
		say("ask the model itself, for up to %d tokens a session", s.LLM)
	}
	for _, name := range s.Env {
		say("read the environment variable %s", name)
	}
	if s.Events {
		say("write events into the session's log")
	}
	if s.Approve {
		say("answer yes in your place where you would be asked about a call, though never against a rule")
	}
	return all
}
