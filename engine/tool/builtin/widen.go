package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/sandbox"
)

// maxHosts bounds how many hosts one command may ask for.
const maxHosts = 16

// refused are commands that the sandbox was seen to refuse something. Each may be asked
// for once with full access.
type refused struct {
	mu  sync.Mutex
	all map[string]bool
}

// note remembers a command that was refused something.
func (r *refused) note(a execArgs, res sandbox.Result) {
	if len(res.Refused) == 0 || a.Escalate != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]bool{}
	}
	r.all[a.Dir+"\x00"+a.Command] = true
}

// take reports whether a command was refused something, and forgets it.
func (r *refused) take(a execArgs) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := a.Dir + "\x00" + a.Command
	was := r.all[key]
	delete(r.all, key)
	return was
}

// Widens says what a command asks for beyond what confines it: hosts, or full access.
func (e execTool) Widens(arguments json.RawMessage) (what string) {
	var a execArgs
	switch err := json.Unmarshal(arguments, &a); {
	case err != nil:
		return ""
	case a.Escalate != "":
		return fmt.Sprintf("run once with full access to this machine: the sandbox refused it something, and the model says %q", a.Escalate)
	case len(a.AllowNet) > 0:
		return "reach " + strings.Join(a.AllowNet, ", ") + ", which commands otherwise cannot"
	}
	return ""
}

// MayAsk lets a command be asked for with hosts, or, once, with full access if it was
// refused something. A shell at a terminal would not be one command, so full access is
// for one that is waited for.
func (e execTool) MayAsk(arguments json.RawMessage) (refusal string) {
	var a execArgs
	if err := json.Unmarshal(arguments, &a); err != nil {
		return "" // Run says what is wrong with them
	}
	if _, err := a.hosts(); err != nil {
		return "allow_net: " + err.Error()
	}
	switch {
	case a.Escalate == "":
		return ""
	case a.session():
		return "a command with full access is waited for: leave out yield_ms, tty and keep"
	case !e.sessions.refused.take(a):
		return "full access is for a command that the sandbox was seen to refuse something, exactly as it was, and can be asked for once: run it without escalate first, or do it another way"
	}
	return ""
}

// hosts returns the hosts that a command asks for.
func (a execArgs) hosts() (entries []egress.Entry, err error) {
	if len(a.AllowNet) > maxHosts {
		return nil, fmt.Errorf("%d hosts are more than the %d that one command may ask for", len(a.AllowNet), maxHosts)
	}
	for _, text := range a.AllowNet {
		e, err := egress.ParseEntry(text)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// widened returns a command with what a person allowed it besides.
func (a execArgs) widened(c sandbox.Command) (sandbox.Command, error) {
	if a.Escalate != "" {
		c.Profile = sandbox.FullAccess
	}
	var err error
	c.Network, err = a.hosts()
	return c, err
}

// tellWidened has a result tell of it.
func (a execArgs) tellWidened(r *sandbox.Result) {
	switch {
	case r.Rung == sandbox.Unconfined:
	case a.Escalate != "":
		r.Notes = append(r.Notes, "it ran with full access, this once")
	case len(a.AllowNet) > 0:
		r.Notes = append(r.Notes, "it could reach "+strings.Join(a.AllowNet, ", ")+", this once")
	}
}
