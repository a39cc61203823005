// Package permission decides what the model may do.
//
// Every tool call passes through [Policy.Decide] before it runs. The answer is
// one of three verdicts: allow, ask or deny. The profile's table judges what a
// tool does ([Effect]); where nobody can answer, ask becomes deny.
//
// Permission judges the agent. What an extension may do is judged by package
// capability instead, and how a permitted command is confined is the business
// of package sandbox. See RATIONALE.md, "Three gates, not one".
package permission

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
