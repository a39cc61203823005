package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/engine/tool/builtin"
)

func permissionsCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "permissions: ", []command{
		{"list", "", "the rules in force, and where each is from", permissionsList},
		{"explain", "CMD", "what would become of a command, and by which rule", permissionsExplain},
		{"revoke", "RULE", "take back what was allowed always in this project", permissionsRevoke},
	}, args)
}

// permissionsConfig are rules about what the model may do, such as exec(git push *).
type permissionsConfig struct {
	Deny  []string `toml:"deny"`
	Ask   []string `toml:"ask"`
	Allow []string `toml:"allow"`
}

// rules reads them; from is where they stand.
func (c permissionsConfig) rules(from string) ([]permission.Rule, error) {
	var all []permission.Rule
	for _, list := range []struct {
		verdict permission.Verdict
		texts   []string
	}{{permission.Deny, c.Deny}, {permission.Ask, c.Ask}, {permission.Allow, c.Allow}} {
		for _, text := range list.texts {
			rule, err := permission.ParseRule(list.verdict, text, from)
			if err != nil {
				return nil, fmt.Errorf("%s: permissions.%s: %w%s", from, list.verdict, err, didYouMean(rule.Misses(nil), permission.Names()))
			}
			all = append(all, rule)
		}
	}
	return all, nil
}

// tellMisspelt tells of rules about tools that are not there: what a misspelt one was to deny
// is not denied. Where nothing is loaded, tools is nil, and a name that is like none of Wharf's
// own may be that of an extension's tool.
func tellMisspelt(view *progress, rules []permission.Rule, tools *tool.Registry) {
	var names []string
	missing := "no tool of Wharf's own"
	if tools != nil {
		missing = "no tool that there is"
		for _, spec := range tools.Specs() {
			names = append(names, spec.Name)
		}
	}
	known := append(permission.Names(), names...)
	slices.Sort(known)
	known = slices.Compact(known)
	for _, r := range rules {
		name := r.Misses(names)
		if hint := didYouMean(name, known); name != "" && (tools != nil || hint != "") {
			view.notice("the rule %q is about %s%s", r, missing, hint)
		}
	}
}

// addRuleFlags adds --deny, --ask and --allow.
func addRuleFlags(f *pflag.FlagSet, into *permissionsConfig) {
	f.StringArrayVar(&into.Deny, "deny", nil, "deny calls by a `RULE` such as exec(git push *), Read(.env) or web_fetch; repeatable")
	f.StringArrayVar(&into.Ask, "ask", nil, "have calls asked about by a `RULE`; repeatable")
	f.StringArrayVar(&into.Allow, "allow", nil, "allow calls by a `RULE`, where the profile would ask; repeatable")
}

// newPolicy returns what judges the model's calls in a workspace.
func newPolicy(cfg config, f folders, workspace string) (*permission.Policy, error) {
	policy, err := permission.New(permission.Profile(cfg.Sandbox.Profile), permission.Approve(cfg.Approve))
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	allowed, err := readRemembered(f, workspace)
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	for _, rule := range allowed.Allow {
		if err := policy.Grant(rule); err != nil {
			return nil, exitError{exitUsage, fmt.Errorf("%s: %w", allowed.path, err)}
		}
	}
	return policy.WithRules(cfg.rules, permission.Place{
		Workspace: workspace, Home: home, Resolve: func(path string) string { return realPath(workspace, path) },
	}), nil
}

// realPath follows the links of a path, as far as it is there: in the workspace as the file
// tools do, to what a link names that is not there yet, too.
func realPath(workspace, path string) string {
	if root, err := sandbox.OpenRoot(workspace); err == nil {
		defer root.Close()
		if rel, err := root.Resolve(path); err == nil && !strings.HasPrefix(path, "~") {
			return filepath.Join(root.Dir(), rel)
		}
	}
	path = absolute(path, workspace)
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(path)
		if !errors.Is(err, os.ErrNotExist) || parent == path {
			return ""
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// permissionsFlags are the flags by which the rules in force are found.
func permissionsFlags(name string, o *runOptions, asJSON *bool) *pflag.FlagSet {
	f := sandboxFlags(name, o)
	addRuleFlags(f, &o.rules)
	f.BoolVar(asJSON, "json", false, "print JSON")
	return f
}

// ruled is what the commands about permissions look at.
type ruled struct {
	policy    *permission.Policy
	rules     []permission.Rule
	folders   folders
	workspace string
}

// rulesInForce finds the rules of the configuration, the flags and the project.
func (o runOptions) rulesInForce(io stdio) (r ruled, err error) {
	if r.folders, err = findFolders(); err != nil {
		return r, err
	}
	view := newProgress(io.err, false)
	if r.workspace, _, err = o.workspace(r.folders, view); err != nil {
		return r, err
	}
	cfg, notices, err := o.config(r.folders, r.workspace)
	if err != nil {
		return r, err
	}
	for _, notice := range notices {
		view.notice("%s", notice)
	}
	r.rules = cfg.rules
	tellMisspelt(view, r.rules, nil)
	r.policy, err = newPolicy(cfg, r.folders, r.workspace)
	return r, err
}

// listedRule is a rule in the output of permissions list --json.
type listedRule struct {
	Verdict string `json:"verdict"`
	Rule    string `json:"rule"`
	Source  string `json:"source"`
}

func permissionsList(_ context.Context, io stdio, args []string) error {
	var o runOptions
	var asJSON bool
	f := permissionsFlags("permissions list", &o, &asJSON)
	if err := parse(io, f, "permissions list [flags]", args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return usagef("permissions list: it takes no arguments; wharf permissions explain takes a command")
	}
	found, err := o.rulesInForce(io)
	if err != nil {
		return err
	}
	rules, err := rulesOf(found.rules, found.folders, found.workspace)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(io, rules)
	}
	_, err = fmt.Fprint(io.out, printable(ruleTable(rules)))
	return err
}

// rulesOf lists rules in the order in which they are asked, and what was allowed
// always in a workspace.
func rulesOf(rules []permission.Rule, f folders, workspace string) ([]listedRule, error) {
	all := []listedRule{}
	for _, verdict := range []permission.Verdict{permission.Deny, permission.Ask, permission.Allow} {
		for _, r := range rules {
			if r.Verdict == verdict {
				all = append(all, listedRule{verdict.String(), r.Text, r.Source})
			}
		}
	}
	always, err := readRemembered(f, workspace)
	for _, rule := range always.Allow {
		all = append(all, listedRule{"allow", rule, "your yes in this project"})
	}
	return all, err
}

func ruleTable(rules []listedRule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "%-5s  %-40s  %s\n", r.Verdict, r.Rule, r.Source)
	}
	if len(rules) == 0 {
		fmt.Fprintf(&b, "there are no rules: the profile decides (wharf sandbox explain)\n")
	}
	return b.String()
}

func permissionsRevoke(_ context.Context, io stdio, args []string) error {
	var o runOptions
	f := sandboxFlags("permissions revoke", &o)
	if err := parse(io, f, "permissions revoke [-C DIR] RULE", args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return usagef("permissions revoke: it takes one rule, as wharf permissions list shows it: wharf permissions revoke \"exec(make deploy)\"")
	}
	found, err := o.rulesInForce(io)
	if err != nil {
		return err
	}
	if err := forget(found.folders, found.workspace, f.Arg(0)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "revoked %q in %s: your rules and the profile decide again\n", f.Arg(0), printable(found.workspace))
	return err
}

// explained is the output of permissions explain --json.
type explained struct {
	Command string   `json:"command"`
	Runs    []string `json:"runs"`
	Writes  []string `json:"writes"`
	Open    string   `json:"open,omitempty"`
	Verdict string   `json:"verdict"`
	By      string   `json:"by"`
	Answer  string   `json:"answer,omitempty"` // to a question that nobody is there to answer
}

func permissionsExplain(_ context.Context, io stdio, args []string) error {
	var o runOptions
	var asJSON bool
	f := permissionsFlags("permissions explain", &o, &asJSON)
	f.StringVar(&o.approve, "approve", "", "ask, never or auto: who answers what is to be asked")
	if err := parse(io, f, "permissions explain [flags] CMD", args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return usagef("permissions explain: it takes one command, in quotes: wharf permissions explain \"git push origin main\"")
	}
	found, err := o.rulesInForce(io)
	if err != nil {
		return err
	}
	e := explain(found.policy, f.Arg(0))
	if asJSON {
		return printJSON(io, e)
	}
	_, err = fmt.Fprint(io.out, printable(e.text()))
	return err
}

// explain judges a command as a call of exec.
func explain(policy *permission.Policy, command string) explained {
	parts := permission.Explain(command)
	e := explained{Command: command, Runs: orEmpty(parts.Runs), Writes: orEmpty(parts.Writes), Open: parts.Open}
	arguments, _ := json.Marshal(map[string]string{"command": command}) // a text always encodes
	call := permission.Call{Tool: "exec", Effect: effectOf("exec"), Arguments: arguments}
	verdict, by := policy.Decide(call)
	e.Verdict, e.By = verdict.String(), by
	if verdict == permission.Ask {
		_, e.Answer = policy.Answer(call)
	}
	return e
}

// effectOf returns what a built-in tool does to the world.
func effectOf(name string) permission.Effect {
	for _, t := range builtin.Tools(builtin.Config{}) { // to be looked at, not run
		if spec := t.Spec(); spec.Name == name {
			return spec.Effect
		}
	}
	return permission.Unknown
}

func (e explained) text() string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "%-9s %s\n", name, text) }
	for _, part := range e.Runs {
		row("runs", part)
	}
	for _, file := range e.Writes {
		row("writes", file)
	}
	if e.Open != "" {
		row("open", e.Open)
	}
	row("verdict", e.Verdict+", by "+strings.TrimSuffix(e.By, ","))
	if e.Answer != "" {
		row("alone", e.Answer)
	}
	return b.String()
}
