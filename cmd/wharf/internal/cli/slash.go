package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/session"
)

// slash is a command of the chat.
type slash struct {
	name, short string
	run         func(c *chat, ctx context.Context, rest string) (over bool, err error)
}

func slashes() []slash {
	return []slash{
		{"/help", "this", (*chat).help},
		{"/compact", "sum up what was said so far, to make room", (*chat).compact},
		{"/goal", "GOAL: go on until it is reached, in one turn", (*chat).goal},
		{"/status", "the session, the model, and what was spent", (*chat).status},
		{"/permissions", "the rules in force", (*chat).permissions},
		{"/new", "begin a new session", (*chat).renew},
		{"/quit", "leave; so does Ctrl-D", func(*chat, context.Context, string) (bool, error) { return true, nil }},
	}
}

// command runs a command of the chat. over is whether the chat is.
func (c *chat) command(ctx context.Context, text string) (over bool, err error) {
	name := strings.Fields(text)[0]
	rest := strings.TrimSpace(strings.TrimPrefix(text, name))
	var names []string
	for _, s := range slashes() {
		if s.name == name || name == "/exit" && s.name == "/quit" {
			return s.run(c, ctx, rest)
		}
		names = append(names, s.name)
	}
	slices.Sort(names)
	c.view.notice("there is no command %s%s: /help shows those that there are", name, didYouMean(name, names))
	return false, nil
}

func (c *chat) help(context.Context, string) (bool, error) {
	var b strings.Builder
	for _, s := range slashes() {
		fmt.Fprintf(&b, "%-13s %s\n", s.name, s.short)
	}
	b.WriteString("Ctrl-C        ends a turn; twice, wharf\n\\ at the end of a line goes on in the next\n")
	fmt.Fprint(c.io.out, b.String())
	return false, nil
}

func (c *chat) compact(ctx context.Context, _ string) (bool, error) {
	ctx, done := c.interruptible(ctx)
	defer done()
	summary, err := c.parts.engine.Compact(ctx, true)
	switch {
	case err != nil:
		c.view.notice("/compact: %v", err)
	case summary == "":
		c.view.notice("there is nothing to sum up")
	default:
		c.view.notice("what was said so far stands in %s now", count(len(strings.Fields(summary)), "word"))
	}
	return false, nil
}

// goal runs a turn that goes on until a goal is reached.
func (c *chat) goal(ctx context.Context, text string) (bool, error) {
	if text == "" {
		c.view.notice("/goal: say what is to be reached: /goal make the tests pass")
		return false, nil
	}
	c.turn(ctx, engine.Input{Text: text, Goal: true})
	return false, nil
}

func (c *chat) status(context.Context, string) (bool, error) {
	log := c.parts.log
	model := c.plan.cfg.Model
	if model == "" {
		model = "the server's own"
	}
	fmt.Fprint(c.io.out, printable(fmt.Sprintf("session  %s, %s\nfolder   %s\nmodel    %s\nspent    %d tokens in, %d of them from a cache, %d out\n",
		log.ID(), count(log.Turns(), "turn"), log.Cwd(), model, c.spent.InputTokens, c.spent.CacheReadTokens, c.spent.OutputTokens)))
	return false, nil
}

func (c *chat) permissions(context.Context, string) (bool, error) {
	rules, err := rulesOf(c.plan.cfg.rules, c.plan.folders, c.plan.workspace)
	if err != nil {
		c.view.notice("%v", err)
		return false, nil
	}
	for _, rule := range c.parts.log.Granted() {
		rules = append(rules, listedRule{"allow", rule, "your yes in this session"})
	}
	fmt.Fprint(c.io.out, printable(ruleTable(rules)))
	return false, nil
}

// renew leaves the session and begins another.
func (c *chat) renew(ctx context.Context, _ string) (bool, error) {
	if err := c.end(ctx); err != nil {
		return true, err
	}
	c.plan.resume, c.plan.fork, c.spent = "", false, session.Usage{}
	policy, err := c.newPolicy(c.plan) // what was allowed for a session is over with it
	if err != nil {
		return true, err
	}
	c.plan.policy = policy
	ctx, done := c.interruptible(ctx)
	defer done()
	return false, c.begin(ctx)
}
