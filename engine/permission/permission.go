// Package permission decides what the model may do.
//
// Every tool call passes through [Policy.Decide] before it runs. The answer is
// one of three verdicts: allow, ask or deny. The profile's table judges what a
// tool does ([Effect]); a question that nobody can be asked is answered by the
// approval mode ([Policy.Answer]), and in doubt the answer is no.
//
// Permission judges the agent. What an extension may do is judged by package
// capability instead, and how a permitted command is confined is the business
// of package sandbox. See RATIONALE.md, "Three gates, not one".
package permission

import (
	"encoding/json"
	"fmt"
)

// Effect is what a tool does to the world, for the profile's table.
type Effect int

// The effects, from the least to the most far-reaching. A tool whose effect is
// not known is not run: the zero value denies.
const (
	Unknown  Effect = iota
	Reads           // looks at the workspace, or, as an extension's tool, reaches only what was granted
	Writes          // changes files
	Executes        // runs commands
	Network         // talks to other machines
)

// Verdict is what is to happen to a call.
type Verdict int

// The verdicts, the most restrictive first.
const (
	Deny Verdict = iota
	Ask
	Allow
)

// String returns the verdict's word.
func (v Verdict) String() string {
	switch v {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	}
	return "deny"
}

// Profile is how far the model may reach; package sandbox enforces the same
// names on commands.
type Profile string

// The profiles.
const (
	ReadOnly       Profile = "read-only"
	WorkspaceWrite Profile = "workspace-write"
	FullAccess     Profile = "full-access"
)

// table is what the profiles say of each effect (DESIGN section 8).
var table = map[Profile]map[Effect]Verdict{
	ReadOnly:       {Reads: Allow, Writes: Deny, Executes: Allow, Network: Ask},
	WorkspaceWrite: {Reads: Allow, Writes: Allow, Executes: Allow, Network: Ask},
	FullAccess:     {Reads: Allow, Writes: Ask, Executes: Ask, Network: Ask},
}

// Approve says who answers what is to be asked.
type Approve string

// The approval modes.
const (
	ApproveAsk   Approve = "ask"   // a person; where there is none, no
	ApproveNever Approve = "never" // nobody: no
	ApproveAuto  Approve = "auto"  // yes to what the sandbox confines; the rest is asked
)

// Call is what is judged.
type Call struct {
	Tool      string
	Effect    Effect
	Arguments json.RawMessage // an object that meets the tool's schema; rules look at it
	Asked     bool            // a hook wants a person to decide: then the sandbox is no answer
	Widens    string          // what it is to do beyond what confines it: whatever Decide says of the rest, only a person can allow that, and that once
}

// Policy judges tool calls. It is safe for concurrent use.
type Policy struct {
	profile    Profile
	approve    Approve
	unconfined bool // commands run without a sandbox
	rules      []Rule
	at         Place
	granted    *grants
}

// New returns the policy of a profile and an approval mode; empty ones mean
// workspace-write and ask.
func New(profile Profile, approve Approve) (*Policy, error) {
	if profile == "" {
		profile = WorkspaceWrite
	}
	if approve == "" {
		approve = ApproveAsk
	}
	if _, ok := table[profile]; !ok {
		return nil, fmt.Errorf("profile %q: not one of read-only, workspace-write, full-access", profile)
	}
	switch approve {
	case ApproveAsk, ApproveNever, ApproveAuto:
	default:
		return nil, fmt.Errorf("approval mode %q: not one of ask, never, auto", approve)
	}
	return &Policy{profile: profile, approve: approve, granted: &grants{}}, nil
}

// Unconfined returns the same policy for a run whose commands are confined by
// nothing: a question about one is then not answered by the sandbox.
func (p *Policy) Unconfined() *Policy {
	unconfined := *p
	unconfined.unconfined = true
	return &unconfined
}

// Decide judges a call and says by what: the profile denies, rules decide, and
// where none speaks the profile does.
func (p *Policy) Decide(c Call) (Verdict, string) {
	verdict, by := table[p.profile][c.Effect], fmt.Sprintf("the profile %q", p.profile)
	switch {
	case verdict == Deny:
		return Deny, by
	case c.Widens != "" && p.profile == ReadOnly:
		return Deny, by + ", beyond which nothing goes"
	}
	if verdict == Allow && len(p.rules) == 0 { // where nothing is asked, nothing was granted
		return verdict, by
	}
	if ruled, rule, spoke := p.judge(c); spoke {
		return ruled, rule
	}
	return verdict, by
}

// Answer answers a question about c that no person is there to answer, and
// says why.
func (p *Policy) Answer(c Call) (allowed bool, why string) {
	confined := c.Effect == Reads ||
		p.profile != FullAccess && (c.Effect == Writes || c.Effect == Executes && !p.unconfined)
	switch {
	case p.approve == ApproveAuto && confined && !c.Asked && c.Widens == "" && !p.asks(c):
		return true, "approved automatically: the sandbox confines it"
	case p.approve == ApproveNever:
		return false, "it needs approval, and nothing is ever approved (--approve never)"
	}
	return false, "it needs approval, and nobody can be asked"
}
